//! Number of completions to wait for at once.
//!
//! Each wait is a system call. On a fast device, waiting for one completion at a time spends the processor on
//! calls; on a slow one, waiting for many leaves the device with a short queue and makes latencies look
//! longer. So the wait follows the device: as many completions as come within 32 us, by the pace of the
//! recent ones, and at most a quarter of what is in flight. At the pace of 30 us between completions that is
//! one; at 2 us and depth 64 it is sixteen.
//!
//! Where the pace would allow more than the quarter, the processor may be the limit and larger batches pay,
//! or the device may be and they cost. Which it is cannot be seen, so it is tried: now and then half of what
//! is in flight, for as many as come within 64 us, and whichever gave more stays.
//!
//! # How much too long a latency may be
//!
//! What completed first waits for the rest of its batch. Two things bound that:
//!
//! - A timer ends the wait. It costs two programmings of the hardware for each wait, in a virtual machine as
//!   much as two or three reads of 4 KiB. So it is left out after [`CALM`] batches that needed none, until
//!   one takes longer than [`Batch::EXCESS_MAX`]. The latencies of such a batch are counted: they alone may
//!   be longer than they were by more than that, by [`STALL_MAX`] at most. Of what was in flight at least
//!   half did wait through that stall, so none is made up. A batch that came whole and late in spite of its
//!   timer waited for the processor, not for the device: it is counted, but no reason for more timers.
//! - By Little's law, a quarter of what is in flight takes a quarter of the latency: in the mean it is too
//!   long by no more than an eighth, with halves by a quarter.
//!
//! The same holds for submitting: what completed at once and is submitted at once comes back at once, and the
//! device is idle until they are submitted again. On a virtual disk at depth 32, bursts of eight cost fio
//! a tenth of its rate. So a burst is as small as the pace allows.

use plumb_block::Nanos;

use crate::share::Trial;

/// Approximate number of polls over which the pace is averaged, a power of two.
const MEMORY: u64 = 16;
/// Factor by which averaged values are scaled, so that slow averaging does not round to nothing.
const SCALE: u64 = 1 << 10;
/// Time for which a batch collects at the pace of the recent completions; twice as long if it may be half of
/// them.
const SPAN: Nanos = Nanos::micros(32);
/// Number of successive batches in time after which the next is awaited without a short timer.
const CALM: u32 = 32;
/// Time that a batch is waited for without a short timer. Beyond the tick of most kernels, which comes
/// anyway: so it costs no programming.
const STALL_MAX: Nanos = Nanos::millis(4);

/// Approximate number of parts into which requests that completed all at once are split when they are
/// submitted again. More would be a system call for every request or two.
const CONVOY_PARTS: usize = 8;

/// The pace of completions, and the batch that follows from it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batch {
    /// Mean time from poll to poll, in nanoseconds, and mean number of completions in each, both scaled.
    /// Apart, since the mean of their quotients would make much of the polls that brought little.
    elapsed_scaled: u64,
    count_scaled: u64,
    /// How many come within the span at that pace: divided once for each batch, asked for twice.
    within_span: u64,
    last: Nanos,
    trial: Trial,
    /// How many batches in a row came in time.
    calm: u32,
}

impl Batch {
    /// Time that the first completion of a batch may wait for the last, stalls apart.
    pub(crate) const EXCESS_MAX: Nanos = Nanos::micros(80);

    /// Begins at `now`, expecting a slow device.
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

    /// Records that `count` requests completed at `now`, `wanted` of them awaited. Returns true if some of
    /// them may have waited for the others for longer than [`EXCESS_MAX`](Self::EXCESS_MAX).
    pub(crate) fn completed(&mut self, count: usize, wanted: u32, now: Nanos) -> bool {
        if count == 0 {
            return false;
        }
        // An idle stretch says nothing more about the pace than that it is slow.
        let elapsed = now.since(self.last).0.min(1 << 40);
        self.elapsed_scaled = averaged(self.elapsed_scaled, elapsed);
        self.count_scaled = averaged(self.count_scaled, count as u64);
        self.last = now;
        self.within_span =
            (SPAN.0 * self.count_scaled + self.elapsed_scaled / 2) / self.elapsed_scaled.max(1);
        self.trial.completed(count, now);
        // If more came than were waited for, the thread did not get the processor, and no timer would have
        // helped.
        let is_late = wanted > 1 && count <= wanted as usize && elapsed > Self::EXCESS_MAX.0;
        let timer_was_in_vain = self.patience() == Self::EXCESS_MAX && count == wanted as usize;
        self.calm = if is_late && !timer_was_in_vain { 0 } else { self.calm.saturating_add(1) };
        is_late
    }

    /// Returns how many requests to hand over at once with room for `depth`; at least one.
    pub(crate) fn burst(&self, depth: usize) -> usize {
        (self.limit(depth) as usize * 2).max(depth / CONVOY_PARTS).min(depth)
    }

    /// Returns how many completions to wait for with `in_flight` requests; at least one.
    pub(crate) fn wanted(&mut self, in_flight: usize) -> u32 {
        self.trial.is_open = self.within_span >= 4;
        self.limit(in_flight)
    }

    /// Returns how long to wait for that many before fewer will do.
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

/// Returns `mean`, scaled, with one more value.
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
