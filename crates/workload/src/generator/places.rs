//! Random places from a distribution.
//!
//! A place is a start on the grid of the range at which the longest operation fits. Skewed distributions draw
//! a rank, and a permutation determined by the seed alone maps it to a place: likely places are scattered
//! over the range, and are the same for all workers that share it.

use plumb_block::mixed;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use crate::access::Distribution;
use crate::byte_range::ByteRange;
use crate::generator::permutation::Permutation;
use crate::generator::zipf::Zipf;
use crate::generator::zones::Zones;
use crate::grid::Grid;
use crate::invalid::Invalid;
use crate::seed::{SCATTER, unit};
use crate::share::Share;
use crate::workload::Workload;

/// A drawn place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Offset in the target.
    pub(crate) offset: u64,
    /// Remainder of the random number, uniformly distributed over 64 bits and independent of the place.
    pub(crate) fraction: u64,
    /// Offset at which a run from here must end.
    pub(crate) end: u64,
}

/// Uniform distribution over a range, which must be fast.
#[derive(Debug, Clone)]
pub(crate) struct Uniform {
    start: u64,
    step: u64,
    count: u64,
    end: u64,
}

/// Distribution of places.
#[derive(Debug, Clone)]
pub(crate) enum Places {
    Uniform(Uniform),
    EachOnce { uniform: Uniform, order: Permutation, next: u64 },
    Zipf { uniform: Uniform, zipf: Zipf, scatter: Permutation },
    Pareto { uniform: Uniform, exponent: f64, scatter: Permutation },
    Normal { uniform: Uniform, deviation: f64 },
    Zoned(Zones),
}

impl Uniform {
    /// Creates a distribution over the places of `range`, which must have at least one.
    pub(crate) fn new(range: ByteRange, grid: Grid) -> Self {
        let start = range.offset.0;
        Self { start, step: grid.step, count: grid.places(range.length.0), end: start + range.length.0 }
    }

    /// Creates a distribution over the places of `range` that start in `piece`; possibly none.
    pub(crate) fn beginning_in(piece: ByteRange, range: ByteRange, grid: Grid) -> Self {
        let all = Self::new(range, grid);
        let from = |offset: u64| (offset - all.start).div_ceil(all.step).min(all.count);
        let end = piece.offset.0.saturating_add(piece.length.0);
        let (first, next) = (from(piece.offset.0), from(end));
        Self {
            start: all.start.saturating_add(first.saturating_mul(all.step)),
            count: next - first,
            end: end.min(all.end),
            ..all
        }
    }

    /// Returns true if there is any place.
    pub(crate) fn has_places(&self) -> bool {
        self.count > 0
    }

    /// Draws a place. The random number, as a fraction of 2^64, is multiplied by the number of places: the
    /// integer part selects the place.
    #[inline]
    pub(crate) fn draw(&self, random: &mut Xoshiro256PlusPlus) -> Place {
        let spread = u128::from(random.next_u64()) * u128::from(self.count);
        self.at((spread >> 64) as u64, spread as u64)
    }

    #[inline]
    fn at(&self, index: u64, fraction: u64) -> Place {
        Place { offset: self.start + index * self.step, fraction, end: self.end }
    }
}

impl Places {
    /// Creates `distribution` over `range` (a worker's part, or all of it); `share` is given if the range is
    /// divided.
    ///
    /// # Errors
    /// If a zone is too small.
    pub(crate) fn new(
        distribution: &Distribution,
        workload: &Workload,
        range: ByteRange,
        grid: Grid,
        share: Option<Share>,
    ) -> Result<Self, Invalid> {
        let uniform = Uniform::new(range, grid);
        let scatter = || Permutation::new(uniform.count, mixed(workload.seed ^ SCATTER));
        Ok(match distribution {
            Distribution::Uniform => Self::Uniform(uniform),
            Distribution::EachOnce => {
                let order = Permutation::new(uniform.count, 0);
                Self::EachOnce { next: uniform.count, uniform, order }
            }
            Distribution::Zipf { theta } => {
                Self::Zipf { zipf: Zipf::new(uniform.count, *theta), scatter: scatter(), uniform }
            }
            Distribution::Pareto { power } => {
                let exponent = libm::log(*power) / libm::log(1.0 - *power);
                Self::Pareto { exponent, scatter: scatter(), uniform }
            }
            Distribution::Normal { deviation_percent } => {
                Self::Normal { deviation: deviation_percent / 100.0 * uniform.count as f64, uniform }
            }
            Distribution::Zoned(zones) => {
                let cut = Zones::new(zones, workload.range, grid, share);
                Self::Zoned(cut.map_err(|invalid| invalid.within("access.random.distribution.zoned"))?)
            }
        })
    }

    /// Draws the next place.
    pub(crate) fn draw(&mut self, random: &mut Xoshiro256PlusPlus) -> Place {
        match self {
            Self::Uniform(uniform) => uniform.draw(random),
            Self::EachOnce { uniform, order, next } => {
                if *next == order.count {
                    *order = Permutation::new(uniform.count, random.next_u64());
                    *next = 0;
                }
                *next += 1;
                uniform.at(order.apply(*next - 1), random.next_u64())
            }
            Self::Zipf { uniform, zipf, scatter } => {
                let rank = zipf.draw(random);
                uniform.at(scatter.apply(rank), random.next_u64())
            }
            Self::Pareto { uniform, exponent, scatter } => {
                let part = libm::pow(unit(random.next_u64()), *exponent);
                let rank = ((part * uniform.count as f64) as u64).min(uniform.count - 1);
                uniform.at(scatter.apply(rank), random.next_u64())
            }
            Self::Normal { uniform, deviation } => {
                let index = normal_index(uniform.count as f64, *deviation, random);
                uniform.at((index as u64).min(uniform.count - 1), random.next_u64())
            }
            Self::Zoned(zones) => zones.draw(random),
        }
    }
}

/// Returns a number in `[0, count)` from a normal distribution around the middle, redrawn until it is inside
/// (Marsaglia's polar method).
fn normal_index(count: f64, deviation: f64, random: &mut Xoshiro256PlusPlus) -> f64 {
    loop {
        let x = 2.0 * unit(random.next_u64()) - 1.0;
        let y = 2.0 * unit(random.next_u64()) - 1.0;
        let square = x * x + y * y;
        if square >= 1.0 || square == 0.0 {
            continue;
        }
        let index = count / 2.0 + deviation * x * libm::sqrt(-2.0 * libm::log(square) / square);
        if (0.0..count).contains(&index) {
            return index;
        }
    }
}
