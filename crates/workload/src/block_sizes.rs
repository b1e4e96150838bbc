//! Lengths of operations, and how often each occurs.

use plumb_block::Bytes;
use serde::{Deserialize, Serialize};

/// The lengths of reads, writes and trims.
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

/// Lengths and how often each comes: percents that add up to 100.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BlockSplit(pub Vec<(Bytes, u8)>);

impl BlockSplit {
    /// Creates block sizes that are always `block`.
    pub fn one(block: Bytes) -> Self {
        Self(vec![(block, 100)])
    }

    /// Returns the only length, if there is one only.
    pub fn only(&self) -> Option<Bytes> {
        match self.0[..] {
            [(block, _)] => Some(block),
            _ => None,
        }
    }

    /// Returns the shortest; zero if there is none.
    pub fn min(&self) -> Bytes {
        self.0.iter().map(|(block, _)| *block).min().unwrap_or(Bytes(0))
    }

    /// Returns the longest; zero if there is none.
    pub fn max(&self) -> Bytes {
        self.0.iter().map(|(block, _)| *block).max().unwrap_or(Bytes(0))
    }
}

impl BlockSizes {
    /// Returns all operations of one length.
    pub fn one(block: Bytes) -> Self {
        let split = BlockSplit::one(block);
        Self { read: split.clone(), write: split.clone(), trim: split }
    }

    /// Returns the only length, if reads, writes and trims all have the same.
    pub fn only(&self) -> Option<Bytes> {
        self.read.only().filter(|block| self.write.only() == Some(*block) && self.trim.only() == Some(*block))
    }

    /// Returns the shortest of all.
    pub fn min(&self) -> Bytes {
        self.read.min().min(self.write.min()).min(self.trim.min())
    }

    /// Returns the longest of all.
    pub fn max(&self) -> Bytes {
        self.read.max().max(self.write.max()).max(self.trim.max())
    }
}
