//! A device together with the claim on it.
//!
//! The kernel grants O_EXCL on a block device once: a second exclusive open fails with EBUSY, in the same process too.
//! So one descriptor holds the claim and is never used for anything else; every [`Device`] of that target is opened
//! beside it without O_EXCL, which the kernel allows, and keeps the claim for as long as it lives.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use plumb_block::{Device, DeviceInfo, Extent, Latch, LbaRange, Queue, QueueOptions, Result};
use plumb_linux::FileDevice;

/// The exclusive claim on a block device.
pub(crate) type Claim = Arc<OwnedFd>;

/// A device that keeps its target claimed.
pub(crate) struct Shared {
    pub(crate) device: FileDevice,
    /// Held, never used; dropped after the device.
    pub(crate) _claim: Option<Claim>,
}

impl Device for Shared {
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
}
