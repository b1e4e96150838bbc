//! Job in fio's JSON format, common to `plumb report --format fio` and `plumb fio --output-format=json`.

use plumb_measure::Histogram;
use serde_json::{Map, Value, json};

use super::latency;

/// Names of depths, and the smallest depth of each.
const DEPTHS: [(&str, u32); 7] =
    [("1", 1), ("2", 2), ("4", 4), ("8", 8), ("16", 16), ("32", 32), (">=64", 64)];

/// Job in fio's sense.
#[derive(Debug, Clone)]
pub struct FioJob<'a> {
    /// Name of the job.
    pub name: &'a str,
    /// Number of its group.
    pub group: u32,
    /// Number of the first kind of failure; 0 for none.
    pub error: i32,
    /// Duration of the measurement in seconds.
    pub seconds: f64,
    /// Sum of the times of its clones, in milliseconds.
    pub runtime_ms: u64,
    /// Requested options.
    pub options: Map<String, Value>,
    /// User time as a percentage of its duration.
    pub user_percent: f64,
    /// System time as a percentage of its duration.
    pub system_percent: f64,
    /// Requests in flight.
    pub depth: u32,
    /// Reads, writes and trims.
    pub directions: [FioDirection; 3],
    /// Flushes.
    pub syncs: u64,
    /// Latency of the flushes.
    pub sync_latency: Value,
    /// Distribution of all operations, for fio's fixed buckets; `None` if it was not recorded.
    pub operations: Option<&'a Histogram>,
}

/// Direction of a job.
#[derive(Debug, Clone)]
pub struct FioDirection {
    /// Operations.
    pub operations: u64,
    /// Bytes of these operations.
    pub bytes: u64,
    /// Length of the window in milliseconds; 0 without operations.
    pub runtime_ms: u64,
    /// Operations per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Service times.
    pub clat: Value,
    /// Times that fio calls `lat`; in a report since the intended start if there is one.
    pub lat: Value,
    /// Samples of the bandwidth, in KiB/s.
    pub bandwidth: Samples,
    /// Percentage of the bandwidth of its group.
    pub share: f64,
    /// Samples of the operations per second.
    pub rate: Samples,
}

/// Statistics of samples, of which fio takes one per averaging window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Samples {
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
    /// Number of samples.
    pub count: usize,
}

impl FioJob<'_> {
    /// Returns the job as JSON.
    pub fn to_json(&self) -> Value {
        let mut value = json!({
            "jobname": self.name,
            "groupid": self.group,
            "error": self.error,
            "eta": 0,
            "elapsed": self.seconds.ceil() as u64,
            "job options": self.options,
            "job_runtime": self.runtime_ms,
            "usr_cpu": self.user_percent,
            "sys_cpu": self.system_percent,
            "ctx": 0,
            "majf": 0,
            "minf": 0,
            "iodepth_level": depths(self.depth),
            "iodepth_submit": batches(self.depth),
            "iodepth_complete": batches(self.depth),
            "latency_depth": self.depth,
            "latency_target": 0,
            "latency_percentile": 100.0,
            "latency_window": 0,
            "sync": { "total_ios": self.syncs, "lat_ns": self.sync_latency },
        });
        for (name, direction) in ["read", "write", "trim"].into_iter().zip(&self.directions) {
            value[name] = direction.to_json();
        }
        if let Some(operations) = self.operations {
            let bins = latency::bins(operations);
            for (buckets, name) in latency::BUCKETS.iter().zip(["latency_ns", "latency_us", "latency_ms"]) {
                let shares = buckets.shares(&bins).into_iter();
                value[name] = Value::Object(shares.map(|(name, share)| (name, json!(share))).collect());
            }
        }
        value
    }
}

impl FioDirection {
    fn to_json(&self) -> Value {
        json!({
            "io_bytes": self.bytes,
            "io_kbytes": self.bytes >> 10,
            "bw_bytes": self.bytes_per_second.round() as u64,
            "bw": (self.bytes_per_second / 1024.0).floor() as u64,
            "iops": self.iops,
            "runtime": self.runtime_ms,
            "total_ios": self.operations,
            "short_ios": 0,
            "drop_ios": 0,
            "slat_ns": latency::object(None, None, false),
            "clat_ns": self.clat,
            "lat_ns": self.lat,
            "bw_min": self.bandwidth.min.floor() as u64,
            "bw_max": self.bandwidth.max.floor() as u64,
            "bw_agg": self.share,
            "bw_mean": self.bandwidth.mean,
            "bw_dev": self.bandwidth.deviation,
            "bw_samples": self.bandwidth.count,
            "iops_min": self.rate.min.floor() as u64,
            "iops_max": self.rate.max.floor() as u64,
            "iops_mean": self.rate.mean,
            "iops_stddev": self.rate.deviation,
            "iops_samples": self.rate.count,
        })
    }
}

impl Samples {
    /// Computes the statistics of `values`.
    pub fn from_values(values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(0.0, f64::max);
        Self { min, max, mean, deviation, count }
    }
}

/// Assigns all operations to the requested depth, since the actual depths are not recorded.
fn depths(depth: u32) -> Map<String, Value> {
    let next = |level: u32| if level >= 64 { u32::MAX } else { level * 2 };
    let at = |level: u32| if (level..next(level)).contains(&depth) { 100.0 } else { 0.0 };
    DEPTHS.iter().map(|(name, level)| ((*name).to_owned(), json!(at(*level)))).collect()
}

/// Returns the numbers of operations submitted or completed at once. They are known only for a depth in the
/// first bucket.
fn batches(depth: u32) -> Map<String, Value> {
    let names = ["0", "4", "8", "16", "32", "64", ">=64"];
    let at = |name: &str| if name == "4" && depth <= 4 { 100.0 } else { 0.0 };
    names.iter().map(|name| ((*name).to_owned(), json!(at(name)))).collect()
}
