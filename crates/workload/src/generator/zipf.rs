//! Ranks by Zipf's law, at a cost independent of their number.
//!
//! Rejection-inversion (W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from monotone
//! discrete distributions", ACM TOMACS 6(3), 1996): inverting the area under x^-theta gives a continuous
//! number. The nearest rank is accepted unless the number is outside the rank's own piece of that area. The
//! result is exact up to the rounding of 64-bit floats. All functions are from `libm`, so they are the same
//! on every machine.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use crate::seed::unit;

/// Ranks from 0: rank `k` has a weight of (k+1)^-theta.
#[derive(Debug, Clone)]
pub(crate) struct Zipf {
    count: f64,
    theta: f64,
    /// Start of the range of areas to draw from.
    low: f64,
    /// End of the range of areas to draw from.
    high: f64,
    /// A number at most this far below its rank is always inside the rank's piece.
    squeeze: f64,
}

impl Zipf {
    /// Creates a distribution over `count` ranks, at least one; `theta` must be above zero.
    pub(crate) fn new(count: u64, theta: f64) -> Self {
        let count = count as f64;
        let unready = Self { count, theta, low: 0.0, high: 0.0, squeeze: 0.0 };
        Self {
            low: unready.area(1.5) - 1.0,
            high: unready.area(count + 0.5),
            squeeze: 2.0 - unready.area_inverse(unready.area(2.5) - unready.weight(2.0)),
            ..unready
        }
    }

    /// Draws a rank.
    pub(crate) fn draw(&self, random: &mut Xoshiro256PlusPlus) -> u64 {
        loop {
            let area = self.high + unit(random.next_u64()) * (self.low - self.high);
            let number = self.area_inverse(area);
            let rank = libm::floor(number + 0.5).clamp(1.0, self.count);
            if rank - number <= self.squeeze || area >= self.area(rank + 0.5) - self.weight(rank) {
                return rank as u64 - 1;
            }
        }
    }

    fn weight(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// Returns the area under x^-theta from 1 to `x`: (x^(1-theta) - 1) / (1-theta), without cancellation
    /// near 1.
    fn area(&self, x: f64) -> f64 {
        let log = libm::log(x);
        exp_m1_over((1.0 - self.theta) * log) * log
    }

    fn area_inverse(&self, area: f64) -> f64 {
        // Rounding may take the argument below -1, where the logarithm is undefined.
        libm::exp(ln_1p_over((area * (1.0 - self.theta)).max(-1.0)) * area)
    }
}

/// Returns (e^x - 1) / x.
fn exp_m1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::expm1(x) / x } else { 1.0 + x / 2.0 }
}

/// Returns ln(1 + x) / x.
fn ln_1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::log1p(x) / x } else { 1.0 - x / 2.0 }
}
