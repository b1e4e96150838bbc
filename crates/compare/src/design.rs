//! The design of an experiment: how many rounds, the order of the levels in each, when the results are looked at, and how much
//! of the allowed error each look may use.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::statistics::{Flips, Orders, shuffle};

/// What is asked of the statistics.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// In how many of all experiments at most a difference is found where there is none, or equivalence where there is a difference
    /// as large as the threshold: 0.05.
    pub error: f64,
    /// A ratio between one over this and this is equivalence: 1.05.
    pub equivalent: f64,
}

impl Default for Terms {
    fn default() -> Self {
        Self { error: 0.05, equivalent: 1.05 }
    }
}

/// A moment at which the results are looked at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// After so many rounds.
    pub rounds: usize,
    /// The error that it may use. Those of all looks add up to the whole, so intervals of all looks hold together.
    pub error: f64,
}

/// The design of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    levels: usize,
    looks: Vec<Look>,
    /// How many rounds are between two looks.
    stages: Vec<usize>,
    seed: u64,
    /// All levels run at the same time: there are no orders, and where the levels are alike either may come out ahead in each round.
    together: bool,
}

/// The part of the error that a look before the last uses, of looks so many.
const EARLY_SHARES: [f64; 3] = [0.2, 0.1, 0.1];

impl Design {
    /// Fewer rounds can hardly show anything.
    pub const ROUNDS_MIN: usize = 8;
    /// More are not run, however large the budget: longer blocks are better then.
    pub const ROUNDS_MAX: usize = 64;

    /// An experiment with at most `rounds` rounds of `levels` levels. `looks_early` says whether it may end before the last round.
    pub fn new(levels: usize, rounds: usize, terms: &Terms, looks_early: bool, seed: u64) -> Self {
        let levels = levels.max(2);
        // Each level is compared with the first, and all these comparisons share the error.
        let error = terms.error / (levels - 1) as f64;
        let rounds = even(rounds.clamp(Self::ROUNDS_MIN, Self::ROUNDS_MAX));
        let first = first_look(error * EARLY_SHARES[0]);
        let early = [first, even(rounds / 2), even(rounds * 3 / 4)];
        let mut looks: Vec<Look> = Vec::new();
        for at in early.into_iter().filter(|_| looks_early) {
            let is_later = looks.last().is_none_or(|last| at > last.rounds);
            if at >= first && at + 2 < rounds && is_later {
                looks.push(Look { rounds: at, error: error * EARLY_SHARES[looks.len()] });
            }
        }
        let spent: f64 = looks.iter().map(|look| look.error).sum();
        looks.push(Look { rounds, error: error - spent });
        let begins = std::iter::once(0).chain(looks.iter().map(|look| look.rounds));
        let stages = begins.zip(&looks).map(|(begin, look)| look.rounds - begin).collect();
        Self { levels, looks, stages, seed, together: false }
    }

    /// The same where all levels of a round run at the same time.
    #[must_use]
    pub fn together(self, together: bool) -> Self {
        Self { together, ..self }
    }

    /// At most so many rounds.
    pub fn rounds(&self) -> usize {
        self.looks.last().map_or(0, |look| look.rounds)
    }

    /// The looks, in order.
    pub fn looks(&self) -> &[Look] {
        &self.looks
    }

    /// The look after `rounds` rounds, if there is one.
    pub fn look_at(&self, rounds: usize) -> Option<Look> {
        self.looks.iter().find(|look| look.rounds == rounds).copied()
    }

    /// The error that may be used after `rounds` rounds: that of the look there; anywhere else, what earlier looks have left.
    pub fn error_at(&self, rounds: usize) -> f64 {
        let left = || self.looks.iter().filter(|look| look.rounds > rounds).map(|look| look.error).sum();
        self.look_at(rounds).map_or_else(left, |look| look.error)
    }

    /// The order of the levels in each round.
    pub fn orders(&self) -> Vec<Vec<usize>> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let mut all = Vec::new();
        for stage in &self.stages {
            let mut orders: Vec<Vec<usize>> = (0..*stage).map(|_| (0..self.levels).collect()).collect();
            if self.levels == 2 {
                orders.iter_mut().skip(stage / 2).for_each(|order| order.reverse());
                shuffle(&mut orders, &mut random);
            } else {
                orders.iter_mut().for_each(|order| shuffle(order, &mut random));
            }
            all.append(&mut orders);
        }
        all
    }

    /// What other orders of two levels the design could have drawn, given whether the second came first in each round.
    pub fn flips(&self, swapped: &[bool]) -> Flips {
        let orders = match self.levels {
            _ if self.together => Orders::Free,
            2 => Orders::Balanced { swapped, stages: &self.stages },
            // The order of more levels is free, and so is that of two of them.
            _ => Orders::Free,
        };
        orders.flips(swapped.len(), self.seed)
    }

    /// The seed of the orders.
    pub fn seed(&self) -> u64 {
        self.seed
    }
}

fn even(rounds: usize) -> usize {
    rounds - rounds % 2
}

/// The fewest rounds, an even number, after which a balanced design can show a difference at this error at all: both ends of the orders
/// that it could have drawn must be rare enough.
fn first_look(error: f64) -> usize {
    let mut rounds = Design::ROUNDS_MIN;
    let choices =
        |rounds: usize| (1..=rounds / 2).fold(1.0, |all, k| all * (rounds / 2 + k) as f64 / k as f64);
    while 2.0 / choices(rounds) > error && rounds < Design::ROUNDS_MAX {
        rounds += 2;
    }
    rounds
}
