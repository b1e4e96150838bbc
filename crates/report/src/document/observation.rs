//! Document of an observation, as `plumb observe --json` prints it: requests of other programs to block
//! devices, and the calls by which they made files durable. plumb itself caused none of these.

use plumb_block::DeviceCounters;
use plumb_measure::{Buckets, Histogram, Latency};
use plumb_path::exposure::ObservedExposure;
use serde::{Deserialize, Serialize};

use super::run::Environment;

/// Results of an observation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservationDocument {
    /// Name and version of the document: [`ObservationDocument::SCHEMA`].
    pub schema: String,
    /// `danger` if a write was lost without a report to any program, `warning` if all losses were reported,
    /// otherwise `none`. Nothing else is judged.
    pub level: String,
    /// Result in one sentence.
    pub headline: String,
    /// Observed target, as the user typed it.
    pub target: String,
    /// Duration in seconds.
    pub seconds: f64,
    /// Source of the data.
    pub source: Source,
    /// Reason why events were not used; null if they were.
    pub source_because: Option<String>,
    /// Devices: first those that the target is directly on; for all disks the busiest first.
    pub devices: Vec<ObservedDevice>,
    /// Calls that made files durable, by process and call; null if they were not observed.
    pub syncs: Option<Vec<ObservedSync>>,
    /// Latency of all counted syncs except sync_file_range, which flushes no device; null if there were none.
    pub sync_latency: Option<Latency>,
    /// Number of these syncs by range of latency.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sync_latency_buckets: Vec<BucketCount>,
    /// Writes that failed after the page cache had accepted them, by file; null if they were not observed.
    pub writeback_errors: Option<Vec<WritebackError>>,
    /// Reason why syncs were not observed; null if they were.
    pub syncs_unknown_because: Option<String>,
    /// Kernel's counters of the observed process; null if a single process was not observed.
    pub process: Option<ProcessIo>,
    /// Loss that a power cut would cause on each monitored path; empty if not requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exposures: Vec<ObservedExposure>,
    /// Cost of observing.
    pub cost: ObservationCost,
    /// True if it ran for the requested time, or until it was stopped if no duration was given.
    pub complete: bool,
    /// Reason why it is not complete; null if it is.
    pub incomplete_because: Option<String>,
    /// Remarks that supplement the figures.
    pub notes: Vec<String>,
    /// Workload of the same kind in plumb's own language (TOML); empty if the observed requests do not
    /// suffice for one.
    pub workload: String,
    /// Environment of the measurement.
    pub environment: Environment,
    /// Path of the recording; null if there is none.
    pub run_directory: Option<String>,
}

/// Source of the data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Individual requests, from the kernel's tracing.
    Events,
    /// Differences of counters: no latencies of single requests, no sizes, no syncs.
    #[default]
    Counters,
}

/// Observed device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservedDevice {
    /// Kernel's name of the device.
    pub name: String,
    /// True if the device has requests, which wait in a queue of the kernel. A device without (zram, dm, md)
    /// was observed by the bios sent to it.
    pub has_requests: bool,
    /// Reads.
    pub read: ObservedDirection,
    /// Writes.
    pub write: ObservedDirection,
    /// Trims.
    pub trim: ObservedDirection,
    /// Flushes sent to the device; null if the kernel does not count them.
    pub flushes: Option<u64>,
    /// Flushes sent to the device, per second.
    pub flushes_per_second: Option<f64>,
    /// Latency of flushes at the device; null without flushes, or if they were not observed individually.
    pub flush_latency: Option<Latency>,
    /// Number of flushes by range of latency at the device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flush_latency_buckets: Vec<BucketCount>,
    /// Writes that were durable on completion; null if they were not observed individually.
    pub fua_writes: Option<u64>,
    /// Reads and writes merged into another one before they were issued.
    pub merges: u64,
    /// Requests in flight at the device; null if they were not observed individually.
    pub queue_depth: Option<QueueDepth>,
    /// Arrival times of reads, writes and trims together; null if they were not observed individually, or too
    /// few.
    pub arrivals: Option<Arrivals>,
    /// Counters of /proc/diskstats over the same time; null if the device appeared or disappeared meanwhile.
    pub counters: Option<DeviceCounters>,
    /// True if events and counters agree; null without events, or if requests were in flight when the
    /// observation began or ended.
    pub counters_agree: Option<bool>,
    /// Completions in each part of the observation.
    pub over_time: Vec<OverTime>,
}

/// Requests of one direction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservedDirection {
    /// Requests that completed.
    pub ios: u64,
    /// Bytes of these requests.
    pub bytes: u64,
    /// Requests per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Mean length of a request in bytes; null if there was none.
    pub io_bytes_mean: Option<f64>,
    /// Number of requests of each size, ordered by size; empty if they were not observed individually.
    pub sizes: Vec<SizeCount>,
    /// Share of the requests that began where one of the last few had ended; null if they were not observed
    /// individually.
    pub sequential: Option<f64>,
    /// First byte touched; null if there was none, or it was not observed.
    pub from_byte: Option<u64>,
    /// Byte after the last one touched; null if there was none, or it was not observed.
    pub until_byte: Option<u64>,
    /// Maximum number in flight at the device; a lower bound if events were lost.
    pub depth_max: u64,
    /// Time in a queue of the kernel before the device, of the requests that waited there; null if none did.
    pub queue_latency: Option<Latency>,
    /// Time at the device, from the dispatch of a request to its completion.
    pub latency: Option<Latency>,
    /// Number of requests by range of time at the device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_buckets: Vec<BucketCount>,
    /// Arrival times; null if there were too few.
    pub arrivals: Option<Arrivals>,
}

/// Number of durations in one range. The ranges of a list are consecutive: each ends at twice the end of the
/// previous one. The list ends with the longest observed duration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct BucketCount {
    /// End of the range in seconds; null for an unbounded range.
    pub up_to: Option<f64>,
    /// Durations.
    pub count: u64,
}

impl BucketCount {
    /// Returns the counts of a distribution, from the first range that is not empty to the last.
    pub fn of_histogram(histogram: &Histogram) -> Vec<Self> {
        let counted = Buckets::from(histogram);
        let counts = counted.counts().map(|(up_to, count)| Self { up_to, count });
        let mut counts: Vec<_> = counts.skip_while(|of| of.count == 0).collect();
        counts.truncate(counts.iter().rposition(|of| of.count > 0).map_or(0, |last| last + 1));
        counts
    }
}

/// Number of requests of one size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeCount {
    /// Size in bytes.
    pub bytes: u64,
    /// Number of requests.
    pub ios: u64,
}

/// Number of requests in flight at a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueDepth {
    /// Mean over the whole time.
    pub mean: f64,
    /// Mean over the time in which the device was busy; 0 if it never was.
    pub busy_mean: f64,
    /// Maximum.
    pub max: u64,
    /// Share of the time in which the device was busy.
    pub busy: f64,
}

/// Arrival times of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Arrivals {
    /// Coefficient of variation of the time between two arrivals: 0 for a clock, 1 for independent clients.
    pub variation: f64,
    /// Bursts, separated by pauses that are at least 1 ms and ten times the median of all intervals. Null if
    /// such pauses take less than a fifth of the time.
    pub bursts: Option<Bursts>,
}

/// Bursts of requests with pauses between them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Bursts {
    /// Number of bursts.
    pub count: u64,
    /// Mean number of requests of a burst.
    pub ios_mean: f64,
    /// Mean pause between two bursts, in seconds.
    pub pause_mean: f64,
}

/// Completions in one part of the observation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct OverTime {
    /// Beginning of the part, in seconds since the start.
    pub at: f64,
    /// Length of the part, in seconds.
    pub seconds: f64,
    /// Reads and writes. Trims move no data and are left out.
    pub ios: u64,
    /// Bytes of these requests.
    pub bytes: u64,
    /// Mean time of the requests at the device in seconds; null without requests, or if they were not
    /// observed individually.
    pub latency_mean: Option<f64>,
}

/// Value of `call` for a file that was made durable without a call. Observed on file systems that report it:
/// ext4, f2fs.
pub const NO_CALL: &str = "no call";

/// Calls of a process that made files durable.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservedSync {
    /// Process ID; 0 if the process had ended before the lookup. Its name is then that of its exec event, or
    /// `ended`.
    pub process: u32,
    /// Name of the process.
    pub name: String,
    /// Call: `fsync`, `fdatasync`, `sync_file_range`, `msync`, `syncfs`, `sync`; or [`NO_CALL`].
    pub call: String,
    /// One of the files; null if the call names none, or the file was gone.
    pub file: Option<String>,
    /// True if the headline and `sync_latency` include these calls: for an observed device or path, those
    /// known to be on it. Calls of sync, which affects all devices, and calls with an unknown place are not
    /// included.
    pub counted: bool,
    /// Completed calls.
    pub count: u64,
    /// Completed calls per second.
    pub per_second: f64,
    /// Failed calls.
    pub errors: u64,
    /// Latency of the calls; null if none completed.
    pub latency: Option<Latency>,
}

/// Writes of a file that failed after the page cache had accepted them. Their data exists in memory at most.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WritebackError {
    /// Kernel's name of the device of the file system; the source of the mount, or `MAJOR:MINOR`, if there is
    /// no single device.
    pub device: String,
    /// Mount point of the file system; null if no mount shows it, and for a block device itself, which holds
    /// the file system's own data.
    pub mount_point: Option<String>,
    /// Type of the file system; null if the mount point is.
    pub file_system: Option<String>,
    /// Inode number of the file.
    pub inode: u64,
    /// Path of the file; null if none was found.
    pub path: Option<String>,
    /// Last error, in words.
    pub error: String,
    /// Failures that the kernel recorded.
    pub failures: u64,
    /// Time of the first failure, in seconds since the start.
    pub first_at: f64,
    /// Time of the last failure, in seconds since the start.
    pub last_at: f64,
    /// True if the error was reported to a program after the last failure.
    pub reported: bool,
    /// Processes that received the error from a failed call.
    pub reported_to: Vec<Recipient>,
}

/// Process that received an error.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipient {
    /// Process ID; 0 if the process had ended before the lookup.
    pub process: u32,
    /// Name of the process.
    pub name: String,
}

/// Kernel's counters of a process (proc(5), /proc/PID/io).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessIo {
    /// Process ID.
    pub process: u32,
    /// Name of the process.
    pub name: String,
    /// Bytes requested by reads, including those served from memory; null, like the other counters, if they
    /// may not be read.
    pub read_calls_bytes: Option<u64>,
    /// Bytes requested by writes.
    pub write_calls_bytes: Option<u64>,
    /// Bytes read from storage.
    pub read_bytes: Option<u64>,
    /// Bytes made dirty, or written past the page cache.
    pub write_bytes: Option<u64>,
}

/// Cost of observing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservationCost {
    /// Processor time of plumb in seconds. The cost of recording events in the kernel is charged to the
    /// programs that caused them.
    pub cpu_seconds: f64,
    /// Processor time as a share of one processor.
    pub cpu_share: f64,
    /// Events read.
    pub events: u64,
    /// Events lost because the kernel's buffer was full. If there are any, the counts and rates of devices
    /// come from `counters`, individual data (sizes, latencies) cover a part of the requests, and syncs are
    /// lower bounds.
    pub events_lost: u64,
}

impl ObservationDocument {
    /// Name and version of the JSON document.
    pub const SCHEMA: &str = "plumb/observation/1";

    /// Returns true if requests or syncs were observed incompletely: from counters alone, without system
    /// calls, or with lost events.
    pub fn is_partly_unseen(&self) -> bool {
        self.source == Source::Counters || self.syncs.is_none() || self.cost.events_lost > 0
    }
}

impl ObservedDevice {
    /// Returns reads, writes and trims, each with its name.
    pub fn directions(&self) -> [(&'static str, &ObservedDirection); 3] {
        [("read", &self.read), ("write", &self.write), ("trim", &self.trim)]
    }

    /// Returns reads and writes, which move data.
    pub fn transfers(&self) -> [&ObservedDirection; 2] {
        [&self.read, &self.write]
    }

    /// Returns the number of completed reads, writes, trims and flushes.
    pub fn requests(&self) -> u64 {
        self.ios() + self.flushes.unwrap_or(0)
    }

    /// Returns the number of completed reads, writes and trims.
    pub fn ios(&self) -> u64 {
        self.directions().iter().map(|(_, direction)| direction.ios).sum()
    }

    /// Returns the latency of the direction with most requests, since summaries cannot be combined.
    pub(crate) fn busiest_latency(&self) -> Option<Latency> {
        self.directions().iter().max_by_key(|(_, of)| of.ios).and_then(|(_, of)| of.latency)
    }
}
