//! State shared by all queues of an exported device: the device, its geometry, and its condition.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plumb_block::{Bytes, Device, PoolShape, RealClock, VolatileCache};

use super::options::Survives;
use super::plan::{Geometry, Plan};
use super::records::Record;
use super::risk::{AcknowledgedWrites, Risk, State};
use super::wire::{Descriptor, Parameters, SECTOR};
use crate::block_layer::PAGE;
use crate::served_device::{KnownLosses, REQUEST_TIMEOUT, ServedDevice};

/// Number of spare buffers for memory that the device keeps after the end of requests.
const SPARE: u32 = 4;
/// Number of buffers for each tag: the memory lent to the kernel, and one for a read.
const OF_A_TAG: u32 = 2;

/// The device with its state.
pub(super) struct ServedDisk {
    pub(super) device: Arc<ServedDevice>,
    /// Power losses known to all users who have the block device open.
    pub(super) known: Arc<KnownLosses>,
    /// Geometry at the time of exporting; `sectors` is the current size.
    pub(super) geometry: Geometry,
    sectors: AtomicU64,
    alignment: Bytes,
    survives: Survives,
    risk: Risk,
}

impl ServedDisk {
    /// Creates the state of a new device, or one taken over with the record of the previous server.
    pub(super) fn new(
        device: Arc<dyn Device>,
        geometry: Geometry,
        record: Record,
        survives: Survives,
    ) -> Self {
        let clock = Arc::new(RealClock::start());
        let is_lossy = is_loss(record.state, survives);
        Self {
            known: KnownLosses::for_device(&*device),
            alignment: device.info().dma_alignment.max(PAGE),
            // Acknowledged writes may have been lost with the previous server.
            device: Arc::new(ServedDevice::new(device, clock, REQUEST_TIMEOUT).with_loss(is_lossy)),
            sectors: AtomicU64::new(geometry.parameters.sectors),
            geometry,
            survives,
            risk: Risk::new(record),
        }
    }

    /// Returns the shape of the memory for `depth` tags.
    pub(super) fn pool_shape(&self, depth: u16) -> PoolShape {
        PoolShape {
            buffer: self.geometry.grid.transfer_max.max(self.alignment),
            count: u32::from(depth) * OF_A_TAG + SPARE,
            alignment: self.alignment,
        }
    }

    /// Returns the action for the request `asked`.
    pub(super) fn plan(&self, asked: &Descriptor) -> Plan {
        let sectors = self.sectors.load(Ordering::Acquire);
        self.geometry.sized_as(&Parameters { sectors, ..self.geometry.parameters }).plan(asked)
    }

    /// Updates the size from the device. Returns it in units of 512 bytes if it has changed.
    pub(super) fn follow_size(&self) -> Option<u64> {
        let info = self.device.device.info();
        let sectors = info.size.round_down(info.logical_block).0 / SECTOR;
        (self.sectors.swap(sectors, Ordering::AcqRel) != sectors).then_some(sectors)
    }

    /// Records the failure of a request that promised durability.
    pub(super) fn note_failed_flush(&self) {
        self.risk.failed();
    }

    /// Returns true if a write that completed without FUA may be acknowledged.
    pub(super) fn may_acknowledge(&self) -> bool {
        self.survives == Survives::Acknowledged
            || self.device.device.info().volatile_cache == VolatileCache::None
            || self.risk.before_acknowledging().is_ok()
    }

    pub(super) fn before_flushing(&self) -> AcknowledgedWrites {
        self.risk.before_flushing()
    }

    pub(super) fn flushed(&self, covered: AcknowledgedWrites) {
        self.risk.flushed(covered);
    }

    /// Appends a line to the record.
    pub(super) fn describe(&self, line: &str) -> crate::error::Result<()> {
        self.risk.append(line)
    }

    /// Removes the record of a device that is gone.
    pub(super) fn forget(&self) -> crate::error::Result<()> {
        self.risk.forget()
    }
}

/// Returns true if acknowledged writes may have been lost with the server that left a record in this state.
fn is_loss(state: State, survives: Survives) -> bool {
    match state {
        State::Clean => false,
        State::Dirty => survives != Survives::Acknowledged,
        State::Failed => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_acknowledged_writes_is_a_loss_unless_they_outlive_the_server() {
        for (state, survives, expected) in [
            (State::Clean, Survives::Durable, false),
            (State::Dirty, Survives::Durable, true),
            (State::Dirty, Survives::Acknowledged, false),
            (State::Failed, Survives::Acknowledged, true),
        ] {
            assert_eq!(is_loss(state, survives), expected, "{state:?}, {survives:?}");
        }
    }
}
