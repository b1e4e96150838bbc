//! Prometheus buckets: a distribution of durations in 200 bytes, for long-running counters with many labels.

use plumb_block::Nanos;

use crate::histogram::Histogram;

/// Number of edges.
const EDGES: usize = 24;
/// Exponent of the first edge: 0.001 s times two to this power.
const FIRST_EXPONENT: i32 = -10;
/// Numerator of the first edge in nanoseconds; the denominator is [`FIRST_EDGE_DIVISOR`].
const FIRST_EDGE_NS: u64 = 1_000_000;
/// Denominator of the first edge: two to the power of minus [`FIRST_EXPONENT`].
const FIRST_EDGE_DIVISOR: u64 = 1024;

/// Counts of durations with the edges of etcd's disk histograms, so that both can share a panel: 0.001 s
/// times powers of two up to 8.192 s. For faster drives, further edges go down by halving to about 1 µs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buckets {
    /// Number of durations in each bucket; the last is beyond the last edge.
    counts: [u64; EDGES + 1],
    sum_ns: u64,
}

impl Default for Buckets {
    fn default() -> Self {
        Self { counts: [0; EDGES + 1], sum_ns: 0 }
    }
}

impl Buckets {
    /// Records one duration.
    pub fn record(&mut self, duration: Nanos) {
        self.add(duration, 1);
        self.sum_ns = self.sum_ns.saturating_add(duration.0);
    }

    fn add(&mut self, duration: Nanos, count: u64) {
        // The first edge that a duration does not exceed determines its bucket.
        let edges = duration.0.saturating_mul(FIRST_EDGE_DIVISOR).div_ceil(FIRST_EDGE_NS).max(1);
        let place = edges.next_power_of_two().trailing_zeros() as usize;
        let counted = &mut self.counts[place.min(EDGES)];
        *counted = counted.saturating_add(count);
    }

    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of durations in seconds.
    pub fn sum(&self) -> f64 {
        self.sum_ns as f64 / 1e9
    }

    /// Returns each edge, in seconds, with the number of durations between the previous edge and it. The last
    /// item has no edge and the number of durations beyond.
    pub fn counts(&self) -> impl Iterator<Item = (Option<f64>, u64)> + '_ {
        let edges = (FIRST_EXPONENT..).take(EDGES).map(|exponent| Some(edge(exponent)));
        edges.chain([None]).zip(self.counts)
    }

    /// Returns each edge, in seconds, with the number of durations that do not exceed it.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let mut seen = 0_u64;
        self.counts().filter_map(move |(edge, count)| {
            seen = seen.saturating_add(count);
            Some((edge?, seen))
        })
    }
}

/// Returns an edge in seconds that prints as in etcd: `0.001`, `8.192`; the exact decimal for smaller ones.
fn edge(exponent: i32) -> f64 {
    let milliseconds = f64::from(exponent).exp2();
    if exponent >= 0 { milliseconds / 1e3 } else { 1e-3 * milliseconds }
}

impl From<&Histogram> for Buckets {
    fn from(histogram: &Histogram) -> Self {
        let mut buckets = Self::default();
        histogram.bins().for_each(|(value, count)| buckets.add(value, count));
        buckets.sum_ns = u64::try_from(histogram.sum_ns()).unwrap_or(u64::MAX);
        buckets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the first edge that holds a duration, if one does.
    fn edge_of(ns: u64) -> Option<f64> {
        let mut buckets = Buckets::default();
        buckets.record(Nanos(ns));
        buckets.cumulative().find(|(_, count)| *count > 0).map(|(edge, _)| edge)
    }

    #[test]
    fn the_edges_are_those_of_etcd_from_a_millisecond_up() {
        let edges: Vec<String> = (0..=13).map(|exponent| edge(exponent).to_string()).collect();
        let etcd = "0.001 0.002 0.004 0.008 0.016 0.032 0.064 0.128 0.256 0.512 1.024 2.048 4.096 8.192";
        assert_eq!(edges.join(" "), etcd);
        assert_eq!(edge(-10).to_string(), "0.0000009765625");
    }

    #[test]
    fn a_duration_is_in_the_bucket_of_the_first_edge_that_it_does_not_exceed() {
        let edges = || (-10..=13).map(|exponent: i32| (exponent, 1e6 * f64::from(exponent).exp2()));
        let near = edges().flat_map(|(_, ns)| [ns as u64 - 1, ns as u64, ns as u64 + 1]);
        for ns in near.chain([0, 1, 10_000_000_000, u64::MAX]) {
            let expected = edges().find(|(_, edge)| ns as f64 <= *edge).map(|(exponent, _)| edge(exponent));
            assert_eq!(edge_of(ns), expected, "{ns} ns");
        }
    }

    #[test]
    fn buckets_of_a_histogram_keep_its_count_and_sum() {
        let mut histogram = Histogram::new();
        for value in [500, 1_500_000, 9_000_000_000] {
            histogram.record(Nanos(value));
        }
        let buckets = Buckets::from(&histogram);
        assert_eq!((buckets.count(), buckets.sum()), (3, 9.0015005));
        assert_eq!(buckets.cumulative().last(), Some((8.192, 2)));
        assert_eq!(buckets.counts().last(), Some((None, 1)));
    }
}
