//! Numbers and events from a seeded generator.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng as _;

/// Returns a number below `bound`, which is not 0. The bias is below 2^-40 for what is drawn here.
pub fn below(chance: &mut Xoshiro256PlusPlus, bound: u64) -> u64 {
    ((u128::from(chance.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// Returns true if an event of this probability happens. Draws nothing for a probability of 0.
pub fn happens(chance: &mut Xoshiro256PlusPlus, probability: f64) -> bool {
    // 53 bits: what a double holds.
    probability > 0.0 && ((chance.next_u64() >> 11) as f64) < probability * 9_007_199_254_740_992.0
}
