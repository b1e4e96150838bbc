//! The permutation test of paired differences, inverted: its interval without a search.
//!
//! Take pairs of blocks, one of each level, in an order that was drawn, and `x` the difference of each. If
//! the levels differ by `t` and by nothing else, another order would have given `x - t` another sign. So each
//! other order that the design allows flips some of the signs. The statistic is the sum of the `x - t`, each
//! limited to a reach. It is at least as large in another order as in the one that was seen just where the
//! sum of the flipped ones is not positive: where their location, the `t` at which their sum is nothing, is
//! at most `t`. The locations of all such subsets, the typical values, are therefore all that the test needs
//! to know, and its interval lies between two of them (Hartigan, Journal of the American Statistical
//! Association 64, 1969). It holds for every distribution, in finite samples, and whatever drifts: the order
//! is all that has to be random.
//!
//! Without a limit a location is a mean, and one pair that a stall has hit moves it as far as the stall was
//! long. With one it is Huber's estimate (Annals of Mathematical Statistics 35, 1964), which such a pair
//! moves no further than any other of its side. The reach has to be known without the pairs that are judged,
//! or the test is not exact: practice tells it.

use plumb_measure::median;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::location::locations;
use super::{Interval, left_out};

/// Maximum number of pairs for which all orders are tried.
const EXACT_MAX: usize = 14;
/// Number of orders that are drawn for more pairs than `EXACT_MAX`.
const DRAWN: usize = 19_999;
/// Parts the stream of the sample from that of the design.
const SAMPLE_SALT: u64 = 0x5a11_0f0d_e125_0001;

/// Returns the smallest error at which so many pairs, half of them in each order, can show a difference at
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
    /// Each pair in either order, whatever the others are.
    Free,
    /// Keep in each stage the observed number of pairs in each order.
    Balanced {
        /// True for each pair of which the second level came first.
        swapped: &'a [bool],
        /// Number of pairs that each stage has; what is over is a stage of its own.
        stages: &'a [usize],
    },
}

/// The pairs that other orders of a design flip: one bit for each pair, one number for each other order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flips {
    others: Vec<u64>,
    /// How many orders flip nothing: the one that was seen, and those drawn that are the same.
    identities: usize,
}

/// The locations of the differences that other orders would have flipped.
#[derive(Debug, Clone, PartialEq)]
pub struct TypicalValues {
    /// The least location of each, in order.
    lows: Vec<f64>,
    /// The largest of each, in order: with a limit there may be several.
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

    fn total(&self) -> f64 {
        (self.lows.len() + self.identities) as f64
    }

    /// Returns how likely a statistic as large as the one seen is, if the true difference were `value`: small
    /// says that it is larger than that.
    pub fn p_greater(&self, value: f64) -> f64 {
        let at_most = self.lows.partition_point(|low| *low <= value);
        (at_most + self.identities) as f64 / self.total()
    }

    /// Returns how likely a statistic as small as the one seen is, if the true difference were `value`: small
    /// says that the true difference is smaller than `value`.
    pub fn p_less(&self, value: f64) -> f64 {
        let below = self.highs.partition_point(|high| *high < value);
        (self.highs.len() - below + self.identities) as f64 / self.total()
    }

    /// Returns the differences that a two-sided test at `error` does not reject: it covers the true one in at
    /// least `1 - error` of all experiments. All numbers if there are too few pairs for that.
    pub fn interval(&self, error: f64) -> Interval {
        let count = self.lows.len();
        match left_out(error / 2.0, self.total(), self.identities as f64) {
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
    /// Returns what the orders flip that could have been drawn for `pairs` pairs, at most 64: all of them, or
    /// where these are too many, a sample. The one that was seen counts among them, so the test is exact for
    /// a sample, too. `seed` may be that of the design: the sample is drawn from a stream of its own, because
    /// it has to be independent of the order that was seen.
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

    /// Returns the pairs in which the second level came first; where that makes no difference, none.
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

/// Returns `count` of the bits of `stage`, each choice with the same chance.
fn subset(stage: u64, count: u32, random: &mut Xoshiro256PlusPlus) -> u64 {
    let (mut left, mut wanted, mut chosen) = (stage, count, 0);
    while wanted > 0 {
        // A bit is chosen with the chance that the bits left over are chosen with on average.
        if below(left.count_ones(), random) < wanted {
            chosen |= left & left.wrapping_neg();
            wanted -= 1;
        }
        left &= left - 1;
    }
    chosen
}

/// Returns a number below `end`, each with the same chance but for 2^-58 where there are as few as here.
fn below(end: u32, random: &mut Xoshiro256PlusPlus) -> u32 {
    ((u128::from(random.next_u64()) * u128::from(end)) >> 64) as u32
}

/// Puts `list` into an order that is drawn, each with the same chance.
pub(crate) fn shuffle<T>(list: &mut [T], random: &mut Xoshiro256PlusPlus) {
    for last in (1..list.len()).rev() {
        let other = below(last as u32 + 1, random) as usize;
        list.swap(last, other);
    }
}
