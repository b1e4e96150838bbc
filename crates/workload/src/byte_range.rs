//! Part of a target that a workload accesses.

use plumb_block::Bytes;
use serde::{Deserialize, Serialize};

/// A contiguous range of bytes of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteRange {
    /// First byte.
    pub offset: Bytes,
    /// Number of bytes. A partial block at the end is not accessed.
    pub length: Bytes,
}

impl ByteRange {
    /// The whole target, independent of its size: see [`Workload::within`](crate::Workload::within).
    pub const ALL: Self = Self { offset: Bytes(0), length: Bytes(u64::MAX) };

    /// Returns true if the range ends where the target ends.
    pub const fn is_open_ended(&self) -> bool {
        self.length.0 == u64::MAX
    }
}
