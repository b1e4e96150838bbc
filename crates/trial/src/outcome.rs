//! Outcome of a trial: its measurements, the files that it leaves, and the end that an error or a fault
//! causes.

use std::path::PathBuf;

use plumb_block::{Errno, Outcome, in_one_line};
use plumb_load::Fault;
use plumb_report::RunRecording;
use plumb_targets::Kind;

use crate::error::TrialError;
use crate::span_run::SpanRun;

/// Note in a recording until its run has ended.
pub const GOES_ON: &str =
    "the run had not ended when this was recorded: plumb was killed, or is still running";

/// Completed trial.
#[derive(Debug)]
pub struct Trial {
    /// The spans that were run, in order.
    pub spans: Vec<SpanRun>,
    /// Recording from which reports are made.
    pub recording: RunRecording,
    /// End of the run; see also `failed` of the document.
    pub ended: TrialEnded,
    /// Directory of the recording; `None` if there is none.
    pub run_directory: Option<PathBuf>,
    /// Sentence for each file that this run has created and not removed.
    pub left_behind: Vec<String>,
}

/// End of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrialEnded {
    /// The run ended as the workload specifies.
    Complete,
    /// The run was stopped.
    Interrupted,
    /// Something could not be measured here, for this reason.
    NotMeasured(String),
    /// The run reached its end, but nothing completed in the window.
    Empty,
    /// The run was measured but could not be recorded.
    NotRecorded(String),
    /// Something failed.
    Failed(String),
}

impl Trial {
    /// Marks the trial as failed by an error after its end. The earlier reason comes first.
    pub(crate) fn but_failed(mut self, error: &TrialError) -> Self {
        let why = in_one_line(error);
        let document = &mut self.recording.document;
        document.failed = true;
        document.notes.push(why.clone());
        let earlier = self.ended.reason().map(|earlier| format!("{earlier}; "));
        self.ended = TrialEnded::Failed(earlier.unwrap_or_default() + &why);
        self
    }
}

impl TrialEnded {
    /// Returns the ending of the same run when it could not be recorded.
    #[must_use]
    pub fn unrecorded(self, error: &plumb_measure::Error) -> Self {
        match (self, in_one_line(error)) {
            (Self::Complete, why) if error.is_for_want_of_space() => Self::NotMeasured(why),
            (Self::Complete, why) => Self::NotRecorded(why),
            (ended, _) => ended,
        }
    }

    /// Returns the reason why the run is not complete; `None` if it is.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Complete => None,
            Self::Interrupted => Some("interrupted by a signal".to_owned()),
            Self::Empty => Some("no operation completed while it was measured".to_owned()),
            Self::NotMeasured(why) | Self::NotRecorded(why) | Self::Failed(why) => Some(why.clone()),
        }
    }
}

/// Returns the end of a check after an error: a full or read-only file system is not a failure.
pub(crate) fn ended_by(error: &TrialError) -> TrialEnded {
    let errno = match error {
        TrialError::Interrupted => return TrialEnded::Interrupted,
        TrialError::Target(error) => match error.kind() {
            Kind::Os(errno) => errno,
            Kind::Unsupported | Kind::Refused | Kind::ReadOnly => {
                return TrialEnded::NotMeasured(in_one_line(error));
            }
            _ => None,
        },
        TrialError::Flush {
            source: plumb_load::FlushError::Device(plumb_load::Error::Device(error)),
            ..
        }
        | TrialError::Unfit { source: plumb_load::Error::Device(error), .. } => error.errno(),
        TrialError::PageCache { source, .. } => return ended_by_fault(source),
        TrialError::Recording(plumb_measure::Error::Full { .. }) => {
            return TrialEnded::NotMeasured(in_one_line(error));
        }
        _ => None,
    };
    ended_by_errno(errno, in_one_line(error))
}

/// Returns the end of a check after a fault of its load.
pub(crate) fn ended_by_fault(fault: &Fault) -> TrialEnded {
    match fault {
        Fault::Request { outcome: Outcome::Failed(errno), .. } => {
            ended_by_errno(Some(*errno), in_one_line(fault))
        }
        // A failed flush is always a failure: earlier writes cannot be trusted.
        _ => TrialEnded::Failed(in_one_line(fault)),
    }
}

fn ended_by_errno(errno: Option<Errno>, reason: String) -> TrialEnded {
    match errno {
        Some(Errno::EINTR) => TrialEnded::Interrupted,
        Some(Errno::EROFS | Errno::EACCES | Errno::EPERM) => TrialEnded::NotMeasured(reason),
        Some(errno) if errno.is_full() => TrialEnded::NotMeasured(reason),
        _ => TrialEnded::Failed(reason),
    }
}

#[cfg(test)]
mod tests {
    use plumb_block::{Error, ErrorKind};

    use super::*;

    #[test]
    fn a_full_disk_is_no_failure_but_an_io_error_is() {
        let ended = |errno| {
            let source = Error::new(ErrorKind::Os(errno), "write", "a file").into();
            ended_by(&TrialError::Unfit { target: "a file".to_owned(), source })
        };
        assert!(matches!(ended(Errno::ENOSPC), TrialEnded::NotMeasured(_)));
        assert!(matches!(ended(Errno::EROFS), TrialEnded::NotMeasured(_)));
        assert!(matches!(ended(Errno::EIO), TrialEnded::Failed(_)));
        assert_eq!(ended(Errno::EINTR), TrialEnded::Interrupted);
        // A failed sync is a failure even if its error is lack of space: it cannot be repeated and trusted.
        let latched =
            Error::new(ErrorKind::FlushLatched, "sync", "a file").because("No space left on device");
        let target = "a file".to_owned();
        assert!(matches!(
            ended_by(&TrialError::Flush { target, source: plumb_load::FlushError::Device(latched.into()) }),
            TrialEnded::Failed(_)
        ));
    }
}
