//! Distributions in fio's format: percentiles, bins, and the shares of its fixed buckets.

use std::collections::BTreeMap;

use plumb_measure::{Histogram, Latency};
use serde_json::{Map, Value, json};

/// Returns the bins that are not empty: the longest duration of each in nanoseconds, and its count.
pub fn bins(histogram: &Histogram) -> BTreeMap<u64, u64> {
    histogram.bins().fold(BTreeMap::new(), |mut bins, (value, count)| {
        let bin = bins.entry(value.0).or_default();
        *bin = count.saturating_add(*bin);
        bins
    })
}

/// Returns the percentiles in `list`, in nanoseconds.
pub fn percentiles(histogram: &Histogram, list: &[f64]) -> Vec<(f64, u64)> {
    let bins = bins(histogram);
    let count = histogram.count();
    let rank = |percentile: f64| ((percentile / 100.0 * count as f64).ceil() as u64).clamp(1, count.max(1));
    list.iter().map(|percentile| (*percentile, at_rank(&bins, rank(*percentile)))).collect()
}

/// Returns the value at `rank`, from 1.
fn at_rank(bins: &BTreeMap<u64, u64>, rank: u64) -> u64 {
    let mut seen = 0_u64;
    let found = bins.iter().find(|(_, count)| {
        seen = seen.saturating_add(**count);
        seen >= rank
    });
    found.or_else(|| bins.last_key_value()).map_or(0, |(value, _)| *value)
}

/// Builds the object that fio calls `clat_ns` and the like, with the percentiles in `list`, and with bins if
/// `plus`.
pub fn object(histogram: Option<&Histogram>, list: Option<&[f64]>, plus: bool) -> Value {
    let Some(histogram) = histogram.filter(|histogram| histogram.count() > 0) else {
        return json!({ "min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0 });
    };
    let mut value = json!({
        "min": histogram.min().map_or(0, |min| min.0),
        "max": histogram.max().map_or(0, |max| max.0),
        "mean": histogram.mean().unwrap_or(0.0) * 1e9,
        "stddev": histogram.std().unwrap_or(0.0) * 1e9,
        "N": histogram.count(),
    });
    add_distribution(&mut value, histogram, list, plus);
    value
}

/// Builds the object of a `histogram` read from a file. Its bins give extremes and mean only roughly, so
/// these come from `kept`.
pub fn recorded(histogram: &Histogram, kept: &Latency, list: Option<&[f64]>) -> Value {
    let mut value = of_figures(kept);
    if let Value::Object(fields) = &mut value {
        fields.remove("percentile");
    }
    add_distribution(&mut value, histogram, list, true);
    value
}

/// Adds the percentiles of `histogram`, limited to the `max` of `value`, and with `plus` its bins.
fn add_distribution(value: &mut Value, histogram: &Histogram, list: Option<&[f64]>, plus: bool) {
    let Some(list) = list else { return };
    let longest = value["max"].as_u64().unwrap_or(u64::MAX);
    let named = percentiles(histogram, list).into_iter();
    let named: Map<String, Value> =
        named.map(|(percentile, value)| (format!("{percentile:.6}"), json!(value.min(longest)))).collect();
    value["percentile"] = Value::Object(named);
    if plus {
        let bins = bins(histogram).into_iter();
        let bins: Map<String, Value> =
            bins.map(|(value, count)| (value.min(longest).to_string(), json!(count))).collect();
        value["bins"] = Value::Object(bins);
    }
}

/// Builds the object that fio calls `clat_ns` and the like from figures alone, for a distribution that was
/// not recorded.
pub fn of_figures(latency: &Latency) -> Value {
    let ns = |seconds: f64| (seconds * 1e9).round() as u64;
    let listed = [("50.000000", latency.p50), ("99.000000", latency.p99), ("99.900000", latency.p999)];
    let known = listed.into_iter().filter_map(|(name, seconds)| Some((name.to_owned(), json!(ns(seconds?)))));
    json!({
        "min": ns(latency.min),
        "max": ns(latency.max),
        "mean": latency.mean * 1e9,
        "stddev": latency.std * 1e9,
        "N": latency.count,
        "percentile": known.collect::<serde_json::Map<String, Value>>(),
    })
}

/// fio's buckets of one unit: their names, which are their upper bounds in units, and the unit in
/// nanoseconds.
pub struct Buckets {
    /// `nsec`, `usec`, `msec`.
    pub unit: &'static str,
    unit_ns: u64,
    ends: &'static [u64],
}

const ENDS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
const ENDS_MS: [u64; 11] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000];

/// All buckets.
pub const BUCKETS: [Buckets; 3] = [
    Buckets { unit: "nsec", unit_ns: 1, ends: &ENDS },
    Buckets { unit: "usec", unit_ns: 1_000, ends: &ENDS },
    Buckets { unit: "msec", unit_ns: 1_000_000, ends: &ENDS_MS },
];

impl Buckets {
    /// Returns the percentage of all durations in each bucket, by its name. As in fio, one that is not zero
    /// is at least 0.01.
    pub fn shares(&self, bins: &BTreeMap<u64, u64>) -> Vec<(String, f64)> {
        let all: u64 = bins.values().sum();
        let start = if self.unit_ns == 1 { 0 } else { self.unit_ns };
        let share = |from: u64, to: Option<u64>| {
            let counts = bins.range(from..).take_while(|(value, _)| to.is_none_or(|to| **value < to));
            let count: u64 = counts.map(|(_, count)| count).sum();
            if count == 0 { 0.0 } else { (count as f64 * 100.0 / all as f64).max(0.01) }
        };
        let mut from = start;
        let mut ends = self.ends.iter().map(|end| end * self.unit_ns);
        let share_of = |name: String| {
            let to = ends.next();
            let share = share(from, to);
            from = to.unwrap_or(from);
            (name, share)
        };
        self.names().into_iter().map(share_of).collect()
    }

    /// Returns the names in increasing order.
    pub fn names(&self) -> Vec<String> {
        let beyond = Some(">=2000".to_owned()).filter(|_| self.unit == "msec");
        self.ends.iter().map(u64::to_string).chain(beyond).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_block::Nanos;

    #[test]
    fn buckets_cover_everything_once() {
        let mut histogram = Histogram::new();
        for exponent in 0..12 {
            for factor in [1, 2, 3, 5, 9] {
                histogram.record(Nanos(factor * 10_u64.pow(exponent)));
            }
        }
        let bins = bins(&histogram);
        let all: f64 = BUCKETS.iter().flat_map(|buckets| buckets.shares(&bins)).map(|(_, share)| share).sum();
        assert!((all - 100.0).abs() < 1e-9, "{all}");
        let usec = BUCKETS[1].shares(&bins);
        assert_eq!(usec[0].0, "2");
        assert!(usec[0].1 > 0.0, "1 us is in the bucket that ends at 2 us");
    }

    #[test]
    fn percentiles_are_ranks() {
        let mut histogram = Histogram::new();
        (1..=100).for_each(|value| histogram.record(Nanos(value)));
        let found = percentiles(&histogram, &[0.0, 1.0, 50.0, 99.0, 99.9, 100.0]);
        assert_eq!(found.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [1, 1, 50, 99, 100, 100]);
    }

    #[test]
    fn the_kept_figures_are_those_of_a_histogram_that_was_read_back() {
        let mut histogram = Histogram::new();
        [9_000, 12_238_847].map(Nanos).iter().for_each(|edge| histogram.record(*edge));
        let (mean, std, min, max) = (6.119e-3, 6.1e-3, 8.99e-6, 12.230_994e-3);
        let kept =
            Latency { count: 2, mean, std, min, p25: None, p50: None, p75: None, p99: None, p999: None, max };
        let value = recorded(&histogram, &kept, Some(&[50.0, 99.0]));
        assert_eq!(
            (&value["min"], &value["max"], &value["N"]),
            (&json!(8990), &json!(12_230_994), &json!(2))
        );
        assert_eq!(value["percentile"], json!({"50.000000": 9007, "99.000000": 12_230_994}));
        assert_eq!(value["bins"], json!({"9007": 1, "12230994": 1}));
    }
}
