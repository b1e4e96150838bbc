//! Interim figures of a running observation: `plumb observe --serve` publishes them as metrics, and the
//! slowest events as a separate document.

use plumb_measure::Buckets;
use plumb_path::exposure::ObservedExposure;
use serde::{Deserialize, Serialize};

/// Everything observed so far.
#[derive(Debug, Clone, Default)]
pub struct LiveObservation {
    /// Times, grouped in several ways.
    pub times: Vec<TimesBy>,
    /// Failed writes, by file system.
    pub lost_writes: Vec<LostWrites>,
    /// Events that were read.
    pub events: u64,
    /// Lost events.
    pub events_lost: u64,
    /// Processor time of this process, in seconds.
    pub cpu_seconds: f64,
    /// Loss that a power cut would cause; empty unless it is monitored.
    pub exposures: Vec<ObservedExposure>,
}

/// Times grouped by one attribute, such as the device.
#[derive(Debug, Clone)]
pub struct TimesBy {
    /// Part of the name of the metric: `device`.
    pub name: &'static str,
    /// Description of the grouping within a sentence: `by device`.
    pub help: &'static str,
    /// Busiest names, and one entry for all others.
    pub names: Vec<NamedTimes>,
}

/// Times of one group.
#[derive(Debug, Clone)]
pub struct NamedTimes {
    /// Labels of the group.
    pub labels: Vec<(&'static str, String)>,
    /// Kinds of time, each with its distribution.
    pub times: Vec<(&'static str, Buckets)>,
}

/// Writes to a file system that failed after the page cache had accepted them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LostWrites {
    /// Kernel's name of the device, or its number.
    pub device: String,
    /// Mount point of the file system; empty if unknown.
    pub mount_point: String,
    /// Failed writes.
    pub failures: u64,
    /// Files with failures that have not been reported to any program.
    pub files_unreported: u64,
}

impl LostWrites {
    /// Returns the labels that identify the file system.
    pub fn labels(&self) -> [(&str, &str); 2] {
        [("device", &self.device), ("mount_point", &self.mount_point)]
    }
}

/// Slowest events of the last minutes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowDocument {
    /// Name and version of the document: [`SlowDocument::SCHEMA`].
    pub schema: String,
    /// Events, the slowest first.
    pub events: Vec<SlowEvent>,
}

impl SlowDocument {
    /// Name and version of the document.
    pub const SCHEMA: &str = "plumb/slow/1";
}

/// Slow sync or request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowEvent {
    /// Time of the end, in seconds since 1970.
    pub ended_at: f64,
    /// Duration in seconds, including the time in a queue of the kernel.
    pub seconds: f64,
    /// Part of the duration in a queue of the kernel; null for a sync, and for a request that bypassed the
    /// queue.
    pub queue_seconds: Option<f64>,
    /// `fsync` and other calls, or `read`, `write`, `flush`, `trim` of a device. `fua` for a write that was
    /// durable on completion.
    pub operation: String,
    /// Bytes of a request; null for a sync.
    pub bytes: Option<u64>,
    /// Kernel's name of the device; null if unknown.
    pub device: Option<String>,
    /// Mount point of the file system; null if unknown.
    pub mount_point: Option<String>,
    /// File of a sync; null if unknown.
    pub file: Option<String>,
    /// Name of the process. For a request it is the submitter, which may be the kernel.
    pub process: String,
    /// Number of the process; null if it had ended.
    pub pid: Option<u32>,
    /// Path of the cgroup; null if unknown.
    pub cgroup: Option<String>,
    /// Activity of the device at that time; null if the device is unknown or not observed.
    pub device_then: Option<DeviceActivity>,
}

/// Requests that a device completed during an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceActivity {
    /// Length of the counted time in seconds: that of the event, rounded up to twentieths of a second, at
    /// most 30 s.
    pub seconds: f64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Longest time of a request at the device, in seconds.
    pub longest: f64,
    /// Requests in flight at the device when the event ended.
    pub in_flight: u64,
}
