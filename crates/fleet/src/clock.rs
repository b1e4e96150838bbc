//! Offset of a host's monotonic clock from this one.
//!
//! A ping leaves at `sent`, is answered between `theirs_received` and `theirs_sent`, and returns at
//! `received`. The offset of the host's clock is the difference of the two midpoints; its error is at most
//! half the round-trip time, for any asymmetry. As the clocks may drift apart by [`DRIFT_PPM`], the bound
//! grows with the distance in time from a sample.
//!
//! Each sample yields an interval for the offset; the estimate is their intersection. If it is empty, a clock
//! has jumped, as that of a paused virtual machine does; the estimate then covers all intervals.

use plumb_block::{Clock, Nanos};
use rustix::time::{ClockId, clock_gettime};

/// Maximum drift between two monotonic clocks in parts per million: NTP slews each by at most 500.
pub const DRIFT_PPM: u64 = 1000;
/// Maximum number of stored samples.
const SAMPLES_MAX: usize = 64;

/// CLOCK_MONOTONIC of the kernel, which all processes of a machine share.
#[derive(Debug, Clone, Copy, Default)]
pub struct MonotonicClock;

impl Clock for MonotonicClock {
    fn now(&self) -> Nanos {
        let time = clock_gettime(ClockId::Monotonic);
        Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }
}

/// One ping and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Departure of the ping, by this clock.
    pub sent: Nanos,
    /// Arrival of the ping, by the host's clock.
    pub theirs_received: Nanos,
    /// Departure of the answer, by the host's clock.
    pub theirs_sent: Nanos,
    /// Arrival of the answer, by this clock.
    pub received: Nanos,
}

/// Offset of a clock at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    /// Nanoseconds by which the host's clock is ahead.
    pub ahead_ns: i128,
    /// Maximum error of the offset.
    pub error: Nanos,
    /// True if the clock has jumped: the samples contradict each other.
    pub jumped: bool,
}

impl Offset {
    /// Returns the midpoint of an interval in nanoseconds, with an error that covers it.
    fn between(low_ns: i128, high_ns: i128, jumped: bool) -> Self {
        let ahead_ns = (low_ns + high_ns).div_euclid(2);
        let error = u64::try_from(high_ns - ahead_ns).unwrap_or(u64::MAX);
        Self { ahead_ns, error: Nanos(error), jumped }
    }
}

/// Estimate of the offset of a host's clock.
#[derive(Debug, Clone, Default)]
pub struct Estimate {
    samples: Vec<Sample>,
}

impl Sample {
    /// Returns true if the sample is possible: the answer took no longer than the round trip.
    fn is_possible(&self) -> bool {
        let there_and_back = self.received.since(self.sent);
        let longest = there_and_back.saturating_add(Nanos(drift(there_and_back.0) + 1));
        self.theirs_sent >= self.theirs_received && self.theirs_sent.since(self.theirs_received) <= longest
    }

    fn error_at(&self, at: Nanos) -> u64 {
        let (low, high) = self.bounds_at(at);
        u64::try_from(high - low).unwrap_or(u64::MAX)
    }

    /// Returns the lower and upper bound of the offset at `at`, in nanoseconds.
    fn bounds_at(&self, at: Nanos) -> (i128, i128) {
        let middle = |one: Nanos, two: Nanos| (i128::from(one.0) + i128::from(two.0)) / 2;
        let ahead_ns = middle(self.theirs_received, self.theirs_sent) - middle(self.sent, self.received);
        let there_and_back = self.received.since(self.sent);
        let way = there_and_back.since(self.theirs_sent.since(self.theirs_received));
        let age = at.since(self.received).max(self.sent.since(at)).saturating_add(there_and_back);
        // Round up for the error and for each midpoint.
        let error = i128::from((way.0.div_ceil(2) + 2).saturating_add(drift(age.0)));
        (ahead_ns - error, ahead_ns + error)
    }
}

/// Returns the maximum drift of two clocks within `time_ns`, in nanoseconds.
const fn drift(time_ns: u64) -> u64 {
    (time_ns / 1_000_000)
        .saturating_mul(DRIFT_PPM)
        .saturating_add(time_ns % 1_000_000 * DRIFT_PPM / 1_000_000)
}

impl Estimate {
    /// Adds a sample; returns false if it is impossible. If there are too many, drops the one with the
    /// largest error at `reference`.
    pub fn add(&mut self, sample: Sample, reference: Nanos) -> bool {
        if !sample.is_possible() {
            return false;
        }
        self.samples.push(sample);
        if self.samples.len() > SAMPLES_MAX {
            let worst = (0..self.samples.len()).max_by_key(|index| self.samples[*index].error_at(reference));
            worst.map(|index| self.samples.swap_remove(index));
        }
        true
    }

    /// Returns the offset at `at`; `None` without a sample.
    pub fn at(&self, at: Nanos) -> Option<Offset> {
        let bounds = || self.samples.iter().map(|sample| sample.bounds_at(at));
        let low = bounds().map(|(low, _)| low);
        let high = bounds().map(|(_, high)| high);
        let (latest_low, first_high) = (low.clone().max()?, high.clone().min()?);
        if latest_low <= first_high {
            return Some(Offset::between(latest_low, first_high, false));
        }
        Some(Offset::between(low.min()?, high.max()?, true))
    }

    /// Returns the time of the host's clock when this one shows `at`.
    pub fn theirs(&self, at: Nanos) -> Option<Nanos> {
        let theirs = i128::from(at.0) + self.at(at)?.ahead_ns;
        u64::try_from(theirs).ok().map(Nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the next number of SplitMix64.
    fn draw(state: &mut u64) -> u64 {
        let drawn = plumb_block::mixed(*state);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        drawn
    }

    #[test]
    fn the_bound_holds_the_true_offset_with_any_delays_and_drift() {
        let seed = 17;
        let mut state = seed;
        for trial in 0..1000 {
            // Clock of the host: ahead by `ahead` at zero, with a drift of up to 1,000 ppm.
            let ahead = draw(&mut state) % 1_000_000_000_000;
            let ppm = (draw(&mut state) % 2001) as i128 - 1000;
            let theirs = |at: Nanos| Nanos((i128::from(at.0) * (1_000_000 + ppm) / 1_000_000) as u64 + ahead);
            let mut estimate = Estimate::default();
            let mut now = Nanos::secs(1);
            let symmetric = trial % 2 == 0;
            for _ in 0..20 {
                let there = Nanos(draw(&mut state) % 50_000_000);
                let back = if symmetric { there } else { Nanos(draw(&mut state) % 500_000) };
                let (arrived, answered) = (now + there, now + there + Nanos::micros(30));
                let sample = Sample {
                    sent: now,
                    theirs_received: theirs(arrived),
                    theirs_sent: theirs(answered),
                    received: answered + back,
                };
                assert!(estimate.add(sample, now), "seed {seed}, trial {trial}: {sample:?}");
                now = answered + back + Nanos::millis(5);
            }
            for at in [Nanos::secs(1), now, now + Nanos::secs(30)] {
                let offset = estimate.at(at).unwrap();
                let truth = i128::from(theirs(at).0) - i128::from(at.0);
                let wrong = (truth - offset.ahead_ns).unsigned_abs();
                assert!(
                    wrong <= u128::from(offset.error.0),
                    "seed {seed}, trial {trial}: {truth} {offset:?}"
                );
            }
        }
    }

    #[test]
    fn samples_that_contradict_one_another_tell_of_a_jump() {
        let mut estimate = Estimate::default();
        let sample = |sent: Nanos, ahead: Nanos, there: Nanos, back: Nanos| Sample {
            sent,
            theirs_received: sent + there + ahead,
            theirs_sent: sent + there + ahead,
            received: sent + there + back,
        };
        // Delays in opposite directions: the intersection is narrower than either interval.
        let (ahead, slow) = (Nanos::secs(5), Nanos::millis(8));
        assert!(estimate.add(sample(Nanos::secs(1), ahead, slow, Nanos(0)), Nanos::secs(1)));
        assert!(estimate.add(sample(Nanos::secs(1), ahead, Nanos(0), slow), Nanos::secs(1)));
        let both = estimate.at(Nanos::secs(1)).unwrap();
        assert!(!both.jumped && both.error < Nanos::micros(50), "{both:?}");
        assert!((both.ahead_ns - 5_000_000_000).unsigned_abs() <= u128::from(both.error.0), "{both:?}");
        // Paused for a second: the bound covers both offsets.
        let paused = ahead.since(Nanos::secs(1));
        assert!(estimate.add(sample(Nanos::secs(2), paused, slow, Nanos(0)), Nanos::secs(1)));
        let jumped = estimate.at(Nanos::secs(1)).unwrap();
        assert!(jumped.jumped && jumped.error >= Nanos::millis(500), "{jumped:?}");
        for truth in [5_000_000_000, 4_000_000_000_i128] {
            assert!((truth - jumped.ahead_ns).unsigned_abs() <= u128::from(jumped.error.0), "{jumped:?}");
        }
    }

    #[test]
    fn samples_are_bounded_and_impossible_ones_refused() {
        let mut estimate = Estimate::default();
        let sample = |sent: u64, way: u64| Sample {
            sent: Nanos(sent),
            theirs_received: Nanos(sent + way),
            theirs_sent: Nanos(sent + way),
            received: Nanos(sent + 2 * way),
        };
        (1..200).for_each(|way| assert!(estimate.add(sample(1000, way), Nanos(1000))));
        assert_eq!(estimate.samples.len(), SAMPLES_MAX);
        assert_eq!(estimate.at(Nanos(1001)).unwrap().error, Nanos(3), "the best stays");
        let answered_early = Sample { theirs_sent: Nanos(5), ..sample(10, 20) };
        assert!(!estimate.add(answered_early, Nanos(10)));
    }
}
