//! Error of an invalid workload: the field, its value, and what was expected.

/// An invalid field of a workload or scenario.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {value}: expected {expected}")]
pub struct Invalid {
    /// Path of the field as it is spelt: `write_percent`, or in a scenario `spans[0].jobs[1].workload.depth`.
    pub field: String,
    /// Value of the field.
    pub value: String,
    /// Values that would have been accepted.
    pub expected: String,
}

impl Invalid {
    /// Creates an error for a `field` with the invalid `value`; `expected` describes valid ones.
    pub fn new(field: impl Into<String>, value: impl std::fmt::Display, expected: impl Into<String>) -> Self {
        Self { field: field.into(), value: value.to_string(), expected: expected.into() }
    }

    /// Prefixes the field with the path `place`.
    #[must_use]
    pub fn within(self, place: &str) -> Self {
        let joint = if self.field.is_empty() || self.field.starts_with('[') { "" } else { "." };
        Self { field: format!("{place}{joint}{}", self.field), ..self }
    }
}

/// Returns [`Invalid`] from the function if the condition holds; takes the field, its value and a description
/// of valid ones.
macro_rules! invalid_if {
    ($is_invalid:expr, $field:expr, $value:expr, $expected:expr) => {
        if $is_invalid {
            return Err($crate::invalid::Invalid::new($field, $value, $expected));
        }
    };
}
pub(crate) use invalid_if;
