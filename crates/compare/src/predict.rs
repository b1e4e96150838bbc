//! Prediction of the outcome and the required length of an experiment, from the differences between the
//! blocks of practice.
//!
//! A difference of `d` is found by a two-sided test at the error `a` with the probability `p` if `n` pairs of
//! blocks have a mean with an error of `d / c`: `n = (c s / d)^2`, where `s` is the deviation of a pair.
//! Practice estimates `s` from only a few pairs, so `c` is the sum of Student's quantiles, not the normal
//! ones (Stein, Annals of Mathematical Statistics 16, 1945).
//!
//! # Limitations
//! Practice usually misses rare events, such as a stall in one of a hundred blocks.

use plumb_report::document::comparison::Prediction;

use crate::design::Design;
use crate::outcome::POWER;
use crate::statistics::student_quantile;

/// Rounds of practice: the first finds the warm-up, the others show how much pairs of blocks differ.
pub const PRACTICE: usize = 5;
/// Minimum number of pairs for an estimate of how much they differ.
const PAIRS_MIN: usize = 2;

/// Spread of the log ratios of pairs of blocks, and its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    deviation: f64,
    factor: f64,
}

impl Spread {
    /// Returns the spread of `log_ratios`, for a test at `error`; `None` if there are too few.
    pub fn from_log_ratios(log_ratios: &[f64], error: f64) -> Option<Self> {
        let count = log_ratios.len();
        if count < PAIRS_MIN {
            return None;
        }
        let mean = log_ratios.iter().sum::<f64>() / count as f64;
        let squares: f64 = log_ratios.iter().map(|value| (value - mean).powi(2)).sum();
        let freedom = count as u32 - 1;
        let factor = student_quantile(1.0 - error / 2.0, freedom) + student_quantile(POWER, freedom);
        Some(Self { deviation: (squares / f64::from(freedom)).sqrt(), factor })
    }

    pub(crate) fn total_cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.deviation.total_cmp(&other.deviation)
    }

    /// Returns the number of rounds that find a difference of this logarithm with the probability [`POWER`]:
    /// an even number, at least [`Design::ROUNDS_USUAL`].
    pub fn rounds(&self, difference: f64) -> u64 {
        let rounds = (self.factor * self.deviation / difference).powi(2);
        (rounds.ceil() as u64).next_multiple_of(2).max(Design::ROUNDS_USUAL as u64)
    }

    /// Returns the logarithm of the smallest difference that `rounds` rounds find.
    pub fn smallest(&self, rounds: usize) -> f64 {
        self.factor * self.deviation / (rounds as f64).sqrt()
    }

    /// Predicts the outcome of rounds of `round_seconds`, of which the budget holds `planned`. If more than
    /// the maximum number of rounds are needed, blocks must be longer instead, so that they differ less.
    pub(crate) fn predict(&self, difference: f64, round_seconds: f64, planned: usize) -> Prediction {
        let needed = self.rounds(difference.ln_1p());
        Prediction {
            difference,
            power: POWER,
            rounds: needed.min(Design::ROUNDS_MAX as u64),
            times_as_long: (needed as f64 / Design::ROUNDS_MAX as f64).max(1.0),
            seconds: round_seconds * (needed as f64 + PRACTICE as f64),
            smallest_detectable: self.smallest(planned).exp_m1(),
        }
    }
}
