//! The error of a workload that makes no sense: which field, what it holds, what was expected.

/// A field of a workload that cannot be run as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {value}: expected {expected}")]
pub struct Invalid {
    /// The field, as it is spelt in the workload: `write_percent`.
    pub field: &'static str,
    /// What it holds.
    pub value: String,
    /// What would have been accepted.
    pub expected: String,
}

impl Invalid {
    /// `field` holds `value`, but `expected` was expected.
    pub fn new(field: &'static str, value: impl std::fmt::Display, expected: impl Into<String>) -> Self {
        Self { field, value: value.to_string(), expected: expected.into() }
    }
}
