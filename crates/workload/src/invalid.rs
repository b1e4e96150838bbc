//! The error of a workload that makes no sense: which field, what it holds, what was expected.

/// A field of a workload or a scenario that cannot be run as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {value}: expected {expected}")]
pub struct Invalid {
    /// Where it is, as it is spelt: `write_percent`, or in a scenario `spans[0].jobs[1].workload.depth`.
    pub field: String,
    /// Value that the field holds.
    pub value: String,
    /// Values that would have been accepted.
    pub expected: String,
}

impl Invalid {
    /// `field` holds `value`, but `expected` was expected.
    pub fn new(field: impl Into<String>, value: impl std::fmt::Display, expected: impl Into<String>) -> Self {
        Self { field: field.into(), value: value.to_string(), expected: expected.into() }
    }

    /// Returns the error as found inside of `place`.
    #[must_use]
    pub fn within(self, place: &str) -> Self {
        let joint = if self.field.is_empty() || self.field.starts_with('[') { "" } else { "." };
        Self { field: format!("{place}{joint}{}", self.field), ..self }
    }
}

/// Returns [`Invalid`] from the function if the condition holds: of the field that holds the value, with what
/// is expected.
macro_rules! invalid_if {
    ($is_invalid:expr, $field:expr, $value:expr, $expected:expr) => {
        if $is_invalid {
            return Err($crate::invalid::Invalid::new($field, $value, $expected));
        }
    };
}
pub(crate) use invalid_if;
