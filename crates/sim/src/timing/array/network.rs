//! Network to the members, with variable latency.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng as _;

use super::parameters::Parameters;

/// Network behind the host's link. All times are in nanoseconds.
#[derive(Debug)]
pub(super) struct Network {
    half_trip: u64,
    half_jitter: u64,
    chance: Xoshiro256PlusPlus,
}

impl Network {
    /// Creates a network whose latencies are drawn from `chance`.
    pub(super) const fn new(parameters: &Parameters, chance: Xoshiro256PlusPlus) -> Self {
        let (half_trip, half_jitter) = (parameters.round_trip.0.0 / 2, parameters.jitter.0.0 / 2);
        Self { half_trip, half_jitter, chance }
    }

    /// Draws the latency of one way.
    pub(super) fn trip(&mut self) -> u64 {
        let jitter = (u128::from(self.chance.next_u64()) * u128::from(self.half_jitter)) >> 64;
        self.half_trip + jitter as u64
    }
}
