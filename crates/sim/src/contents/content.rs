//! Contents of blocks. A pattern is kept as such; its bytes are made when somebody reads them.

use std::sync::Arc;

use plumb_block::{Lba, LbaRange, Pattern};

/// Content of the blocks of a run. It is given for each block by its address, so that a run can be divided
/// anywhere.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    /// Nothing: reads as zeroes and takes no space.
    Hole,
    /// Zeroes that were written.
    Zeroes,
    /// A pattern in which each block is made from its own address. (16 bytes with the discriminant: the
    /// medium of a large drive is made of millions of these.)
    Pattern { generation: u32, seed: u64 },
    /// Any other pattern.
    ShiftedPattern(Arc<ShiftedPattern>),
    /// Bytes.
    Bytes(Arc<StoredBytes>),
    /// Nothing that can be read.
    Unreadable,
}

/// A pattern that was made for another place, or has a large generation.
#[derive(Debug, PartialEq)]
pub(super) struct ShiftedPattern {
    /// The block that is made from the pattern's own address.
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
    /// Returns the bytes of `range`, which is part of the run.
    pub(super) fn slice(&self, range: LbaRange, block_bytes: usize) -> &[u8] {
        let from = (range.lba.0 - self.first.0) as usize * block_bytes;
        &self.bytes[from..from + range.nlb as usize * block_bytes]
    }
}

impl PartialEq for StoredBytes {
    /// Returns two that were stored apart stay apart: comparing bytes would cost more than it saves.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Content {
    /// Returns the pattern whose first block goes to `first`.
    pub(super) fn pattern(first: Lba, pattern: Pattern) -> Self {
        match u32::try_from(pattern.generation) {
            Ok(generation) if pattern.lba == first => Self::Pattern { generation, seed: pattern.seed },
            _ => Self::ShiftedPattern(Arc::new(ShiftedPattern { first, pattern })),
        }
    }

    /// Creates a copy of these bytes, which begin with block `first`.
    pub(super) fn bytes(first: Lba, bytes: &[u8]) -> Self {
        Self::Bytes(Arc::new(StoredBytes { first, bytes: bytes.into() }))
    }

    /// Puts the bytes of `range` into `into`, which is as long. False, and nothing is done, if it cannot be
    /// read.
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

    /// Returns the content of block `from` at another place.
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
