//! Running totals for an observer during a load, read from the workers without stopping them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use plumb_block::{Bytes, Nanos};
use plumb_measure::Histogram;

use crate::in_flight::Kind;
use crate::outcome::LoadOutcome;

/// Progress of a load since the start, with the warm-up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Time since the start.
    pub elapsed: Nanos,
    /// Totals of all workers.
    pub total: Totals,
    /// Totals of each worker, in the order of the teams and of the workers of each team.
    pub teams: Vec<Vec<Totals>>,
}

/// Completed operations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of completed reads.
    pub reads: u64,
    /// Number of completed (acknowledged) writes.
    pub writes: u64,
    /// Number of completed trims.
    pub trims: u64,
    /// Number of completed flushes.
    pub flushes: u64,
    /// Bytes read.
    pub read_bytes: Bytes,
    /// Bytes written.
    pub write_bytes: Bytes,
    /// Number of operations by latency, without flushes: see [`LiveLatency`]. Empty unless requested.
    pub latency: LiveLatency,
    /// Number of flushes by latency.
    pub flush_latency: LiveLatency,
}

/// A coarse distribution of latencies for displays during a run: eight steps per power of two, so accurate to
/// 13 %. Percentiles are interpolated within a step, as if its latencies were spread evenly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveLatency(Vec<u64>);

/// Steps of a live distribution for each power of two of nanoseconds.
const EACH: usize = 8;
/// All steps of a live distribution: up to 36 minutes.
const STEPS: usize = EACH * 38;

impl LiveLatency {
    /// Returns the latency that `percent` of the operations since `earlier` did not exceed; `None` if there
    /// were none.
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
        let (shortest, longest) = (shortest_of(step), shortest_of(step + 1) - 1);
        let within = (rank - (seen - counts[step])) as f64 / counts[step] as f64;
        Some(Nanos(shortest + ((longest - shortest) as f64 * within) as u64))
    }

    /// Returns the distribution of `histogram`, in steps of a live distribution.
    pub fn from_histogram(histogram: &Histogram) -> Self {
        let mut steps = Vec::new();
        for (value, count) in histogram.bins() {
            let step = step_of(value);
            steps.resize(steps.len().max(step + 1), 0);
            steps[step] += count;
        }
        Self(steps)
    }

    /// Adds the distribution of another worker.
    pub fn add(&mut self, other: &Self) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine += theirs;
        }
    }
}

impl Progress {
    /// Returns the progress of the only worker of the only team.
    pub fn of_one(elapsed: Nanos, totals: Totals) -> Self {
        Self { elapsed, total: totals.clone(), teams: vec![vec![totals]] }
    }

    /// Reads the totals from the boards of each team.
    pub(crate) fn from_boards<'a>(elapsed: Nanos, teams: impl Iterator<Item = &'a [Arc<Board>]>) -> Self {
        let teams = teams.map(|boards| boards.iter().map(|board| board.totals()).collect()).collect();
        let mut progress = Self { elapsed, total: Totals::default(), teams };
        for worker in progress.teams.iter().flatten() {
            progress.total.add(worker);
        }
        progress
    }
}

impl Totals {
    /// Returns the number of reads, writes and trims.
    pub const fn operations(&self) -> u64 {
        self.reads + self.writes + self.trims
    }

    /// Adds the totals of another worker.
    pub fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.trims += other.trims;
        self.flushes += other.flushes;
        self.read_bytes += other.read_bytes;
        self.write_bytes += other.write_bytes;
        self.latency.add(&other.latency);
        self.flush_latency.add(&other.flush_latency);
    }
}

/// Returns the step of a latency.
#[inline]
fn step_of(latency: Nanos) -> usize {
    let value = latency.0.max(EACH as u64);
    let doublings = value.ilog2() as usize - EACH.ilog2() as usize;
    let part = (value >> doublings) as usize - EACH;
    (doublings * EACH + part).min(STEPS - 1)
}

/// Returns the shortest latency of a step, in nanoseconds.
const fn shortest_of(step: usize) -> u64 {
    ((EACH + step % EACH) as u64) << (step / EACH)
}

/// Totals of one worker. Only the worker writes them, after each step; the driver reads them. The fields may
/// be from different steps, which does not matter for a display.
#[derive(Debug, Default)]
pub(crate) struct Board {
    totals: [[AtomicU64; 2]; Kind::COUNT],
    /// Empty unless latencies are displayed.
    latency: Box<[AtomicU64]>,
    /// Allocated by the first flush.
    flush_latency: OnceLock<Box<[AtomicU64]>>,
    /// True if the driver waits for [`figures`](Self::figures).
    wants_figures: AtomicBool,
    figures: Mutex<Option<LoadOutcome>>,
}

impl Board {
    /// Creates a board that also shows latencies.
    pub(crate) fn with_latency() -> Self {
        Self { latency: no_latency(), ..Self::default() }
    }

    /// Publishes the totals of each kind of operation.
    pub(crate) fn show(&self, totals: [(u64, u64); Kind::COUNT]) {
        for (cells, (operations, bytes)) in self.totals.iter().zip(totals) {
            cells[0].store(operations, Ordering::Relaxed);
            cells[1].store(bytes, Ordering::Relaxed);
        }
    }

    /// Publishes the latency of an operation.
    #[inline]
    pub(crate) fn took(&self, kind: Kind, latency: Nanos) {
        if kind == Kind::Flush {
            count(self.flush_latency.get_or_init(no_latency), latency);
        } else if !self.latency.is_empty() {
            count(&self.latency, latency);
        }
    }

    /// Asks the worker for all of its figures.
    pub(crate) fn ask_for_figures(&self) {
        self.wants_figures.store(true, Ordering::Relaxed);
    }

    /// Gives all figures to the driver if it requested them. It does not wait: the driver holds the lock only
    /// to take figures that it requested before.
    #[inline]
    pub(crate) fn give_figures(&self, figures: impl FnOnce() -> LoadOutcome) {
        if self.wants_figures.load(Ordering::Relaxed)
            && let Ok(mut given) = self.figures.try_lock()
        {
            self.wants_figures.store(false, Ordering::Relaxed);
            *given = Some(figures());
        }
    }

    /// Takes the figures that the worker has given since the last call.
    pub(crate) fn take_figures(&self) -> Option<LoadOutcome> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns the current totals.
    pub(crate) fn totals(&self) -> Totals {
        let value = |kind: Kind, field: usize| self.totals[kind as usize][field].load(Ordering::Relaxed);
        Totals {
            reads: value(Kind::Read, 0),
            writes: value(Kind::Write, 0),
            trims: value(Kind::Trim, 0),
            flushes: value(Kind::Flush, 0),
            read_bytes: Bytes(value(Kind::Read, 1)),
            write_bytes: Bytes(value(Kind::Write, 1)),
            latency: shown(&self.latency),
            flush_latency: self.flush_latency.get().map(|cells| shown(cells)).unwrap_or_default(),
        }
    }
}

/// Allocates the counters of all steps.
fn no_latency() -> Box<[AtomicU64]> {
    (0..STEPS).map(|_| AtomicU64::new(0)).collect()
}

/// Increments a counter. Only the worker writes, so no increment can be lost.
#[inline]
fn count(cells: &[AtomicU64], latency: Nanos) {
    if let Some(cell) = cells.get(step_of(latency)) {
        cell.store(cell.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

fn shown(cells: &[AtomicU64]) -> LiveLatency {
    LiveLatency(cells.iter().map(|cell| cell.load(Ordering::Relaxed)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_percentiles_are_within_a_step_and_count_from_a_moment() {
        let board = Board::with_latency();
        for _ in 0..100 {
            board.took(Kind::Read, Nanos::micros(10));
        }
        let before = board.totals();
        let mut histogram = Histogram::new();
        for micros in 1..=1000 {
            board.took(Kind::Write, Nanos::micros(micros));
            board.took(Kind::Flush, Nanos::micros(micros));
            histogram.record(Nanos::micros(micros));
        }
        let now = board.totals();
        for (percent, exact) in [(50.0, 500_000.0), (99.0, 990_000.0), (100.0, 1_000_000.0)] {
            let flushes = [now.flush_latency.clone(), LiveLatency::from_histogram(&histogram)];
            for latency in [now.latency.clone()].iter().chain(&flushes) {
                let shown = latency.percentile_since(&before.latency, percent).unwrap().0 as f64;
                assert!((shown / exact - 1.0).abs() < 0.13, "{percent} %: {shown} for {exact}");
            }
        }
        assert_eq!(now.latency.percentile_since(&now.latency, 50.0), None);
        for nanos in [0, 1, 3, 4, 5, 7, 8, 1023, 1024, u64::MAX] {
            assert!(step_of(Nanos(nanos)) < STEPS);
            assert!(shortest_of(step_of(Nanos(nanos))) <= nanos.max(8), "{nanos}");
            assert!(shortest_of(step_of(Nanos(nanos)) + 1) > nanos.min(1 << 40), "{nanos}");
        }
    }
}
