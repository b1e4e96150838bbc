//! What an observer sees while a load runs: running totals, read from the workers without stopping them.

use std::sync::atomic::{AtomicU64, Ordering};

use plumb_block::{Bytes, Nanos};

/// How far a load has come: all workers together, since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Time since the start.
    pub elapsed: Nanos,
    /// Reads that completed.
    pub reads: u64,
    /// Writes that completed: acknowledged.
    pub writes: u64,
    /// Flushes that completed.
    pub flushes: u64,
    /// Bytes read.
    pub read_bytes: Bytes,
    /// Bytes written.
    pub write_bytes: Bytes,
}

/// One worker's totals. Written by the worker alone, after each step; read by the driver. The fields may be from
/// different steps, which for a display does not matter.
#[derive(Debug, Default)]
pub(crate) struct Board {
    /// When the worker last came back from its queue.
    seen_at: AtomicU64,
    totals: [[AtomicU64; 2]; 3],
}

impl Board {
    /// Shows that the worker is alive at `now`.
    pub(crate) fn seen(&self, now: Nanos) {
        self.seen_at.store(now.0, Ordering::Relaxed);
    }

    /// When the worker was last alive.
    pub(crate) fn seen_at(&self) -> Nanos {
        Nanos(self.seen_at.load(Ordering::Relaxed))
    }

    /// Shows the totals of reads, writes and flushes.
    pub(crate) fn show(&self, totals: [(u64, u64); 3]) {
        for (cells, (operations, bytes)) in self.totals.iter().zip(totals) {
            cells[0].store(operations, Ordering::Relaxed);
            cells[1].store(bytes, Ordering::Relaxed);
        }
    }

    /// Adds this worker's totals to `progress`.
    pub(crate) fn add_to(&self, progress: &mut Progress) {
        let value = |kind: usize, field: usize| self.totals[kind][field].load(Ordering::Relaxed);
        progress.reads += value(0, 0);
        progress.read_bytes += Bytes(value(0, 1));
        progress.writes += value(1, 0);
        progress.write_bytes += Bytes(value(1, 1));
        progress.flushes += value(2, 0);
    }
}
