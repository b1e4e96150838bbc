//! The shape of a job in fio's JSON: what `plumb report --format fio` and `plumb fio --output-format=json`
//! both print.

use plumb_measure::Histogram;
use serde_json::{Map, Value, json};

use super::latency;

/// The names of depths, and from which depth each counts.
const DEPTHS: [(&str, u32); 7] =
    [("1", 1), ("2", 2), ("4", 4), ("8", 8), ("16", 16), ("32", 32), (">=64", 64)];

/// One job.
#[derive(Debug, Clone)]
pub struct FioJob<'a> {
    /// Name of the job.
    pub name: &'a str,
    /// The number of its group.
    pub group: u32,
    /// The number of the first kind of failure; 0 for none.
    pub error: i32,
    /// How long it was measured, in seconds.
    pub seconds: f64,
    /// The sum of the times of its clones, in milliseconds.
    pub runtime_ms: u64,
    /// Requested options.
    pub options: Map<String, Value>,
    /// Percent of its time in the program.
    pub user_percent: f64,
    /// Percent of its time in the kernel.
    pub system_percent: f64,
    /// Requests in flight.
    pub depth: u32,
    /// Reads, writes and trims.
    pub directions: [FioDirection; 3],
    /// Flushes.
    pub syncs: u64,
    /// How long they took.
    pub sync_latency: Value,
    /// All operations, for the shares of fio's fixed buckets; `None` if their distribution was not kept.
    pub operations: Option<&'a Histogram>,
}

/// One direction of a job.
#[derive(Debug, Clone)]
pub struct FioDirection {
    /// Operations.
    pub operations: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// The length of the window, in milliseconds; 0 where nothing moved.
    pub runtime_ms: u64,
    /// Operations per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Service times.
    pub clat: Value,
    /// Times that fio calls `lat`: in a report since the intended start, if there is one.
    pub lat: Value,
    /// Samples of the bandwidth, in KiB/s.
    pub bandwidth: Samples,
    /// The percentage of the bandwidth of its group.
    pub share: f64,
    /// Samples of the operations per second.
    pub rate: Samples,
}

/// Figures of samples: fio takes one for each averaging window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Samples {
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub deviation: f64,
    /// How many.
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

/// All operations are at the depth that was asked for: how many there were less is not kept.
fn depths(depth: u32) -> Map<String, Value> {
    let next = |level: u32| if level >= 64 { u32::MAX } else { level * 2 };
    let at = |level: u32| if (level..next(level)).contains(&depth) { 100.0 } else { 0.0 };
    DEPTHS.iter().map(|(name, level)| ((*name).to_owned(), json!(at(*level)))).collect()
}

/// Returns how many were submitted or completed at once is known of a depth that fits the first bucket alone.
fn batches(depth: u32) -> Map<String, Value> {
    let names = ["0", "4", "8", "16", "32", "64", ">=64"];
    let at = |name: &str| if name == "4" && depth <= 4 { 100.0 } else { 0.0 };
    names.iter().map(|name| ((*name).to_owned(), json!(at(name)))).collect()
}
