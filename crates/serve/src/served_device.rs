//! A device that is served, as all who serve it share it: whether a flush of it has failed, and how long it may take for a
//! request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plumb_block::{Device, Outcome};

/// How long the device may take for a request: as long as the kernel gives a SCSI disk (`/sys/block/*/device/timeout`) and
/// an NVMe one (`nvme_core.io_timeout`).
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The same once the device has to be taken away in any case.
pub(crate) const REQUEST_TIMEOUT_CLOSING: Duration = Duration::from_secs(3);
/// No flush has failed.
const NO_GENERATION: u64 = u64::MAX;

/// A device that is served.
///
/// A device latches by itself after a failed flush. The latch here is for what fails between it and whoever asked. It ends when
/// the device tells by its [generation](plumb_block::DeviceInfo::generation) that its power was off: then nothing that was not
/// durable can be vouched for, or need be.
pub(crate) struct ServedDevice {
    pub(crate) device: Arc<dyn Device>,
    /// The generation of the device in which a flush failed.
    flush_failed_in: AtomicU64,
    /// Acknowledged writes were lost before it was served: no flush may ever succeed.
    is_lossy: bool,
    request_timeout_ns: AtomicU64,
}

impl ServedDevice {
    /// A device of which nothing was lost yet.
    pub(crate) fn new(device: Arc<dyn Device>, request_timeout: Duration) -> Self {
        Self {
            device,
            flush_failed_in: AtomicU64::new(NO_GENERATION),
            is_lossy: false,
            request_timeout_ns: AtomicU64::new(nanos(request_timeout)),
        }
    }

    /// The same, of which acknowledged writes were lost if `is_lossy`.
    #[cfg(feature = "ublk")]
    pub(crate) fn with_loss(self, is_lossy: bool) -> Self {
        Self { is_lossy, ..self }
    }

    /// Whether acknowledged writes were lost before it was served.
    #[cfg(feature = "ublk")]
    pub(crate) const fn is_lossy(&self) -> bool {
        self.is_lossy
    }

    /// Whether a flush has failed, here or on another way to the device, so that none may succeed.
    pub(crate) fn has_failed_flush(&self) -> bool {
        let failed_in = self.flush_failed_in.load(Ordering::Acquire);
        self.is_lossy
            || self.device.latched().is_some()
            || failed_in != NO_GENERATION && failed_in == self.device.info().generation
    }

    /// Latches. A loss of power does not: what comes after it is another life of the device, and whether a flush may
    /// succeed in that one is the device's to say.
    pub(crate) fn note_failed_flush(&self, outcome: Outcome) {
        if outcome != Outcome::PowerLost {
            self.flush_failed_in.store(self.device.info().generation, Ordering::Release);
        }
    }

    /// How long the device may take for a request before it is given up.
    pub(crate) fn request_timeout(&self) -> Duration {
        Duration::from_nanos(self.request_timeout_ns.load(Ordering::Relaxed))
    }

    /// From now on no longer than `timeout`, for what is in flight already too.
    pub(crate) fn shorten_request_timeout(&self, timeout: Duration) {
        self.request_timeout_ns.fetch_min(nanos(timeout), Ordering::Relaxed);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
