//! Random numbers and events from a seeded generator.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng as _;

/// Returns a random number below `bound`, which must not be 0. For a bound up to 2^24, the bias is below
/// 2^-40.
pub fn below(chance: &mut Xoshiro256PlusPlus, bound: u64) -> u64 {
    ((u128::from(chance.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// Returns true with this probability. Draws no number for a probability of 0.
pub fn happens(chance: &mut Xoshiro256PlusPlus, probability: f64) -> bool {
    // 53 bits: the precision of a double.
    probability > 0.0 && ((chance.next_u64() >> 11) as f64) < probability * 9_007_199_254_740_992.0
}
