//! A random order of `0..count` without memory for each member.
//!
//! A Feistel network permutes the numbers of as many bits as `count - 1` has; a result past the end is
//! permuted again until it falls inside (cycle walking: J. Black and P. Rogaway, "Ciphers with arbitrary
//! finite domains", 2002). Fewer than half of the numbers are past the end, so that two turns are enough on
//! average.

use plumb_block::mixed;

/// Half rounds: each mixes one half of the bits into the other.
const ROUNDS: usize = 6;

/// A permutation of `0..count`.
#[derive(Debug, Clone)]
pub(crate) struct Permutation {
    /// Number of values that are permuted.
    pub(crate) count: u64,
    /// Bits of the upper half, and of the lower, which has one more if their number is odd.
    upper: u32,
    lower: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// Returns the permutation of `0..count` that `key` chooses; `count` is above zero.
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

    /// Returns where `index`, less than the count, goes.
    pub(crate) fn apply(&self, index: u64) -> u64 {
        let mut value = self.turn(index);
        while value >= self.count {
            value = self.turn(value);
        }
        value
    }

    /// Returns the Feistel network itself.
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

/// Any function will do, as long as its low bits depend on all of the input: the high half of a product does.
fn round(half: u64, key: u64) -> u64 {
    let product = (half ^ key).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (product ^ product >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32
}
