//! Parameters of the contents of a drive ([`Shape`], [`Backing`]), the data that comes with a command, and
//! the errors.

use std::fs::File;

use plumb_block::{Bytes, Errno, Pattern};

/// The smallest logical block of a drive.
const LOGICAL_BLOCK_MIN: Bytes = Bytes(512);
/// The largest logical block of a drive.
const LOGICAL_BLOCK_MAX: Bytes = Bytes::kib(64);
/// The largest drive: 1 PiB.
const SIZE_MAX: Bytes = Bytes(1 << 50);

/// The geometry of a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The unit of addressing, and of tearing: a power of two from 512 bytes to 64 KiB.
    pub logical_block: Bytes,
    /// How many of them; at most 1 PiB together.
    pub blocks: u64,
}

impl Shape {
    /// Refuses what cannot be a drive.
    pub(super) fn check(self) -> Result<Self, ContentsError> {
        let block = self.logical_block;
        let fits = block >= LOGICAL_BLOCK_MIN && block <= LOGICAL_BLOCK_MAX && block.0.is_power_of_two();
        if !fits {
            return Err(ContentsError::LogicalBlock { given: block });
        }
        if self.blocks == 0 || self.blocks > SIZE_MAX.0 / block.0 {
            return Err(ContentsError::Size { blocks: self.blocks, logical_block: block });
        }
        Ok(self)
    }
}

/// The data of a command. Bytes are copied.
#[derive(Debug, Clone, Copy)]
pub enum Data<'a> {
    /// None: a flush, a discard, a write of zeroes.
    None,
    /// Bytes that regenerate; kept as such.
    Pattern(Pattern),
    /// Bytes, as long as the range.
    Bytes(&'a [u8]),
}

/// Where what is durable is kept. What is not durable is always in memory.
#[derive(Debug, Default)]
pub enum Backing {
    /// Medium in memory, with patterns as such.
    #[default]
    Memory,
    /// In a file, sparse, patterns made into bytes: what the file holds is on the medium, so that killing the
    /// process is a power cut (one that loses all that is at risk). The caller opens it, makes it as long as
    /// the drive and holds it alone.
    File(File),
    /// Nowhere: nothing is kept and all reads as zeroes.
    Nothing,
}

/// Reason why there can be no such contents.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContentsError {
    /// The logical block is none.
    #[error("a logical block of {given} is not possible: use a power of two from 512 bytes to 64 KiB")]
    LogicalBlock {
        /// Size that was requested.
        given: Bytes,
    },
    /// The drive is too small or too large.
    #[error("{blocks} blocks of {logical_block} are not possible: a drive has from one block to 1 PiB")]
    Size {
        /// Number of blocks that was requested.
        blocks: u64,
        /// The length of each.
        logical_block: Bytes,
    },
}

impl From<ContentsError> for plumb_block::Error {
    fn from(error: ContentsError) -> Self {
        Self::new(plumb_block::ErrorKind::Invalid, "make", "the contents of a drive")
            .because(error.to_string())
    }
}

/// The backing file failed. The first failure stays: what is durable is no longer known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot {operation} the backing file at byte {offset}: {errno}; the drive can only answer with errors now"
)]
pub struct BackingError {
    /// Operation that failed: "read", "write", "punch a hole in", "sync".
    pub operation: &'static str,
    /// Offset in the file.
    pub offset: u64,
    /// Error that the system reported.
    pub errno: Errno,
}

impl BackingError {
    /// Returns the error that the drive answers its commands with.
    pub const fn errno(&self) -> Option<Errno> {
        Some(self.errno)
    }
}
