//! Time, passed in: real time for real devices, virtual time for simulated ones.
//!
//! In virtual time nothing runs in the background. A device that acts by itself (a drive that completes
//! requests, a cache that destages old data) registers with the [`VirtualClock`] as an [`EventSource`]. The
//! clock moves only while somebody waits: it steps from event to event and calls every source at each, until
//! one of them has a completion. In real time the same device waits for its next event on its own thread, or
//! when its queue is polled.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::units::Nanos;

/// Maximum number of events that the virtual clock steps through before it returns to the waiting caller.
const EVENTS_MAX: u32 = 1 << 16;

/// A monotonic clock. Its zero is arbitrary; only differences mean something.
pub trait Clock: Send + Sync {
    /// Returns the current time, never less than an earlier result.
    fn now(&self) -> Nanos;
}

/// Time base of a run and its devices.
#[derive(Clone)]
pub enum Time {
    /// The machine's clock. Simulated devices used together with real ones use it too.
    Real(Arc<dyn Clock>),
    /// Simulated time: a run takes only as long as the processor needs.
    Virtual(Arc<VirtualClock>),
}

impl Time {
    /// Returns the machine's clock, started now.
    pub fn real() -> Self {
        Self::Real(Arc::new(RealClock::start()))
    }

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

/// The machine's monotonic clock (CLOCK_MONOTONIC), counted from the creation of this value.
#[derive(Debug, Clone, Copy)]
pub struct RealClock {
    origin: Instant,
}

impl RealClock {
    /// Creates a clock that starts at zero.
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::start()
    }
}

impl Clock for RealClock {
    fn now(&self) -> Nanos {
        Nanos::from(self.origin.elapsed())
    }
}

/// Returns the time of day, since 1970 in UTC. It may be set back; intervals are measured by a [`Clock`].
pub fn unix_time() -> Nanos {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().into()
}

/// A device in virtual time that does something by itself: it has timers, or takes time to answer.
pub trait EventSource: Send + Sync {
    /// Returns the time of the next event if no request arrives before it; `None` if there will be no event.
    fn next_event(&self) -> Option<Nanos>;

    /// Handles everything that is due at `now`, including completions of the devices below, without waiting.
    /// Called at every event of any source, in the order of registration: a device must register after the
    /// devices below it. Returns true if one of its queues has completions to poll.
    fn advance(&self, now: Nanos) -> bool;
}

/// Virtual clock that advances only when a caller waits. It starts at zero.
#[derive(Debug, Default)]
pub struct VirtualClock {
    now_ns: AtomicU64,
    /// Held by the thread that moves the clock, for as long as it moves.
    sources: Mutex<Vec<Weak<dyn EventSource>>>,
}

impl VirtualClock {
    /// Creates a clock at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the clock stop at the events of `source` while the source exists. Must not be called from
    /// [`EventSource::advance`].
    pub fn register(&self, source: Weak<dyn EventSource>) {
        let mut sources = self.sources();
        sources.retain(|source| source.strong_count() > 0);
        sources.push(source);
    }

    /// Moves the clock from event to event until a source has a completion, but not beyond `deadline`;
    /// without events it goes to the deadline. It may stop earlier. Returns the new time.
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
            // Advance every source, even after one has reported a completion.
            let answers = sources.iter().filter_map(Weak::upgrade).filter(|source| source.advance(now));
            if answers.count() > 0 {
                break;
            }
        }
        self.now()
    }

    /// Returns true if a source will have an event without a new request.
    pub(crate) fn has_events(&self) -> bool {
        next_event(&self.sources()).is_some()
    }

    /// Moves the clock to `time` without calling any source. A time in the past has no effect.
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

    /// Device with events at a fixed interval, some of which give an answer.
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
