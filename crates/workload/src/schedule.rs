//! When operations are meant to start.
//!
//! The schedule is made in advance and never moves: an operation that could not start in time is late, and its
//! lateness counts. A load that waits for the device before it looks at the clock hides exactly the moments when the
//! device stalled (coordinated omission).

use plumb_block::{Iops, Nanos};

use crate::share::Share;
use crate::workload::Rate;

/// The intended starts of one worker's operations, at fixed intervals.
///
/// With several workers the starts interleave: together they are one schedule at the whole rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    iops: f64,
    share: Share,
}

impl Schedule {
    /// The schedule of `share`, or `None` if the rate is not limited.
    pub fn new(rate: Rate, share: Share) -> Option<Self> {
        match rate {
            Rate::Unlimited => None,
            Rate::Fixed(Iops(iops)) => Some(Self { iops, share }),
        }
    }

    /// When operation `ordinal` (from 0) is meant to start, since the start of the run, rounded down to the
    /// nanosecond. Multiplication and division alone: the same on every machine.
    pub fn intended(&self, ordinal: u64) -> Nanos {
        let of = u64::from(self.share.of().get());
        let nth = ordinal.saturating_mul(of).saturating_add(u64::from(self.share.index()));
        Nanos((nth as f64 * 1e9 / self.iops) as u64)
    }

    /// How many operations are meant to start before `time`, since the start of the run.
    pub fn starts_before(&self, time: Nanos) -> u64 {
        let (mut low, mut high) = (0, time.0);
        while low < high {
            let middle = low.midpoint(high);
            if self.intended(middle) < time {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The time between two starts of this worker.
    pub fn interval(&self) -> Nanos {
        Nanos((f64::from(self.share.of().get()) * 1e9 / self.iops) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    #[test]
    fn starts_are_exact_and_do_not_drift() {
        let schedule = Schedule::new(Rate::Fixed(Iops(3.0)), Share::WHOLE).unwrap();
        assert_eq!(schedule.intended(0), Nanos::ZERO);
        assert_eq!(schedule.intended(1), Nanos(333_333_333));
        assert_eq!(schedule.intended(3), Nanos::secs(1), "thirds of a second drifted");
        assert_eq!(schedule.intended(3 * 86_400), Nanos::secs(86_400));
        assert_eq!(schedule.starts_before(Nanos::ZERO), 0);
        assert_eq!(schedule.starts_before(Nanos(1)), 1);
        assert_eq!(schedule.starts_before(Nanos::secs(1)), 3);
        assert_eq!(schedule.starts_before(Nanos(1_000_000_001)), 4);
        assert_eq!(Schedule::new(Rate::Unlimited, Share::WHOLE), None);
    }

    #[test]
    fn workers_interleave_into_one_schedule() {
        let rate = Rate::Fixed(Iops(1000.0));
        let mut starts: Vec<Nanos> = Share::all(NonZeroU32::new(4).unwrap())
            .flat_map(|share| {
                let schedule = Schedule::new(rate, share).unwrap();
                assert_eq!(schedule.interval(), Nanos::millis(4));
                (0..25).map(move |ordinal| schedule.intended(ordinal))
            })
            .collect();
        starts.sort_unstable();
        assert_eq!(starts, (0..100).map(Nanos::millis).collect::<Vec<_>>());
    }
}
