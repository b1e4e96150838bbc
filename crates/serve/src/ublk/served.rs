//! What all queues of an exported device share: the device, its geometry, and what has become of it.

use std::sync::Arc;

use plumb_block::{Bytes, Device, Outcome, PoolShape, VolatileCache};

use super::options::Survives;
use super::place::Record;
use super::plan::Geometry;
use super::risk::{Acknowledged, Risk, State};
use crate::latch::FlushLatch;

/// What memory is aligned to at least.
const PAGE: Bytes = Bytes::kib(4);
/// Memory of requests that the device has not given back after their end.
const SPARE: u32 = 4;
/// What each tag may need: memory that is lent to the kernel, and as much for a read.
const OF_A_TAG: u32 = 2;

/// The device and what is known of it.
pub(super) struct Served {
    pub(super) device: Arc<dyn Device>,
    pub(super) geometry: Geometry,
    alignment: Bytes,
    /// Closed by the first flush that failed: from then on none succeeds, until the device lives anew.
    flush_failed: FlushLatch,
    /// Acknowledged writes went with the server before this one: no flush may ever succeed.
    is_lossy: bool,
    risk: Risk,
    survives: Survives,
}

impl Served {
    /// A device that is new, or taken over with the record of the server before.
    pub(super) fn new(
        device: Arc<dyn Device>,
        geometry: Geometry,
        survives: Survives,
        record: Record,
    ) -> Self {
        let is_lossy = match survives {
            Survives::Acknowledged => record.state == State::Failed,
            Survives::Durable | Survives::Nothing => record.state != State::Clean,
        };
        Self {
            alignment: device.info().dma_alignment.max(PAGE),
            device,
            geometry,
            flush_failed: FlushLatch::open(),
            is_lossy,
            risk: Risk::new(record),
            survives,
        }
    }

    /// Memory for `depth` tags.
    pub(super) fn pool_shape(&self, depth: u16) -> PoolShape {
        PoolShape {
            buffer: self.geometry.request_max.max(self.alignment),
            count: u32::from(depth) * OF_A_TAG + SPARE,
            alignment: self.alignment,
        }
    }

    /// Whether the server before this one took acknowledged writes with it.
    pub(super) fn is_lossy(&self) -> bool {
        self.is_lossy
    }

    pub(super) fn has_failed_flush(&self) -> bool {
        self.is_lossy || self.flush_failed.is_closed(&*self.device)
    }

    /// Latches. A loss of power does not: what comes after it is another life of the device, and whether a flush may
    /// succeed in that one is the device's to say.
    pub(super) fn note_failed_flush(&self, outcome: Outcome) {
        self.risk.failed();
        if outcome != Outcome::PowerLost {
            self.flush_failed.close(&*self.device);
        }
    }

    /// Whether a write that has completed without FUA may be acknowledged.
    pub(super) fn may_acknowledge(&self) -> bool {
        let is_durable = self.survives == Survives::Acknowledged
            || self.device.info().volatile_cache == VolatileCache::None;
        is_durable || self.risk.before_acknowledging().is_ok()
    }

    pub(super) fn before_flushing(&self) -> Acknowledged {
        self.risk.before_flushing()
    }

    pub(super) fn flushed(&self, covered: Acknowledged) {
        self.risk.flushed(covered);
    }

    /// The device is gone, and so is its record.
    pub(super) fn forget(&self) -> super::Result<()> {
        self.risk.forget()
    }
}
