//! The configuration of a write-back cache, as far as a survey of the write path reads it without opening the
//! cache.

use serde::{Deserialize, Serialize};

/// Devices of a cache and its mode: the keys of the configuration that other crates read. The crate `caches`
/// writes the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CacheRecord {
    /// UUID of the cache.
    pub uuid: String,
    /// Mode of the cache: `write-back`, `protected`.
    pub mode: String,
    /// Path of the cached device.
    pub backing: String,
    /// Log devices, in order.
    pub legs: Vec<LegRecord>,
}

/// A log device in the configuration. A version of plumb without support for parts refuses
/// [`Part`](Self::Part).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LegRecord {
    /// Path of a device that the log uses completely.
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
    /// Mode in which the log is not flushed.
    pub const PROTECTED: &str = "protected";

    /// Parses a configuration; `None` if the text is not one.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}
