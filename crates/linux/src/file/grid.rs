//! Properties of a target that requests are checked against.

use plumb_block::{Bytes, Caching, DurableWrite, FlushCall};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TargetKind {
    RegularFile,
    BlockDevice,
}

/// Limits of a target that never change while it is open. Requests are checked against them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    pub(crate) kind: TargetKind,
    pub(crate) caching: Caching,
    pub(crate) flush: FlushCall,
    pub(crate) durable_write: DurableWrite,
    /// True if each write is atomic or refused.
    pub(crate) untorn: bool,
    /// True if a write at offset 0 truncates the file first.
    pub(crate) append: bool,
    pub(crate) writable: bool,
    pub(crate) logical_block: Bytes,
    pub(crate) transfer_max: Bytes,
    pub(crate) can_discard: bool,
    pub(crate) fast_zeroes: bool,
}
