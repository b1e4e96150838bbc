//! Schedule: the times at which operations are meant to start.
//!
//! The schedule is made in advance and never moves: an operation that could not start in time is late, and
//! its lateness counts. A load that waits for the device before it looks at the clock hides exactly the
//! moments when the device stalled (coordinated omission).
//!
//! The rate is that of all workers together. At fixed intervals their starts interleave into one schedule.
//! Poisson processes need no such care: several independent ones, each at its fraction of the rate, are
//! together one at the whole rate.

use plumb_block::{Bytes, Nanos};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::pace::{Amount, Arrival, Rate};
use crate::seed;
use crate::share::Share;
use crate::workload::Workload;

/// The intended starts of one worker's operations.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    share: Share,
    /// Operations or bytes per second, of all workers together.
    amount: f64,
    /// Mean length of an operation in bytes, if bytes are scheduled: an operation then takes its length of
    /// the amount. `None` if operations are scheduled: each takes one.
    bytes_mean: Option<u64>,
    /// Operations or bytes taken so far.
    taken: u64,
    arrival: Process,
}

/// State of the arrivals.
#[derive(Debug, Clone, PartialEq)]
enum Process {
    /// Nothing: they follow from what was taken.
    Fixed,
    /// When the next one comes, in nanoseconds, and what those after it follow from.
    Poisson { at: f64, random: Xoshiro256PlusPlus },
}

impl Schedule {
    /// Returns the schedule of `share`, or `None` if the rate is not limited. The workload is a valid one.
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
        // The first one comes after an interval too: a process does not begin with an arrival.
        schedule.step(schedule.mean());
        Some(Self { taken: 0, ..schedule })
    }

    /// Returns when the next operation is meant to start, since the start of the run, rounded down to the
    /// nanosecond.
    pub fn intended(&self) -> Nanos {
        match self.arrival {
            Process::Fixed => self.fixed(self.taken),
            Process::Poisson { at, .. } => Nanos(at as u64),
        }
    }

    /// Advances to the next operation, after the last one, of this length, has been taken.
    pub fn advance(&mut self, length: Bytes) {
        self.step(self.bytes_mean.map_or(1, |_| length.0));
    }

    /// Returns the mean time between two starts of this worker: that of an operation of mean length, if bytes
    /// are scheduled.
    pub fn interval(&self) -> Nanos {
        Nanos((self.mean() as f64 * self.scale()) as u64)
    }

    /// Returns how many operations from the next one on are meant to start before `time`, counted up to
    /// `most`. If bytes are scheduled, those after the next one are taken to be of mean length.
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

    /// Advances by the operations or bytes that have been taken.
    fn step(&mut self, taken: u64) {
        let scale = self.scale();
        self.taken = self.taken.saturating_add(taken);
        if let Process::Poisson { at, random } = &mut self.arrival {
            // One minus, so that there is a logarithm.
            let part = 1.0 - seed::unit(random.next_u64());
            *at -= libm::log(part) * taken as f64 * scale;
        }
    }

    /// Returns the start of what comes after `taken`, on the schedule of all workers. Multiplication and
    /// division alone: exact as far as the numbers are, without drift, and the same on every machine.
    fn fixed(&self, taken: u64) -> Nanos {
        let of = u64::from(self.share.shares().get());
        let mine = u64::from(self.share.index()).saturating_mul(self.mean());
        let before = taken.saturating_mul(of).saturating_add(mine);
        Nanos((before as f64 * 1e9 / self.amount) as u64)
    }

    /// Returns the mean amount that an operation takes.
    fn mean(&self) -> u64 {
        self.bytes_mean.unwrap_or(1)
    }

    /// Returns the nanoseconds for each operation or byte of this worker.
    fn scale(&self) -> f64 {
        f64::from(self.share.shares().get()) * 1e9 / self.amount
    }
}

/// Returns the first of `0..end` for which `holds`, or `end`; it holds for all after the first.
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
