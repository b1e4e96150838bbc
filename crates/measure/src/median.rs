//! The median of a list of numbers.

/// Returns the median, or the mean of the two middle values; `None` for an empty list.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len().is_multiple_of(2) { f64::midpoint(sorted[middle - 1], upper) } else { upper })
}
