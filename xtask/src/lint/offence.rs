//! Result of a check of the sources.

/// Violation of a rule: its place, and its description.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Offence {
    pub(super) place: String,
    pub(super) what: String,
}

impl Offence {
    pub(super) fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into() }
    }
}
