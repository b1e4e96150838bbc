//! Acknowledgements on their way into the recording.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plumb_block::Errno;
use plumb_serve::attach::ControlFile;

use crate::error::Error;
use crate::recording::{Event, Recorder};
use crate::subject::{AckBy, Lines};

/// Acknowledgements of an application. After something wrong nothing counts any more.
pub(super) struct Acknowledgements {
    recorder: Recorder,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: Option<u64>,
    problem: Option<String>,
}

impl Acknowledgements {
    /// None yet.
    pub(super) fn of(recorder: Recorder) -> Self {
        Self { recorder, state: Mutex::default() }
    }

    /// Puts down one, unless it is none, or its number does not rise.
    pub(super) fn take(&self, line: &std::result::Result<u64, String>) {
        let mut state = self.lock();
        if state.problem.is_some() {
            return;
        }
        match (line, state.last) {
            (Err(why), _) => state.problem = Some(why.clone()),
            (Ok(number), Some(last)) if *number <= last => {
                state.problem =
                    Some(format!("{number} was acknowledged after {last}: the numbers must rise"));
            }
            (Ok(number), _) => {
                state.last = Some(*number);
                self.recorder.happened(Event::Acknowledged(*number));
            }
        }
    }

    /// The file through which a program acknowledges. Each write(2) holds whole lines; what is wrong fails
    /// with EINVAL.
    pub(super) fn control_file(self: &Arc<Self>) -> ControlFile {
        let own = Arc::clone(self);
        ControlFile(Arc::new(move |bytes| {
            let mut lines = Lines::of(AckBy::ControlFile);
            lines.take(bytes).into_iter().chain(lines.end()).for_each(|line| own.take(&line));
            if own.lock().problem.is_some() { Err(Errno::EINVAL) } else { Ok(()) }
        }))
    }

    /// The last one.
    pub(super) fn last(&self) -> Option<u64> {
        self.lock().last
    }

    /// Returns the error for what was wrong with an acknowledgement, if anything was.
    pub(super) fn problem(&self) -> Option<Error> {
        Some(Error::failed("the acknowledgements", self.lock().problem.as_ref()?))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
