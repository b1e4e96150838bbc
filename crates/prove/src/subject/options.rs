//! Options of built-in subjects: the accepted values, and the settings.

use std::collections::HashMap;

/// Values that an option accepts.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// One of these words. The first is the default.
    OneOf(&'static [&'static str]),
    /// Number from 1, or from 0 if that is the default.
    Number {
        /// Default value.
        default: u64,
        /// Maximum value.
        max: u64,
    },
}

impl std::fmt::Display for Values {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OneOf(words) => f.write_str(&words.join("|")),
            Self::Number { default, .. } => write!(f, "{default}"),
        }
    }
}

impl Values {
    /// Returns true if the option may be set to `value`.
    pub(super) fn allow(&self, value: &str) -> bool {
        match self {
            Self::OneOf(words) => words.contains(&value),
            Self::Number { default, max } => {
                value.parse().is_ok_and(|number: u64| number >= (*default).min(1) && number <= *max)
            }
        }
    }

    /// Returns the value of an option that was left out.
    pub(super) fn default(&self) -> String {
        match self {
            Self::OneOf(words) => words.first().copied().unwrap_or_default().to_owned(),
            Self::Number { default, .. } => default.to_string(),
        }
    }
}

/// Settings of the options of a subject.
pub(super) struct Settings<'a> {
    /// Whole name as typed.
    pub(super) typed: &'a str,
    set: HashMap<&'static str, String>,
}

impl<'a> Settings<'a> {
    /// Takes the options of the subject that was typed, each set to a value that [`Values::allow`] accepts.
    pub(super) const fn new(typed: &'a str, set: HashMap<&'static str, String>) -> Self {
        Self { typed, set }
    }

    /// Returns the word that an option of [`Values::OneOf`] is set to.
    pub(super) fn word(&self, key: &str) -> &str {
        self.set.get(key).map_or("", |value| value)
    }

    /// Returns the number that an option of [`Values::Number`] is set to.
    pub(super) fn number(&self, key: &str) -> u64 {
        self.word(key).parse().unwrap_or_default()
    }
}
