//! Mean and quantiles of measured times.

use plumb_block::Nanos;

/// Mean and quantiles of times, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantiles {
    pub(crate) mean: f64,
    pub(crate) min: f64,
    pub(crate) p25: f64,
    pub(crate) p50: f64,
    pub(crate) p75: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

impl Quantiles {
    /// The head of [`line`](Self::line).
    pub(crate) const HEAD: &str = "milliseconds                                   mean      min      p25      p50      p75      p99      max";

    /// Returns the quantiles of `times`, which must not be empty.
    pub(crate) fn from_times(times: &[Nanos]) -> Self {
        let mut ms: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
        ms.sort_by(f64::total_cmp);
        let at = |part: f64| {
            ms.get((ms.len().saturating_sub(1) as f64 * part) as usize).copied().unwrap_or(f64::NAN)
        };
        let mean = ms.iter().sum::<f64>() / ms.len() as f64;
        Self { mean, min: at(0.0), p25: at(0.25), p50: at(0.5), p75: at(0.75), p99: at(0.99), max: at(1.0) }
    }

    /// Returns a line of a table.
    pub(crate) fn line(&self, name: &str) -> String {
        let Self { mean, min, p25, p50, p75, p99, max } = self;
        format!("{name:<42} {mean:>8.3} {min:>8.3} {p25:>8.3} {p50:>8.3} {p75:>8.3} {p99:>8.3} {max:>8.3}")
    }
}
