//! Time, passed in: real time for real devices, virtual time for simulated ones.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::units::Nanos;

/// A monotonic clock. Its zero is arbitrary; only differences mean something.
pub trait Clock: Send + Sync {
    /// The time now. Never less than an earlier answer.
    fn now(&self) -> Nanos;
}

/// The machine's monotonic clock (CLOCK_MONOTONIC), counted from when this was made.
#[derive(Debug, Clone, Copy)]
pub struct RealClock {
    origin: Instant,
}

impl RealClock {
    /// A clock that reads zero now.
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// The instant at which this clock reads zero.
    pub fn origin(&self) -> Instant {
        self.origin
    }
}

impl Clock for RealClock {
    fn now(&self) -> Nanos {
        Nanos::from(self.origin.elapsed())
    }
}

/// A clock that stands still until its owner moves it: one owner, the world of a simulation.
#[derive(Debug, Default)]
pub struct VirtualClock {
    now_ns: AtomicU64,
}

impl VirtualClock {
    /// A clock at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock to `time`; a time in the past leaves it where it is, for a clock never runs backwards.
    pub fn advance_to(&self, time: Nanos) {
        self.now_ns.fetch_max(time.0, Ordering::AcqRel);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Nanos {
        Nanos(self.now_ns.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_virtual_clock_never_runs_backwards() {
        let clock = VirtualClock::new();
        clock.advance_to(Nanos::millis(5));
        clock.advance_to(Nanos::millis(3));
        assert_eq!(clock.now(), Nanos::millis(5));
    }
}
