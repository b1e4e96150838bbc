//! Window in which a load is measured: after the warm-up, before the cool-down.
//!
//! An operation belongs to the window if its intended start is in it, whenever it completes: slow operations
//! are never left out, and both edges of the window balance. All workers share the window. Its begin may
//! become known only during the run, if the warm-up ends when the rate has settled.

use std::sync::atomic::{AtomicU64, Ordering};

use plumb_block::Nanos;

/// Start that is not known yet.
const UNKNOWN: u64 = u64::MAX;

/// Begin of the measurement, and the time that workers continue after its end.
#[derive(Debug)]
pub struct Window {
    /// Start on the clock of the run, or [`UNKNOWN`].
    from: AtomicU64,
    cooldown: Nanos,
}

impl Window {
    /// Creates a window that [`begin_at`](Self::begin_at) opens.
    pub const fn closed(cooldown: Nanos) -> Self {
        Self { from: AtomicU64::new(UNKNOWN), cooldown }
    }

    /// Begins the measurement at `from`, by the clock of the run. `from` should be later than now by the
    /// longest sleep of a worker, so that all learn of it in time.
    pub(crate) fn begin_at(&self, from: Nanos) {
        self.from.store(from.0, Ordering::Release);
    }

    /// Returns the begin of the measurement; `None` if not known yet.
    #[inline]
    pub fn from(&self) -> Option<Nanos> {
        Some(self.from.load(Ordering::Acquire)).filter(|from| *from != UNKNOWN).map(Nanos)
    }

    /// Returns the time that workers continue after the measurement.
    pub const fn cooldown(&self) -> Nanos {
        self.cooldown
    }
}
