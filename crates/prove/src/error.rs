//! Errors of a proof: a kind that callers match, and a sentence for the user.

use std::fmt::Display;
use std::io;

use plumb_block::{FailureKind, in_one_line};
use plumb_serve::ExportError;
use plumb_state::output::WriteError;

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Category of an error, for callers to decide by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request is invalid: a name, a plan, or a file of another kind.
    Usage,
    /// The operation could harm this machine.
    Refused,
    /// The operation is not possible here, or its result cannot be known: something is missing, was
    /// interrupted, or does not answer.
    NotMeasured,
    /// The system calls of a program cannot be traced: strace(1) is missing, or is not permitted to trace.
    NotTraced,
    /// The kernel refuses to mount the file system that it found. After a power cut this is a result.
    Unmountable,
    /// No power cut leaves this state, or the check of the state gives another result than before.
    NoSuchState,
    /// A file, a device or a program failed.
    Failed,
}

impl ErrorKind {
    /// Returns the way in which a command that ends with this error fails.
    pub const fn failure(self) -> FailureKind {
        match self {
            Self::Usage | Self::NoSuchState => FailureKind::Usage,
            Self::Refused => FailureKind::Refused,
            Self::NotMeasured | Self::NotTraced => FailureKind::NotMeasured,
            Self::Unmountable | Self::Failed => FailureKind::Failed,
        }
    }
}

/// A failure. The sentence names the place and the cause.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what}")]
pub struct Error {
    /// Category of the error, for callers to decide by.
    pub kind: ErrorKind,
    what: String,
}

impl Error {
    /// Returns an error of `kind`.
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into() }
    }

    /// Returns a [`Usage`](ErrorKind::Usage) error: the input makes no sense.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, what)
    }

    /// Creates an error for a failure: `who` is the program, the subject or the file, `what` describes its
    /// failure.
    pub fn failed(who: impl Display, what: impl Display) -> Self {
        Self::new(ErrorKind::Failed, format!("{who}: {what}"))
    }

    /// Creates an error for something that is missing here, with a remedy.
    pub(crate) fn missing(what: impl Display, remedy: impl Display) -> Self {
        Self::new(ErrorKind::NotMeasured, format!("{what}; {remedy}"))
    }
}

/// Wraps the error of a call that failed while doing `operation`.
pub(crate) fn cannot<S: Into<io::Error>>(operation: impl Display) -> impl Fn(S) -> Error {
    let operation = operation.to_string();
    move |source| {
        let source = source.into();
        let kind = FailureKind::from_io(&source).into();
        Error::new(kind, format!("cannot {operation}: {}", in_one_line(&source)))
    }
}

impl From<FailureKind> for ErrorKind {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Usage => Self::Usage,
            FailureKind::NotMeasured => Self::NotMeasured,
            FailureKind::Refused => Self::Refused,
            FailureKind::Failed => Self::Failed,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::new(FailureKind::from_io(&error).into(), in_one_line(&error))
    }
}

/// The user gave a wrong place to record a run.
impl From<plumb_measure::Error> for Error {
    fn from(error: plumb_measure::Error) -> Self {
        let kind = error.failure().into();
        Self::new(kind, in_one_line(&error))
    }
}

impl From<WriteError<Self>> for Error {
    fn from(error: WriteError<Self>) -> Self {
        match error {
            WriteError::Output(error) => Self::new(error.kind.into(), in_one_line(&error)),
            WriteError::Content(error) => error,
        }
    }
}

impl From<ExportError> for Error {
    fn from(error: ExportError) -> Self {
        Self::new(ErrorKind::NotMeasured, in_one_line(&error))
    }
}

impl From<plumb_block::Error> for Error {
    fn from(error: plumb_block::Error) -> Self {
        Self::new(ErrorKind::Failed, in_one_line(&error))
    }
}
