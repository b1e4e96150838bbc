//! Time, passed in: real time for real devices, virtual time for simulated ones.
//!
//! In virtual time nothing runs in the background. A device that does something by itself (a drive that
//! answers, a cache that writes back what is old) registers with the [`VirtualClock`] as an [`EventSource`].
//! The clock moves only when somebody waits: it goes from event to event, and lets every source do what is
//! due, until one of them has an answer. In real time the same device waits for its next event on a thread of
//! its own, or when its queue is polled.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use crate::units::Nanos;

/// Number of events that the virtual clock passes at most before whoever waits gets the processor again.
const EVENTS_MAX: u32 = 1 << 16;

/// A monotonic clock. Its zero is arbitrary; only differences mean something.
pub trait Clock: Send + Sync {
    /// Returns the time now. Never less than an earlier answer.
    fn now(&self) -> Nanos;
}

/// The clock that a run and its devices go by.
#[derive(Clone)]
pub enum Time {
    /// The machine's clock. Simulated devices beside real ones go by it too.
    Real(Arc<dyn Clock>),
    /// The clock of a simulation: it takes no longer than the processor needs.
    Virtual(Arc<VirtualClock>),
}

impl Time {
    /// Returns the clock.
    pub fn clock(&self) -> Arc<dyn Clock> {
        match self {
            Self::Real(clock) => Arc::clone(clock),
            Self::Virtual(clock) => Arc::clone(clock) as Arc<dyn Clock>,
        }
    }

    /// Returns true if this is virtual time.
    pub const fn is_virtual(&self) -> bool {
        matches!(self, Self::Virtual(_))
    }
}

impl Clock for Time {
    fn now(&self) -> Nanos {
        match self {
            Self::Real(clock) => clock.now(),
            Self::Virtual(clock) => clock.now(),
        }
    }
}

/// The machine's monotonic clock (CLOCK_MONOTONIC), counted from when this was made.
#[derive(Debug, Clone, Copy)]
pub struct RealClock {
    origin: Instant,
}

impl RealClock {
    /// Creates a clock that reads zero now.
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Clock for RealClock {
    fn now(&self) -> Nanos {
        Nanos::from(self.origin.elapsed())
    }
}

/// A device in virtual time that does something by itself: it has timers, or takes time to answer.
pub trait EventSource: Send + Sync {
    /// Returns when it next does something, as long as nobody asks anything of it. `None`: nothing will
    /// happen.
    fn next_event(&self) -> Option<Nanos>;

    /// Does all that is due at `now`, and takes what the devices beneath it have answered. It is called at
    /// every event of any source, in the order in which the sources registered, so that a device comes after
    /// those beneath it. It does not wait. Whether one of its queues has completions to poll.
    fn advance(&self, now: Nanos) -> bool;
}

/// Virtual clock that advances only when a caller waits. It starts at zero.
#[derive(Debug, Default)]
pub struct VirtualClock {
    now_ns: AtomicU64,
    /// Locked by whoever moves the clock, for as long as it moves.
    sources: Mutex<Vec<Weak<dyn EventSource>>>,
}

impl VirtualClock {
    /// Creates a clock at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the clock stop at the events of `source`, for as long as that exists. Not to be called from
    /// [`EventSource::advance`].
    pub fn register(&self, source: Weak<dyn EventSource>) {
        let mut sources = self.sources();
        sources.retain(|source| source.strong_count() > 0);
        sources.push(source);
    }

    /// Moves the clock from event to event until a source has an answer, but not beyond `deadline`; to the
    /// deadline if nothing happens before. It may stop earlier. The time that it is then.
    pub fn advance(&self, deadline: Nanos) -> Nanos {
        let sources = self.sources();
        let deadline = deadline.max(self.now());
        let mut has_moved = false;
        for _ in 0..EVENTS_MAX {
            let Some(next) = next_event(&sources).filter(|next| *next <= deadline) else {
                if !has_moved {
                    self.advance_to(deadline);
                }
                break;
            };
            self.advance_to(next);
            has_moved = true;
            let now = self.now();
            // Every source advances, whichever has an answer.
            let answers = sources.iter().filter_map(Weak::upgrade).filter(|source| source.advance(now));
            if answers.count() > 0 {
                break;
            }
        }
        self.now()
    }

    /// Returns true if anything will happen if nobody asks anything of a device.
    pub(crate) fn has_events(&self) -> bool {
        next_event(&self.sources()).is_some()
    }

    /// Moves the clock to `time`, whatever happens until then; a time in the past leaves it where it is.
    pub fn advance_to(&self, time: Nanos) {
        self.now_ns.fetch_max(time.0, Ordering::AcqRel);
    }

    fn sources(&self) -> MutexGuard<'_, Vec<Weak<dyn EventSource>>> {
        // A panic leaves nothing half done behind this lock.
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn next_event(sources: &[Weak<dyn EventSource>]) -> Option<Nanos> {
    sources.iter().filter_map(|source| source.upgrade()?.next_event()).min()
}

impl Clock for VirtualClock {
    fn now(&self) -> Nanos {
        Nanos(self.now_ns.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has an event every so often, and an answer at every so many-th.
    struct Ticking {
        every: Nanos,
        answers_every: u64,
        next: Mutex<Option<Nanos>>,
    }

    impl Ticking {
        fn on(clock: &VirtualClock, every: Nanos, answers_every: u64) -> Arc<Self> {
            let source = Arc::new(Self { every, answers_every, next: Mutex::new(Some(every)) });
            let weak = Arc::downgrade(&source);
            clock.register(weak);
            source
        }
    }

    impl EventSource for Ticking {
        fn next_event(&self) -> Option<Nanos> {
            *self.next.lock().unwrap()
        }

        fn advance(&self, now: Nanos) -> bool {
            let mut next = self.next.lock().unwrap();
            let Some(due) = next.filter(|due| *due <= now) else { return false };
            *next = Some(due + self.every);
            (due.0 / self.every.0).is_multiple_of(self.answers_every)
        }
    }

    #[test]
    fn a_virtual_clock_never_runs_backwards() {
        let clock = VirtualClock::new();
        clock.advance_to(Nanos::millis(5));
        clock.advance_to(Nanos::millis(3));
        assert_eq!(clock.now(), Nanos::millis(5));
    }

    #[test]
    fn it_stops_at_the_first_answer_of_any_source_and_all_sources_keep_up() {
        let clock = VirtualClock::new();
        let slow = Ticking::on(&clock, Nanos::millis(3), 2);
        let fast = Ticking::on(&clock, Nanos::millis(1), 100);
        assert_eq!(clock.advance(Nanos::secs(1)), Nanos::millis(6));
        assert_eq!(fast.next_event(), Some(Nanos::millis(7)));
        assert_eq!(slow.next_event(), Some(Nanos::millis(9)));
        assert_eq!(
            clock.advance(Nanos::millis(6)),
            Nanos::millis(6),
            "a deadline that has passed moves nothing"
        );
    }

    #[test]
    fn without_events_it_goes_to_the_deadline_and_a_source_that_is_gone_has_none() {
        let clock = VirtualClock::new();
        let source = Ticking::on(&clock, Nanos::millis(3), 1);
        assert!(clock.has_events());
        drop(source);
        assert!(!clock.has_events());
        assert_eq!(clock.advance(Nanos::millis(5)), Nanos::millis(5));
    }
}
