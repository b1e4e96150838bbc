//! A changed parameter of a model: `behaviour.driver_drops_flush=true`.
//!
//! The change is applied before the model is interpreted, so the same limits hold as for values in a file.

use std::borrow::Cow;

use toml::de::DeValue;

use super::error::ContentError;

/// A parameter with its new value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Change {
    /// Path of the field, as printed by `plumb drive show`.
    pub path: String,
    /// Value as typed; strings without quotes.
    pub value: String,
}

impl Change {
    /// Interprets numbers, booleans and lists as such, and everything else as a string.
    pub(super) fn as_toml(&self) -> DeValue<'_> {
        match DeValue::parse(&self.value) {
            Ok(value) if !value.get_ref().is_table() => value.into_inner(),
            _ => DeValue::String(Cow::Borrowed(&self.value)),
        }
    }

    /// Returns the last component of the field's path.
    pub(super) fn key(&self) -> &str {
        self.path.rsplit_once('.').map_or(&self.path, |(_, key)| key)
    }

    /// Creates the error for this change of the model in `file`.
    pub(super) fn error(&self, file: &str, expected: &str) -> ContentError {
        ContentError {
            file: file.to_owned(),
            line: 0,
            field: self.path.clone(),
            value: Some(self.value.clone()),
            expected: expected.to_owned(),
        }
    }
}
