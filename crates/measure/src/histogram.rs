//! Distribution of a latency in fixed memory.
//!
//! Percentiles come from an HDR histogram: three significant digits from 1 ns to 137 s, about 220 KiB, never
//! growing. Count, mean, standard deviation, minimum and maximum are kept as exact integers in addition, so
//! merging is exact and independent of order: equal operations give equal figures for any number of workers.
//!
//! Invariant: `count` is the number of values in `distribution`, and all values lie between `min` and `max`.

mod sent;

use hdrhistogram::Histogram as Hdr;
use plumb_block::Nanos;

use crate::result::Latency;

/// A distribution of durations.
#[derive(Debug)]
pub struct Histogram {
    /// HDR histogram, for serialization.
    pub(crate) distribution: Hdr<u64>,
    sum: u128,
    sum_of_squares: u128,
    min: u64,
    max: u64,
}

impl Histogram {
    /// Longest duration that percentiles distinguish. Longer ones count as this in percentiles, and exactly
    /// in mean, standard deviation and maximum.
    pub(crate) const HIGHEST: Nanos = Nanos((1 << 37) - 1);
    /// Default number of significant decimal digits of percentiles.
    pub const DIGITS: u8 = 3;

    /// Creates an empty histogram of [`DIGITS`](Self::DIGITS) significant digits.
    pub fn new() -> Self {
        Self::with_digits(Self::DIGITS)
    }

    /// Creates an empty histogram of `digits` significant digits, clamped to 1 to 5. Each additional digit
    /// takes ten times the memory.
    pub fn with_digits(digits: u8) -> Self {
        let distribution = Hdr::new_with_bounds(1, Self::HIGHEST.0, digits.clamp(1, 5));
        let distribution = distribution.expect("the bounds are constant and the digits in range");
        Self { distribution, sum: 0, sum_of_squares: 0, min: u64::MAX, max: 0 }
    }

    /// Records one duration. Never allocates.
    #[inline]
    pub fn record(&mut self, duration: Nanos) {
        self.record_n(duration, 1);
    }

    /// Records the same duration `count` times. Never allocates.
    #[inline]
    pub fn record_n(&mut self, duration: Nanos, count: u64) {
        if count == 0 {
            return;
        }
        let value = duration.0;
        let weighted = u128::from(value) * u128::from(count);
        self.distribution.saturating_record_n(value, count);
        self.sum = self.sum.saturating_add(weighted);
        self.sum_of_squares = self.sum_of_squares.saturating_add(weighted.saturating_mul(u128::from(value)));
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds all durations of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.count() == 0 {
            return;
        }
        // Cannot fail: all histograms have the same bounds or grow, and bins with more digits fold into
        // coarser ones.
        self.distribution.add(&other.distribution).expect("histograms have equal bounds");
        self.sum = self.sum.saturating_add(other.sum);
        self.sum_of_squares = self.sum_of_squares.saturating_add(other.sum_of_squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Returns the number of recorded durations.
    pub fn count(&self) -> u64 {
        self.distribution.len()
    }

    /// Returns the sum of all durations, in nanoseconds.
    pub fn sum_ns(&self) -> u128 {
        self.sum
    }

    /// Returns the exact minimum; `None` if nothing was recorded.
    pub fn min(&self) -> Option<Nanos> {
        (self.count() > 0).then_some(Nanos(self.min))
    }

    /// Returns the exact maximum; `None` if nothing was recorded.
    pub fn max(&self) -> Option<Nanos> {
        (self.count() > 0).then_some(Nanos(self.max))
    }

    /// Returns the mean in seconds; `None` if nothing was recorded.
    pub fn mean(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum as f64 / self.count() as f64 / 1e9)
    }

    /// Returns the standard deviation of the population in seconds; `None` if nothing was recorded.
    ///
    /// The sum of squared deviations is computed in integers, since the difference of two large
    /// floating-point numbers would be mostly rounding error for nearly equal latencies.
    pub fn std(&self) -> Option<f64> {
        let count = u128::from(self.count());
        let quotient = self.sum.checked_div(count)?;
        let remainder = self.sum % count;
        let whole = quotient.saturating_mul(self.sum.saturating_add(remainder));
        let fraction = remainder as f64 * remainder as f64 / count as f64;
        let deviations = self.sum_of_squares.saturating_sub(whole) as f64 - fraction;
        Some((deviations.max(0.0) / count as f64).sqrt() / 1e9)
    }

    /// Returns the duration that `per_mille` of 1000 durations do not exceed, within the histogram's digits;
    /// `None` if nothing was recorded. 0 gives the minimum and 1000 the maximum, both exact.
    pub fn at_per_mille(&self, per_mille: u32) -> Option<Nanos> {
        self.at_ranks([rank(self.count(), per_mille.min(1000))]).map(|[value]| value)
    }

    /// Returns the figures for reports, in seconds; `None` if nothing was recorded.
    pub fn summary(&self) -> Option<Latency> {
        let count = self.count();
        let [p25, p50, p75, p99, p999] =
            self.at_ranks([250, 500, 750, 990, 999].map(|per_mille| rank(count, per_mille)))?;
        Some(Latency {
            count,
            mean: self.mean()?,
            std: self.std()?,
            min: Nanos(self.min).as_secs_f64(),
            p25: Some(p25.as_secs_f64()),
            p50: Some(p50.as_secs_f64()),
            p75: Some(p75.as_secs_f64()),
            p99: Some(p99.as_secs_f64()),
            p999: Some(p999.as_secs_f64()),
            max: Nanos(self.max).as_secs_f64(),
        })
    }

    /// Returns the non-empty bins in ascending order, for distribution charts: the longest duration of each
    /// (at most the maximum), and its count.
    pub fn bins(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        self.distribution.iter_recorded().map(|bin| {
            let value = self.distribution.highest_equivalent(bin.value_iterated_to());
            (self.bounded(value), bin.count_at_value())
        })
    }

    /// Creates a histogram from a serialized one; `None` if that exceeds [`HIGHEST`](Self::HIGHEST). Mean and
    /// deviation are computed from the bins, so they are no longer exact.
    pub(crate) fn from_distribution(written: &Hdr<u64>) -> Option<Self> {
        let mut this = Self::with_digits(written.sigfig());
        this.distribution.add(written).ok()?;
        for bin in written.iter_recorded() {
            let value = written.median_equivalent(bin.value_iterated_to());
            let weighted = u128::from(value) * u128::from(bin.count_at_value());
            this.sum += weighted;
            this.sum_of_squares =
                this.sum_of_squares.saturating_add(weighted.saturating_mul(u128::from(value)));
        }
        if !written.is_empty() {
            this.min = written.min();
            this.max = written.max();
        }
        Some(this)
    }

    /// Returns the values at ascending `ranks`, each from 1 to the count.
    fn at_ranks<const N: usize>(&self, ranks: [u64; N]) -> Option<[Nanos; N]> {
        let mut values = [Nanos::ZERO; N];
        let mut bins = self.bins();
        let (mut value, mut seen) = bins.next()?;
        for (place, rank) in values.iter_mut().zip(ranks) {
            while seen < rank {
                let (next, count) = bins.next()?;
                value = next;
                seen += count;
            }
            *place = match rank {
                0 | 1 => Nanos(self.min),
                _ if rank == self.count() => Nanos(self.max),
                _ => value,
            };
        }
        Some(values)
    }

    /// Clamps `value` to the exact minimum and maximum, since a bin may extend beyond them.
    fn bounded(&self, value: u64) -> Nanos {
        Nanos(value.clamp(self.min, self.max))
    }
}

/// Copies the recorded values. The clone of an empty histogram is a new one, whose memory the kernel provides
/// only on use: a load has many histograms, most of them empty.
impl Clone for Histogram {
    fn clone(&self) -> Self {
        if self.count() == 0 {
            return Self::with_digits(self.distribution.sigfig());
        }
        Self { distribution: self.distribution.clone(), ..*self }
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the rank, from 1, among `count` values of the value that `per_mille` of 1000 do not exceed.
fn rank(count: u64, per_mille: u32) -> u64 {
    let rank = (u128::from(count) * u128::from(per_mille)).div_ceil(1000) as u64;
    rank.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Slow, exact oracle: all values, sorted.
    struct Oracle(Vec<u64>);

    impl Oracle {
        fn at(&self, per_mille: u32) -> u64 {
            let needed = (self.0.len() as u64 * u64::from(per_mille)).div_ceil(1000).max(1);
            self.0[needed as usize - 1]
        }

        fn mean_and_std(&self) -> (f64, f64) {
            let count = self.0.len() as f64;
            let mean = self.0.iter().map(|v| *v as f64).sum::<f64>() / count;
            let variance = self.0.iter().map(|v| (*v as f64 - mean).powi(2)).sum::<f64>() / count;
            (mean / 1e9, variance.sqrt() / 1e9)
        }
    }

    fn filled(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for value in values {
            histogram.record(Nanos(*value));
        }
        histogram
    }

    fn close(got: f64, expected: f64, relative: f64) -> bool {
        (got - expected).abs() <= relative * expected.abs() + 1e-15
    }

    proptest! {
        #[test]
        fn agrees_with_sorting_all_values(
            mut values in proptest::collection::vec(
                prop_oneof![0_u64..3000, 1000_u64..2_000_000, 0_u64..Histogram::HIGHEST.0], 1..400),
            split in 0_usize..400,
        ) {
            let split = split.min(values.len());
            let mut merged = filled(&values[split..]);
            merged.merge(&filled(&values[..split]));
            let whole = filled(&values);
            prop_assert_eq!(merged.summary(), whole.summary(), "the order of merging matters");

            values.sort_unstable();
            let oracle = Oracle(values);
            let summary = whole.summary().unwrap();
            prop_assert_eq!(summary.count, oracle.0.len() as u64);
            prop_assert_eq!(summary.min, Nanos(oracle.at(0)).as_secs_f64());
            prop_assert_eq!(summary.max, Nanos(oracle.at(1000)).as_secs_f64());
            let (mean, std) = oracle.mean_and_std();
            prop_assert!(close(summary.mean, mean, 1e-12), "{} != {mean}", summary.mean);
            prop_assert!(close(summary.std, std, 1e-9), "{} != {std}", summary.std);
            for per_mille in [0, 1, 250, 500, 750, 990, 999, 1000] {
                let exact = oracle.at(per_mille) as f64;
                let got = whole.at_per_mille(per_mille).unwrap().0 as f64;
                prop_assert!(got >= exact && got <= exact * 1.001, "{per_mille}: {got} for {exact}");
            }
        }
    }

    #[test]
    fn nothing_recorded_has_no_latency() {
        assert_eq!(Histogram::new().summary(), None);
        assert_eq!(Histogram::new().std(), None);
        assert_eq!(Histogram::new().at_per_mille(500), None);
    }

    #[test]
    fn the_deviation_of_hardly_differing_values_is_not_rounding_error() {
        // One nanosecond to either side of a hundred seconds: squares of 1e22, a variance of 1.
        let histogram = filled(&[99_999_999_999, 100_000_000_001]);
        assert_eq!(histogram.std(), Some(1e-9));
    }

    #[test]
    fn too_long_saturates_percentiles_alone() {
        let histogram = filled(&[10, 1 << 40, 1 << 40]);
        assert_eq!(histogram.max(), Some(Nanos(1 << 40)));
        assert!(histogram.at_per_mille(500).unwrap() >= Histogram::HIGHEST);
        assert_eq!(histogram.count(), 3);
    }

    #[test]
    fn the_same_several_times_is_as_many_records() {
        let (mut together, mut apart) = (Histogram::new(), Histogram::new());
        for (value, count) in [(5, 3), (1 << 36, 2), (0, 0), (u64::MAX, 1)] {
            together.record_n(Nanos(value), count);
            (0..count).for_each(|_| apart.record(Nanos(value)));
        }
        assert_eq!(together.summary(), apart.summary());
        assert_eq!(together.sum_ns(), apart.sum_ns());
    }

    #[test]
    fn memory_does_not_grow() {
        let mut histogram = Histogram::new();
        let bins = histogram.distribution.distinct_values();
        for shift in 0..64 {
            histogram.record(Nanos(1 << shift));
        }
        assert_eq!(histogram.distribution.distinct_values(), bins);
    }
}
