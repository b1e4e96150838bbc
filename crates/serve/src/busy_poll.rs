//! Busy polling: looking for what comes next for a moment before sleeping, where that pays.
//!
//! Whoever waits for each answer sends its next request some microseconds after it: an NBD client, which
//! sends the payload of a write right behind its header, too, and the kernel for a program that does one
//! thing after the other. The only request that a fast device has ends as soon. To put the serving thread to
//! sleep and to wake it takes longer than that on most machines, and it is the sender who pays for the
//! waking. So the thread first polls for a moment. Where nothing came that was for nothing, and the next
//! waits sleep at once: one, then 3, 7 and so on up to [`SLEEPS_MAX`], until looking again pays once more. So
//! an idle sender, a slow device, or a sender that needs this very processor in order to send, costs next to
//! nothing.

use plumb_block::{Clock, Nanos};

/// How long is looked again.
const POLL_FOR: Nanos = Nanos::micros(50);
/// How long the processor pauses between two looks, in its own short pauses: about a microsecond. Looking
/// without a break would contend with the sender for the locks between the two.
const PAUSES: u32 = 30;
/// How many waits at most sleep at once before looking again is tried again.
const SLEEPS_MAX: u32 = 1023;

/// Record of whether busy polling has paid of late.
#[derive(Debug, Default)]
pub(crate) struct BusyPoll {
    /// How many more waits sleep at once.
    sleeps: u32,
    /// How many did after the last time that looking again did not pay.
    sleeps_last: u32,
}

impl BusyPoll {
    /// Returns what `look` finds within a moment by `clock`, if it is worth looking at all.
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

    /// A clock that goes on by a microsecond at each look.
    #[derive(Default)]
    struct Passing(AtomicU64);

    impl Clock for Passing {
        fn now(&self) -> Nanos {
            Nanos::micros(self.0.fetch_add(1, Ordering::Relaxed))
        }
    }

    /// Returns for each of `waits` true if it looked at all, where what is looked for comes at the second
    /// look or never.
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
        // Once it sends soon again, that is found out within as many waits as sleep at most.
        let found = looks(&mut busy_poll, 2 * SLEEPS_MAX, true);
        assert!(found[SLEEPS_MAX as usize..].iter().all(|looked| *looked));
    }
}
