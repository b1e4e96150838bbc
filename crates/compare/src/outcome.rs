//! Result of an experiment on two levels: one of three outcomes, with its figures.

use plumb_report::document::comparison::Outcome;

use crate::design::Terms;
use crate::statistics::{Flips, Interval, TypicalValues, normal_quantile};

/// Probability of finding a difference as large as the smallest detectable one.
pub(crate) const POWER: f64 = 0.8;

/// Judgement on the ratio of two levels, as logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    /// The outcome.
    pub outcome: Outcome,
    /// The logarithm of the ratio; `None` without pairs.
    pub center: Option<f64>,
    /// Interval of the logarithm at the given error.
    pub interval: Interval,
    /// The logarithm of the smallest ratio above 1 that an experiment like this one finds in four of five
    /// cases; infinite if none.
    pub smallest_detectable: f64,
}

/// Judges the log ratios of pairs of blocks at `error`; `flips` are the pairs that other orders would have
/// flipped, and `reach` limits the effect of a single ratio.
pub fn judge_pairs(log_ratios: &[f64], reach: f64, flips: &Flips, error: f64, terms: &Terms) -> Judgement {
    let values = TypicalValues::from_differences(log_ratios, flips, reach);
    // Equivalence takes two one-sided tests, each at the whole error: an interval with this error at each
    // end.
    judge(values.center(), |error| values.interval(error), error, terms)
}

/// Judges a ratio by a function that returns an interval for each error.
pub(crate) fn judge(
    center: Option<f64>,
    interval: impl Fn(f64) -> Interval,
    error: f64,
    terms: &Terms,
) -> Judgement {
    let (seen, one_sided) = (interval(error), interval(2.0 * error));
    let limit = terms.equivalent.ln();
    let outcome = if !seen.contains(0.0) {
        Outcome::Different
    } else if one_sided.is_inside(-limit, limit) {
        Outcome::Equivalent
    } else {
        Outcome::NoneSeen
    };
    // The half width is a known number of standard errors. A difference is found with the probability `POWER`
    // if it is larger than the half width by this fraction of it.
    let more = normal_quantile(POWER) / normal_quantile(1.0 - error / 2.0);
    Judgement { outcome, center, interval: seen, smallest_detectable: seen.half_width() * (1.0 + more) }
}
