//! A device together with what it needs for as long as it lives: the claim on it, or the cache whose mark
//! follows its sessions.
//!
//! The kernel grants O_EXCL on a block device once: a second exclusive open fails with EBUSY, in the same
//! process too. So one descriptor holds the claim and is never used for anything else; every [`Device`] of
//! that target is opened beside it without O_EXCL, which the kernel allows, and keeps the claim for as long
//! as it lives.

use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use plumb_block::{Device, DeviceLayer};

/// The exclusive claim on a block device, or the lock on a file (flock(2)).
pub type Claim = Arc<OwnedFd>;

/// A device that keeps something.
pub struct KeepingDevice<D, K> {
    /// The device.
    pub device: D,
    /// Held, never used; dropped after the device.
    pub _kept: K,
}

impl<D: Device, K: Send + Sync> DeviceLayer for KeepingDevice<D, K> {
    type Inner = D;

    fn inner(&self) -> impl Deref<Target = Self::Inner> {
        &self.device
    }
}
