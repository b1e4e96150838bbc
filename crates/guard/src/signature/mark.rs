//! [`Signature`], and the names of plumb's own signatures.

use std::fmt;

/// Name of the superblock that a write-back cache of plumb writes to a device of its log.
pub const CACHE_LOG: &str = "the log of a plumb cache";
/// Name of the marker that a write-back cache of plumb writes to its backing device.
pub const CACHE_BACKING: &str = "the mark of the backing device of a plumb cache";

/// A signature that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    /// Common name with its article: `ext4`, `an LVM2 physical volume`.
    pub name: &'static str,
    /// Offset in bytes from the start.
    pub at: u64,
    /// True for a copy of a superblock whose primary is missing: erasing the start leaves copies behind.
    pub is_copy: bool,
}

impl Signature {
    /// Creates a signature at its primary position.
    pub const fn new(name: &'static str, at: u64) -> Self {
        Self { name, at, is_copy: false }
    }

    /// Creates a signature at the position of a copy.
    pub(super) const fn copy(name: &'static str, at: u64) -> Self {
        Self { name, at, is_copy: true }
    }
}

/// Formats `ext4`, or `ext4 (a copy of its superblock at byte 134217784)`.
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if self.is_copy { write!(f, " (a copy of its superblock at byte {})", self.at) } else { Ok(()) }
    }
}
