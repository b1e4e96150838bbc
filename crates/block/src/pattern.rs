//! Reproducible payloads: the bytes of a block depend only on (seed, LBA, generation).
//!
//! Each logical block is a stamp followed by noise:
//!
//! ```text
//! byte 0        8          16         24         32                          end of block
//!      ┌────────┬──────────┬──────────┬──────────┬───────────────────────────┐
//!      │ hash   │ seed     │ LBA      │generation│ xoshiro256++ of all three │
//!      └────────┴──────────┴──────────┴──────────┴───────────────────────────┘
//! ```
//!
//! All fields are little-endian. The hash covers the other three fields, each of which is masked with a
//! number derived from the hash. The stamp therefore is as random as the noise, and no part of a block
//! compresses or deduplicates: a device that reduces data gains nothing.
//!
//! With the stamp, a reader can classify a wrong block: another block (misdirected), an older version (stale,
//! lost), or neither (torn, damaged). The hash distinguishes stamps from foreign data, which passes for a
//! stamp once in 2^64 blocks.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use serde::{Deserialize, Serialize};

use crate::units::Lba;

/// Length of the stamp.
const STAMP_BYTES: usize = 32;

/// Source of a write's bytes. Block `i` of the payload is made from `lba + i`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pattern {
    /// Seed of the run.
    pub seed: u64,
    /// Address of the first block.
    pub lba: Lba,
    /// Version of the blocks; each rewrite uses a higher one.
    pub generation: u64,
}

/// Identity that is stored in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stamp {
    /// Seed of the run that wrote the block.
    pub seed: u64,
    /// Address for which the block was written.
    pub lba: Lba,
    /// Version of the block.
    pub generation: u64,
}

impl Pattern {
    /// Fills `into`, whose length must be a multiple of `logical_block` bytes (at least 32).
    ///
    /// # Panics
    /// If the length is not such a multiple, which is a bug of the caller.
    pub fn fill(self, logical_block: usize, into: &mut [u8]) {
        assert!(logical_block >= STAMP_BYTES && into.len().is_multiple_of(logical_block));
        for (index, block) in into.chunks_exact_mut(logical_block).enumerate() {
            let stamp = Stamp { seed: self.seed, lba: self.lba + index as u64, generation: self.generation };
            stamp.fill(block);
        }
    }
}

impl Stamp {
    /// Fills one block.
    fn fill(self, block: &mut [u8]) {
        let hash = self.hash();
        let masked = masked([self.seed, self.lba.0, self.generation], hash);
        let fields = [hash, masked[0], masked[1], masked[2]];
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

    /// Combines the three fields into one number. Odd multipliers keep neighbours in any field far apart
    /// before the generator's own SplitMix64 seeding.
    fn mixed(self) -> u64 {
        self.seed
            ^ self.lba.0.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)
            ^ self.generation.wrapping_mul(0xd1b5_4a32_d192_ed03).rotate_left(41)
    }

    fn hash(self) -> u64 {
        spread(self.mixed())
    }

    /// Reads the stamp of `block`; `None` if it carries none. The rest of the block is not checked.
    pub fn read(block: &[u8]) -> Option<Self> {
        let mut words = [0; STAMP_BYTES / 8];
        for (word, bytes) in words.iter_mut().zip(block.get(..STAMP_BYTES)?.chunks_exact(8)) {
            *word = bytes.try_into().map(u64::from_le_bytes).ok()?;
        }
        let [hash, fields @ ..] = words;
        let [seed, lba, generation] = masked(fields, hash);
        Some(Self { seed, lba: Lba(lba), generation }).filter(|stamp| stamp.hash() == hash)
    }

    /// Returns true if every byte of `block` matches the stamp.
    pub fn is_whole(self, block: &[u8]) -> bool {
        let mut expected = vec![0; block.len()];
        if block.len() < STAMP_BYTES {
            return false;
        }
        self.fill(&mut expected);
        Self::read(block) == Some(self) && expected[STAMP_BYTES..] == block[STAMP_BYTES..]
    }
}

/// Masks each field with a number derived from the hash. Masking twice restores the fields.
fn masked(fields: [u64; 3], hash: u64) -> [u64; 3] {
    let mut mask = hash;
    fields.map(|field| {
        mask = mask.wrapping_add(0x9e37_79b9_7f4a_7c15);
        field ^ spread(mask)
    })
}

/// Hashes a number to one that looks unrelated, without collisions: one step of SplitMix64.
#[inline]
pub const fn mixed(number: u64) -> u64 {
    spread(number.wrapping_add(0x9e37_79b9_7f4a_7c15))
}

/// Mixes every input bit into every output bit: the finalizer of SplitMix64.
const fn spread(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
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
        // Fixed for ever: what is on a device must verify after an update.
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
        assert_eq!(Stamp::read(&[0xff; 512]), None);
    }

    #[test]
    fn no_part_of_a_block_is_like_that_of_another() {
        let mut seen = std::collections::HashSet::new();
        let mut ones = [0_u32; 8 * STAMP_BYTES];
        let mut block = vec![0; 512];
        for lba in 0..1000 {
            Pattern { seed: 0, lba: Lba(lba), generation: 1 }.fill(512, &mut block);
            for (bit, count) in ones.iter_mut().enumerate() {
                *count += u32::from(block[bit / 8] >> (bit % 8) & 1);
            }
            for word in block.chunks_exact(4) {
                seen.insert(word.to_vec());
            }
        }
        // About two of 128,000 random words of 32 bits occur twice.
        assert!(seen.len() > 128_000 - 20, "{} different words", seen.len());
        let worst = ones.iter().map(|count| count.abs_diff(500)).max().unwrap();
        assert!(worst < 90, "a bit of the stamp is the same in {} of 1000 blocks", 500 + worst);
    }
}
