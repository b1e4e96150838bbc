//! Checks that may never return, because a file system has lost its server.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use plumb_linux::isolated_thread::{self, IsolatedThread};

/// Check on an isolated thread, because this process may be the server of the file system.
#[derive(Default)]
pub(crate) struct PatientCheck(Mutex<Option<IsolatedThread<bool>>>);

impl PatientCheck {
    /// Returns the result of `check`; false if there is none within `time`. No other check starts until this
    /// one has ended, which bounds the number of threads. The check must not use descriptors of the caller.
    pub(crate) fn answer(&self, time: Duration, check: impl FnOnce() -> bool + Send + 'static) -> bool {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // An earlier check may have an outdated result.
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
