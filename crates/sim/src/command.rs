//! A command inside a drive: numbered in order of arrival, addressed in sectors.

use plumb_block::{Bytes, LbaRange, Op};

/// Unit of addresses inside a drive: 512 bytes, independent of its logical block.
pub const SECTOR: Bytes = Bytes(512);

/// Number of a command, in order of submission to one drive. Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommandId(pub u64);

/// A run of 512-byte sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sectors {
    /// First sector.
    pub first: u64,
    /// Number of sectors.
    pub count: u64,
}

impl Sectors {
    /// Empty range, used by flushes.
    pub const NONE: Self = Self { first: 0, count: 0 };

    /// Converts `range`, in blocks of `logical_block` bytes, to sectors.
    pub(crate) const fn from_range(range: LbaRange, logical_block: Bytes) -> Self {
        let per_block = logical_block.0 / SECTOR.0;
        Self { first: range.lba.0 * per_block, count: range.nlb * per_block }
    }

    /// Returns the first sector after the range.
    pub const fn end(self) -> u64 {
        self.first + self.count
    }

    /// Returns the length in bytes.
    pub const fn bytes(self) -> Bytes {
        Bytes(self.count * SECTOR.0)
    }

    /// Returns true if both ranges have a sector in common.
    pub const fn overlaps(self, other: Self) -> bool {
        self.first < other.end() && other.first < self.end()
    }
}

/// A command without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// Number of the command.
    pub id: CommandId,
    /// Operation to carry out.
    pub op: Op,
    /// Sectors of the command.
    pub sectors: Sectors,
}
