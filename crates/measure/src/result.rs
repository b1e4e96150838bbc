//! Measured results as plain data: the numbers in all reports.
//!
//! Durations are in seconds, sizes in bytes, rates per second, all as JSON numbers. An unknown value is null,
//! with a sibling field for the reason.

use plumb_block::{DeviceCounters, Nanos, SyncMethod};
use serde::{Deserialize, Serialize};

/// Distribution of a latency, in seconds. Computed from a histogram, so percentiles have its relative error.
/// plumb measures all percentiles; null is a percentile that another program did not print, or that is beyond
/// the end of its histogram.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Number of timed operations.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the population.
    pub std: f64,
    /// Minimum.
    pub min: f64,
    /// First quartile.
    pub p25: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// Third quartile.
    pub p75: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// Maximum.
    pub max: f64,
}

/// Application side of a measurement, as seen by the workers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ApplicationSide {
    /// Operations that completed.
    pub operations: u64,
    /// Operations that failed.
    pub errors: u64,
    /// Bytes that completed operations moved.
    pub bytes: u64,
    /// Length of the measurement window, in seconds.
    pub seconds: f64,
    /// Completed operations per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Bytes per operation; null if there was none.
    pub io_bytes_mean: Option<f64>,
    /// Service time; null if no operation completed.
    pub latency: Option<Latency>,
    /// Time since the intended start; null without a rate limit, where it equals the service time.
    pub latency_from_intended_start: Option<Latency>,
    /// Mean number of requests in flight (Little's law: rate times mean service time).
    pub in_flight_mean: Option<f64>,
}

impl ApplicationSide {
    /// Returns the latency of an operation: since its intended start if it has one, which includes the wait
    /// for earlier operations, else its service time.
    pub fn operation_latency(&self) -> Option<Latency> {
        self.latency_from_intended_start.or(self.latency)
    }
}

/// Storage side of a measurement: the requests handed to the block devices below the target.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StorageSide {
    /// Reads and writes per second, without empty flushes.
    pub iops: f64,
    /// Bytes read and written per second.
    pub bytes_per_second: f64,
    /// Bytes per read or write; null if there was none.
    pub io_bytes_mean: Option<f64>,
    /// Flush requests in the window; null if the kernel does not count them.
    pub flushes: Option<u64>,
    /// Mean time of a flush request, in seconds; null if there was none.
    pub flush_mean: Option<f64>,
    /// Reads in the window.
    pub reads: u64,
    /// Writes in the window, without empty flushes.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Reads and writes merged into a neighbour.
    pub merges: u64,
    /// Treatment of empty flushes in the count of writes.
    pub flush_writes: FlushWrites,
    /// Kernel counters of each device over the window.
    pub devices: Vec<DeviceCounters>,
    /// Counters of the block devices above `devices`, from the top down: requests received by a loop device,
    /// a mapped device or an array. Empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<DeviceCounters>,
    /// Attribution of the counts to programs; null if all are the run's own, as on a simulated drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribution: Option<Attribution>,
}

/// Attribution of storage counts to programs. A device counts the requests of all programs: they are a run's
/// own only if nobody else can use the device, or if requests were traced. Null means unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribution {
    /// Method to distinguish the run's flushes from those of other programs.
    pub flushes: FlushesOf,
    /// Flushes by this run: all flushes of its own device, or those that its threads submitted to the first
    /// block device below the target, by trace.
    pub own_flushes: Option<u64>,
    /// Flushes by the journal of the file system, by trace; the journal serves all users of the file system.
    pub journal_flushes: Option<u64>,
    /// Lower bound of the flushes by other programs.
    pub foreign_flushes: Option<u64>,
    /// Lower bound of the bytes that the devices wrote for this run.
    pub own_write_bytes: Option<u64>,
    /// Method to determine `own_write_bytes`; null if that is null.
    pub bytes_by: Option<BytesBy>,
    /// Explanation, also for an unknown attribution: `/dev/sdb is claimed by this run`.
    pub because: String,
}

/// Method to distinguish a run's flushes from those of other programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlushesOf {
    /// The device is simulated or claimed, so all counts are the run's own.
    OwnDevice,
    /// Each flush was traced to the thread that submitted it (tracefs).
    Traced,
    /// None: the counts include all programs and prove nothing about one of them.
    #[default]
    AllPrograms,
}

/// Method to distinguish a run's bytes from those of other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BytesBy {
    /// The device is used by this run alone.
    OwnDevice,
    /// io.stat of a control group with no other process in it (cgroup v2).
    Cgroup,
    /// write_bytes of /proc/self/io: writes caused by this process on all devices. Where each write is
    /// synced, includes the last one of each worker.
    Process,
}

/// Answer to whether the kernel counts empty flushes as writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlushWrites {
    /// A calibration with clean syncs showed one empty write for each flush; these were subtracted.
    TakenOut,
    /// A calibration showed that flushes are not counted as writes.
    NotCounted,
    /// Not calibrated; writes may include empty flushes.
    #[default]
    Unknown,
}

/// Cost of a durable write by one method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SyncResult {
    /// Method to make the write durable.
    pub method: SyncMethod,
    /// Number of completed durable writes.
    pub operations: u64,
    /// Time until each write was durable: write and sync together, in seconds; null if none completed.
    pub latency: Option<Latency>,
    /// Time of the write alone; null if write and sync are one call.
    pub write_latency: Option<Latency>,
    /// Time of the sync alone; null if write and sync are one call.
    pub sync_latency: Option<Latency>,
    /// Length of the window, in seconds.
    pub seconds: f64,
    /// Flush requests counted by the devices below in the window, summed.
    pub device_flushes: Option<u64>,
    /// Reason why `device_flushes` is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_flushes_unknown_because: Option<String>,
    /// Device flushes per durable write; null if flushes were not counted or include those of other programs,
    /// or if no durable write completed.
    pub flushes_per_sync: Option<f64>,
    /// Storage side of the window; null if `device_flushes` is null.
    pub storage: Option<StorageSide>,
    /// Disturbances during the measurement.
    pub quality: Quality,
    /// Reason why the method could not be measured; null if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_because: Option<String>,
}

/// One load with both sides: a row of the table that compares application and storage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IoResult {
    /// `read-cached`, `read-direct`, `write-cached`, `write-direct`, or the name of a load.
    pub name: String,
    /// Length of each operation in bytes.
    pub block_bytes: u64,
    /// Requested number of requests in flight.
    pub depth: u32,
    /// Length of the accessed range in bytes.
    pub range_bytes: u64,
    /// Application side, as seen by the workers.
    pub application: Option<ApplicationSide>,
    /// Storage side: requests submitted to the devices below.
    pub storage: Option<StorageSide>,
    /// Reason why `storage` is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_unknown_because: Option<String>,
    /// For writes through the page cache: bytes still dirty in the page cache at the end of the window.
    pub dirty_bytes_after: Option<u64>,
    /// Disturbances during the measurement.
    pub quality: Quality,
    /// Reason why the load could not be measured; null if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_because: Option<String>,
}

/// Conditions that may have distorted a measurement. Null means "cannot be read here".
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// Fraction of the window that the busiest worker thread ran on a processor, 0 to 1.
    pub worker_busy: Option<f64>,
    /// Fraction of processor time that the hypervisor took away (steal), 0 to 1.
    pub steal: Option<f64>,
    /// Fraction of the window that the busiest worker thread was ready to run but waited for a processor, 0
    /// to 1.
    #[serde(default)]
    pub worker_waiting: Option<f64>,
    /// Lower bound of the bytes moved by the devices below but not for this process.
    pub foreign_bytes: Option<u64>,
    /// Seconds at the start of the window before the rate settled; null if it never did.
    pub ramp_seconds: Option<f64>,
    /// Coefficient of variation of the rate over 100 ms buckets after the ramp.
    pub rate_variation: Option<f64>,
    /// Slope of the rate over the window after the ramp, relative to its mean (SNIA PTS 2.0.2 requires less
    /// than 0.1).
    pub rate_slope: Option<f64>,
    /// Fraction of the accessed range that had been written before, 0 to 1; reads of the rest do not reach
    /// the medium.
    pub written_share: Option<f64>,
}

/// One bucket of a time series.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// Start of the bucket since the start of its window.
    pub at: Nanos,
    /// Operations completed in the bucket.
    pub operations: u64,
    /// Bytes moved by these operations.
    pub bytes: u64,
    /// Sum of the service times.
    pub latency_sum: Nanos,
    /// Longest service time.
    pub latency_max: Nanos,
    /// Shortest service time; zero if there is none, or it was not kept.
    #[serde(default)]
    pub latency_min: Nanos,
    /// Sum of the squared service times, in ns²; zero if it was not kept.
    #[serde(default)]
    pub latency_squares: f64,
}

/// Initial width of a bucket of a time series.
pub const SERIES_BUCKET: Nanos = Nanos::millis(100);
