//! A command line or file that cannot be taken.

use std::fmt;

/// Returns true if `word` may be suggested for one that is not known: a slip of the fingers leads nobody to
/// what takes data away.
pub fn may_be_suggested(word: &str) -> bool {
    let word = word.trim_start_matches('-');
    !["overwrite", "destroy", "trim", "replace", "remove-after"].iter().any(|option| word.starts_with(option))
}

/// Input that cannot be taken, where it is, and what to do instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The argument as typed, or `file:line`.
    pub place: String,
    /// Description of what is wrong with it.
    pub problem: String,
    /// Remedy, if known.
    pub remedy: Option<String>,
}

impl Error {
    /// Returns `problem` at `place`.
    pub fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { place: place.into(), problem: problem.into(), remedy: None }
    }

    /// With what to do instead.
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
