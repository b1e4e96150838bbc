//! Is one better than the other? The ratio of two medians with a confidence interval.
//!
//! Percentile bootstrap: both samples are drawn anew with replacement many times, and the interval holds the middle
//! of the ratios that come out. It assumes nothing of the distribution. Seeded, so that the same measurements always
//! give the same interval.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// An estimate and where it probably lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// From the samples as they are.
    pub estimate: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// How an interval is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// The probability that the interval is to hold, between 0 and 1.
    pub confidence: f64,
    /// How often to draw.
    pub resamples: u32,
    /// The seed of the draws.
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self { confidence: 0.95, resamples: 10_000, seed: 0 }
    }
}

impl Bootstrap {
    /// The median of `new` over the median of `old`. `None` if a sample is empty or a median of `old` is zero.
    pub fn median_ratio(&self, new: &[f64], old: &[f64]) -> Option<Interval> {
        if new.is_empty() || old.is_empty() {
            return None;
        }
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let (mut new_draw, mut old_draw) = (new.to_vec(), old.to_vec());
        let estimate = ratio(median(&mut new_draw), median(&mut old_draw))?;
        let mut ratios = Vec::with_capacity(self.resamples as usize);
        for _ in 0..self.resamples.max(1) {
            draw(&mut random, new, &mut new_draw);
            draw(&mut random, old, &mut old_draw);
            ratios.push(ratio(median(&mut new_draw), median(&mut old_draw))?);
        }
        ratios.sort_unstable_by(f64::total_cmp);
        let tail = (1.0 - self.confidence.clamp(0.0, 1.0)) / 2.0;
        let last = ratios.len() - 1;
        let low = (tail * last as f64).floor() as usize;
        Some(Interval { estimate, low: ratios[low], high: ratios[last - low] })
    }
}

fn ratio(new: f64, old: f64) -> Option<f64> {
    (old != 0.0).then_some(new / old)
}

/// Fills `into` with values of `from`, each drawn with the same probability.
fn draw(random: &mut Xoshiro256PlusPlus, from: &[f64], into: &mut [f64]) {
    for place in into {
        let index = (u128::from(random.next_u64()) * from.len() as u128) >> 64;
        *place = from[index as usize];
    }
}

/// The median; sorts `values`, which are not empty.
fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) {
        f64::midpoint(values[middle - 1], values[middle])
    } else {
        values[middle]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_holds_the_ratio_and_is_the_same_every_time() {
        let old: Vec<f64> = (0..20).map(|i| 100.0 + f64::from(i % 5)).collect();
        let new: Vec<f64> = old.iter().map(|value| value * 2.0).collect();
        let bootstrap = Bootstrap::default();
        let interval = bootstrap.median_ratio(&new, &old).unwrap();
        assert_eq!(interval.estimate, 2.0);
        assert!(interval.low > 1.9 && interval.low <= 2.0 && interval.high >= 2.0 && interval.high < 2.1);
        assert_eq!(bootstrap.median_ratio(&new, &old), Some(interval));
    }

    #[test]
    fn equal_noise_is_not_a_difference() {
        let noisy =
            |phase: u32| -> Vec<f64> { (0..15).map(|i| 100.0 + f64::from((i * 7 + phase) % 11)).collect() };
        let interval = Bootstrap::default().median_ratio(&noisy(0), &noisy(4)).unwrap();
        assert!(interval.low < 1.0 && interval.high > 1.0, "{interval:?}");
    }

    #[test]
    fn a_wider_confidence_is_a_wider_interval() {
        let values: Vec<f64> = (1..30).map(f64::from).collect();
        let width = |confidence| {
            let interval =
                Bootstrap { confidence, ..Bootstrap::default() }.median_ratio(&values, &values).unwrap();
            interval.high - interval.low
        };
        assert!(width(0.5) < width(0.9) && width(0.9) < width(0.99));
        assert_eq!(Bootstrap::default().median_ratio(&[], &values), None);
        assert_eq!(Bootstrap::default().median_ratio(&values, &[0.0]), None);
    }
}
