//! Payloads that regenerate: the bytes of a block follow from (seed, LBA, generation) alone.
//!
//! Each logical block is a stamp and then noise:
//!
//! ```text
//! byte 0        8          16         24         32                          end of block
//!      ┌────────┬──────────┬──────────┬──────────┬───────────────────────────┐
//!      │ magic  │ seed     │ LBA      │generation│ xoshiro256++ of all three │
//!      └────────┴──────────┴──────────┴──────────┴───────────────────────────┘
//! ```
//!
//! All fields are little-endian. The stamp lets a reader say what a wrong block is: another block (misdirected), an
//! older version (stale, lost), or neither (torn, damaged). The noise does not compress and does not deduplicate, so
//! a path that reduces data gains nothing.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use serde::{Deserialize, Serialize};

use crate::units::Lba;

/// The first eight bytes of every block: ASCII `plumbpat`.
const MAGIC: u64 = u64::from_le_bytes(*b"plumbpat");
/// The length of the stamp.
const STAMP_BYTES: usize = 32;

/// What a write's bytes are made from. Block `i` of the payload is made from `lba + i`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pattern {
    /// The seed of the run.
    pub seed: u64,
    /// The address of the first block.
    pub lba: Lba,
    /// Which version of the block this is; each rewrite takes a higher one.
    pub generation: u64,
}

/// What a block says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stamp {
    /// The seed of the run that wrote it.
    pub seed: u64,
    /// The address for which it was written.
    pub lba: Lba,
    /// The version.
    pub generation: u64,
}

impl Pattern {
    /// Writes the bytes into `into`, whose length is a multiple of `logical_block` bytes (at least 32).
    ///
    /// # Panics
    /// If the length is not such a multiple: a broken caller, never input.
    pub fn fill(self, logical_block: usize, into: &mut [u8]) {
        assert!(logical_block >= STAMP_BYTES && into.len().is_multiple_of(logical_block));
        for (index, block) in into.chunks_exact_mut(logical_block).enumerate() {
            let stamp = Stamp { seed: self.seed, lba: self.lba + index as u64, generation: self.generation };
            stamp.fill(block);
        }
    }
}

impl Stamp {
    /// Writes one block.
    fn fill(self, block: &mut [u8]) {
        let fields = [MAGIC, self.seed, self.lba.0, self.generation];
        let (head, noise) = block.split_at_mut(STAMP_BYTES);
        for (place, field) in head.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.mixed());
        let mut words = noise.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&random.next_u64().to_le_bytes());
        }
        let rest = words.into_remainder();
        let last = random.next_u64().to_le_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
    }

    /// One number from three: odd multipliers keep neighbours in any field far apart before the generator's own
    /// SplitMix64 seeding.
    fn mixed(self) -> u64 {
        self.seed
            ^ self.lba.0.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)
            ^ self.generation.wrapping_mul(0xd1b5_4a32_d192_ed03).rotate_left(41)
    }

    /// What `block` says it is, if it carries a stamp at all. Says nothing of the rest of the block.
    pub fn read(block: &[u8]) -> Option<Self> {
        let mut fields =
            block.get(..STAMP_BYTES)?.chunks_exact(8).map(|bytes| bytes.try_into().map(u64::from_le_bytes));
        let mut next = || fields.next()?.ok();
        if next()? != MAGIC {
            return None;
        }
        Some(Self { seed: next()?, lba: Lba(next()?), generation: next()? })
    }

    /// Whether `block` is, to the last byte, the block that its stamp claims.
    pub fn is_whole(self, block: &[u8]) -> bool {
        let mut expected = vec![0; block.len()];
        if block.len() < STAMP_BYTES {
            return false;
        }
        self.fill(&mut expected);
        expected == block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_follow_from_seed_lba_and_generation_alone() {
        let pattern = Pattern { seed: 7, lba: Lba(100), generation: 3 };
        let mut whole = vec![0; 4096];
        pattern.fill(512, &mut whole);
        let mut part = vec![0; 512];
        Pattern { lba: Lba(105), ..pattern }.fill(512, &mut part);
        assert_eq!(whole[5 * 512..6 * 512], part[..], "a block does not depend on the request that wrote it");
        // Fixed for ever: recordings of older versions must verify.
        assert_eq!(whole[32..40], [0x10, 0x9c, 0xfe, 0xf6, 0x91, 0x18, 0xa7, 0xfd]);
    }

    #[test]
    fn a_stamp_tells_what_a_wrong_block_is() {
        let mut block = vec![0; 512];
        Pattern { seed: 1, lba: Lba(9), generation: 2 }.fill(512, &mut block);
        let stamp = Stamp::read(&block).unwrap();
        assert_eq!(stamp, Stamp { seed: 1, lba: Lba(9), generation: 2 });
        assert!(stamp.is_whole(&block));
        block[400] ^= 1;
        assert!(!stamp.is_whole(&block), "a torn block passed for whole");
        assert_eq!(Stamp::read(&[0; 512]), None);
        assert_eq!(Stamp::read(&[1; 8]), None);
    }
}
