//! Error of a word, independent of its position.

use crate::Error;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WordError {
    /// Word without dashes.
    pub(super) word: &'static str,
    /// Problem with the word.
    problem: Problem,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Problem {
    Contradicts(&'static str),
    Needs(&'static str),
    Unexpected { found: String, expected: String },
}

impl WordError {
    /// Returns the error that two words contradict each other.
    pub(super) fn contradiction(word: &'static str, other: &'static str) -> Self {
        Self { word, problem: Problem::Contradicts(other) }
    }

    /// Returns the error that `word` requires one of the `others`.
    pub(super) fn need(word: &'static str, others: &'static str) -> Self {
        Self { word, problem: Problem::Needs(others) }
    }

    /// Returns the error of an invalid value.
    pub(super) fn unexpected(
        word: &'static str,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        let problem = Problem::Unexpected { found: found.into(), expected: expected.into() };
        Self { word, problem }
    }

    /// Returns the error for the command line, with dashes before words.
    pub(super) fn typed(&self) -> Error {
        let place = if self.word == "targets" { "TARGET".to_owned() } else { format!("--{}", self.word) };
        Error::new(place, self.problem("--"))
    }

    /// Returns the error for a file, at `place`.
    pub(super) fn written(&self, place: String) -> Error {
        Error::new(place, format!("{}: {}", self.word, self.problem("")))
    }

    fn problem(&self, dashes: &str) -> String {
        match &self.problem {
            Problem::Contradicts(other) => format!("contradicts {dashes}{other}: say one of the two"),
            Problem::Needs(others) => {
                format!("means nothing without {dashes}{}", others.replace(' ', &format!(" or {dashes}")))
            }
            Problem::Unexpected { found, expected } => format!("found {found}, expected {expected}"),
        }
    }
}
