//! Counters of a drive's requests and operations, as seen by the drive.

use plumb_block::{Bytes, DeviceCounters, Nanos, Op};

/// Cumulative counters since the drive was created; not reset by power cuts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Counters like the kernel's for a block device; only flushes that reached the drive count.
    pub storage: DeviceCounters,
    /// Writes and write-zeroes with FUA.
    pub fua_writes: u64,
    /// Flushes answered by a driver in front of the drive.
    pub flushes_dropped: u64,
    /// Power cuts.
    pub cuts: u64,
    busy_since: Nanos,
}

impl Counters {
    /// Records that the drive has work from `now` on.
    pub(super) const fn busy(&mut self, now: Nanos) {
        self.busy_since = now;
    }

    /// Records that the drive has no work left.
    pub(super) fn idle(&mut self, now: Nanos) {
        self.storage.busy_time = self.storage.busy_time.saturating_add(now.since(self.busy_since));
    }

    /// Counts a completed command with its size and duration.
    #[inline]
    pub(super) fn done(&mut self, op: Op, bytes: Bytes, took: Nanos) {
        let storage = &mut self.storage;
        match op {
            Op::Read => {
                storage.reads += 1;
                storage.read_bytes = Bytes(storage.read_bytes.0 + bytes.0);
                storage.read_time = storage.read_time.saturating_add(took);
            }
            Op::Write { fua } | Op::WriteZeroes { fua, .. } => {
                storage.writes += 1;
                storage.write_bytes = Bytes(storage.write_bytes.0 + bytes.0);
                storage.write_time = storage.write_time.saturating_add(took);
                self.fua_writes += u64::from(fua);
            }
            Op::Discard => {
                storage.discards += 1;
                storage.discard_bytes = Bytes(storage.discard_bytes.0 + bytes.0);
            }
            Op::Flush => {
                storage.flushes = Some(storage.flushes.unwrap_or(0) + 1);
                storage.flush_time = storage.flush_time.saturating_add(took);
            }
        }
    }
}
