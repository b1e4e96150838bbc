//! Places of log devices: a path, and the part of the device that is used.
//!
//! ```text
//! /dev/disk/by-id/nvme-x           all of it
//! /dev/disk/by-id/nvme-x@1G+4G     4 GiB from 1 GiB on: several caches share one device
//! ```

use std::fmt;

use plumb_block::Bytes;
use plumb_cache::LOG_BLOCK;
use plumb_state::LegRecord;
use plumb_text::shell_word;
use serde::{Deserialize, Serialize};

use crate::byte_extent::ByteExtent;
use crate::error::{Error, Result};
use crate::mark::mark_as_free;

/// Place of a log device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "LegRecord", into = "LegRecord")]
pub struct DevicePlace {
    /// Path of the device or file, or the URI of an export.
    pub path: String,
    /// Part of the device; `None` for all of it.
    pub part: Option<ByteExtent>,
}

impl From<LegRecord> for DevicePlace {
    fn from(record: LegRecord) -> Self {
        match record {
            LegRecord::Whole(path) => Self { path, part: None },
            LegRecord::Part { path, offset, length } => {
                Self { path, part: Some(ByteExtent { offset, length }) }
            }
        }
    }
}

impl From<DevicePlace> for LegRecord {
    fn from(DevicePlace { path, part }: DevicePlace) -> Self {
        match part {
            None => Self::Whole(path),
            Some(ByteExtent { offset, length }) => Self::Part { path, offset, length },
        }
    }
}

/// Formats the place as typed.
impl fmt::Display for DevicePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            None => f.write_str(&self.path),
            Some(part) => write!(f, "{}@{part}", self.path),
        }
    }
}

impl DevicePlace {
    /// Returns the place of all of the device at `path`.
    pub fn whole(path: &str) -> Self {
        Self { path: path.to_owned(), part: None }
    }

    /// Parses `PATH` or `PATH@OFFSET+SIZE`. Text that does not end in two sizes is a path.
    ///
    /// # Errors
    /// Fails if the part is empty or does not consist of whole blocks.
    pub fn parse(typed: &str) -> Result<Self> {
        let size = |typed: &str| typed.parse::<Bytes>().ok().map(|size| size.0);
        let split = || {
            let (path, part) = typed.rsplit_once('@').filter(|(path, _)| !path.is_empty())?;
            let (offset, length) = part.split_once('+')?;
            Some((path, ByteExtent { offset: size(offset)?, length: size(length)? }))
        };
        let Some((path, part)) = split() else { return Ok(Self::whole(typed)) };
        let is_whole = |size: u64| size.is_multiple_of(LOG_BLOCK);
        let has_end = part.offset.checked_add(part.length).is_some_and(|end| end <= i64::MAX as u64);
        if part.length == 0 || !is_whole(part.offset) || !is_whole(part.length) || !has_end {
            let found = format!("a part of a device has whole blocks of {LOG_BLOCK} bytes, at least one");
            let remedy = "write its offset and its size as multiples, such as /dev/sdb@1G+4G";
            return Err(Error::usage(typed, found, remedy));
        }
        Ok(Self { path: path.to_owned(), part: Some(part) })
    }

    /// Parses several places.
    ///
    /// # Errors
    /// Fails as [`parse`](Self::parse).
    pub fn parse_all(typed: &[String]) -> Result<Vec<Self>> {
        typed.iter().map(|typed| Self::parse(typed)).collect()
    }

    /// Returns true if `typed` is this place, by the same or another path.
    pub fn is_at(&self, typed: &str) -> bool {
        let Ok(typed) = Self::parse(typed) else { return false };
        let at = |path: &str| std::fs::canonicalize(path).ok();
        let are_one = || at(&typed.path).is_some_and(|typed| Some(typed) == at(&self.path));
        typed.part == self.part && (typed.path == self.path || are_one())
    }

    /// Returns true if both are the same part, or both are whole devices.
    pub fn is_same_part(&self, other: &Self) -> bool {
        self.part == other.part
    }

    /// Checks that the part has room for a log of `size` of cache `name`.
    ///
    /// # Errors
    /// The refusal, if it is too small.
    pub fn has_room(&self, size: Bytes, name: &str) -> Result<()> {
        match self.part {
            Some(part) if part.length < size.0 => {
                let found = format!("the part is shorter than {} bytes", size.0);
                let remedy = format!(
                    "move the log to a larger part (`plumb cache replace-log {} PATH@OFFSET+SIZE`)",
                    shell_word(name)
                );
                Err(Error::refused(&self.to_string(), found, remedy))
            }
            _ => Ok(()),
        }
    }

    /// Marks a file created by plumb as reusable, unless others may use parts of it.
    pub fn mark_as_free(&self) {
        if self.part.is_none() {
            mark_as_free(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_read_and_written_as_it_is_typed() {
        for (typed, offset, length, shown) in [
            ("/dev/ssd@1G+4G", 1 << 30, 4 << 30, "/dev/ssd@1G+4G"),
            ("log@0+1536K", 0, 1536 << 10, "log@0+1536K"),
            ("a@b@4096+8192", 4096, 8192, "a@b@4K+8K"),
        ] {
            let place = DevicePlace::parse(typed).unwrap();
            assert_eq!(place.part, Some(ByteExtent { offset, length }), "{typed}");
            assert_eq!(place.to_string(), shown);
            assert_eq!(DevicePlace::parse(shown).unwrap(), place);
            let written = serde_json::to_string(&place).unwrap();
            assert_eq!(serde_json::from_str::<DevicePlace>(&written).unwrap(), place, "{written}");
        }
        for path in ["/dev/ssd", "a@b+c", "@1G+4G", "x@1G", "user@host/x+1G"] {
            assert_eq!(DevicePlace::parse(path).unwrap(), DevicePlace::whole(path));
        }
        assert_eq!(serde_json::to_string(&DevicePlace::whole("/x")).unwrap(), "\"/x\"");
        for wrong in ["x@0+0", "x@512+4096", "x@4096+5000", "x@4096+16383P"] {
            assert!(DevicePlace::parse(wrong).is_err(), "{wrong}");
        }
    }
}
