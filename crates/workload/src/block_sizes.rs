//! Lengths of operations with their frequencies.

use plumb_block::Bytes;
use serde::{Deserialize, Serialize};

/// Lengths of reads, writes and trims.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockSizes {
    /// Block sizes of reads.
    pub read: BlockSplit,
    /// Block sizes of writes.
    pub write: BlockSplit,
    /// Block sizes of trims.
    pub trim: BlockSplit,
}

/// Lengths with the percentage of each, which add up to 100.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BlockSplit(pub Vec<(Bytes, u8)>);

impl BlockSplit {
    /// Creates block sizes that are always `block`.
    pub fn one(block: Bytes) -> Self {
        Self(vec![(block, 100)])
    }

    /// Returns the length if there is only one.
    pub fn only(&self) -> Option<Bytes> {
        match self.0[..] {
            [(block, _)] => Some(block),
            _ => None,
        }
    }

    /// Returns the shortest length; zero if there is none.
    pub fn min(&self) -> Bytes {
        self.0.iter().map(|(block, _)| *block).min().unwrap_or(Bytes(0))
    }

    /// Returns the longest length; zero if there is none.
    pub fn max(&self) -> Bytes {
        self.0.iter().map(|(block, _)| *block).max().unwrap_or(Bytes(0))
    }
}

impl BlockSizes {
    /// Creates block sizes with one length for all operations.
    pub fn one(block: Bytes) -> Self {
        let split = BlockSplit::one(block);
        Self { read: split.clone(), write: split.clone(), trim: split }
    }

    /// Returns the length if reads, writes and trims all have the same single one.
    pub fn only(&self) -> Option<Bytes> {
        self.read.only().filter(|block| self.write.only() == Some(*block) && self.trim.only() == Some(*block))
    }

    /// Returns the shortest length of all.
    pub fn min(&self) -> Bytes {
        self.read.min().min(self.write.min()).min(self.trim.min())
    }

    /// Returns the longest length of all.
    pub fn max(&self) -> Bytes {
        self.read.max().max(self.write.max()).max(self.trim.max())
    }
}
