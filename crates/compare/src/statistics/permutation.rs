//! The permutation test of paired differences, inverted: its interval without a search.
//!
//! Let `x` be the differences of pairs of blocks, one of each level, measured in an order that was drawn. If
//! the levels differ by exactly `t`, the opposite order of a pair would have given `x - t` the opposite sign,
//! so each other order that the design allows flips some of the signs. The statistic is the sum of the `x -
//! t`, each limited to a reach. It is at least as large in another order as in the actual one exactly if the
//! sum of the flipped ones is not positive: if their location, the `t` at which their sum is zero, is at most
//! `t`. So the test needs only the locations of all such subsets, the typical values, and its interval lies
//! between two of them (Hartigan, Journal of the American Statistical Association 64, 1969). The interval
//! holds for every distribution, in finite samples, and with any drift: only the order must be random.
//!
//! Without a limit a location is a mean, and a stall in one pair moves it in proportion to the length of the
//! stall. With a limit it is Huber's estimate (Annals of Mathematical Statistics 35, 1964), which such a pair
//! moves no further than any other limited pair. For an exact test the reach must not depend on the judged
//! pairs: it comes from practice.

use plumb_measure::median;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::location::locations;
use super::{Interval, left_out};

/// Maximum number of pairs for which all orders are tried.
const EXACT_MAX: usize = 14;
/// Number of orders that are drawn for more pairs than `EXACT_MAX`.
const DRAWN: usize = 19_999;
/// Separates the random stream of the sample from that of the design.
const SAMPLE_SALT: u64 = 0x5a11_0f0d_e125_0001;

/// Returns the smallest error at which `pairs` pairs, half of them in each order, can show a difference at
/// all: both ends must be rare enough.
pub(crate) fn smallest_error(pairs: usize) -> f64 {
    let half = pairs / 2;
    let choices = (1..=half).fold(1.0, |all, k| all * (half + k) as f64 / k as f64);
    let looked_at = if pairs <= EXACT_MAX { choices } else { choices.min((DRAWN + 1) as f64) };
    2.0 / looked_at
}

/// Orders that a design could have drawn.
#[derive(Debug, Clone, Copy)]
pub enum Orders<'a> {
    /// Each pair in either order, independent of the others.
    Free,
    /// In each stage, the observed number of pairs in each order.
    Balanced {
        /// True for each pair of which the second level came first.
        swapped: &'a [bool],
        /// Number of pairs in each stage; further pairs form another stage.
        stages: &'a [usize],
    },
}

/// The pairs that other orders of a design flip: one bit for each pair, one number for each other order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flips {
    others: Vec<u64>,
    /// Number of orders that flip nothing: the actual one, and drawn ones that are equal to it.
    identities: usize,
}

/// The locations of the differences that other orders would have flipped.
#[derive(Debug, Clone, PartialEq)]
pub struct TypicalValues {
    /// Smallest location of each subset, in ascending order.
    lows: Vec<f64>,
    /// Largest location of each subset, in ascending order: with a limit a subset may have several.
    highs: Vec<f64>,
    /// Number of orders that flip nothing, as in [`Flips`].
    identities: usize,
}

impl TypicalValues {
    /// Computes the locations for `differences`, one for each of the pairs that `flips` were made for, each
    /// limited to `reach` around a location, which is more than 0 and may be infinite.
    pub fn from_differences(differences: &[f64], flips: &Flips, reach: f64) -> Self {
        let mut subset = Vec::with_capacity(differences.len());
        let locations_of = |flipped: &u64| {
            let is_flipped = |pair: usize| flipped >> pair & 1 == 1;
            subset.clear();
            subset.extend(
                (0..differences.len()).filter(|pair| is_flipped(*pair)).map(|pair| differences[pair]),
            );
            locations(&subset, reach)
        };
        let (mut lows, mut highs): (Vec<f64>, Vec<f64>) = flips.others.iter().map(locations_of).unzip();
        lows.sort_unstable_by(f64::total_cmp);
        highs.sort_unstable_by(f64::total_cmp);
        Self { lows, highs, identities: flips.identities }
    }

    /// Returns the differences that a two-sided test at `error` does not reject. The interval covers the true
    /// one in at least `1 - error` of all experiments. All numbers if there are too few pairs for that.
    pub fn interval(&self, error: f64) -> Interval {
        let count = self.lows.len();
        match left_out(error / 2.0, (count + self.identities) as f64, self.identities as f64) {
            Some(out) if out < count => {
                let (one, other) = (self.lows[out], self.highs[count - 1 - out]);
                Interval { low: one.min(other), high: one.max(other) }
            }
            _ => Interval::ALL,
        }
    }

    /// Returns the difference that as many orders find too large as too small; `None` without pairs.
    pub fn center(&self) -> Option<f64> {
        Some(f64::midpoint(median(&self.lows)?, median(&self.highs)?))
    }
}

impl Orders<'_> {
    /// Returns the flips of all orders that could have been drawn for `pairs` pairs, at most 64, or of a
    /// sample if there are too many. The actual order is one of them, so the test is exact for a sample, too.
    /// `seed` may be that of the design: the sample has a separate random stream, since it must be
    /// independent of the actual order.
    pub fn flips(self, pairs: usize, seed: u64) -> Flips {
        let pairs = pairs.min(u64::BITS as usize);
        let stages: Vec<u64> = self.stages(pairs).into_iter().map(bits).collect();
        let seen = self.seen(pairs);
        let mut flips = Flips { others: Vec::new(), identities: 1 };
        if pairs <= EXACT_MAX {
            let is_possible = |flipped: &u64| {
                stages
                    .iter()
                    .all(|stage| ((seen ^ flipped) & stage).count_ones() == (seen & stage).count_ones())
            };
            flips.others = (1..1 << pairs).filter(is_possible).collect();
            return flips;
        }
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ SAMPLE_SALT);
        let balanced: Vec<(u64, u32)> =
            stages.iter().map(|stage| (*stage, (seen & stage).count_ones())).collect();
        for _ in 0..DRAWN {
            let flipped = match self {
                Self::Free => random.next_u64() & bits(0..pairs),
                Self::Balanced { .. } => balanced
                    .iter()
                    .fold(seen, |flipped, (stage, count)| flipped ^ subset(*stage, *count, &mut random)),
            };
            match flipped {
                0 => flips.identities += 1,
                flipped => flips.others.push(flipped),
            }
        }
        flips
    }

    /// Returns the pairs in which the second level came first; none if the orders are free.
    fn seen(self, pairs: usize) -> u64 {
        let Self::Balanced { swapped, .. } = self else { return 0 };
        let set = swapped.iter().take(pairs).enumerate().filter(|(_, swapped)| **swapped);
        set.fold(0, |seen, (pair, _)| seen | 1 << pair)
    }

    /// Returns the pairs of each stage.
    fn stages(self, pairs: usize) -> Vec<std::ops::Range<usize>> {
        let Self::Balanced { stages, .. } = self else { return Vec::new() };
        let mut ranges = Vec::new();
        let mut next = 0;
        for length in stages.iter().copied().chain([pairs]) {
            let end = (next + length).min(pairs);
            ranges.push(next..end);
            next = end;
        }
        ranges
    }
}

/// Returns the bits of a range.
fn bits(range: std::ops::Range<usize>) -> u64 {
    range.fold(0, |bits, bit| bits | 1 << bit)
}

/// Returns `count` of the bits of `stage`, each choice with equal probability.
fn subset(stage: u64, count: u32, random: &mut Xoshiro256PlusPlus) -> u64 {
    let (mut left, mut wanted, mut chosen) = (stage, count, 0);
    while wanted > 0 {
        // A bit is chosen with the average probability of all remaining bits.
        if below(left.count_ones(), random) < wanted {
            chosen |= left & left.wrapping_neg();
            wanted -= 1;
        }
        left &= left - 1;
    }
    chosen
}

/// Returns a random number below `end`. For ends up to 64, the bias is below 2^-58.
fn below(end: u32, random: &mut Xoshiro256PlusPlus) -> u32 {
    ((u128::from(random.next_u64()) * u128::from(end)) >> 64) as u32
}

/// Shuffles `list`: each order has equal probability.
pub(crate) fn shuffle<T>(list: &mut [T], random: &mut Xoshiro256PlusPlus) {
    for last in (1..list.len()).rev() {
        let other = below(last as u32 + 1, random) as usize;
        list.swap(last, other);
    }
}
