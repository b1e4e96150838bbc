//! States of a disk's write cache: the three of Microsoft KB 332023, and others.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A state that can be requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// No volatile write cache: an acknowledged write is durable. Windows: quick removal.
    Off,
    /// A volatile write cache that receives flushes. Windows: better performance.
    On,
    /// A volatile write cache from which flushes are withheld because somebody claims that it survives a
    /// power cut. Windows: power protected; "turn off write-cache buffer flushing".
    Protected,
}

impl State {
    /// Returns the state's name in all interfaces.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Protected => "protected",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Error for text that is not a state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a state of a write cache: expected off (quick removal), on (better performance) or protected (power \
     protected)"
)]
pub struct ParseStateError(String);

impl FromStr for State {
    type Err = ParseStateError;

    fn from_str(text: &str) -> Result<Self, ParseStateError> {
        let plain: String = text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
        match plain.as_str() {
            "off" | "quickremoval" => Ok(Self::Off),
            "on" | "betterperformance" => Ok(Self::On),
            "protected" | "powerprotected" => Ok(Self::Protected),
            _ => Err(ParseStateError(text.to_owned())),
        }
    }
}

/// State in which a disk is found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FoundState {
    /// The cache is in the state [`State::Off`].
    Off,
    /// The cache is in the state [`State::On`].
    On,
    /// The cache is in the state [`State::Protected`]: flushes are suppressed, whether the claim is justified
    /// or not.
    Protected,
    /// The device has no write cache of its own: a loop device, a partition, a zram.
    #[default]
    None,
    /// Unknown, or not readable for this user.
    Unknown,
}

impl FoundState {
    /// Returns true if it is this state.
    pub fn is(self, state: State) -> bool {
        self.word() == state.word()
    }

    /// Returns the state's name in all interfaces.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Protected => "protected",
            Self::None => "none",
            Self::Unknown => "unknown",
        }
    }
}

/// Returns `on`, `off`, or `unknown` for an unknown setting.
pub const fn on_off(setting: Option<bool>, unknown: &'static str) -> &'static str {
    match setting {
        Some(true) => "on",
        Some(false) => "off",
        None => unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_windows_are_understood_and_others_named() {
        for (text, state) in [
            ("off", State::Off),
            ("Quick removal", State::Off),
            ("quick-removal", State::Off),
            ("better-performance", State::On),
            ("power_protected", State::Protected),
        ] {
            assert_eq!(text.parse(), Ok(state), "{text}");
        }
        let error = "write back".parse::<State>().unwrap_err().to_string();
        assert!(error.contains("`write back`") && error.contains("expected off"), "{error}");
    }
}
