//! Data for writes: noise in which no two blocks of 4 KiB are equal, so that neither compression nor
//! deduplication reduces it. Aligned for direct I/O.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Largest memory alignment that direct I/O requires.
const ALIGNMENT: usize = 4096;

/// Buffer with the alignment for direct I/O.
#[derive(Debug, Default)]
pub(crate) struct AlignedBuffer {
    bytes: Vec<u8>,
    start: usize,
}

impl AlignedBuffer {
    /// Returns the first `length` bytes, allocating them if necessary; true if the buffer is new.
    pub(crate) fn first(&mut self, length: usize) -> (&mut [u8], bool) {
        let is_new = self.bytes.len() < self.start + length || self.bytes.is_empty();
        if is_new {
            self.bytes = vec![0; length.next_power_of_two().max(ALIGNMENT) + ALIGNMENT];
            self.start = self.bytes.as_ptr().align_offset(ALIGNMENT);
        }
        (&mut self.bytes[self.start..self.start + length], is_new)
    }
}

/// Source of data for the writes of one thread.
#[derive(Debug)]
pub(crate) struct Noise {
    memory: AlignedBuffer,
    filled: usize,
    seed: u64,
    stamp: u64,
}

impl Noise {
    /// Creates a source. Different seeds give different data.
    pub(crate) fn new(seed: u64) -> Self {
        Self { memory: AlignedBuffer::default(), filled: 0, seed, stamp: 0 }
    }

    /// Returns the next `length` bytes. After the first fill this costs one store per 4 KiB.
    pub(crate) fn next(&mut self, length: usize) -> &[u8] {
        let (bytes, is_new) = self.memory.first(length);
        let unfilled = if is_new { 0 } else { self.filled };
        if unfilled < length {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed);
            random.fill_bytes(bytes);
            self.filled = length;
        }
        for block in bytes.chunks_mut(ALIGNMENT) {
            self.stamp += 1;
            let stamp = (self.seed ^ self.stamp).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
            let length = block.len().min(stamp.len());
            block[..length].copy_from_slice(&stamp[..length]);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_aligned_noisy_and_never_twice_the_same() {
        let mut noise = Noise::new(7);
        let mut seen = std::collections::HashSet::new();
        for length in [4096, 100, 16_384, 8192, 1 << 20, 4096, 512] {
            let bytes = noise.next(length);
            assert_eq!(bytes.len(), length);
            assert_eq!(bytes.as_ptr().align_offset(ALIGNMENT), 0);
            let zeroes = bytes.iter().filter(|byte| **byte == 0).count();
            assert!(zeroes <= 8 + length / 128, "{zeroes} of {length} bytes are zero");
            for block in bytes.chunks(ALIGNMENT) {
                assert!(seen.insert(block.to_vec()), "a block came twice");
            }
        }
    }
}
