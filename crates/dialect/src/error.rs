//! [`Error`] of a command line or file.

use std::fmt;

/// Returns true if `word` may be suggested for an unknown one. Words that permit destroying data are never
/// suggested.
pub fn may_be_suggested(word: &str) -> bool {
    let word = word.trim_start_matches('-');
    !["overwrite", "destroy", "trim", "replace", "remove-after"].iter().any(|option| word.starts_with(option))
}

/// Error in a command line or file, with its place and remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The argument as typed, or `file:line`.
    pub place: String,
    /// Description of the problem.
    pub problem: String,
    /// Remedy, if known.
    pub remedy: Option<String>,
}

impl Error {
    /// Creates an error.
    pub fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { place: place.into(), problem: problem.into(), remedy: None }
    }

    /// Returns the error with a remedy.
    #[must_use]
    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)?;
        match &self.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
