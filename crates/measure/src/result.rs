//! Measured results as plain data: the numbers that every report shows.
//!
//! Durations are seconds, sizes bytes, rates per second, all as JSON numbers. What is not known is null, with
//! a sibling that says why.

use plumb_block::{DeviceCounters, Nanos, SyncMethod};
use serde::{Deserialize, Serialize};

/// The distribution of a latency, in seconds. Made from a histogram, so percentiles carry its relative error.
/// plumb measures all percentiles; null is a percentile that another program did not print, or that lies
/// beyond the end of its histogram.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Number of operations that were timed.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the population.
    pub std: f64,
    /// The fastest.
    pub min: f64,
    /// The first quartile.
    pub p25: Option<f64>,
    /// The median.
    pub p50: Option<f64>,
    /// The third quartile.
    pub p75: Option<f64>,
    /// 99 of 100 are not slower.
    pub p99: Option<f64>,
    /// 999 of 1000 are not slower.
    pub p999: Option<f64>,
    /// The slowest.
    pub max: f64,
}

/// The application's side of a measurement: what the workers saw.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ApplicationSide {
    /// Operations that completed.
    pub operations: u64,
    /// Operations that failed.
    pub errors: u64,
    /// Bytes that completed operations moved.
    pub bytes: u64,
    /// The length of the measurement window, in seconds.
    pub seconds: f64,
    /// Completed operations per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Bytes per operation; null if there was none.
    pub io_bytes_mean: Option<f64>,
    /// Service time; null if no operation completed.
    pub latency: Option<Latency>,
    /// Time since the intended start; null without a rate limit, for it is then the service time.
    pub latency_from_intended_start: Option<Latency>,
    /// Mean requests in flight (Little's law: rate times mean service time).
    pub in_flight_mean: Option<f64>,
}

impl ApplicationSide {
    /// Returns the latency of an operation: since its intended start where it has one, so that waiting for
    /// earlier operations counts, else its service time.
    pub fn operation_latency(&self) -> Option<Latency> {
        self.latency_from_intended_start.or(self.latency)
    }
}

/// The storage's side of the same window: what the block devices beneath the target were handed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StorageSide {
    /// Reads and writes per second, empty flushes taken out.
    pub iops: f64,
    /// Bytes read and written per second.
    pub bytes_per_second: f64,
    /// Bytes per read or write; null if there was none.
    pub io_bytes_mean: Option<f64>,
    /// Flush requests in the window; null where the kernel does not count them.
    pub flushes: Option<u64>,
    /// Mean time of a flush request, in seconds; null if there was none.
    pub flush_mean: Option<f64>,
    /// Reads in the window.
    pub reads: u64,
    /// Writes in the window, empty flushes taken out.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Reads and writes that were merged into a neighbour.
    pub merges: u64,
    /// How empty flushes were taken out of the writes.
    pub flush_writes: FlushWrites,
    /// Counters of each device over the window, as the kernel counts them.
    pub devices: Vec<DeviceCounters>,
    /// Counters of the block devices above `devices`, from the top down: the requests that a loop device, a
    /// mapped device or an array received. Empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<DeviceCounters>,
    /// Whose these counts are; null where all are the run's own, as on a simulated drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribution: Option<Attribution>,
}

/// Whose the counts of a storage side are. The counters of a device tell what all programs asked of it: they
/// are a run's own only where nobody else can use the device, or where requests were traced. Each null is: it
/// cannot be told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribution {
    /// How flushes are told from those of other programs.
    pub flushes: FlushesOf,
    /// Flushes that this run asked for: all that its own device counted, or those that its threads were
    /// traced to hand to the first block device beneath the target.
    pub own_flushes: Option<u64>,
    /// Flushes that the journal of the file system was traced to ask for: it serves all who use the file
    /// system.
    pub journal_flushes: Option<u64>,
    /// Flushes of other programs, at least.
    pub foreign_flushes: Option<u64>,
    /// Bytes that the devices wrote for this run, at least.
    pub own_write_bytes: Option<u64>,
    /// How those bytes are known; null as they are.
    pub bytes_by: Option<BytesBy>,
    /// How it is known, or why it cannot be told, in words: `/dev/sdb is claimed by this run`.
    pub because: String,
}

/// How the flushes of a run are told from those of other programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlushesOf {
    /// The device is the run's own: it is simulated, or claimed. All that was counted is of the run.
    OwnDevice,
    /// Each flush was traced to the thread that asked for it (tracefs).
    Traced,
    /// The counts are of all programs: they prove nothing about the flushes of one of them.
    #[default]
    AllPrograms,
}

/// How the bytes of a run are told from those of other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BytesBy {
    /// The device is the run's own.
    OwnDevice,
    /// io.stat of a control group with no other process in it (cgroup v2).
    Cgroup,
    /// write_bytes of /proc/self/io: what this process caused to be written, on all devices; where each write
    /// is synced, the last one of each worker with it.
    Process,
}

/// Answer to whether the kernel counted empty flushes among the writes, and how it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlushWrites {
    /// A calibration of clean syncs showed one empty write for each flush; they are taken out.
    TakenOut,
    /// A calibration showed that flushes are not among the writes.
    NotCounted,
    /// There was no calibration; writes may include empty flushes.
    Unknown,
}

/// The cost of a durable write by one method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SyncResult {
    /// How the write was made durable.
    pub method: SyncMethod,
    /// Durable writes that completed.
    pub operations: u64,
    /// Time that each took until it was durable: write and sync together, in seconds; null if none completed.
    pub latency: Option<Latency>,
    /// The write alone; null where write and sync are one call.
    pub write_latency: Option<Latency>,
    /// The sync alone; null where write and sync are one call.
    pub sync_latency: Option<Latency>,
    /// The length of the window, in seconds.
    pub seconds: f64,
    /// Flush requests that the devices beneath counted in the window, summed.
    pub device_flushes: Option<u64>,
    /// Reason why `device_flushes` is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_flushes_unknown_because: Option<String>,
    /// Device flushes per durable write; null if flushes were not counted or include those of other programs,
    /// or if no durable write completed.
    pub flushes_per_sync: Option<f64>,
    /// The storage's side of the window; null as `device_flushes`.
    pub storage: Option<StorageSide>,
    /// Influence of the surroundings during the measurement.
    pub quality: Quality,
    /// Reason why the method could not be measured, if it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_because: Option<String>,
}

/// One load and its two sides: a row of the table of application against storage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IoResult {
    /// `read-cached`, `read-direct`, `write-cached`, `write-direct`, or the name of a load.
    pub name: String,
    /// Bytes of each operation.
    pub block_bytes: u64,
    /// Requests asked to be in flight.
    pub depth: u32,
    /// Bytes of the range that was touched.
    pub range_bytes: u64,
    /// Application's side, as seen by the workers.
    pub application: Option<ApplicationSide>,
    /// Storage's side: what was submitted to the underlying devices.
    pub storage: Option<StorageSide>,
    /// Reason why `storage` is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_unknown_because: Option<String>,
    /// For writes through the page cache: bytes still dirty in the page cache at the end of the window.
    pub dirty_bytes_after: Option<u64>,
    /// Influence of the surroundings during the measurement.
    pub quality: Quality,
    /// Reason why it could not be measured, if it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_because: Option<String>,
}

/// Conditions that may have spoilt a measurement. Null means "cannot be read here".
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// Share of the window that the busiest worker thread spent on a processor, 0 to 1.
    pub worker_busy: Option<f64>,
    /// Share of processor time that the hypervisor took away (steal), 0 to 1.
    pub steal: Option<f64>,
    /// Share of the window that the busiest worker thread was ready to run and waited for a processor, 0 to
    /// 1.
    #[serde(default)]
    pub worker_waiting: Option<f64>,
    /// Bytes that the devices beneath moved and this process did not ask for, at least.
    pub foreign_bytes: Option<u64>,
    /// Seconds at the start of the window before the rate settled; null if it never did.
    pub ramp_seconds: Option<f64>,
    /// Coefficient of variation of the rate over 100 ms buckets after the ramp.
    pub rate_variation: Option<f64>,
    /// Slope of the rate over the window after the ramp, relative to its mean (SNIA PTS 2.0.2 asks for under
    /// 0.1).
    pub rate_slope: Option<f64>,
    /// Share of the touched range that had been written before, 0 to 1; reads of the rest come from nothing.
    pub written_share: Option<f64>,
}

/// One bucket of a time series.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// The start of the bucket since the start of its window.
    pub at: Nanos,
    /// Operations that completed in it.
    pub operations: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// The sum of their service times.
    pub latency_sum: Nanos,
    /// The longest of them.
    pub latency_max: Nanos,
    /// The shortest of them; zero if there are none, or that was not kept.
    #[serde(default)]
    pub latency_min: Nanos,
    /// The sum of their squares, in ns²; zero if that was not kept.
    #[serde(default)]
    pub latency_squares: f64,
}

/// How wide a bucket of a time series is.
pub const SERIES_BUCKET: Nanos = Nanos::millis(100);
