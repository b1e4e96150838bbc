//! Errors of a run, a verification or a campaign: how the command fails, and a sentence for the user.

use std::fmt::Display;
use std::io;

use plumb_block::{FailureKind, in_one_line};

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure. The sentence names the place and the cause.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what}")]
pub struct Error {
    /// Way in which the command fails.
    pub failure: FailureKind,
    /// True if a connection was lost, which can be restored.
    pub(crate) is_disconnected: bool,
    what: String,
}

impl Error {
    fn new(failure: FailureKind, what: impl Into<String>) -> Self {
        Self { failure, is_disconnected: false, what: what.into() }
    }

    /// Creates an error for invalid input.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(FailureKind::Usage, what)
    }

    /// Creates an error for a result that could not be obtained, for this reason on either side.
    pub(crate) fn not_measured(why: impl Into<String>) -> Self {
        Self::new(FailureKind::NotMeasured, why)
    }

    /// Creates an error for damaged stored data.
    pub(crate) fn damaged(place: impl Display, what: impl Display) -> Self {
        Self::not_measured(format!("{place}: {what}; nothing can be said of this run"))
    }

    /// Creates an error for a broken connection.
    pub(crate) fn disconnected(source: &io::Error) -> Self {
        let what = format!("no witness answers at the other end: {source}");
        Self { is_disconnected: true, ..Self::new(FailureKind::Failed, what) }
    }
}

/// Wraps the error of a call that failed while doing `operation`.
pub(crate) fn cannot(operation: impl Display) -> impl Fn(io::Error) -> Error {
    let operation = operation.to_string();
    move |source| {
        let what = format!("cannot {operation}: {}", in_one_line(&source));
        Error::new(FailureKind::from_io(&source), what)
    }
}

impl From<plumb_targets::Error> for Error {
    fn from(error: plumb_targets::Error) -> Self {
        Self::new(error.kind().failure(), in_one_line(&error))
    }
}

impl From<plumb_block::Error> for Error {
    fn from(error: plumb_block::Error) -> Self {
        Self::new(FailureKind::Failed, in_one_line(&error))
    }
}

impl From<plumb_load::Error> for Error {
    fn from(error: plumb_load::Error) -> Self {
        Self::new(FailureKind::Failed, in_one_line(&error))
    }
}
