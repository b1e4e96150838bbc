//! Path of acknowledgements into the recording.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plumb_block::Errno;
use plumb_serve::attach::ControlFile;

use crate::error::Error;
use crate::recording::{Event, Recorder};
use crate::subject::{AckBy, Lines};

/// Acknowledgements of an application.
pub(super) struct Acknowledgements {
    recorder: Recorder,
    numbers: Mutex<Numbers>,
}

/// Numbers that an application has acknowledged. After an error further numbers do not count.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    last: Option<u64>,
    problem: Option<String>,
}

impl Numbers {
    /// Checks a line. Returns its number if that is above the last one.
    pub(crate) fn accept(&mut self, line: &std::result::Result<u64, String>) -> Option<u64> {
        if self.problem.is_some() {
            return None;
        }
        match (line, self.last) {
            (Err(why), _) => self.problem = Some(why.clone()),
            (Ok(number), Some(last)) if *number <= last => {
                self.problem = Some(format!("{number} was acknowledged after {last}: the numbers must rise"));
            }
            (Ok(number), _) => {
                self.last = Some(*number);
                return Some(*number);
            }
        }
        None
    }

    pub(crate) const fn last(&self) -> Option<u64> {
        self.last
    }

    /// Returns the error about an invalid acknowledgement, if there was one.
    pub(crate) fn problem(&self) -> Option<Error> {
        Some(Error::failed("the acknowledgements", self.problem.as_ref()?))
    }
}

impl Acknowledgements {
    pub(super) fn new(recorder: Recorder) -> Self {
        Self { recorder, numbers: Mutex::default() }
    }

    /// Records the acknowledgement in a line, unless its number does not increase.
    pub(super) fn record(&self, line: &std::result::Result<u64, String>) {
        let mut numbers = self.lock();
        if let Some(number) = numbers.accept(line) {
            self.recorder.happened(Event::Acknowledged(number));
        }
    }

    /// Returns the file through which a program acknowledges. Each write(2) must hold whole lines. An invalid
    /// one fails with EINVAL.
    pub(super) fn control_file(self: &Arc<Self>) -> ControlFile {
        let own = Arc::clone(self);
        ControlFile(Arc::new(move |bytes| {
            let mut lines = Lines::new(AckBy::ControlFile);
            lines.parse(bytes).into_iter().chain(lines.end()).for_each(|line| own.record(&line));
            if own.lock().problem.is_some() { Err(Errno::EINVAL) } else { Ok(()) }
        }))
    }

    pub(super) fn last(&self) -> Option<u64> {
        self.lock().last
    }

    /// Returns the error about an invalid acknowledgement, if there was one.
    pub(super) fn problem(&self) -> Option<Error> {
        self.lock().problem()
    }

    fn lock(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
