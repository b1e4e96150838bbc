//! A device together with what it needs for as long as it lives: the claim on it, or the cache whose mark follows its sessions.
//!
//! The kernel grants O_EXCL on a block device once: a second exclusive open fails with EBUSY, in the same process too.
//! So one descriptor holds the claim and is never used for anything else; every [`Device`] of that target is opened
//! beside it without O_EXCL, which the kernel allows, and keeps the claim for as long as it lives.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use plumb_block::{Device, DeviceInfo, Extent, Latch, LbaRange, Power, Queue, QueueOptions, Result};

/// The exclusive claim on a block device.
pub(crate) type Claim = Arc<OwnedFd>;

/// A device that keeps something.
pub(crate) struct Keeping<D, K> {
    pub(crate) device: D,
    /// Held, never used; dropped after the device.
    pub(crate) _kept: K,
}

impl<D: Device, K: Send + Sync> Device for Keeping<D, K> {
    fn info(&self) -> DeviceInfo {
        self.device.info()
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        self.device.open_queue(options)
    }

    fn extents(&self, range: LbaRange) -> Result<Vec<Extent>> {
        self.device.extents(range)
    }

    fn set_wce(&self, enabled: bool) -> Result<()> {
        self.device.set_wce(enabled)
    }

    fn latched(&self) -> Option<Latch> {
        self.device.latched()
    }

    fn power(&self) -> Power {
        self.device.power()
    }
}
