//! How far the monotonic clock of a host is from this one.
//!
//! A ping leaves at `sent`, is answered from `theirs_received` to `theirs_sent`, and is back at `received`.
//! The clock of the host is ahead by the difference of the two middles; the error is at most half of what the
//! way there and back took, however that is shared between the two ways. From then on the two clocks may
//! drift apart by [`DRIFT_PPM`], so the bound grows with the age of a sample, before it and after it.
//!
//! Each sample says where the offset lies; all of them together, where all of them say so. Where they
//! contradict one another the clock has jumped, as that of a virtual machine does that was paused: then the
//! bound holds all that any of them says.

use plumb_block::{Clock, Nanos};
use rustix::time::{ClockId, clock_gettime};

/// How fast two monotonic clocks may drift apart: NTP slews each by 500 parts in a million at most.
pub const DRIFT_PPM: u64 = 1000;
/// Maximum number of samples that are kept.
const SAMPLES_MAX: usize = 64;

/// CLOCK_MONOTONIC as the kernel reads it, so that two processes of one machine agree.
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
    /// When the ping left, by this clock.
    pub sent: Nanos,
    /// When it arrived, by the clock of the host.
    pub theirs_received: Nanos,
    /// When the answer left, by the clock of the host.
    pub theirs_sent: Nanos,
    /// When the answer arrived, by this clock.
    pub received: Nanos,
}

/// The offset of a clock at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    /// How far it is ahead, in nanoseconds.
    pub ahead_ns: i128,
    /// The most that this may be wrong.
    pub error: Nanos,
    /// True if the clock has jumped: no one offset agrees with all samples.
    pub jumped: bool,
}

impl Offset {
    /// Creates the estimate in the middle of these two, in nanoseconds; both are rounded outwards.
    fn between(low_ns: i128, high_ns: i128, jumped: bool) -> Self {
        let ahead_ns = (low_ns + high_ns).div_euclid(2);
        let error = u64::try_from(high_ns - ahead_ns).unwrap_or(u64::MAX);
        Self { ahead_ns, error: Nanos(error), jumped }
    }
}

/// Estimate of the clock of a host.
#[derive(Debug, Clone, Default)]
pub struct Estimate {
    samples: Vec<Sample>,
}

impl Sample {
    /// Returns true if it can be true: nothing is answered before it was asked.
    fn is_possible(&self) -> bool {
        let there_and_back = self.received.since(self.sent);
        let longest = there_and_back.saturating_add(Nanos(drift(there_and_back.0) + 1));
        self.theirs_sent >= self.theirs_received && self.theirs_sent.since(self.theirs_received) <= longest
    }

    fn error_at(&self, at: Nanos) -> u64 {
        let (low, high) = self.bounds_at(at);
        u64::try_from(high - low).unwrap_or(u64::MAX)
    }

    /// Returns between which two the offset lies, in nanoseconds.
    fn bounds_at(&self, at: Nanos) -> (i128, i128) {
        let middle = |one: Nanos, two: Nanos| (i128::from(one.0) + i128::from(two.0)) / 2;
        let ahead_ns = middle(self.theirs_received, self.theirs_sent) - middle(self.sent, self.received);
        let there_and_back = self.received.since(self.sent);
        let way = there_and_back.since(self.theirs_sent.since(self.theirs_received));
        let age = at.since(self.received).max(self.sent.since(at)).saturating_add(there_and_back);
        // Halves are rounded up, for the error and for each middle.
        let error = i128::from((way.0.div_ceil(2) + 2).saturating_add(drift(age.0)));
        (ahead_ns - error, ahead_ns + error)
    }
}

/// Returns how far two clocks may drift apart within `time_ns`, in nanoseconds.
const fn drift(time_ns: u64) -> u64 {
    (time_ns / 1_000_000)
        .saturating_mul(DRIFT_PPM)
        .saturating_add(time_ns % 1_000_000 * DRIFT_PPM / 1_000_000)
}

impl Estimate {
    /// Takes a sample in; false if it cannot be true. Of too many the least useful at `reference` goes.
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

    /// Returns how far the clock of the host was, or will be, ahead at `at`; `None` without a sample.
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

    /// Returns the time that the clock of the host shows when this one shows `at`.
    pub fn theirs(&self, at: Nanos) -> Option<Nanos> {
        let theirs = i128::from(at.0) + self.at(at)?.ahead_ns;
        u64::try_from(theirs).ok().map(Nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws the next number of SplitMix64.
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
            // The clock of the host: ahead by `ahead` at zero, and faster or slower by up to 1,000 ppm.
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
        // One way is slow, then the other: together they say more than each.
        let (ahead, slow) = (Nanos::secs(5), Nanos::millis(8));
        assert!(estimate.add(sample(Nanos::secs(1), ahead, slow, Nanos(0)), Nanos::secs(1)));
        assert!(estimate.add(sample(Nanos::secs(1), ahead, Nanos(0), slow), Nanos::secs(1)));
        let both = estimate.at(Nanos::secs(1)).unwrap();
        assert!(!both.jumped && both.error < Nanos::micros(50), "{both:?}");
        assert!((both.ahead_ns - 5_000_000_000).unsigned_abs() <= u128::from(both.error.0), "{both:?}");
        // Paused for a second: the bound holds both offsets.
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
