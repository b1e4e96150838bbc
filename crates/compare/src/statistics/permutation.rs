//! The permutation test of paired differences, inverted: its interval without a search.
//!
//! Take pairs of blocks, one of each level, in an order that was drawn, and `x` the difference of each. If the levels differ by `t`
//! and by nothing else, another order would have given `x - t` another sign. So each other order that the design allows flips
//! some of the signs. Its mean is at least as large as the one that was seen just where the mean of the flipped `x` is at most `t`:
//! then the sum of the flipped `x - t` is not positive. The means of all such subsets are therefore all that the test needs to know,
//! and its interval lies between two of them (Hartigan, Journal of the American Statistical Association 64, 1969). It holds for
//! every distribution, in finite samples, and whatever drifts: the order is all that has to be random.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::{Interval, left_out};

/// Up to so many pairs all orders are looked at.
const EXACT_MAX: usize = 14;
/// Of more pairs so many orders are drawn.
const DRAWN: usize = 4_999;
/// Parts the stream of the sample from that of the design.
const SAMPLE_SALT: u64 = 0x5a11_0f0d_e125_0001;

/// Which orders a design could have drawn.
#[derive(Debug, Clone, Copy)]
pub enum Orders<'a> {
    /// Each pair in either order, whatever the others are.
    Free,
    /// In each stage as many pairs in one order as there were.
    Balanced {
        /// Whether the second level came first, for each pair.
        swapped: &'a [bool],
        /// How many pairs each stage has; what is over is a stage of its own.
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

/// The means of the differences that other orders would have flipped.
#[derive(Debug, Clone, PartialEq)]
pub struct SubsetMeans {
    /// In order.
    means: Vec<f64>,
    /// As in [`Flips`].
    identities: usize,
}

impl SubsetMeans {
    /// Of `differences`, one for each of the pairs that `flips` were made for.
    pub fn of(differences: &[f64], flips: &Flips) -> Self {
        let mean = |flipped: &u64| {
            let (mut left, mut sum) = (*flipped, 0.0);
            while left != 0 {
                sum += differences.get(left.trailing_zeros() as usize).copied().unwrap_or_default();
                left &= left - 1;
            }
            sum / f64::from(flipped.count_ones())
        };
        let mut means: Vec<f64> = flips.others.iter().map(mean).collect();
        means.sort_unstable_by(f64::total_cmp);
        Self { means, identities: flips.identities }
    }

    fn total(&self) -> f64 {
        (self.means.len() + self.identities) as f64
    }

    /// How likely a mean as large as the one seen is, if the true difference were `value`: small says that it is larger than that.
    pub fn p_greater(&self, value: f64) -> f64 {
        let at_most = self.means.partition_point(|mean| *mean <= value);
        (at_most + self.identities) as f64 / self.total()
    }

    /// The same of a mean as small: small says that the true difference is smaller than `value`.
    pub fn p_less(&self, value: f64) -> f64 {
        let below = self.means.partition_point(|mean| *mean < value);
        (self.means.len() - below + self.identities) as f64 / self.total()
    }

    /// The differences that a two-sided test at `error` does not reject: it covers the true one in at least `1 - error` of all
    /// experiments. All numbers if there are too few pairs for that.
    pub fn interval(&self, error: f64) -> Interval {
        let last = self.means.len().wrapping_sub(1);
        match left_out(error / 2.0, self.total(), self.identities as f64) {
            Some(out) if out <= last && last < self.means.len() => {
                Interval { low: self.means[out.min(last - out)], high: self.means[out.max(last - out)] }
            }
            _ => Interval::ALL,
        }
    }

    /// The difference that as many orders find too large as too small; `None` without pairs.
    pub fn center(&self) -> Option<f64> {
        super::median(&self.means)
    }
}

impl Orders<'_> {
    /// What the orders flip that could have been drawn for `pairs` pairs, at most 64: all of them, or where these are too many, a sample.
    /// The one that was seen counts among them, so the test is exact for a sample, too. `seed` may be that of the design: the sample
    /// is drawn from a stream of its own, because it has to be independent of the order that was seen.
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

    /// The pairs in which the second level came first; where that makes no difference, none.
    fn seen(self, pairs: usize) -> u64 {
        let Self::Balanced { swapped, .. } = self else { return 0 };
        let set = swapped.iter().take(pairs).enumerate().filter(|(_, swapped)| **swapped);
        set.fold(0, |seen, (pair, _)| seen | 1 << pair)
    }

    /// The pairs of each stage.
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

/// The bits of a range.
fn bits(range: std::ops::Range<usize>) -> u64 {
    range.fold(0, |bits, bit| bits | 1 << bit)
}

/// `count` of the bits of `stage`, each choice with the same chance.
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

/// A number below `end`, each with the same chance but for 2^-58 where there are as few as here.
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
