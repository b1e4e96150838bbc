//! The statistics of an experiment: pure functions of numbers.

mod location;
mod permutation;
mod quantile;
mod rank;

pub use location::reach;
pub use permutation::{Flips, Orders, TypicalValues};
pub(crate) use permutation::{shuffle, smallest_error};
pub use quantile::{normal as normal_quantile, student as student_quantile};
pub use rank::ShiftInterval;

/// An interval; an end that the data do not bound is infinite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Interval {
    /// All numbers: nothing is known.
    pub const ALL: Self = Self { low: f64::NEG_INFINITY, high: f64::INFINITY };

    /// Returns true if `value` is inside or at an end.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Returns true if the whole interval is between `low` and `high`, and does not touch them.
    pub fn is_inside(&self, low: f64, high: f64) -> bool {
        low < self.low && self.high < high
    }

    /// Returns half of the width.
    pub(crate) fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// Returns the number of values that may be left out at an end of `total` equally likely ones, of which
/// `identities` always count, for at most `share` to be lost; `None` if not even the whole range loses so
/// little. The small term compensates for shares that are not binary fractions.
fn left_out(share: f64, total: f64, identities: f64) -> Option<usize> {
    let count = share * total - identities + 1e-9;
    (count >= 0.0).then_some(count as usize)
}
