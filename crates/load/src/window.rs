//! The window in which a load is measured: after the warm-up, before the cool-down.
//!
//! An operation belongs to the window if it was meant to start in it, whenever it completes: so what is slow
//! is never cut off, and as much is gained at one edge as is lost at the other. The window is shared by all
//! workers. When it begins may become known only while they run, if the warm-up ends when the rate has
//! settled.

use std::sync::atomic::{AtomicU64, Ordering};

use plumb_block::Nanos;

/// Not known yet.
const UNKNOWN: u64 = u64::MAX;

/// When measuring begins, and how long workers go on after it has ended.
#[derive(Debug)]
pub struct Window {
    /// Start on the clock of the run, or [`UNKNOWN`].
    from: AtomicU64,
    cooldown: Nanos,
}

impl Window {
    /// Creates a window that begins when [`begin_at`](Self::begin_at) says so.
    pub const fn closed(cooldown: Nanos) -> Self {
        Self { from: AtomicU64::new(UNKNOWN), cooldown }
    }

    /// Begins to measure at `from`, by the clock of the run. Should lie ahead by as much as a worker may
    /// sleep, so that all learn of it in time.
    pub fn begin_at(&self, from: Nanos) {
        self.from.store(from.0, Ordering::Release);
    }

    /// Returns when measuring begins or began; `None` if that is not known yet.
    #[inline]
    pub fn from(&self) -> Option<Nanos> {
        Some(self.from.load(Ordering::Acquire)).filter(|from| *from != UNKNOWN).map(Nanos)
    }

    /// Returns how long workers go on after the measurement.
    pub const fn cooldown(&self) -> Nanos {
        self.cooldown
    }
}
