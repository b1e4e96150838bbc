//! Latency of client requests, as seen by the front queues.

use plumb_block::{Nanos, Op};
use plumb_measure::{Buckets, Histogram, Latency};
use serde::{Deserialize, Serialize};

/// Significant digits of the histograms: a resolution of one percent in about 30 KiB each.
const DIGITS: u8 = 2;

/// Latency of client requests by kind since the cache was opened; kinds without requests are absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyByRequest {
    /// Reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<RequestLatency>,
    /// Writes, zeroings and discards, with FUA or without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<RequestLatency>,
    /// Flushes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush: Option<RequestLatency>,
}

impl LatencyByRequest {
    /// Returns the kinds of requests that occurred, with their names.
    pub fn by_name(&self) -> impl Iterator<Item = (&'static str, &RequestLatency)> {
        let all = [("flush", &self.flush), ("read", &self.read), ("write", &self.write)];
        all.into_iter().filter_map(|(name, latency)| Some((name, latency.as_ref()?)))
    }
}

/// Distribution of the latency of one kind of request, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestLatency {
    /// Count, moments and percentiles.
    #[serde(flatten)]
    pub summary: Latency,
    /// Cumulative counts, in ascending order of bounds.
    pub buckets: Vec<LatencyBucket>,
}

/// Number of requests within a bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencyBucket {
    /// Bound in seconds.
    pub at_most: f64,
    /// Number of requests; those within one percent of the bound may be counted in the next bucket.
    pub count: u64,
}

/// Histograms of all requests.
#[derive(Default)]
pub(super) struct Latencies {
    read: RequestHistogram,
    write: RequestHistogram,
    flush: RequestHistogram,
}

struct RequestHistogram(Histogram);

impl Default for RequestHistogram {
    fn default() -> Self {
        Self(Histogram::with_digits(DIGITS))
    }
}

impl Latencies {
    /// Records the latency of a completed request.
    pub(super) fn record(&mut self, op: &Op, latency: Nanos) {
        let counted = match op {
            Op::Read => &mut self.read,
            Op::Flush => &mut self.flush,
            Op::Write { .. } | Op::Discard | Op::WriteZeroes { .. } => &mut self.write,
        };
        counted.0.record(latency);
    }

    /// Returns the current distributions.
    pub(super) fn summary(&self) -> LatencyByRequest {
        let summary = |RequestHistogram(histogram): &RequestHistogram| {
            let summary = histogram.summary()?;
            Some(RequestLatency { summary, buckets: buckets(histogram) })
        };
        LatencyByRequest {
            read: summary(&self.read),
            write: summary(&self.write),
            flush: summary(&self.flush),
        }
    }
}

fn buckets(histogram: &Histogram) -> Vec<LatencyBucket> {
    let edges = Buckets::from(histogram);
    edges.cumulative().map(|(at_most, count)| LatencyBucket { at_most, count }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_request_has_its_own_distribution() {
        let mut latencies = Latencies::default();
        for micros in [90, 200, 200, 900] {
            latencies.record(&Op::Write { fua: false }, Nanos::micros(micros));
        }
        latencies.record(&Op::Discard, Nanos::secs(20));
        latencies.record(&Op::Flush, Nanos::millis(3));
        let LatencyByRequest { read, write, flush } = latencies.summary();
        assert_eq!(read, None);
        let write = write.unwrap();
        assert_eq!((write.summary.count, write.summary.max), (5, 20.0));
        let within = |at_most: f64| {
            write.buckets.iter().find(|bucket| (bucket.at_most - at_most).abs() < 1e-9).unwrap().count
        };
        assert_eq!([0.000125, 0.00025, 0.001, 8.192].map(within), [1, 3, 4, 4], "20 s is beyond every bound");
        let flush = flush.unwrap();
        assert_eq!(
            flush.buckets.iter().find(|bucket| bucket.count > 0).map(|first| first.at_most),
            Some(0.004)
        );
    }
}
