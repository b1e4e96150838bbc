//! The part of a target that a workload touches.

use plumb_block::Bytes;
use serde::{Deserialize, Serialize};

/// A contiguous range of bytes of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteRange {
    /// First byte.
    pub offset: Bytes,
    /// Number of bytes. A rest after the last whole block is not touched.
    pub length: Bytes,
}

impl ByteRange {
    /// The whole target, whatever its size: see [`Workload::within`](crate::Workload::within).
    pub const ALL: Self = Self { offset: Bytes(0), length: Bytes(u64::MAX) };

    /// Returns true if the range ends where the target ends.
    pub const fn is_open_ended(&self) -> bool {
        self.length.0 == u64::MAX
    }
}
