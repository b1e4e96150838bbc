//! The configuration of a write-back cache, as far as it is read without opening the cache: what a survey of
//! the write path must know of it.

use serde::{Deserialize, Serialize};

/// Devices of a cache and its mode. The crate `targets` writes the whole configuration, of which these are
/// the keys that others read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CacheRecord {
    /// UUID of the cache.
    pub uuid: String,
    /// Mode in which it is served: `write-back`, `protected`.
    pub mode: String,
    /// Path of the device that is cached.
    pub backing: String,
    /// Devices of the log, in order.
    pub legs: Vec<LegRecord>,
}

/// A device of a log as the configuration names it. A plumb that knows no parts refuses the second form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LegRecord {
    /// Path of the device, all of which is used.
    Whole(String),
    /// Part of a device.
    Part {
        /// Path of the device.
        path: String,
        /// First byte of the part.
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
}

impl LegRecord {
    /// Returns the path of the device.
    pub fn path(&self) -> &str {
        match self {
            Self::Whole(path) | Self::Part { path, .. } => path,
        }
    }
}

impl CacheRecord {
    /// The mode in which the log is not flushed.
    pub const PROTECTED: &str = "protected";

    /// Reads a configuration; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}
