//! Early end of a thread: its reasons, and the conditions shared by all threads.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

/// Reason why a thread ends early.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The run was stopped, or another thread failed.
    Stopped,
    /// A call failed.
    Failed(Error),
}

/// Result of a step of a program.
pub(crate) type Step<T> = Result<T, Halt>;

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Conditions that end a run early: the stop flag, or the first failure.
#[derive(Debug)]
pub(crate) struct Halts<'a> {
    stop: &'a AtomicBool,
    failed: AtomicBool,
}

impl<'a> Halts<'a> {
    /// Creates the conditions; `stop` ends the run when it becomes true.
    pub(crate) fn new(stop: &'a AtomicBool) -> Self {
        Self { stop, failed: AtomicBool::new(false) }
    }

    /// Ends all threads at their next call.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
    }

    /// Returns true if the stop flag is set.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Returns an error if the run must end.
    pub(crate) fn check(&self) -> Step<()> {
        if self.is_stopped() || self.failed.load(Ordering::Acquire) { Err(Halt::Stopped) } else { Ok(()) }
    }
}
