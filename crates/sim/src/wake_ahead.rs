//! Advance with which a real-time queue wakes for an event.
//!
//! A sleeping thread wakes late: by a few microseconds on an idle physical processor, by a hundred on a
//! virtual one that the hypervisor had put to sleep. So the timer expires early by about the lateness of
//! recent wake-ups. Until the event is due, its owner finds the timer expired and keeps polling, together
//! with anything else it waits for.
//!
//! Invariants:
//! - Early wake-ups use at most a quarter of a processor, over any time longer than a few milliseconds; where
//!   that does not suffice, the thread sleeps longer and wakes late.
//! - The wake-up time of an event stays the same, however often it is requested.

use plumb_block::Nanos;

/// Assumed lateness before the first wake-up.
const LATENESS_AT_FIRST: Nanos = Nanos::micros(50);
/// Maximum lateness attributed to a wake-up. Anything later means that the processor was busy.
const LATENESS_MAX: Nanos = Nanos::micros(200);
/// Divisor of the difference by which a wake-up later than expected raises the expectation.
const RAISE_DIVISOR: u64 = 4;
/// Divisor of the difference by which a wake-up earlier than expected lowers the expectation. It is so much
/// larger than [`RAISE_DIVISOR`] that at least nine in ten wake-ups are earlier than expected.
const LOWER_DIVISOR: u64 = 64;
/// Divisor of all time, for the share that may be spent awake early.
const BUDGET_DIVISOR: u64 = 4;
/// Maximum time awake early that can be saved up.
const BUDGET_MAX: Nanos = Nanos::millis(1);

/// Learnt lateness and budget of a queue's early wake-ups.
#[derive(Debug)]
pub(crate) struct WakeAhead {
    /// Expected lateness.
    lateness: Nanos,
    /// Remaining time for being awake early, as of `budget_at`.
    budget: Nanos,
    budget_at: Nanos,
    next: Option<WakeUp>,
}

/// A wake-up for an event.
#[derive(Debug, Clone, Copy)]
struct WakeUp {
    event: Nanos,
    /// Time to wake.
    at: Nanos,
    /// True if `at` was in the future when it was decided, so that the wake-up shows the lateness.
    is_sleep: bool,
    /// Last time since `at` at which the owner was seen awake.
    awake_at: Option<Nanos>,
}

impl WakeAhead {
    /// Creates a state without experience at time `now`.
    pub(crate) fn new(now: Nanos) -> Self {
        Self { lateness: LATENESS_AT_FIRST, budget: BUDGET_MAX, budget_at: now, next: None }
    }

    /// Records that the queue's owner is awake: learns the lateness, and charges the time spent.
    pub(crate) fn woke(&mut self, now: Nanos) {
        self.earn(now);
        let Some(next) = self.next.as_mut().filter(|next| next.at <= now) else { return };
        match next.awake_at.replace(now) {
            Some(before) => {
                let spent = now.min(next.event).since(before);
                self.budget = Nanos(self.budget.0.saturating_sub(spent.0));
            }
            None if next.is_sleep => {
                let late = now.since(next.at);
                self.learn(late);
            }
            None => {}
        }
    }

    /// Returns the time to wake for the future `event`.
    pub(crate) fn wake_time(&mut self, now: Nanos, event: Nanos) -> Nanos {
        if let Some(next) = self.next.filter(|next| next.event == event) {
            return next.at;
        }
        let at = event.since(self.lateness.min(self.budget));
        let is_sleep = at > now;
        self.next = Some(WakeUp { event, at, is_sleep, awake_at: (!is_sleep).then_some(now) });
        at
    }

    fn earn(&mut self, now: Nanos) {
        let earned = now.since(self.budget_at).0 / BUDGET_DIVISOR;
        // The remainder of the division is kept.
        self.budget_at = self.budget_at.saturating_add(Nanos(earned * BUDGET_DIVISOR));
        self.budget = self.budget.saturating_add(Nanos(earned)).min(BUDGET_MAX);
    }

    fn learn(&mut self, late: Nanos) {
        let (expected, late) = (self.lateness.0, late.min(LATENESS_MAX).0);
        self.lateness = Nanos(if late > expected {
            expected + (late - expected) / RAISE_DIVISOR
        } else {
            expected - (expected - late) / LOWER_DIVISOR
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets `count` events pass, one every `every`, with wake-ups that are late by `late`. Returns the
    /// advance of the last wake-up time.
    fn pass(ahead: &mut WakeAhead, from: Nanos, count: u64, every: Nanos, late: Nanos) -> Nanos {
        let mut last = Nanos::ZERO;
        for n in 0..count {
            let begin = Nanos(from.0 + n * every.0);
            let event = Nanos(begin.0 + every.0);
            ahead.woke(begin);
            let at = ahead.wake_time(begin, event);
            last = event.since(at);
            let woken = Nanos(at.0 + late.0);
            ahead.woke(woken);
            ahead.woke(event.max(woken));
        }
        last
    }

    #[test]
    fn it_wakes_as_early_as_wake_ups_are_late() {
        let mut ahead = WakeAhead::new(Nanos::ZERO);
        let every = Nanos::millis(1);
        let early = pass(&mut ahead, Nanos::ZERO, 1000, every, Nanos::micros(10));
        assert!((Nanos::micros(10)..Nanos::micros(11)).contains(&early), "{early:?}");
        let early = pass(&mut ahead, Nanos::secs(2), 1000, every, Nanos::micros(90));
        assert!((Nanos::micros(89)..=Nanos::micros(90)).contains(&early), "{early:?}");
        let early = pass(&mut ahead, Nanos::secs(4), 1000, every, Nanos::millis(30));
        assert!(early <= LATENESS_MAX, "a wake-up that took {early:?} is the machine's, not the thread's");
    }

    #[test]
    fn a_late_wake_up_in_twenty_is_allowed_for() {
        let mut ahead = WakeAhead::new(Nanos::ZERO);
        let (mut now, every) = (Nanos::ZERO, Nanos::millis(1));
        let mut in_time = 0;
        for n in 0..2000 {
            let late = Nanos::micros(if n % 20 == 0 { 100 } else { 10 + n % 10 });
            in_time += u32::from(pass(&mut ahead, now, 1, every, late) >= late);
            now = Nanos(now.0 + every.0);
        }
        assert!(in_time >= 1800, "{in_time} of 2000 in time");
    }

    #[test]
    fn being_awake_early_has_a_bound() {
        let mut ahead = WakeAhead::new(Nanos::ZERO);
        let (every, count) = (Nanos::micros(20), 100_000);
        let mut spent = 0;
        for n in 0..count {
            let (begin, event) = (Nanos(n * every.0), Nanos((n + 1) * every.0));
            ahead.woke(begin);
            let at = ahead.wake_time(begin, event).max(begin);
            spent += event.since(at).0;
            ahead.woke(at);
            ahead.woke(event);
        }
        let whole = count * every.0;
        assert!(spent <= whole / BUDGET_DIVISOR + BUDGET_MAX.0 + every.0, "{spent} of {whole} ns");
    }

    #[test]
    fn one_event_has_one_wake_up_time() {
        let mut ahead = WakeAhead::new(Nanos::ZERO);
        let event = Nanos::millis(1);
        let at = ahead.wake_time(Nanos::ZERO, event);
        ahead.woke(Nanos(at.0 + 40_000));
        assert_eq!(ahead.wake_time(Nanos(at.0 + 40_000), event), at);
        assert!(ahead.wake_time(Nanos(at.0 + 40_000), Nanos::millis(2)) > at);
    }
}
