//! Number of completions to wait for at once.
//!
//! Each wait is a system call. On a fast device, waiting for one completion at a time spends the processor
//! time on calls; on a slow one, waiting for many shortens the queue of the device and makes latencies look
//! longer. So the wait follows the device: as many completions as arrive within 32 us at the pace of the
//! recent ones, and at most a quarter of the requests in flight. With 30 us between completions that is one;
//! with 2 us and depth 64 it is sixteen.
//!
//! If the pace would allow more than the quarter, the limit is either the processor, where larger batches
//! pay, or the device, where they cost. The difference cannot be seen, so both are tried: from time to time
//! half of the requests in flight, limited to the number that arrives within 64 us. The faster way stays.
//!
//! # Maximum error of a latency
//!
//! The first completion of a batch waits for the rest. Two mechanisms limit that:
//!
//! - A timer ends the wait. It programs the hardware twice for each wait, in a virtual machine as expensive
//!   as two or three reads of 4 KiB. So it is left out after [`CALM`] batches that needed none, until one
//!   takes longer than [`Batch::EXCESS_MAX`]. The latencies of such a batch are counted: only they may be too
//!   long by more than that, by at most [`STALL_MAX`]. At least half of the requests in flight really waited
//!   through that stall, so no stall is invented. A complete batch that is late in spite of its timer waited
//!   for the processor, not for the device: it is counted, but causes no further timers.
//! - By Little's law, a quarter of the requests in flight takes a quarter of the latency: on average the
//!   recorded latency is too long by at most an eighth, with halves by a quarter.
//!
//! Submission forms batches, too: requests that complete together and are submitted together complete
//! together again, and the device is idle until they are resubmitted. On a virtual disk at depth 32, bursts
//! of eight cost fio a tenth of its rate. So a burst is as small as the pace allows.

use plumb_block::Nanos;

use crate::share::Trial;

/// Approximate number of polls over which the pace is averaged, a power of two.
const MEMORY: u64 = 16;
/// Factor by which averaged values are scaled, so that slow averaging does not round to nothing.
const SCALE: u64 = 1 << 10;
/// Time for which a batch collects at the pace of the recent completions; twice as long if the batch may be
/// half of the requests in flight.
const SPAN: Nanos = Nanos::micros(32);
/// Number of successive batches in time after which the next wait has no short timer.
const CALM: u32 = 32;
/// Limit of a wait without a short timer. It is longer than the tick of most kernels, which comes anyway, so
/// it needs no programming.
const STALL_MAX: Nanos = Nanos::millis(4);

/// Approximate number of parts into which requests that completed together are split when they are submitted
/// again. More parts would need a system call for every request or two.
const CONVOY_PARTS: usize = 8;

/// Pace of completions, and the batch size that follows from it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batch {
    /// Mean time between polls in nanoseconds and mean number of completions per poll, both scaled. They are
    /// kept separately, since a mean of the quotients would give too much weight to polls with few
    /// completions.
    elapsed_scaled: u64,
    count_scaled: u64,
    /// Number of completions within the span at the mean pace: divided once for each batch, used twice.
    within_span: u64,
    last: Nanos,
    trial: Trial,
    /// Number of consecutive batches that came in time.
    calm: u32,
}

impl Batch {
    /// Largest time that the first completion of a batch waits for the last, without stalls.
    pub(crate) const EXCESS_MAX: Nanos = Nanos::micros(80);

    /// Starts at `now`, with the assumption of a slow device.
    pub(crate) fn starting_at(now: Nanos) -> Self {
        Self {
            elapsed_scaled: SPAN.0 * SCALE,
            count_scaled: SCALE,
            within_span: 1,
            last: now,
            trial: Trial::starting_at(now),
            calm: 0,
        }
    }

    /// Records that `count` requests completed at `now`, when `wanted` were awaited. Returns true if some of
    /// them may have waited for the others for longer than [`EXCESS_MAX`](Self::EXCESS_MAX).
    pub(crate) fn completed(&mut self, count: usize, wanted: u32, now: Nanos) -> bool {
        if count == 0 {
            return false;
        }
        // A long idle time only shows that the pace is slow.
        let elapsed = now.since(self.last).0.min(1 << 40);
        self.elapsed_scaled = averaged(self.elapsed_scaled, elapsed);
        self.count_scaled = averaged(self.count_scaled, count as u64);
        self.last = now;
        self.within_span =
            (SPAN.0 * self.count_scaled + self.elapsed_scaled / 2) / self.elapsed_scaled.max(1);
        self.trial.completed(count, now);
        // If more requests completed than were awaited, the thread had no processor, and a timer would not
        // have helped.
        let is_late = wanted > 1 && count <= wanted as usize && elapsed > Self::EXCESS_MAX.0;
        let timer_was_in_vain = self.patience() == Self::EXCESS_MAX && count == wanted as usize;
        self.calm = if is_late && !timer_was_in_vain { 0 } else { self.calm.saturating_add(1) };
        is_late
    }

    /// Returns the number of requests to submit at once with room for `depth`; at least one.
    pub(crate) fn burst(&self, depth: usize) -> usize {
        (self.limit(depth) as usize * 2).max(depth / CONVOY_PARTS).min(depth)
    }

    /// Returns the number of completions to wait for with `in_flight` requests; at least one.
    pub(crate) fn wanted(&mut self, in_flight: usize) -> u32 {
        self.trial.is_open = self.within_span >= 4;
        self.limit(in_flight)
    }

    /// Returns the time after which fewer completions end the wait.
    pub(crate) fn patience(&self) -> Nanos {
        if self.calm >= CALM { STALL_MAX } else { Self::EXCESS_MAX }
    }

    fn limit(&self, in_flight: usize) -> u32 {
        let in_flight = in_flight as u64;
        let limit = if self.trial.takes_half() {
            (self.within_span * 2).min(in_flight / 2)
        } else {
            self.within_span.min(in_flight / 4)
        };
        limit.max(1) as u32
    }
}

/// Returns the scaled `mean` updated with one more value.
#[inline]
fn averaged(mean: u64, value: u64) -> u64 {
    mean - mean / MEMORY + value * (SCALE / MEMORY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(gap: Nanos) -> Batch {
        let mut batch = Batch::starting_at(Nanos::ZERO);
        for poll in 1..200 {
            batch.completed(4, 4, gap * 4 * poll);
        }
        batch
    }

    #[test]
    fn the_batch_follows_the_pace_of_the_device() {
        assert_eq!(settled(Nanos::micros(30)).wanted(64), 1);
        assert_eq!(settled(Nanos::micros(8)).wanted(32), 4);
        assert_eq!(settled(Nanos::micros(2)).wanted(64), 16);
        assert_eq!(
            settled(Nanos(50)).wanted(256),
            64,
            "a quarter of what is in flight, until halves are tried"
        );
        assert_eq!(settled(Nanos(50)).wanted(1), 1);
        assert_eq!(Batch::starting_at(Nanos::ZERO).wanted(64), 1);
    }

    #[test]
    fn halves_are_for_devices_that_give_more_with_them() {
        for (with_quarters, with_halves, expected) in [(2500, 2000, 16), (2000, 2500, 8), (10_000, 7000, 3)] {
            let mut batch = Batch::starting_at(Nanos::ZERO);
            let (mut now, mut most) = (Nanos::ZERO, 0);
            let mut seen = [0_u32; 33];
            for _ in 0..20_000 {
                let wanted = batch.wanted(32);
                seen[wanted as usize] += 1;
                most = most.max(wanted);
                let gap = if wanted > 8 { with_halves } else { with_quarters };
                now += Nanos(gap) * u64::from(wanted);
                assert!(!batch.completed(wanted as usize, wanted, now), "they all come in time");
            }
            let usual = (0..=32).max_by_key(|wanted| seen[*wanted]);
            assert_eq!(usual, Some(expected), "{with_quarters} and {with_halves} ns apart: {seen:?}");
            assert!(expected > 4 || most <= 4, "a slow device is never asked for more: {seen:?}");
        }
    }

    #[test]
    fn the_short_timer_is_left_out_only_while_batches_come_in_time() {
        let mut batch = settled(Nanos::micros(2));
        assert_eq!(batch.patience(), STALL_MAX);
        assert!(batch.completed(8, 8, batch.last + Nanos::millis(1)), "a stall");
        for _ in 0..CALM {
            assert_eq!(batch.patience(), Batch::EXCESS_MAX);
            assert!(!batch.completed(8, 8, batch.last + Nanos::micros(16)));
        }
        assert_eq!(batch.patience(), STALL_MAX);
        assert!(!batch.completed(1, 1, batch.last + Nanos::millis(1)), "nobody waited for another");
    }

    #[test]
    fn a_timer_that_does_not_help_is_left_out_again_and_what_came_late_still_counts() {
        let after = |count| {
            let mut batch = settled(Nanos::micros(2));
            assert!(batch.completed(8, 8, batch.last + Nanos::millis(1)));
            for _ in 0..CALM {
                assert!(batch.completed(count, 8, batch.last + Nanos::micros(90)), "late all the same");
            }
            batch.patience()
        };
        assert_eq!(after(8), STALL_MAX, "whole and late: the thread did not run");
        assert_eq!(after(7), Batch::EXCESS_MAX, "the timer ended the wait");
    }

    #[test]
    fn a_long_stall_does_not_overflow_and_is_forgotten() {
        let mut batch = settled(Nanos::micros(1));
        batch.completed(1, 1, Nanos::secs(100_000));
        assert_eq!(batch.wanted(64), 1);
        for poll in 1..600 {
            batch.completed(4, 4, Nanos::secs(100_000) + Nanos::micros(4 * poll));
        }
        assert_eq!(batch.wanted(64), 16);
    }
}
