//! Reasons why a thread stops before its end.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

/// Reason why a thread stops before its end.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The run was told to stop, or another thread failed.
    Stopped,
    /// A call failed.
    Failed(Error),
}

/// The result of a step of a program.
pub(crate) type Step<T> = Result<T, Halt>;

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Conditions that end a run early: someone's wish, or the first failure.
#[derive(Debug)]
pub(crate) struct Halts<'a> {
    stop: &'a AtomicBool,
    failed: AtomicBool,
}

impl<'a> Halts<'a> {
    /// Ends a run when `stop` becomes true.
    pub(crate) fn new(stop: &'a AtomicBool) -> Self {
        Self { stop, failed: AtomicBool::new(false) }
    }

    /// Ends all threads at their next call.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
    }

    /// Returns true if the run was told to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Goes on only if nothing ends the run.
    pub(crate) fn check(&self) -> Step<()> {
        if self.is_stopped() || self.failed.load(Ordering::Acquire) { Err(Halt::Stopped) } else { Ok(()) }
    }
}
