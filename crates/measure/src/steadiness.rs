//! Steadiness of a rate: ramp, variation, slope; and the steady state of SNIA's Performance Test
//! Specification.
//!
//! Pure functions of the operations in each bucket. The mean over a window with a ramp or a drift is
//! meaningless; these figures reveal such windows.

use plumb_block::Nanos;

use crate::median::median;
use crate::result::{Quality, SeriesPoint};

/// Time at which a rate settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ramp {
    /// Settled from this bucket on; 0 means from the start.
    SettledAt(usize),
    /// Still changing in the second half of the window.
    Never,
    /// Unknown: fewer than [`Ramp::BUCKETS_MIN`] buckets.
    TooShort,
}

impl Ramp {
    /// Minimum number of buckets for an answer.
    pub(crate) const BUCKETS_MIN: usize = 8;
    /// Minimum change of level that counts, relative to the later level.
    const CHANGE_MIN: f64 = 0.1;

    /// Finds the end of the ramp: the last change of level. The buckets are split in two repeatedly, each
    /// time at the point with the least squared deviation, as long as a split is more significant than noise.
    ///
    /// The noise is estimated from the differences of neighbours, which a change of level hardly affects. A
    /// split must reduce the deviation by `3 ln n` variances of the noise (the Schwarz criterion for one more
    /// level and one more position). The medians of both sides must differ by a tenth, so that a single stall
    /// does not count. The later level must last for a quarter of the window, so that its last moments do not
    /// decide for all of it.
    pub fn from_rates(rates: &[f64]) -> Self {
        if rates.len() < Self::BUCKETS_MIN {
            return Self::TooShort;
        }
        let penalty = 3.0 * (rates.len() as f64).ln() * noise_variance(rates);
        let last = rates.len() - rates.len() / 4;
        let mut settled = 0;
        while let Some(split) = split_of(&rates[settled..], last - settled, penalty) {
            settled += split;
        }
        if settled > rates.len() / 2 { Self::Never } else { Self::SettledAt(settled) }
    }
}

/// Returns the variance of the noise, from the median difference of neighbours.
fn noise_variance(rates: &[f64]) -> f64 {
    let differences: Vec<f64> = rates.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    // A normal variable's median deviation is 0.6745 of its standard deviation; a difference has twice the
    // variance.
    let deviation = median(&differences).unwrap_or(0.0) / (0.6745 * std::f64::consts::SQRT_2);
    deviation * deviation
}

/// Returns the position, at most `last`, that splits `rates` best into two levels, if that is more than
/// noise.
fn split_of(rates: &[f64], last: usize, penalty: f64) -> Option<usize> {
    let count = rates.len() as f64;
    let total: f64 = rates.iter().sum();
    let mut before = 0.0;
    let (mut best_gain, mut split) = (0.0, 0);
    for (index, rate) in rates.iter().enumerate().take(last) {
        before += rate;
        let left = (index + 1) as f64;
        let right = count - left;
        let gain = left * right / count * (before / left - (total - before) / right).powi(2);
        if gain > best_gain {
            (best_gain, split) = (gain, index + 1);
        }
    }
    let (left, right) = (median(&rates[..split])?, median(&rates[split..])?);
    let matters = (left - right).abs() > Ramp::CHANGE_MIN * right.abs();
    (best_gain > penalty && matters).then_some(split)
}

/// Steadiness of a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steadiness {
    /// End of the ramp.
    pub ramp: Ramp,
    /// Width of the buckets that the ramp refers to.
    pub bucket: Nanos,
    /// Coefficient of variation after the ramp; `None` with fewer than two buckets or a rate of zero.
    pub variation: Option<f64>,
    /// Change of the fitted line over the window after the ramp, relative to the mean; `None` with fewer than
    /// three buckets or a rate of zero.
    pub slope: Option<f64>,
}

impl Steadiness {
    /// Computes the steadiness of a window from its [whole buckets](crate::Series::whole_points).
    pub fn from_series(points: &[SeriesPoint], bucket: Nanos) -> Self {
        let rates: Vec<f64> = points.iter().map(|point| point.operations as f64).collect();
        let ramp = Ramp::from_rates(&rates);
        let settled = match ramp {
            Ramp::SettledAt(index) => &rates[index..],
            Ramp::Never | Ramp::TooShort => &rates[..],
        };
        Self { ramp, bucket, variation: variation(settled), slope: relative_slope(settled) }
    }

    /// Returns the length of the ramp; `None` if the rate never settled or the window was too short.
    pub fn ramp_time(&self) -> Option<Nanos> {
        match self.ramp {
            Ramp::SettledAt(index) => Some(self.bucket * index as u64),
            Ramp::Never | Ramp::TooShort => None,
        }
    }

    /// Copies the known figures into a measurement's quality.
    pub fn put_into(&self, quality: &mut Quality) {
        quality.ramp_seconds = self.ramp_time().map(Nanos::as_secs_f64);
        quality.rate_variation = self.variation;
        quality.rate_slope = self.slope;
    }
}

/// Returns the standard deviation of the sample relative to its mean; `None` with fewer than two values or a
/// mean of zero.
pub fn variation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|mean| *mean != 0.0 && values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt() / mean)
}

/// Returns the rise of the least-squares line from the first value to the last, relative to the mean;
/// negative if it falls. `None` with fewer than three values or a mean of zero.
pub(crate) fn relative_slope(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|mean| *mean != 0.0 && values.len() > 2)?;
    let last = (values.len() - 1) as f64;
    let middle = last / 2.0;
    let (mut products, mut squares) = (0.0, 0.0);
    for (index, value) in values.iter().enumerate() {
        let x = index as f64 - middle;
        products += x * (value - mean);
        squares += x * x;
    }
    Some(products / squares * last / mean)
}

/// Returns true if the last five rounds are in the steady state of SNIA's Solid State Storage Performance
/// Test Specification 2.0.2: their range is at most 20 % of their mean, and the rise of their fitted line at
/// most 10 %. `None` with fewer rounds.
pub fn snia_steady(rounds: &[f64]) -> Option<bool> {
    let window = rounds.get(rounds.len().checked_sub(5)?..)?;
    let mean = mean(window)?;
    let highest = window.iter().copied().fold(f64::MIN, f64::max);
    let lowest = window.iter().copied().fold(f64::MAX, f64::min);
    let slope = relative_slope(window)?;
    Some(highest - lowest <= 0.2 * mean && slope.abs() <= 0.1)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests;
