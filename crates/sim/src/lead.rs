//! How long before an event a queue in real time gets up for it.
//!
//! A sleeping thread is woken late: by some microseconds on an idle processor of one's own, by a hundred on a virtual one
//! that the hypervisor had put to sleep as well. So the timer goes off early by about what wake-ups of late have been late,
//! and its owner, who finds it gone off for as long as the event is not due, looks again and again until then, at whatever
//! else he waits for too.
//!
//! Invariants:
//! - Being awake for nothing takes a quarter of a processor at most, over any time longer than some milliseconds; where
//!   that is not enough the thread sleeps for longer and wakes late.
//! - The same event is got up for at the same time, however often that is asked.

use plumb_block::Nanos;

/// What wake-ups are taken to be late before any was seen.
const LATE_AT_FIRST: Nanos = Nanos::micros(50);
/// Later than that is not what a wake-up takes, but a processor that did something else.
const LATE_MAX: Nanos = Nanos::micros(200);
/// One more late than expected raises what is expected by this part of the difference...
const RAISE_DIVISOR: u64 = 4;
/// ... and one less late lowers it by this part: so nine in ten or more are expected to be less late.
const LOWER_DIVISOR: u64 = 64;
/// The part of all time that may be spent awake early...
const SHARE_DIVISOR: u64 = 4;
/// ... and how much of it can be saved up.
const SAVINGS_MAX: Nanos = Nanos::millis(1);

/// What a queue has learnt of its wake-ups.
#[derive(Debug)]
pub(crate) struct Lead {
    /// How late a wake-up is expected to be.
    late: Nanos,
    /// How long it may yet be awake early, and up to when that was reckoned.
    savings: Nanos,
    reckoned_at: Nanos,
    rise: Option<Rise>,
}

/// Getting up for an event.
#[derive(Debug, Clone, Copy)]
struct Rise {
    event: Nanos,
    /// When to wake.
    at: Nanos,
    /// Whether that was still to come when it was decided, so that the wake-up says how late they are.
    is_asleep: bool,
    /// When its owner was last seen awake since then.
    awake_at: Option<Nanos>,
}

impl Lead {
    /// Nothing learnt; the clock stands at `now`.
    pub(crate) fn new(now: Nanos) -> Self {
        Self { late: LATE_AT_FIRST, savings: SAVINGS_MAX, reckoned_at: now, rise: None }
    }

    /// Its owner is awake: learns how late that is, and reckons what it has spent.
    pub(crate) fn awake(&mut self, now: Nanos) {
        self.save(now);
        let Some(rise) = self.rise.as_mut().filter(|rise| rise.at <= now) else { return };
        match rise.awake_at.replace(now) {
            Some(before) => {
                let spent = now.min(rise.event).since(before);
                self.savings = Nanos(self.savings.0.saturating_sub(spent.0));
            }
            None if rise.is_asleep => {
                let late = now.since(rise.at);
                self.learn(late);
            }
            None => {}
        }
    }

    /// When to wake for `event`, which is to come.
    pub(crate) fn rise(&mut self, now: Nanos, event: Nanos) -> Nanos {
        if let Some(rise) = self.rise.filter(|rise| rise.event == event) {
            return rise.at;
        }
        let at = event.since(self.late.min(self.savings));
        let is_asleep = at > now;
        self.rise = Some(Rise { event, at, is_asleep, awake_at: (!is_asleep).then_some(now) });
        at
    }

    fn save(&mut self, now: Nanos) {
        let earned = now.since(self.reckoned_at).0 / SHARE_DIVISOR;
        // What the division cut off is not lost.
        self.reckoned_at = self.reckoned_at.saturating_add(Nanos(earned * SHARE_DIVISOR));
        self.savings = self.savings.saturating_add(Nanos(earned)).min(SAVINGS_MAX);
    }

    fn learn(&mut self, late: Nanos) {
        let (expected, late) = (self.late.0, late.min(LATE_MAX).0);
        self.late = Nanos(if late > expected {
            expected + (late - expected) / RAISE_DIVISOR
        } else {
            expected - (expected - late) / LOWER_DIVISOR
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets `count` events pass, one every `every`, each woken for `late` too late; how long before the last it got up.
    fn live(lead: &mut Lead, from: Nanos, count: u64, every: Nanos, late: Nanos) -> Nanos {
        let mut last = Nanos::ZERO;
        for n in 0..count {
            let begin = Nanos(from.0 + n * every.0);
            let event = Nanos(begin.0 + every.0);
            lead.awake(begin);
            let at = lead.rise(begin, event);
            last = event.since(at);
            let woken = Nanos(at.0 + late.0);
            lead.awake(woken);
            lead.awake(event.max(woken));
        }
        last
    }

    #[test]
    fn it_gets_up_as_early_as_wake_ups_are_late() {
        let mut lead = Lead::new(Nanos::ZERO);
        let every = Nanos::millis(1);
        let early = live(&mut lead, Nanos::ZERO, 1000, every, Nanos::micros(10));
        assert!((Nanos::micros(10)..Nanos::micros(11)).contains(&early), "{early:?}");
        let early = live(&mut lead, Nanos::secs(2), 1000, every, Nanos::micros(90));
        assert!((Nanos::micros(89)..=Nanos::micros(90)).contains(&early), "{early:?}");
        let early = live(&mut lead, Nanos::secs(4), 1000, every, Nanos::millis(30));
        assert!(early <= LATE_MAX, "a wake-up that took {early:?} is the machine's, not the thread's");
    }

    #[test]
    fn now_and_then_a_late_one_is_allowed_for() {
        let mut lead = Lead::new(Nanos::ZERO);
        let (mut now, every) = (Nanos::ZERO, Nanos::millis(1));
        let mut in_time = 0;
        for n in 0..2000 {
            let late = Nanos::micros(if n % 20 == 0 { 100 } else { 10 + n % 10 });
            in_time += u32::from(live(&mut lead, now, 1, every, late) >= late);
            now = Nanos(now.0 + every.0);
        }
        assert!(in_time >= 1800, "{in_time} of 2000 in time");
    }

    #[test]
    fn being_awake_for_nothing_has_a_bound() {
        let mut lead = Lead::new(Nanos::ZERO);
        let (every, count) = (Nanos::micros(20), 100_000);
        let mut spent = 0;
        for n in 0..count {
            let (begin, event) = (Nanos(n * every.0), Nanos((n + 1) * every.0));
            lead.awake(begin);
            let at = lead.rise(begin, event).max(begin);
            spent += event.since(at).0;
            lead.awake(at);
            lead.awake(event);
        }
        let whole = count * every.0;
        assert!(spent <= whole / SHARE_DIVISOR + SAVINGS_MAX.0 + every.0, "{spent} of {whole} ns");
    }

    #[test]
    fn the_same_event_is_got_up_for_at_the_same_time() {
        let mut lead = Lead::new(Nanos::ZERO);
        let event = Nanos::millis(1);
        let at = lead.rise(Nanos::ZERO, event);
        lead.awake(Nanos(at.0 + 40_000));
        assert_eq!(lead.rise(Nanos(at.0 + 40_000), event), at);
        assert!(lead.rise(Nanos(at.0 + 40_000), Nanos::millis(2)) > at);
    }
}
