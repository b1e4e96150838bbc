//! A parameter of a model that somebody wants otherwise: `behaviour.driver_drops_flush=true`.
//!
//! It is put into the model before anything of it is read, so that it is held to the same limits as what a
//! file says.

use std::borrow::Cow;

use toml::de::DeValue;

use super::error::ContentError;

/// A parameter with its new value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Change {
    /// The field with its tables, as `plumb drive show` prints it.
    pub path: String,
    /// The value as typed, a string without its quotes.
    pub value: String,
}

impl Change {
    /// Numbers, truth values and lists are what they look like, and everything else is a string.
    pub(super) fn as_toml(&self) -> DeValue<'_> {
        match DeValue::parse(&self.value) {
            Ok(value) if !value.get_ref().is_table() => value.into_inner(),
            _ => DeValue::String(Cow::Borrowed(&self.value)),
        }
    }

    /// Returns the field without its tables.
    pub(super) fn key(&self) -> &str {
        self.path.rsplit_once('.').map_or(&self.path, |(_, key)| key)
    }

    /// Makes the error that says that this change of the model in `file` is wrong.
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
