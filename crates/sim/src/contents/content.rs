//! Contents of blocks. A pattern is stored as such and expanded when read.

use std::sync::Arc;

use plumb_block::{Lba, LbaRange, Pattern};

/// Content of a run of blocks. It is defined for each block by its address, so a run can be split anywhere.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    /// Never written: reads as zeroes and takes no space.
    Hole,
    /// Written zeroes.
    Zeroes,
    /// Pattern whose blocks are generated from their own address. (16 bytes including the discriminant, since
    /// the medium of a large drive consists of millions of these.)
    Pattern { generation: u32, seed: u64 },
    /// Any other pattern.
    ShiftedPattern(Arc<ShiftedPattern>),
    /// Arbitrary bytes.
    Bytes(Arc<StoredBytes>),
    /// Unreadable.
    Unreadable,
}

/// A pattern generated for another address, or with a large generation.
#[derive(Debug, PartialEq)]
pub(super) struct ShiftedPattern {
    /// Block that corresponds to the pattern's own address.
    first: Lba,
    pattern: Pattern,
}

/// The bytes of a run.
#[derive(Debug)]
pub(super) struct StoredBytes {
    first: Lba,
    bytes: Box<[u8]>,
}

impl StoredBytes {
    /// Returns the bytes of `range`, which must be part of the run.
    pub(super) fn slice(&self, range: LbaRange, block_bytes: usize) -> &[u8] {
        let from = (range.lba.0 - self.first.0) as usize * block_bytes;
        &self.bytes[from..from + range.nlb as usize * block_bytes]
    }
}

impl PartialEq for StoredBytes {
    /// Compares by identity. Comparing the bytes would cost more than merging equal runs saves.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Content {
    /// Creates the content of a pattern whose first block is at `first`.
    pub(super) fn pattern(first: Lba, pattern: Pattern) -> Self {
        match u32::try_from(pattern.generation) {
            Ok(generation) if pattern.lba == first => Self::Pattern { generation, seed: pattern.seed },
            _ => Self::ShiftedPattern(Arc::new(ShiftedPattern { first, pattern })),
        }
    }

    /// Creates a copy of these bytes, which start at block `first`.
    pub(super) fn bytes(first: Lba, bytes: &[u8]) -> Self {
        Self::Bytes(Arc::new(StoredBytes { first, bytes: bytes.into() }))
    }

    /// Fills `into` with the bytes of `range`, which must have the same length. Returns false without changes
    /// if the content is unreadable.
    pub(super) fn fill(&self, range: LbaRange, block_bytes: usize, into: &mut [u8]) -> bool {
        match self {
            Self::Hole | Self::Zeroes => into.fill(0),
            Self::Pattern { generation, seed } => {
                let pattern = Pattern { seed: *seed, lba: range.lba, generation: u64::from(*generation) };
                pattern.fill(block_bytes, into);
            }
            Self::ShiftedPattern(shifted) => {
                let ShiftedPattern { first, pattern } = **shifted;
                let lba = Lba(pattern.lba.0.wrapping_add(range.lba.0.wrapping_sub(first.0)));
                Pattern { lba, ..pattern }.fill(block_bytes, into);
            }
            Self::Bytes(stored) => into.copy_from_slice(stored.slice(range, block_bytes)),
            Self::Unreadable => return false,
        }
        true
    }

    /// Returns the content of block `from` as moved to another address.
    pub(super) fn moved(&self, from: Lba, to: Lba, block_bytes: usize) -> Self {
        match self {
            Self::Hole | Self::Zeroes | Self::Unreadable => self.clone(),
            Self::Pattern { generation, seed } => {
                Self::pattern(to, Pattern { seed: *seed, lba: from, generation: u64::from(*generation) })
            }
            Self::ShiftedPattern(_) | Self::Bytes(_) => {
                let mut bytes = vec![0; block_bytes];
                self.fill(LbaRange::new(from, 1), block_bytes, &mut bytes);
                Self::bytes(to, &bytes)
            }
        }
    }
}
