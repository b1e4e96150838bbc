//! Parameters of the contents of a drive ([`Shape`], [`Backing`]), the data that comes with a command, and
//! the errors.

use std::fs::File;

use plumb_block::{Bytes, Errno, Pattern};

/// Minimum logical block size of a drive.
const LOGICAL_BLOCK_MIN: Bytes = Bytes(512);
/// Maximum logical block size of a drive.
const LOGICAL_BLOCK_MAX: Bytes = Bytes::kib(64);
/// Maximum size of a drive: 1 PiB.
const SIZE_MAX: Bytes = Bytes(1 << 50);

/// The geometry of a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Logical block, the unit of addressing and tearing: a power of two from 512 bytes to 64 KiB.
    pub logical_block: Bytes,
    /// Number of blocks; at most 1 PiB in total.
    pub blocks: u64,
}

impl Shape {
    /// Checks that the shape is valid for a drive.
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

/// Data of a command. Bytes are copied.
#[derive(Debug, Clone, Copy)]
pub enum Data<'a> {
    /// None: a flush, a discard, a write of zeroes.
    None,
    /// Pattern, stored as such.
    Pattern(Pattern),
    /// Bytes with the length of the range.
    Bytes(&'a [u8]),
}

/// Storage for durable data. Other data is always in memory.
#[derive(Debug, Default)]
pub enum Backing {
    /// Memory, with patterns stored as such.
    #[default]
    Memory,
    /// Sparse file, with expanded patterns. The file holds exactly the medium, so killing the process is a
    /// power cut (one that loses everything at risk). The caller opens it, gives it the size of the drive and
    /// holds it exclusively.
    File(File),
    /// None: nothing is stored, and everything reads as zeroes.
    Nothing,
}

/// Error of an invalid shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContentsError {
    /// The logical block size is invalid.
    #[error("a logical block of {given} is not possible: use a power of two from 512 bytes to 64 KiB")]
    LogicalBlock {
        /// Requested size.
        given: Bytes,
    },
    /// The drive is too small or too large.
    #[error("{blocks} blocks of {logical_block} are not possible: a drive has from one block to 1 PiB")]
    Size {
        /// Requested number of blocks.
        blocks: u64,
        /// Size of a block.
        logical_block: Bytes,
    },
}

impl From<ContentsError> for plumb_block::Error {
    fn from(error: ContentsError) -> Self {
        Self::new(plumb_block::ErrorKind::Invalid, "make", "the contents of a drive")
            .because(error.to_string())
    }
}

/// The backing file failed. The first failure is kept: from then on the durable contents are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot {operation} the backing file at byte {offset}: {errno}; the drive can only answer with errors now"
)]
pub struct BackingError {
    /// Operation that failed: "read", "write", "punch a hole in", "sync".
    pub operation: &'static str,
    /// Offset in the file.
    pub offset: u64,
    /// Error number from the system.
    pub errno: Errno,
}

impl BackingError {
    /// Returns the error number with which the drive answers commands.
    pub const fn errno(&self) -> Option<Errno> {
        Some(self.errno)
    }
}
