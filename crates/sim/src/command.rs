//! A command as the inside of a drive sees it: numbered in the order of arrival, addressed in sectors.

use plumb_block::{Bytes, LbaRange, Op};

/// The unit in which the inside of a drive counts: 512 bytes, whatever its logical block is.
pub const SECTOR: Bytes = Bytes(512);

/// Numbers commands of one drive in the order in which they were submitted. Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommandId(pub u64);

/// A run of 512-byte sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sectors {
    /// The first one.
    pub first: u64,
    /// How many.
    pub count: u64,
}

impl Sectors {
    /// None: where a flush goes.
    pub const NONE: Self = Self { first: 0, count: 0 };

    /// Returns the sectors of `range`, whose blocks are of `logical_block` bytes.
    pub const fn from_range(range: LbaRange, logical_block: Bytes) -> Self {
        let per_block = logical_block.0 / SECTOR.0;
        Self { first: range.lba.0 * per_block, count: range.nlb * per_block }
    }

    /// Returns the first sector after them.
    pub const fn end(self) -> u64 {
        self.first + self.count
    }

    /// Returns the length of the sectors.
    pub const fn bytes(self) -> Bytes {
        Bytes(self.count * SECTOR.0)
    }

    /// Returns true if the two have a sector in common.
    pub const fn overlaps(self, other: Self) -> bool {
        self.first < other.end() && other.first < self.end()
    }
}

/// One command, without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// Number of the command.
    pub id: CommandId,
    /// Operation to carry out.
    pub op: Op,
    /// Where.
    pub sectors: Sectors,
}
