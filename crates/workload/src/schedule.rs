//! Schedule: the intended start times of operations.
//!
//! The schedule is fixed in advance: an operation that cannot start in time is late, and its lateness counts.
//! A load that waits for the device before it checks the clock misses exactly the moments when the device
//! stalled (coordinated omission).
//!
//! The rate applies to all workers together. At fixed intervals their starts interleave into one schedule.
//! Poisson processes need no coordination: independent processes with a fraction of the rate add up to one
//! with the whole rate.

use plumb_block::{Bytes, Nanos};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::pace::{Amount, Arrival, Rate};
use crate::seed;
use crate::share::Share;
use crate::workload::Workload;

/// Intended start times of one worker's operations.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    share: Share,
    /// Operations or bytes per second for all workers together.
    amount: f64,
    /// Mean operation length if the amount is in bytes: an operation then takes its length from the amount.
    /// `None` if the amount is in operations: an operation then takes one.
    bytes_mean: Option<u64>,
    /// Operations or bytes scheduled so far.
    taken: u64,
    arrival: Process,
}

/// State of the arrivals.
#[derive(Debug, Clone, PartialEq)]
enum Process {
    /// Fixed intervals, computed from `taken`.
    Fixed,
    /// Time of the next arrival in nanoseconds, and the generator for later ones.
    Poisson { at: f64, random: Xoshiro256PlusPlus },
}

impl Schedule {
    /// Creates the schedule of `share`; `None` if the rate is unlimited. The workload must be valid.
    pub fn new(workload: &Workload, share: Share) -> Option<Self> {
        let Rate::Scheduled { amount, arrival } = workload.rate else { return None };
        let (amount, bytes_mean) = match amount {
            Amount::Iops(operations) => (operations, None),
            Amount::BytesPerSecond(bytes) => (bytes, Some(workload.block_mean())),
        };
        let schedule = Self { share, amount, bytes_mean, taken: 0, arrival: Process::Fixed };
        if arrival == Arrival::Fixed {
            return Some(schedule);
        }
        let stream = seed::of_worker(workload.seed ^ seed::ARRIVALS, share.index());
        let random = Xoshiro256PlusPlus::seed_from_u64(stream);
        let mut schedule = Self { arrival: Process::Poisson { at: 0.0, random }, ..schedule };
        // The first arrival comes after an interval too: a process does not start with an arrival.
        schedule.step(schedule.mean());
        Some(Self { taken: 0, ..schedule })
    }

    /// Returns the intended start of the next operation since the start of the run, rounded down to the
    /// nanosecond.
    pub fn intended(&self) -> Nanos {
        match self.arrival {
            Process::Fixed => self.fixed(self.taken),
            Process::Poisson { at, .. } => Nanos(at as u64),
        }
    }

    /// Advances to the next operation after one of `length` was taken.
    pub fn advance(&mut self, length: Bytes) {
        self.step(self.bytes_mean.map_or(1, |_| length.0));
    }

    /// Returns the mean interval between two starts of this worker; if the amount is in bytes, for operations
    /// of mean length.
    pub fn interval(&self) -> Nanos {
        Nanos((self.mean() as f64 * self.scale()) as u64)
    }

    /// Returns the number of operations with an intended start before `time`, at most `most`. If the amount
    /// is in bytes, all but the next one count with the mean length.
    pub fn due_before(&self, time: Nanos, most: u64) -> u64 {
        match self.arrival {
            Process::Fixed => {
                let mean = self.mean();
                first(most, |nth| self.fixed(self.taken.saturating_add(nth.saturating_mul(mean))) >= time)
            }
            Process::Poisson { .. } => {
                let mut ahead = self.clone();
                let mut due = 0;
                while due < most && ahead.intended() < time {
                    ahead.step(self.mean());
                    due += 1;
                }
                due
            }
        }
    }

    /// Advances by `taken` operations or bytes.
    fn step(&mut self, taken: u64) {
        let scale = self.scale();
        self.taken = self.taken.saturating_add(taken);
        if let Process::Poisson { at, random } = &mut self.arrival {
            // Subtracted from one, so that the logarithm exists.
            let part = 1.0 - seed::unit(random.next_u64());
            *at -= libm::log(part) * taken as f64 * scale;
        }
    }

    /// Returns the start of the operation after `taken`, in the schedule of all workers. Uses only
    /// multiplication and division, so it does not drift and is the same on every machine.
    fn fixed(&self, taken: u64) -> Nanos {
        let of = u64::from(self.share.shares().get());
        let mine = u64::from(self.share.index()).saturating_mul(self.mean());
        let before = taken.saturating_mul(of).saturating_add(mine);
        Nanos((before as f64 * 1e9 / self.amount) as u64)
    }

    /// Returns the mean amount of an operation.
    fn mean(&self) -> u64 {
        self.bytes_mean.unwrap_or(1)
    }

    /// Returns the nanoseconds for each operation or byte of this worker.
    fn scale(&self) -> f64 {
        f64::from(self.share.shares().get()) * 1e9 / self.amount
    }
}

/// Returns the first of `0..end` for which `holds` is true, or `end`; `holds` must be monotonic.
fn first(end: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, end);
    while low < high {
        let middle = low.midpoint(high);
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

#[cfg(test)]
mod tests;
