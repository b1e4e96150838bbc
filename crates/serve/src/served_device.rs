//! A device that is served, as all who serve it share it: whether a flush of it has failed, how long it may
//! take for a request, and which losses of power its users know of.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plumb_block::{Clock, Device, Nanos, Outcome, Power};

/// Time that the device may take for a request: as long as the kernel gives a SCSI disk
/// (`/sys/block/*/device/timeout`) and an NVMe one (`nvme_core.io_timeout`).
pub(crate) const REQUEST_TIMEOUT: Nanos = Nanos::secs(30);
/// Longest time for a request once the device has to be taken away in any case.
pub(crate) const REQUEST_TIMEOUT_CLOSING: Nanos = Nanos::secs(3);
/// No flush has failed.
const NONE_FAILED: u64 = u64::MAX;

/// A device that is served.
///
/// A device latches by itself after a failed flush. The latch here is for what fails between it and whoever
/// asked. It ends when the device has lost its [power](plumb_block::Power): then nothing that was not durable
/// can be vouched for, or need be.
pub(crate) struct ServedDevice {
    pub(crate) device: Arc<dyn Device>,
    /// Clock by which its requests are late.
    pub(crate) clock: Arc<dyn Clock>,
    /// How often the power had been lost when a flush failed.
    flush_failed_after: AtomicU64,
    /// Acknowledged writes were lost before it was served: no flush may ever succeed.
    is_lossy: bool,
    request_timeout_ns: AtomicU64,
}

impl ServedDevice {
    /// Creates a device of which nothing was lost yet, which may take `request_timeout` by `clock` for a
    /// request.
    pub(crate) fn new(device: Arc<dyn Device>, clock: Arc<dyn Clock>, request_timeout: Nanos) -> Self {
        Self {
            device,
            clock,
            flush_failed_after: AtomicU64::new(NONE_FAILED),
            is_lossy: false,
            request_timeout_ns: AtomicU64::new(request_timeout.0),
        }
    }

    /// Returns the device; marks it as having lost acknowledged writes if `is_lossy`.
    pub(crate) fn with_loss(self, is_lossy: bool) -> Self {
        Self { is_lossy, ..self }
    }

    /// Returns true if acknowledged writes were lost before it was served.
    pub(crate) const fn is_lossy(&self) -> bool {
        self.is_lossy
    }

    /// Returns true if a flush has failed, here or on another way to the device, so that none may succeed.
    pub(crate) fn has_failed_flush(&self) -> bool {
        let failed_after = self.flush_failed_after.load(Ordering::Acquire);
        self.is_lossy
            || self.device.latched().is_some()
            || failed_after != NONE_FAILED && failed_after == self.device.power().losses
    }

    /// Latches. A loss of power does not: what comes after it is another life of the device, and whether a
    /// flush may succeed in that one is the device's to say.
    pub(crate) fn note_failed_flush(&self, outcome: Outcome) {
        if outcome != Outcome::PowerLost {
            self.flush_failed_after.store(self.device.power().losses, Ordering::Release);
        }
    }

    /// Returns how long the device may take for a request before it is given up.
    pub(crate) fn request_timeout(&self) -> Nanos {
        Nanos(self.request_timeout_ns.load(Ordering::Relaxed))
    }

    /// Limits the time for a request to `timeout`, for what is in flight already too.
    pub(crate) fn shorten_request_timeout(&self, timeout: Nanos) {
        self.request_timeout_ns.fetch_min(timeout.0, Ordering::Relaxed);
    }
}

/// The losses of power that the users of a front end have been told of. After one more they hold what may be
/// gone: all that they ask fails, until they are gone and their successors are [let in](Self::update).
#[derive(Debug)]
pub(crate) struct KnownLosses(AtomicU64);

impl KnownLosses {
    /// Creates a record of the losses until now: the users are new.
    pub(crate) fn for_device(device: &dyn Device) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(device.power().losses)))
    }

    /// Returns true if there was none since.
    pub(crate) fn is_all(&self, device: &dyn Device) -> bool {
        self.0.load(Ordering::Acquire) == device.power().losses
    }

    /// The users of before are gone: those who come know that `power` was lost so often.
    pub(crate) fn update(&self, power: Power) {
        self.0.store(power.losses, Ordering::Release);
    }
}
