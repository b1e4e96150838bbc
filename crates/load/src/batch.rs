//! How many completions to wait for at once.
//!
//! Each wait is a system call. On a fast device, waiting for one completion at a time spends the processor on calls;
//! on a slow one, waiting for many leaves the device with a short queue and makes latencies look longer. So the wait
//! follows the device: as many completions as come within [`Batch::PATIENCE`], by the pace of the recent ones, and never
//! more than a quarter of what is in flight. At the pace of 30 us between completions that is one; at 2 us and depth
//! 64 it is sixteen. What completed first waits for the rest of its batch, but not beyond the patience, and by Little's
//! law a quarter of what is in flight takes a quarter of the latency: so no latency is recorded longer than it was by
//! more than 32 us, nor in the mean by more than an eighth.
//!
//! The same holds for submitting: what completed at once and is submitted at once comes back at once, and the device
//! stands idle while the convoy turns around. On a virtual disk at depth 32, bursts of eight cost fio a tenth of its
//! rate. So a burst is as small as the pace allows.

use plumb_block::Nanos;

/// The part of the requests in flight that a batch may be: one of so many.
const SHARE: u64 = 4;
/// The pace is averaged over about so many polls, a power of two.
const MEMORY: u64 = 16;

/// The pace of completions, and the batch that follows from it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batch {
    /// Mean time between completions, in 1/1024 ns so that slow averaging does not round to nothing.
    gap_scaled: u64,
    /// How many come within the patience at that pace: divided once for each batch, asked for twice.
    within_patience: u64,
    last: Nanos,
}

impl Batch {
    /// How long the first completion of a batch may wait for the last.
    pub(crate) const PATIENCE: Nanos = Nanos::micros(32);

    /// Begins at `now`, expecting a slow device.
    pub(crate) fn starting_at(now: Nanos) -> Self {
        Self { gap_scaled: Self::PATIENCE.0 << 10, within_patience: 1, last: now }
    }

    /// Learns that `count` requests completed at `now`.
    pub(crate) fn completed(&mut self, count: usize, now: Nanos) {
        if count == 0 {
            return;
        }
        // An idle stretch says nothing more about the pace than that it is slow.
        let elapsed = now.since(self.last).0.min(1 << 40);
        let gap = (elapsed << 10) / count as u64;
        self.gap_scaled = self.gap_scaled - self.gap_scaled / MEMORY + gap / MEMORY;
        self.last = now;
        let gap = self.gap_scaled.max(1);
        self.within_patience = ((Self::PATIENCE.0 << 10) + gap / 2) / gap;
    }

    /// How many requests to hand over at once with room for `depth`; at least one.
    pub(crate) fn burst(&self, depth: usize) -> usize {
        (self.wanted(depth) as usize * 2).min(depth)
    }

    /// How many completions to wait for with `in_flight` requests; at least one.
    pub(crate) fn wanted(&self, in_flight: usize) -> u32 {
        self.within_patience.min(in_flight as u64 / SHARE).max(1) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(gap: Nanos) -> Batch {
        let mut batch = Batch::starting_at(Nanos::ZERO);
        for poll in 1..200 {
            batch.completed(4, gap * 4 * poll);
        }
        batch
    }

    #[test]
    fn the_batch_follows_the_pace_of_the_device() {
        assert_eq!(settled(Nanos::micros(30)).wanted(64), 1);
        assert_eq!(settled(Nanos::micros(8)).wanted(32), 4);
        assert_eq!(settled(Nanos::micros(2)).wanted(64), 16);
        assert_eq!(settled(Nanos(50)).wanted(256), 64, "never more than a quarter of what is in flight");
        assert_eq!(settled(Nanos(50)).wanted(1), 1);
        assert_eq!(Batch::starting_at(Nanos::ZERO).wanted(64), 1);
    }

    #[test]
    fn a_long_stall_does_not_overflow_and_is_forgotten() {
        let mut batch = settled(Nanos::micros(1));
        batch.completed(1, Nanos::secs(100_000));
        assert_eq!(batch.wanted(64), 1);
        for poll in 1..600 {
            batch.completed(4, Nanos::secs(100_000) + Nanos::micros(4 * poll));
        }
        assert_eq!(batch.wanted(64), 16);
    }
}
