//! [`DeviceLayer`]: a device that wraps another one and changes some of its methods.

use std::ops::Deref;

use crate::device::{Device, Latch, Power, Queue, QueueOptions};
use crate::error::Result;
use crate::info::{DeviceInfo, Extent};
use crate::request::LbaRange;

/// A device that wraps another one. Every method of [`Device`] is forwarded to [`inner`](Self::inner), except
/// the methods of this trait that an implementation overrides.
pub trait DeviceLayer: Send + Sync {
    /// Type of the wrapped device.
    type Inner: Device + ?Sized;

    /// Returns the wrapped device.
    fn inner(&self) -> impl Deref<Target = Self::Inner>;

    /// See [`Device::info`].
    fn info(&self) -> DeviceInfo {
        self.inner().info()
    }

    /// See [`Device::open_queue`].
    ///
    /// # Errors
    /// Fails as [`Device::open_queue`] does.
    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        self.inner().open_queue(options)
    }

    /// See [`Device::extents`].
    ///
    /// # Errors
    /// Fails as [`Device::extents`] does.
    fn extents(&self, range: LbaRange) -> Result<Vec<Extent>> {
        self.inner().extents(range)
    }
}

impl<T: DeviceLayer> Device for T {
    fn info(&self) -> DeviceInfo {
        DeviceLayer::info(self)
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        DeviceLayer::open_queue(self, options)
    }

    fn extents(&self, range: LbaRange) -> Result<Vec<Extent>> {
        DeviceLayer::extents(self, range)
    }

    fn set_wce(&self, enabled: bool) -> Result<()> {
        self.inner().set_wce(enabled)
    }

    fn latched(&self) -> Option<Latch> {
        self.inner().latched()
    }

    fn power(&self) -> Power {
        self.inner().power()
    }
}
