//! The way to the members and back: the host's software, its link, and trips that are not all the same.

use plumb_block::Bytes;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng as _;

use super::parameters::Parameters;
use crate::model::Rate;

/// Software and link, which do one thing at a time, and the way behind them. All times are in nanoseconds.
#[derive(Debug)]
pub(super) struct Network {
    half_trip: u64,
    half_jitter: u64,
    link: Rate,
    /// What the software spends on a command.
    command: u64,
    chance: Xoshiro256PlusPlus,
    software_free: u64,
    /// When the link is free, from the host and to it.
    link_free: [u64; 2],
}

impl Network {
    /// Everything free; trips are drawn from `chance`.
    pub(super) const fn new(parameters: &Parameters, chance: Xoshiro256PlusPlus) -> Self {
        Self {
            half_trip: parameters.round_trip.0.0 / 2,
            half_jitter: parameters.jitter.0.0 / 2,
            link: parameters.link,
            command: parameters.command.0.0,
            chance,
            software_free: 0,
            link_free: [0; 2],
        }
    }

    /// When the software has sent off a command that comes at `now`.
    pub(super) fn admit(&mut self, now: u64) -> u64 {
        self.software_free = now.max(self.software_free) + self.command;
        self.software_free
    }

    /// Carries `bytes` over the host's link, not before `at`; returns when they are across.
    pub(super) fn carry(&mut self, at: u64, bytes: u64, to_host: bool) -> u64 {
        let free = &mut self.link_free[usize::from(to_host)];
        *free = at.max(*free) + self.link.time_for(Bytes(bytes)).0;
        *free
    }

    /// How long one way takes.
    pub(super) fn trip(&mut self) -> u64 {
        let jitter = (u128::from(self.chance.next_u64()) * u128::from(self.half_jitter)) >> 64;
        self.half_trip + jitter as u64
    }

    /// Nothing is under way any more.
    pub(super) const fn clear(&mut self) {
        self.software_free = 0;
        self.link_free = [0; 2];
    }
}
