//! Random choices that follow from a seed alone, bit for bit the same on every machine.

use plumb_block::{Nanos, mixed};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Stream of random numbers.
#[derive(Debug, Clone)]
pub(crate) struct Chance(Xoshiro256PlusPlus);

impl Chance {
    /// Creates the `index`th stream of `seed`, independent of the others.
    pub(crate) fn from_seed(seed: u64, index: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(mixed(seed ^ mixed(index))))
    }

    /// Returns a random integer below `end`, which must be above 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        // The high half of the product; its bias is below 2^-64 times `end`.
        ((u128::from(self.0.next_u64()) * u128::from(end)) >> 64) as u64
    }

    /// Returns a random integer from `first` to `last`, inclusive.
    pub(crate) fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last - first + 1)
    }

    /// Returns one of `choices`, with a probability proportional to its weight.
    pub(crate) fn weighed(&mut self, choices: &[(u64, u64)]) -> u64 {
        let total = choices.iter().map(|(_, weight)| weight).sum();
        let mut left = self.below(total);
        for (choice, weight) in choices {
            if left < *weight {
                return *choice;
            }
            left -= weight;
        }
        // Unreachable, because `left` is below the sum of the weights.
        0
    }

    /// Returns a random number in `(0, 1]`, in steps of 2^-53.
    fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Returns an exponentially distributed time.
    pub(crate) fn exponential(&mut self, mean: Nanos) -> Nanos {
        Nanos::from_secs_f64(-libm::log(self.unit()) * mean.as_secs_f64())
    }

    /// Returns a gamma-distributed size of at least 1, with shape 1.5 as in Filebench (Marsaglia and Tsang, A
    /// Simple Method for Generating Gamma Variables, 2000).
    pub(crate) fn gamma(&mut self, mean: u64) -> u64 {
        const SHAPE: f64 = 1.5;
        let d = SHAPE - 1.0 / 3.0;
        let c = 1.0 / libm::sqrt(9.0 * d);
        loop {
            let x = self.normal();
            let root = 1.0 + c * x;
            let v = root * root * root;
            if v > 0.0 && libm::log(self.unit()) < 0.5 * x * x + d - d * v + d * libm::log(v) {
                return (libm::round(d * v * mean as f64 / SHAPE) as u64).max(1);
            }
        }
    }

    /// Returns a normally distributed number with mean 0 and deviation 1 (Marsaglia's polar method; the
    /// second value is discarded).
    fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * libm::sqrt(-2.0 * libm::log(square) / square);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_has_its_mean_and_deviation() {
        let mut chance = Chance::from_seed(1, 2);
        let drawn: Vec<f64> = (0..100_000).map(|_| chance.gamma(16_384) as f64).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance = drawn.iter().map(|size| (size - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
        // The standard deviation of a gamma distribution is its mean divided by the square root of its shape.
        let expected = 16_384.0 / 1.5_f64.sqrt();
        assert!((mean / 16_384.0 - 1.0).abs() < 0.02, "mean {mean}");
        assert!((variance.sqrt() / expected - 1.0).abs() < 0.02, "deviation {}", variance.sqrt());
    }

    #[test]
    fn waiting_times_and_weights_come_out_as_asked() {
        let mut chance = Chance::from_seed(3, 0);
        let waited: u64 = (0..100_000).map(|_| chance.exponential(Nanos::micros(500)).0).sum();
        assert!((waited as f64 / 100_000.0 / 500_000.0 - 1.0).abs() < 0.02, "{waited}");
        let ones = (0..100_000).filter(|_| chance.weighed(&[(1, 25), (2, 48), (3, 26)]) == 1).count();
        assert!((ones as f64 / 100_000.0 - 25.0 / 99.0).abs() < 0.01, "{ones}");
        assert!((0..1000).all(|_| (5..=7).contains(&chance.between(5, 7))));
    }

    #[test]
    fn streams_follow_from_seed_and_index() {
        let draws = |seed, index| {
            let mut chance = Chance::from_seed(seed, index);
            (0..4).map(|_| chance.gamma(1000)).collect::<Vec<_>>()
        };
        assert_eq!(draws(1, 1), draws(1, 1));
        assert_ne!(draws(1, 1), draws(1, 2));
        assert_ne!(draws(1, 1), draws(2, 1));
    }
}
