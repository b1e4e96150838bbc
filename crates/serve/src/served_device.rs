//! A device with the state shared by everything that serves it: failed flushes, the request timeout, and the
//! power losses known to its users.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plumb_block::{Clock, Device, Nanos, Outcome, Power};

/// Request timeout: the kernel's for a SCSI disk (`/sys/block/*/device/timeout`) and for NVMe
/// (`nvme_core.io_timeout`).
pub(crate) const REQUEST_TIMEOUT: Nanos = Nanos::secs(30);
/// Request timeout during a forced removal.
pub(crate) const REQUEST_TIMEOUT_CLOSING: Nanos = Nanos::secs(3);
/// Value that means no failed flush.
const NONE_FAILED: u64 = u64::MAX;

/// A served device.
///
/// A device latches by itself after a failed flush. The latch here is for failures between it and its users.
/// The latch ends with a loss of [power](plumb_block::Power): then data that was not durable is lost anyway.
pub(crate) struct ServedDevice {
    pub(crate) device: Arc<dyn Device>,
    /// Clock for request timeouts.
    pub(crate) clock: Arc<dyn Clock>,
    /// Number of power losses before a flush failed.
    flush_failed_after: AtomicU64,
    /// True if acknowledged writes were lost earlier: then no flush may ever succeed.
    is_lossy: bool,
    request_timeout_ns: AtomicU64,
}

impl ServedDevice {
    /// Creates a device without losses, with `request_timeout` by `clock`.
    pub(crate) fn new(device: Arc<dyn Device>, clock: Arc<dyn Clock>, request_timeout: Nanos) -> Self {
        Self {
            device,
            clock,
            flush_failed_after: AtomicU64::new(NONE_FAILED),
            is_lossy: false,
            request_timeout_ns: AtomicU64::new(request_timeout.0),
        }
    }

    /// Marks the device as having lost acknowledged writes if `is_lossy`.
    pub(crate) fn with_loss(self, is_lossy: bool) -> Self {
        Self { is_lossy, ..self }
    }

    /// Returns true if acknowledged writes were lost before it was served.
    pub(crate) const fn is_lossy(&self) -> bool {
        self.is_lossy
    }

    /// Returns true if a flush has failed, here or elsewhere on the way to the device, so that none may
    /// succeed.
    pub(crate) fn has_failed_flush(&self) -> bool {
        let failed_after = self.flush_failed_after.load(Ordering::Acquire);
        self.is_lossy
            || self.device.latched().is_some()
            || failed_after != NONE_FAILED && failed_after == self.device.power().losses
    }

    /// Latches after a failed flush, but not after a power loss: the device then starts a new life, and
    /// itself decides whether a flush succeeds.
    pub(crate) fn note_failed_flush(&self, outcome: Outcome) {
        if outcome != Outcome::PowerLost {
            self.flush_failed_after.store(self.device.power().losses, Ordering::Release);
        }
    }

    /// Returns the request timeout.
    pub(crate) fn request_timeout(&self) -> Nanos {
        Nanos(self.request_timeout_ns.load(Ordering::Relaxed))
    }

    /// Limits the request timeout to `timeout`, including requests in flight.
    pub(crate) fn shorten_request_timeout(&self, timeout: Nanos) {
        self.request_timeout_ns.fetch_min(timeout.0, Ordering::Relaxed);
    }
}

/// Power losses known to the users of a front end. After another one their data may be gone: all their
/// requests fail until they have left and new users are [admitted](Self::update).
#[derive(Debug)]
pub(crate) struct KnownLosses(AtomicU64);

impl KnownLosses {
    /// Creates a record of all losses so far, for new users.
    pub(crate) fn for_device(device: &dyn Device) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(device.power().losses)))
    }

    /// Returns true if there was no further loss.
    pub(crate) fn is_all(&self, device: &dyn Device) -> bool {
        self.0.load(Ordering::Acquire) == device.power().losses
    }

    /// Records that the earlier users have left, and that new ones know all losses in `power`.
    pub(crate) fn update(&self, power: Power) {
        self.0.store(power.losses, Ordering::Release);
    }
}
