//! A random order of `0..count` without memory for each element.
//!
//! A Feistel network permutes all numbers with as many bits as `count - 1` has; a result beyond the end is
//! permuted again until it is inside (cycle walking: J. Black and P. Rogaway, "Ciphers with arbitrary finite
//! domains", 2002). At most half of the numbers are beyond the end, so two iterations suffice on average.

use plumb_block::mixed;

/// Number of rounds, each of which mixes one half of the bits into the other.
const ROUNDS: usize = 6;

/// A permutation of `0..count`.
#[derive(Debug, Clone)]
pub(crate) struct Permutation {
    /// Number of values that are permuted.
    pub(crate) count: u64,
    /// Number of bits of the upper half.
    upper: u32,
    /// Number of bits of the lower half, which has one more for an odd number.
    lower: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// Creates the permutation of `0..count` for `key`; `count` must not be zero.
    pub(crate) fn new(count: u64, key: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        let mut keys = [0; ROUNDS];
        let mut last = key;
        for key in &mut keys {
            last = mixed(last);
            *key = last;
        }
        Self { count, upper: bits / 2, lower: bits.div_ceil(2), keys }
    }

    /// Returns the image of `index`, which must be less than the count.
    pub(crate) fn apply(&self, index: u64) -> u64 {
        let mut value = self.turn(index);
        while value >= self.count {
            value = self.turn(value);
        }
        value
    }

    /// Applies the Feistel network once.
    fn turn(&self, value: u64) -> u64 {
        let (upper_mask, lower_mask) = ((1 << self.upper) - 1, (1 << self.lower) - 1);
        let (mut upper, mut lower) = (value >> self.lower, value & lower_mask);
        for keys in self.keys.chunks_exact(2) {
            upper ^= round(lower, keys[0]) & upper_mask;
            lower ^= round(upper, keys[1]) & lower_mask;
        }
        upper << self.lower | lower
    }
}

/// Round function. Any function works whose low bits depend on all of the input, such as the high half of a
/// product.
fn round(half: u64, key: u64) -> u64 {
    let product = (half ^ key).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (product ^ product >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32
}
