//! Checks that may never end: a file system that has lost its server does not answer.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use plumb_linux::isolated_thread::{self, IsolatedThread};

/// A check on an isolated thread, since this process may serve the file system that is asked.
#[derive(Default)]
pub(crate) struct PatientCheck(Mutex<Option<IsolatedThread<bool>>>);

impl PatientCheck {
    /// Returns the answer of `check`; false if none comes within `time`. Until that check has ended no other
    /// is begun, so that threads stay few. The check uses no descriptor of the caller.
    pub(crate) fn answer(&self, time: Duration, check: impl FnOnce() -> bool + Send + 'static) -> bool {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The answer to an earlier question may be outdated.
        *pending = pending.take().filter(|earlier| earlier.within(time).is_none());
        if pending.is_some() {
            return false;
        }
        let started = isolated_thread::start(move |tell| {
            tell(check());
            Ok(())
        });
        let Ok(thread) = started else { return false };
        let answer = thread.within(time);
        *pending = Some(thread).filter(|_| answer.is_none());
        matches!(answer, Some(Ok(true)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_check_that_does_not_end_answers_no_and_no_other_is_begun() {
        let patient = PatientCheck::default();
        let ((go_on, waits), (begin, begun)) = (channel(), channel());
        assert!(!patient.answer(Duration::ZERO, move || waits.recv().is_ok()));
        assert!(!patient.answer(Duration::ZERO, move || begin.send(()).is_ok()));
        assert!(begun.recv().is_err(), "one at a time");
        go_on.send(()).unwrap();
        let long = Duration::from_secs(600);
        assert!(patient.answer(long, || true) && !patient.answer(long, || false));
    }
}
