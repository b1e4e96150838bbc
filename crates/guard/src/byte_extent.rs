//! Part of a device or file, in bytes.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Part of a device or file, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteExtent {
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
}

impl ByteExtent {
    /// Returns the byte range.
    pub const fn range(self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.length)
    }

    /// Returns true if both have a byte in common.
    pub const fn overlaps(self, other: Self) -> bool {
        self.offset < other.range().end && other.offset < self.range().end
    }
}

/// Formats the part as typed, `1G+4G`, without loss of precision.
impl fmt::Display for ByteExtent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", exact(self.offset), exact(self.length))
    }
}

/// Returns the size in the largest unit that divides it.
fn exact(size: u64) -> String {
    const UNITS: [&str; 5] = ["", "K", "M", "G", "T"];
    let power = (size.trailing_zeros() / 10).min(4);
    if size == 0 { "0".to_owned() } else { format!("{}{}", size >> (10 * power), UNITS[power as usize]) }
}
