//! Counters of what was requested of a drive and what it has done, as its own side saw it.

use plumb_block::{Bytes, DeviceCounters, Nanos, Op};

/// Cumulative since the drive was made; power cuts do not reset them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Counters as the kernel would keep them for a block device; flushes are those that reached the drive.
    pub storage: DeviceCounters,
    /// Writes and write-zeroes with FUA.
    pub fua_writes: u64,
    /// Flushes that a driver in front of the drive answered itself.
    pub flushes_dropped: u64,
    /// Power cuts.
    pub cuts: u64,
    busy_since: Nanos,
}

impl Counters {
    /// Notes that the drive has something to do from `now` on.
    pub(super) const fn busy(&mut self, now: Nanos) {
        self.busy_since = now;
    }

    /// Notes that the drive has nothing left to do.
    pub(super) fn idle(&mut self, now: Nanos) {
        self.storage.busy_time = self.storage.busy_time.saturating_add(now.since(self.busy_since));
    }

    /// A command of so many bytes was done, and took so long.
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
