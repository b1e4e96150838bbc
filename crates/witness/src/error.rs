//! Reasons why a run, a verification or a campaign ends: how a command fails by it, and a sentence.

use std::fmt::Display;
use std::io;

use plumb_block::{FailureKind, in_one_line};

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure. The sentence names the place and the cause.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what}")]
pub struct Error {
    /// Way in which a command fails by it.
    pub failure: FailureKind,
    /// True if a connection was lost, which may be made again.
    pub(crate) is_disconnected: bool,
    what: String,
}

impl Error {
    fn new(failure: FailureKind, what: impl Into<String>) -> Self {
        Self { failure, is_disconnected: false, what: what.into() }
    }

    /// Returns an error of typed words that make no sense.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(FailureKind::Usage, what)
    }

    /// Returns the error that nothing can be said of the drive, for this reason of this side or the other.
    pub(crate) fn not_measured(why: impl Into<String>) -> Self {
        Self::new(FailureKind::NotMeasured, why)
    }

    /// Returns an error for stored data that is not as it was written.
    pub(crate) fn damaged(place: impl Display, what: impl Display) -> Self {
        Self::not_measured(format!("{place}: {what}; nothing can be said of this run"))
    }

    /// Returns the error of a connection that broke.
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
