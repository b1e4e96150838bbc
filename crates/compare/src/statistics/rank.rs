//! The shift between two independent samples, by the test of Mann and Whitney, inverted.
//!
//! Used for runs that were recorded one after the other and do not form pairs.

use plumb_measure::median;

use super::Interval;

/// All differences between a value of one sample and one of the other.
#[derive(Debug, Clone, PartialEq)]
pub struct ShiftInterval {
    /// Differences in ascending order.
    differences: Vec<f64>,
    /// Probability of each value of the statistic without a shift.
    chances: Vec<f64>,
}

impl ShiftInterval {
    /// Creates the intervals of the shift of `one` relative to `other`.
    pub fn between(one: &[f64], other: &[f64]) -> Self {
        let mut differences: Vec<f64> =
            one.iter().flat_map(|value| other.iter().map(move |base| value - base)).collect();
        differences.sort_unstable_by(f64::total_cmp);
        Self { differences, chances: chances(one.len(), other.len()) }
    }

    /// Returns the shift with as many differences above as below; `None` if a sample is empty.
    pub fn center(&self) -> Option<f64> {
        median(&self.differences)
    }

    /// Returns the shifts that a two-sided test at `error` does not reject; all numbers if there are too few
    /// values for that.
    pub fn interval(&self, error: f64) -> Interval {
        let mut below = 0.0;
        let rejected = self.chances.iter().take_while(|chance| {
            below += **chance;
            below <= error / 2.0 + 1e-12
        });
        let (out, count) = (rejected.count(), self.differences.len());
        if out == 0 || 2 * out > count {
            return Interval::ALL;
        }
        Interval { low: self.differences[out - 1], high: self.differences[count - out] }
    }
}

/// Returns the probability of each number of pairs in which a value of a sample of size `one` is larger than
/// one of a sample of size `other`, if all orders of the values are equally likely.
fn chances(one: usize, other: usize) -> Vec<f64> {
    // The largest of all values is in the first sample with probability i/(i+j), and then larger than all j
    // of the second.
    let mut rows: Vec<Vec<f64>> = vec![vec![1.0]; other + 1];
    for i in 1..=one {
        let mut next: Vec<Vec<f64>> = vec![vec![1.0]];
        for j in 1..=other {
            let mut sums = vec![0.0; i * j + 1];
            let share = i as f64 / (i + j) as f64;
            for (count, chance) in rows[j].iter().enumerate() {
                sums[count + j] += share * chance;
            }
            for (count, chance) in next[j - 1].iter().enumerate() {
                sums[count] += (1.0 - share) * chance;
            }
            next.push(sums);
        }
        rows = next;
    }
    rows.pop().unwrap_or_default()
}
