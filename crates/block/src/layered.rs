//! Devices in front of another device.

use std::ops::Deref;

use crate::device::{Device, Latch, Power, Queue, QueueOptions};
use crate::error::Result;
use crate::info::{DeviceInfo, Extent};
use crate::request::LbaRange;

/// A device in front of another one. Every method of [`Device`] is answered by [`inner`](Self::inner), except
/// those of this trait that an implementation replaces.
pub trait DeviceLayer: Send + Sync {
    /// Type of the device behind this one.
    type Inner: Device + ?Sized;

    /// Returns the device behind this one.
    fn inner(&self) -> impl Deref<Target = Self::Inner>;

    /// See [`Device::info`].
    fn info(&self) -> DeviceInfo {
        self.inner().info()
    }

    /// See [`Device::open_queue`].
    ///
    /// # Errors
    /// As [`Device::open_queue`].
    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        self.inner().open_queue(options)
    }

    /// See [`Device::extents`].
    ///
    /// # Errors
    /// As [`Device::extents`].
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
