//! A flush that failed on the way to a device: from then on none succeeds, as on the device itself.
//!
//! A device latches by itself. This is for what fails between it and whoever asked, and it ends when the device tells by its
//! [generation](plumb_block::DeviceInfo::generation) that it lives anew: its power was off, so nothing that was not durable
//! can be vouched for or need be.

use std::sync::atomic::{AtomicU64, Ordering};

use plumb_block::Device;

/// Nothing has failed.
const NONE: u64 = u64::MAX;

/// Whether a flush of a device has failed.
#[derive(Debug)]
pub(crate) struct FlushLatch {
    /// The generation of the device in which one failed.
    failed_in: AtomicU64,
}

impl FlushLatch {
    /// None has failed.
    pub(crate) const fn open() -> Self {
        Self { failed_in: AtomicU64::new(NONE) }
    }

    /// A flush of `device` has failed.
    pub(crate) fn close(&self, device: &dyn Device) {
        self.failed_in.store(device.info().generation, Ordering::Release);
    }

    /// Whether a flush of `device` has failed, here or on another way to it.
    pub(crate) fn is_closed(&self, device: &dyn Device) -> bool {
        let failed_in = self.failed_in.load(Ordering::Acquire);
        device.latched().is_some() || failed_in != NONE && failed_in == device.info().generation
    }
}
