//! Medians, and the interval of a median by ranks.

use super::Interval;

/// The median, the mean of the two in the middle; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len().is_multiple_of(2) { f64::midpoint(sorted[middle - 1], upper) } else { upper })
}

/// An interval between two of `values` that covers the median of what they were drawn from in at least `1 - error` of all
/// samples, whatever the distribution: how many values are below the median is binomial. All numbers if there are too few.
pub fn median_interval(values: &[f64], error: f64) -> Interval {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = sorted.len();
    let mut chance = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let (mut below, mut out) = (0.0, None);
    for rank in 0..count / 2 {
        below += chance;
        if below > error / 2.0 {
            break;
        }
        out = Some(rank);
        chance *= (count - rank) as f64 / (rank + 1) as f64;
    }
    out.map_or(Interval::ALL, |out| Interval { low: sorted[out], high: sorted[count - 1 - out] })
}
