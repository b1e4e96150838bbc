//! Mark that a device bears, and the names of those of plumb.

use std::fmt;

/// Name of what a write-back cache of plumb leaves on a device of its log.
pub const CACHE_LOG: &str = "the log of a plumb cache";
/// Name of what a write-back cache of plumb leaves on the device that it caches.
pub const CACHE_BACKING: &str = "the mark of the backing device of a plumb cache";

/// Mark that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    /// Common name of what was found, with its article: `ext4`, `an LVM2 physical volume`.
    pub name: &'static str,
    /// Place of the mark, in bytes from the start.
    pub at: u64,
    /// True if it is a copy of a superblock whose first one is not there: what erasing the start leaves
    /// behind.
    pub is_copy: bool,
}

impl Signature {
    /// Returns a mark at its first place.
    pub const fn new(name: &'static str, at: u64) -> Self {
        Self { name, at, is_copy: false }
    }

    /// Returns a mark at the place of a copy.
    pub(super) const fn copy(name: &'static str, at: u64) -> Self {
        Self { name, at, is_copy: true }
    }
}

/// Writes `ext4`, or `ext4 (a copy of its superblock at byte 134217784)`.
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if self.is_copy { write!(f, " (a copy of its superblock at byte {})", self.at) } else { Ok(()) }
    }
}
