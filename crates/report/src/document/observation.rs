//! The document of an observation, as `plumb observe --json` prints it: what other programs asked of block
//! devices, and the calls with which they made files durable. Nothing here was caused by plumb.

use plumb_block::DeviceCounters;
use plumb_measure::{Buckets, Histogram, Latency};
use plumb_path::exposure::ObservedExposure;
use serde::{Deserialize, Serialize};

use super::run::Environment;

/// All that was seen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservationDocument {
    /// [`ObservationDocument::SCHEMA`].
    pub schema: String,
    /// `danger` if a write was lost of which nobody was told, `warning` if all were told, else `none`: an
    /// observation judges nothing else.
    pub level: String,
    /// The result in one sentence.
    pub headline: String,
    /// Observed target, as typed.
    pub target: String,
    /// How long, in seconds.
    pub seconds: f64,
    /// How it was observed.
    pub source: Source,
    /// Reason why not by events; null if it was.
    pub source_because: Option<String>,
    /// The devices, those first that the target is directly on; of all disks the busiest first.
    pub devices: Vec<ObservedDevice>,
    /// The calls that made files durable, by process and call; null if they were not seen.
    pub syncs: Option<Vec<ObservedSync>>,
    /// How long all of them took that are counted, but for those of sync_file_range, which flush no device;
    /// null if there were none.
    pub sync_latency: Option<Latency>,
    /// Number of these syncs by the range of times that they took.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sync_latency_buckets: Vec<BucketCount>,
    /// Writes that failed after the page cache had taken them, by file; null if they were not seen.
    pub writeback_errors: Option<Vec<WritebackError>>,
    /// Reason why they were not; null if they were.
    pub syncs_unknown_because: Option<String>,
    /// Kernel's counters of the observed process; null if it was not one process.
    pub process: Option<ProcessIo>,
    /// Loss that a power cut would cause from each path that was watched for that; empty unless it was asked
    /// for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exposures: Vec<ObservedExposure>,
    /// Cost of observing.
    pub cost: ObservationCost,
    /// True if it ran as long as was asked, or until it was stopped if no duration was given.
    pub complete: bool,
    /// Reason why not.
    pub incomplete_because: Option<String>,
    /// Remarks that supplement the figures.
    pub notes: Vec<String>,
    /// A workload of the same kind, in plumb's own language (TOML); empty if nothing was seen that one can be
    /// made of.
    pub workload: String,
    /// Where and how it was made.
    pub environment: Environment,
    /// Where the recording is; null if it is not kept.
    pub run_directory: Option<String>,
}

/// How requests were seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Each by itself, through the kernel's tracing.
    Events,
    /// Difference of counters: no latencies of single requests, no sizes, no syncs.
    #[default]
    Counters,
}

/// A device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservedDevice {
    /// The kernel's name.
    pub name: String,
    /// True if it has requests, which wait in a queue of the kernel. One without (zram, dm, md) was seen by
    /// what it was handed.
    pub has_requests: bool,
    /// Reads.
    pub read: ObservedDirection,
    /// Writes.
    pub write: ObservedDirection,
    /// Trims.
    pub trim: ObservedDirection,
    /// Flushes that the device was handed; null where the kernel does not count them.
    pub flushes: Option<u64>,
    /// Flushes that the device received, per second.
    pub flushes_per_second: Option<f64>,
    /// Time that the device took for a flush; null if there was none, or flushes were not seen one by one.
    pub flush_latency: Option<Latency>,
    /// Number of flushes by the range of times that the device took for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flush_latency_buckets: Vec<BucketCount>,
    /// Writes that were durable when they completed; null if they were not seen one by one.
    pub fua_writes: Option<u64>,
    /// Reads and writes that were merged into another one before they were issued.
    pub merges: u64,
    /// Requests that the device had at once; null if they were not seen one by one.
    pub queue_depth: Option<QueueDepth>,
    /// When reads, writes and trims came, all together; null if they were not seen one by one, or too few.
    pub arrivals: Option<Arrivals>,
    /// Counters of /proc/diskstats over the same time; null if the device came or went.
    pub counters: Option<DeviceCounters>,
    /// True if the events and the counters agree; null if there were no events, or if requests were in flight
    /// when observation began or ended.
    pub counters_agree: Option<bool>,
    /// Completions in each part of the time.
    pub over_time: Vec<OverTime>,
}

/// Requests of one direction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservedDirection {
    /// Requests that completed.
    pub ios: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Requests per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Bytes of a request; null if there was none.
    pub io_bytes_mean: Option<f64>,
    /// How many were of each size, in the order of sizes; empty if they were not seen one by one.
    pub sizes: Vec<SizeCount>,
    /// Share of the requests that began where one of the last few had ended; null if they were not seen one
    /// by one.
    pub sequential: Option<f64>,
    /// The first byte that was touched; null if none was, or it was not seen.
    pub from_byte: Option<u64>,
    /// The byte behind the last one.
    pub until_byte: Option<u64>,
    /// The most that the device had at once; at least that many if events were lost.
    pub depth_max: u64,
    /// How long those waited in a queue of the kernel that did, before the device got them; null if none did.
    pub queue_latency: Option<Latency>,
    /// Time that the device took, from being handed a request to its completion.
    pub latency: Option<Latency>,
    /// Number of requests by the range of times that the device took for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_buckets: Vec<BucketCount>,
    /// When they came; null if there were too few.
    pub arrivals: Option<Arrivals>,
}

/// Number of durations in one range. The ranges of a list follow each other: each ends at twice the time of
/// the one before, and the list ends where nothing longer was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct BucketCount {
    /// Longest duration of the range, in seconds; null of the range that has no end.
    pub up_to: Option<f64>,
    /// Durations.
    pub count: u64,
}

impl BucketCount {
    /// Returns the counts of a distribution, from the first range in which something was seen to the last.
    pub fn of_histogram(histogram: &Histogram) -> Vec<Self> {
        let counted = Buckets::from(histogram);
        let counts = counted.counts().map(|(up_to, count)| Self { up_to, count });
        let mut counts: Vec<_> = counts.skip_while(|of| of.count == 0).collect();
        counts.truncate(counts.iter().rposition(|of| of.count > 0).map_or(0, |last| last + 1));
        counts
    }
}

/// Requests of one size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeCount {
    /// The size.
    pub bytes: u64,
    /// How many.
    pub ios: u64,
}

/// Requests that a device had at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueDepth {
    /// The mean over the time.
    pub mean: f64,
    /// Mean over the time in which the device had any request; 0 if it never had.
    pub busy_mean: f64,
    /// The most.
    pub max: u64,
    /// The share of the time in which it had any.
    pub busy: f64,
}

/// When requests came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Arrivals {
    /// The standard deviation of the time between two of them, over its mean: 0 of a clock, 1 of independent
    /// clients.
    pub variation: f64,
    /// The bursts: what lies between pauses that are at least ten times as long as the median of all
    /// intervals, and 1 ms. Null if such pauses take less than a fifth of the time.
    pub bursts: Option<Bursts>,
}

/// Requests with pauses between them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Bursts {
    /// How many.
    pub count: u64,
    /// Requests of one, in the mean.
    pub ios_mean: f64,
    /// The pause between two, in seconds, in the mean.
    pub pause_mean: f64,
}

/// Completions in one part of the time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct OverTime {
    /// When it began, in seconds since the start.
    pub at: f64,
    /// How long it is, in seconds.
    pub seconds: f64,
    /// Reads and writes. Trims move no data and are left out.
    pub ios: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Mean time of the requests at the device, in seconds; null if there were none, or they were not seen
    /// one by one.
    pub latency_mean: Option<f64>,
}

/// In the place of a call: a file was made durable and none was made. Seen on file systems that say when they
/// have done that: ext4, f2fs.
pub const NO_CALL: &str = "no call";

/// Calls of a process that made files durable.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservedSync {
    /// The process; 0 if it had ended before it could be looked up: then its name is that of the event of its
    /// start, or `ended`.
    pub process: u32,
    /// Name of the process.
    pub name: String,
    /// The call: `fsync`, `fdatasync`, `sync_file_range`, `msync`, `syncfs`, `sync`; or [`NO_CALL`].
    pub call: String,
    /// One of the files; null if the call names none, or it was gone.
    pub file: Option<String>,
    /// True if the headline and `sync_latency` count them: of an observed device or path those that are known
    /// to be on it. Not counted are sync, which is of all devices, and those of which it is not known where
    /// the file is.
    pub counted: bool,
    /// Calls that ended.
    pub count: u64,
    /// Calls that ended, per second.
    pub per_second: f64,
    /// Calls that failed.
    pub errors: u64,
    /// How long they took; null if none ended.
    pub latency: Option<Latency>,
}

/// Writes of a file that failed after the page cache had taken them. What they held is in memory at most.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WritebackError {
    /// The kernel's name of the device that the file system is on; the source of the mount, or
    /// `MAJOR:MINOR`, where there is no single one.
    pub device: String,
    /// Mount point of the file system; null for a block device itself, which holds what the file system
    /// keeps of itself, and where no mount shows it.
    pub mount_point: Option<String>,
    /// Type of the file system; null likewise.
    pub file_system: Option<String>,
    /// Number of the file there.
    pub inode: u64,
    /// A path that leads to it; null if none was found.
    pub path: Option<String>,
    /// The last error, in words.
    pub error: String,
    /// Failures that the kernel noted.
    pub failures: u64,
    /// Time of the first one, in seconds since the start.
    pub first_at: f64,
    /// Time of the last one, likewise.
    pub last_at: f64,
    /// True if somebody was told after the last failure.
    pub reported: bool,
    /// Processes that were told, by a call that failed.
    pub reported_to: Vec<Recipient>,
}

/// Process that was told of an error.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipient {
    /// The process; 0 if it had ended before it could be looked up.
    pub process: u32,
    /// Name of the process.
    pub name: String,
}

/// Kernel's counters of a process (proc(5), /proc/PID/io).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessIo {
    /// The process.
    pub process: u32,
    /// Name of the process.
    pub name: String,
    /// Bytes that it asked to read, also of those that were in memory; null with the following ones if they
    /// may not be read.
    pub read_calls_bytes: Option<u64>,
    /// Bytes that it asked to write.
    pub write_calls_bytes: Option<u64>,
    /// Bytes that came from storage for it.
    pub read_bytes: Option<u64>,
    /// Bytes that it made dirty, or wrote past the page cache.
    pub write_bytes: Option<u64>,
}

/// Cost of observing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservationCost {
    /// Processor time of plumb, in seconds. What the kernel needed to record events is part of the programs
    /// that caused them, and is not in it.
    pub cpu_seconds: f64,
    /// Processor time as a share of one processor.
    pub cpu_share: f64,
    /// Events that were read.
    pub events: u64,
    /// Events that the kernel had no room for. If there are any, the counts and rates of devices are those of
    /// `counters`, what was seen one by one (sizes, latencies) is a part of the requests, and syncs are lower
    /// bounds.
    pub events_lost: u64,
}

impl ObservationDocument {
    /// The name of the JSON document.
    pub const SCHEMA: &str = "plumb/observation/1";

    /// Returns true if requests or syncs were not all seen: by counters alone, without system calls, or with
    /// lost events.
    pub fn is_partly_unseen(&self) -> bool {
        self.source == Source::Counters || self.syncs.is_none() || self.cost.events_lost > 0
    }
}

impl ObservedDevice {
    /// Reads, writes and trims, each with its name.
    pub fn directions(&self) -> [(&'static str, &ObservedDirection); 3] {
        [("read", &self.read), ("write", &self.write), ("trim", &self.trim)]
    }

    /// Reads and writes: what moves data.
    pub fn transfers(&self) -> [&ObservedDirection; 2] {
        [&self.read, &self.write]
    }

    /// Reads, writes, trims and flushes that completed.
    pub fn requests(&self) -> u64 {
        self.ios() + self.flushes.unwrap_or(0)
    }

    /// Reads, writes and trims that completed.
    pub fn ios(&self) -> u64 {
        self.directions().iter().map(|(_, direction)| direction.ios).sum()
    }

    /// Returns the time of requests of the direction that has most of them: summaries cannot be put together.
    pub(crate) fn busiest_latency(&self) -> Option<Latency> {
        self.directions().iter().max_by_key(|(_, of)| of.ios).and_then(|(_, of)| of.latency)
    }
}
