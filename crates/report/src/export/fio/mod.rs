//! fio's json+ output, for the tools that read it.
//!
//! Each method and each load of a check is a job, and each target of a load. What fio calls clat is the time of the write or read alone; the time of the
//! fdatasync is under `sync`, as fio has it. Bins hold the longest duration of each, in nanoseconds.

mod check;
mod load;

use std::collections::BTreeMap;

use plumb_measure::{Histogram, Latency};
use serde_json::{Map, Value, json};

pub use check::check;
pub use load::load;

/// The percentiles that fio prints unless asked otherwise.
const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// The whole of fio's output around `jobs`.
fn root(version: &str, started_at: &str, jobs: &[Value]) -> Result<String, serde_json::Error> {
    let root = json!({
        "fio version": format!("plumb-{version}"),
        "timestamp": 0,
        "timestamp_ms": 0,
        "time": started_at,
        "jobs": jobs,
        "disk_util": [],
    });
    let mut text = serde_json::to_string_pretty(&root)?;
    text.push('\n');
    Ok(text)
}

/// A job without its directions.
fn job(name: &str, options: Map<String, Value>, seconds: f64, depth: u32) -> Map<String, Value> {
    let mut levels = Map::new();
    for level in [1, 2, 4, 8, 16, 32, 64] {
        let name = if level == 64 { ">=64".to_owned() } else { level.to_string() };
        let here = if level == 64 { depth >= 64 } else { (level..level * 2).contains(&depth) };
        levels.insert(name, json!(if here { 100.0 } else { 0.0 }));
    }
    let mut job = Map::new();
    job.insert("jobname".into(), json!(name));
    job.insert("groupid".into(), json!(0));
    job.insert("error".into(), json!(0));
    job.insert("eta".into(), json!(0));
    job.insert("elapsed".into(), json!(seconds.ceil()));
    job.insert("job options".into(), Value::Object(options));
    job.insert("job_runtime".into(), json!((seconds * 1e3).round()));
    job.insert("iodepth_level".into(), Value::Object(levels));
    job
}

/// What one direction moved.
#[derive(Debug, Clone, Copy)]
struct Moved {
    ios: u64,
    bytes: u64,
    seconds: f64,
}

/// One of fio's directions; `None` for one that was not used.
fn direction(moved: Option<Moved>, times: &Times) -> Value {
    let moved = moved.unwrap_or(Moved { ios: 0, bytes: 0, seconds: 0.0 });
    let per_second = |amount: u64| if moved.seconds > 0.0 { amount as f64 / moved.seconds } else { 0.0 };
    let bandwidth = per_second(moved.bytes);
    json!({
        "io_bytes": moved.bytes,
        "io_kbytes": moved.bytes >> 10,
        "bw_bytes": bandwidth.round() as u64,
        "bw": (bandwidth / 1024.0).round() as u64,
        "iops": per_second(moved.ios),
        "runtime": (moved.seconds * 1e3).round() as u64,
        "total_ios": moved.ios,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": Times::none().value,
        "clat_ns": times.value,
        "lat_ns": times.without_bins(),
        "bw_min": 0, "bw_max": 0, "bw_agg": 0.0, "bw_mean": bandwidth / 1024.0, "bw_dev": 0.0, "bw_samples": 0,
        "iops_min": 0, "iops_max": 0, "iops_mean": per_second(moved.ios), "iops_stddev": 0.0, "iops_samples": 0,
    })
}

/// One of fio's latency objects.
#[derive(Debug)]
struct Times {
    value: Value,
}

impl Times {
    fn none() -> Self {
        Self { value: json!({ "min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0 }) }
    }

    /// From a distribution with its bins, or from the figures of the document alone.
    fn of(histogram: Option<&Histogram>, latency: Option<&Latency>) -> Self {
        match (histogram.filter(|histogram| histogram.count() > 0), latency) {
            (Some(histogram), _) => Self::of_histogram(histogram),
            (None, Some(latency)) => Self::of_latency(latency),
            (None, None) => Self::none(),
        }
    }

    fn of_histogram(histogram: &Histogram) -> Self {
        let bins: BTreeMap<u64, u64> = histogram.bins().fold(BTreeMap::new(), |mut bins, (value, count)| {
            let bin = bins.entry(value.0).or_default();
            *bin = count.saturating_add(*bin);
            bins
        });
        let mut percentiles = Map::new();
        for percentile in PERCENTILES {
            let rank = (percentile / 100.0 * histogram.count() as f64).ceil().max(1.0) as u64;
            percentiles.insert(format!("{percentile:.6}"), json!(at_rank(&bins, rank)));
        }
        let bins: Map<String, Value> =
            bins.into_iter().map(|(value, count)| (value.to_string(), json!(count))).collect();
        Self {
            value: json!({
                "min": histogram.min().map_or(0, |min| min.0),
                "max": histogram.max().map_or(0, |max| max.0),
                "mean": histogram.mean().unwrap_or(0.0) * 1e9,
                "stddev": histogram.std().unwrap_or(0.0) * 1e9,
                "N": histogram.count(),
                "percentile": percentiles,
                "bins": bins,
            }),
        }
    }

    fn of_latency(latency: &Latency) -> Self {
        let ns = |seconds: f64| (seconds * 1e9).round() as u64;
        Self {
            value: json!({
                "min": ns(latency.min),
                "max": ns(latency.max),
                "mean": latency.mean * 1e9,
                "stddev": latency.std * 1e9,
                "N": latency.count,
                "percentile": {
                    "50.000000": ns(latency.p50),
                    "99.000000": ns(latency.p99),
                    "99.900000": ns(latency.p999),
                },
            }),
        }
    }

    fn without_bins(&self) -> Value {
        let mut value = self.value.clone();
        if let Value::Object(fields) = &mut value {
            fields.remove("bins");
            fields.remove("percentile");
        }
        value
    }
}

/// The value at `rank`, from 1.
fn at_rank(bins: &BTreeMap<u64, u64>, rank: u64) -> u64 {
    let mut seen = 0_u64;
    for (value, count) in bins {
        seen = seen.saturating_add(*count);
        if seen >= rank {
            return *value;
        }
    }
    bins.last_key_value().map_or(0, |(value, _)| *value)
}
