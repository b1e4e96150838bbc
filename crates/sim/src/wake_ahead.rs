//! How long before an event a queue in real time wakes for it.
//!
//! A sleeping thread is woken late: by some microseconds on an idle processor of one's own, by a hundred on a
//! virtual one that the hypervisor had put to sleep as well. So the timer goes off early by about as much as
//! recent wake-ups were late. Its owner finds it gone off for as long as the event is not due, and polls
//! again and again until then, together with whatever else it waits for.
//!
//! Invariants:
//! - Being awake early takes a quarter of a processor at most, over any time longer than some milliseconds;
//!   where that is not enough the thread sleeps for longer and wakes late.
//! - The wake-up time of one event stays the same, however often it is asked for.

use plumb_block::Nanos;

/// Lateness that is assumed of wake-ups before any was seen.
const LATENESS_AT_FIRST: Nanos = Nanos::micros(50);
/// Later than that is not what a wake-up takes, but a processor that did something else.
const LATENESS_MAX: Nanos = Nanos::micros(200);
/// A wake-up later than expected raises the expectation by this part of the difference...
const RAISE_DIVISOR: u64 = 4;
/// ... and one less late lowers it by this part: so nine in ten or more are less late than expected.
const LOWER_DIVISOR: u64 = 64;
/// The part of all time that may be spent awake early...
const BUDGET_DIVISOR: u64 = 4;
/// ... and how much of it can be saved up.
const BUDGET_MAX: Nanos = Nanos::millis(1);

/// Lateness and budget of the early wake-ups of a queue, as it has learnt them.
#[derive(Debug)]
pub(crate) struct WakeAhead {
    /// How late a wake-up is expected to be.
    lateness: Nanos,
    /// Time that it may yet be awake early, as of `budget_at`.
    budget: Nanos,
    budget_at: Nanos,
    next: Option<WakeUp>,
}

/// A wake-up for an event.
#[derive(Debug, Clone, Copy)]
struct WakeUp {
    event: Nanos,
    /// When to wake.
    at: Nanos,
    /// True if that was still to come when it was decided, so that the wake-up says how late they are.
    is_sleep: bool,
    /// When its owner was last seen awake since then.
    awake_at: Option<Nanos>,
}

impl WakeAhead {
    /// Creates one that has learnt nothing; the clock stands at `now`.
    pub(crate) fn new(now: Nanos) -> Self {
        Self { lateness: LATENESS_AT_FIRST, budget: BUDGET_MAX, budget_at: now, next: None }
    }

    /// Notes that the queue's owner is awake: learns how late that is, and counts what it has spent.
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

    /// Returns when to wake for `event`, which is to come.
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
        // The remainder of the division is not lost.
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

    /// Lets `count` events pass, one every `every`, each woken for `late` too late; how long before the last
    /// it woke.
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
