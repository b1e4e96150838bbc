//! Busy polling: polling briefly for the next event before sleeping, if that pays off.
//!
//! Many senders issue the next request a few microseconds after an answer: an NBD client, which also sends
//! the payload of a write right after its header, and the kernel on behalf of a serial program. On a fast
//! device a single request ends just as quickly. On most machines, putting the serving thread to sleep and
//! waking it takes longer than that, and the sender pays for the wake-up. So the thread first polls briefly.
//! If nothing arrives, the next wait sleeps at once: then the next 3, 7 and so on up to [`SLEEPS_MAX`], until
//! polling pays off again. An idle sender, a slow device, or a sender that needs this very processor
//! therefore costs almost nothing.

use plumb_block::{Clock, Nanos};

/// Duration of polling.
const POLL_FOR: Nanos = Nanos::micros(50);
/// Number of processor pause instructions between two polls, about a microsecond. Continuous polling would
/// contend with the sender for locks.
const PAUSES: u32 = 30;
/// Maximum number of waits that sleep at once before polling is tried again.
const SLEEPS_MAX: u32 = 1023;

/// Recent success of busy polling.
#[derive(Debug, Default)]
pub(crate) struct BusyPoll {
    /// Remaining number of waits that sleep at once.
    sleeps: u32,
    /// Number of such waits after the last unsuccessful polling.
    sleeps_last: u32,
}

impl BusyPoll {
    /// Calls `look` repeatedly for a short time by `clock`, and returns its result. Skipped while polling
    /// does not pay off.
    pub(crate) fn poll<T>(&mut self, clock: &dyn Clock, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        if self.sleeps > 0 {
            self.sleeps -= 1;
            return None;
        }
        let end = clock.now().saturating_add(POLL_FOR);
        let found = loop {
            let found = look();
            if found.is_some() || clock.now() >= end {
                break found;
            }
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
        };
        self.sleeps_last = if found.is_some() { 0 } else { (2 * self.sleeps_last + 1).min(SLEEPS_MAX) };
        self.sleeps = self.sleeps_last;
        found
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A clock that advances by a microsecond at each reading.
    #[derive(Default)]
    struct Passing(AtomicU64);

    impl Clock for Passing {
        fn now(&self) -> Nanos {
            Nanos::micros(self.0.fetch_add(1, Ordering::Relaxed))
        }
    }

    /// Returns for each of `waits` waits true if it polled at all. The event comes at the second poll if
    /// `comes`, otherwise never.
    fn looks(busy_poll: &mut BusyPoll, waits: u32, comes: bool) -> Vec<bool> {
        let clock = Passing::default();
        let wait = |_| {
            let mut count = 0;
            let found = busy_poll.poll(&clock, || {
                count += 1;
                (comes && count == 2).then_some(())
            });
            assert_eq!(found.is_some(), comes && count > 0, "what was found is handed on");
            count > 0
        };
        (0..waits).map(wait).collect()
    }

    #[test]
    fn who_sends_soon_is_always_looked_for() {
        assert_eq!(looks(&mut BusyPoll::default(), 20, true), [true; 20]);
    }

    #[test]
    fn who_does_not_is_looked_for_less_and_less() {
        let mut busy_poll = BusyPoll::default();
        let looked: Vec<usize> = (0..)
            .zip(looks(&mut busy_poll, 40_000, false))
            .filter_map(|(at, looked)| looked.then_some(at))
            .collect();
        assert_eq!(looked[..6], [0, 2, 6, 14, 30, 62]);
        assert!(looked.len() < 60, "{} of 40000 waits looked", looked.len());
        // Once events come soon again, that is noticed within the maximum number of waits that sleep.
        let found = looks(&mut busy_poll, 2 * SLEEPS_MAX, true);
        assert!(found[SLEEPS_MAX as usize..].iter().all(|looked| *looked));
    }
}
