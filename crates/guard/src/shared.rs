//! [`KeepingDevice`]: a device that owns what it needs for its lifetime, such as the claim on a block device,
//! or the cache whose mark follows its sessions.
//!
//! The kernel grants O_EXCL on a block device once: a second exclusive open fails with EBUSY, even in the
//! same process. So one descriptor holds the claim and has no other use. Each [`Device`] of the target is
//! opened without O_EXCL, which the kernel allows, and owns a share of the claim.

use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use plumb_block::{Device, DeviceLayer};

/// Exclusive claim on a block device, or lock on a file (flock(2)).
pub type Claim = Arc<OwnedFd>;

/// A device that keeps another value alive.
pub struct KeepingDevice<D, K> {
    /// The device.
    pub device: D,
    /// Value held for the lifetime of the device and dropped after it.
    pub _kept: K,
}

impl<D: Device, K: Send + Sync> DeviceLayer for KeepingDevice<D, K> {
    type Inner = D;

    fn inner(&self) -> impl Deref<Target = Self::Inner> {
        &self.device
    }
}
