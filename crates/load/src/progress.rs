//! What an observer sees while a load runs: running totals, read from the workers without stopping them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plumb_block::{Bytes, Nanos};

use crate::in_flight::Kind;

/// How far a load has come since the start, warm-up included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Time since the start.
    pub elapsed: Nanos,
    /// All workers together.
    pub total: Totals,
    /// Each worker, in the order of the teams; of one team in the order of its workers.
    pub teams: Vec<Vec<Totals>>,
}

/// Operations that completed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Reads that completed.
    pub reads: u64,
    /// Writes that completed: acknowledged.
    pub writes: u64,
    /// Trims that completed.
    pub trims: u64,
    /// Flushes that completed.
    pub flushes: u64,
    /// Bytes read.
    pub read_bytes: Bytes,
    /// Bytes written.
    pub write_bytes: Bytes,
    /// How many operations, flushes left out, took how long: see [`LiveLatency`]. Empty unless asked for.
    pub latency: LiveLatency,
}

/// A coarse distribution of latencies, for looking at while it grows: four steps to each doubling, so within 19 %.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveLatency(Vec<u64>);

/// Steps of a live distribution: four for each power of two of nanoseconds.
const STEPS: usize = 4 * 40;

impl LiveLatency {
    /// The latency that `percent` of the operations since `earlier` did not exceed; `None` if there were none.
    pub fn percentile_since(&self, earlier: &Self, percent: f64) -> Option<Nanos> {
        let counts = self
            .0
            .iter()
            .enumerate()
            .map(|(step, count)| count.saturating_sub(earlier.0.get(step).copied().unwrap_or(0)));
        let counts: Vec<u64> = counts.collect();
        let total: u64 = counts.iter().sum();
        let rank = ((total as f64 * percent / 100.0).ceil() as u64).max(1);
        let mut seen = 0;
        let step = counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(Nanos(longest_of(step)))
    }

    /// Adds another worker's.
    pub fn add(&mut self, other: &Self) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine += theirs;
        }
    }
}

impl Progress {
    /// What stands on the boards of each team.
    pub(crate) fn of<'a>(elapsed: Nanos, teams: impl Iterator<Item = &'a [Arc<Board>]>) -> Self {
        let teams = teams.map(|boards| boards.iter().map(|board| board.totals()).collect()).collect();
        let mut progress = Self { elapsed, total: Totals::default(), teams };
        for worker in progress.teams.iter().flatten() {
            progress.total.add(worker);
        }
        progress
    }
}

impl Totals {
    /// Reads, writes and trims.
    pub const fn operations(&self) -> u64 {
        self.reads + self.writes + self.trims
    }

    /// Adds another worker's.
    pub fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.trims += other.trims;
        self.flushes += other.flushes;
        self.read_bytes += other.read_bytes;
        self.write_bytes += other.write_bytes;
        self.latency.add(&other.latency);
    }
}

/// Which step a latency falls into.
#[inline]
fn step_of(latency: Nanos) -> usize {
    let value = latency.0.max(4);
    let doublings = value.ilog2();
    let quarter = (value >> (doublings - 2)) & 3;
    ((doublings as usize - 2) * 4 + quarter as usize).min(STEPS - 1)
}

/// The longest latency of a step, in nanoseconds.
fn longest_of(step: usize) -> u64 {
    let (doublings, quarter) = (step / 4 + 2, step as u64 % 4);
    ((5 + quarter) << (doublings - 2)) - 1
}

/// One worker's totals. Written by the worker alone, after each step; read by the driver. The fields may be from
/// different steps, which for a display does not matter.
#[derive(Debug, Default)]
pub(crate) struct Board {
    totals: [[AtomicU64; 2]; Kind::COUNT],
    /// Empty unless somebody looks.
    latency: Box<[AtomicU64]>,
}

impl Board {
    /// A board that also shows latencies.
    pub(crate) fn with_latency() -> Self {
        Self { latency: (0..STEPS).map(|_| AtomicU64::new(0)).collect(), ..Self::default() }
    }

    /// Shows the totals of each kind of operation.
    pub(crate) fn show(&self, totals: [(u64, u64); Kind::COUNT]) {
        for (cells, (operations, bytes)) in self.totals.iter().zip(totals) {
            cells[0].store(operations, Ordering::Relaxed);
            cells[1].store(bytes, Ordering::Relaxed);
        }
    }

    /// Shows that an operation took so long. Only the worker writes, so no addition can be lost.
    #[inline]
    pub(crate) fn took(&self, latency: Nanos) {
        if self.latency.is_empty() {
            return;
        }
        if let Some(cell) = self.latency.get(step_of(latency)) {
            cell.store(cell.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// The totals now.
    pub(crate) fn totals(&self) -> Totals {
        let value = |kind: Kind, field: usize| self.totals[kind as usize][field].load(Ordering::Relaxed);
        Totals {
            reads: value(Kind::Read, 0),
            writes: value(Kind::Write, 0),
            trims: value(Kind::Trim, 0),
            flushes: value(Kind::Flush, 0),
            read_bytes: Bytes(value(Kind::Read, 1)),
            write_bytes: Bytes(value(Kind::Write, 1)),
            latency: LiveLatency(self.latency.iter().map(|cell| cell.load(Ordering::Relaxed)).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_percentiles_are_within_a_step_and_count_from_a_moment() {
        let board = Board::with_latency();
        for _ in 0..100 {
            board.took(Nanos::micros(10));
        }
        let before = board.totals();
        for micros in 1..=1000 {
            board.took(Nanos::micros(micros));
        }
        let now = board.totals();
        for (percent, exact) in [(50.0, 500_000.0), (99.0, 990_000.0), (100.0, 1_000_000.0)] {
            let shown = now.latency.percentile_since(&before.latency, percent).unwrap().0 as f64;
            assert!(shown >= exact * 0.999 && shown <= exact * 1.26, "{percent} %: {shown} for {exact}");
        }
        assert_eq!(now.latency.percentile_since(&now.latency, 50.0), None);
        for nanos in [0, 1, 3, 4, 5, 7, 8, 1023, 1024, u64::MAX] {
            assert!(step_of(Nanos(nanos)) < STEPS);
            assert!(longest_of(step_of(Nanos(nanos))) >= nanos.min(1 << 41), "{nanos}");
        }
    }
}
