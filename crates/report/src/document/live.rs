//! Figures until now of an observation that goes on: `plumb observe --serve` shows them as metrics, and the
//! slowest events as a document of their own.

use plumb_measure::Buckets;
use plumb_path::exposure::ObservedExposure;
use serde::{Deserialize, Serialize};

/// All that was seen until now.
#[derive(Debug, Clone, Default)]
pub struct LiveObservation {
    /// Times, once in each respect.
    pub times: Vec<TimesBy>,
    /// Failed writes, by file system.
    pub lost_writes: Vec<LostWrites>,
    /// Events that were read.
    pub events: u64,
    /// Events that were lost.
    pub events_lost: u64,
    /// Processor time of this process, in seconds.
    pub cpu_seconds: f64,
    /// Loss that a power cut would cause; empty unless it is watched.
    pub exposures: Vec<ObservedExposure>,
}

/// Times by one respect, such as by device.
#[derive(Debug, Clone)]
pub struct TimesBy {
    /// Part of the name of the metric: `device`.
    pub name: &'static str,
    /// How they are told apart, as words of a sentence: `by device`.
    pub help: &'static str,
    /// The busiest names, and one for all others.
    pub names: Vec<NamedTimes>,
}

/// Times of one name.
#[derive(Debug, Clone)]
pub struct NamedTimes {
    /// Labels that name it.
    pub labels: Vec<(&'static str, String)>,
    /// Kinds of time, each with the distribution.
    pub times: Vec<(&'static str, Buckets)>,
}

/// Writes to a file system that failed after the page cache had taken them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LostWrites {
    /// The kernel's name of the device, or its number.
    pub device: String,
    /// Mount point of the file system; empty if it is not known.
    pub mount_point: String,
    /// Failed writes.
    pub failures: u64,
    /// Files with failures of which no program was told since.
    pub files_unreported: u64,
}

impl LostWrites {
    /// Returns the labels that name the file system.
    pub fn labels(&self) -> [(&str, &str); 2] {
        [("device", &self.device), ("mount_point", &self.mount_point)]
    }
}

/// The slowest events of the last minutes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowDocument {
    /// [`SlowDocument::SCHEMA`].
    pub schema: String,
    /// The events, the slowest first.
    pub events: Vec<SlowEvent>,
}

impl SlowDocument {
    /// Schema of this document.
    pub const SCHEMA: &str = "plumb/slow/1";
}

/// A sync or a request that took long.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowEvent {
    /// When it ended, in seconds since 1970.
    pub ended_at: f64,
    /// Time that it took, with its time in a queue of the kernel.
    pub seconds: f64,
    /// Part of it in a queue of the kernel; null of a sync, and of a request that went past that.
    pub queue_seconds: Option<f64>,
    /// `fsync` and other calls, or `read`, `write`, `flush`, `trim` of a device; `fua` after a write that was
    /// durable at its end.
    pub operation: String,
    /// Bytes of a request; null of a sync.
    pub bytes: Option<u64>,
    /// The kernel's name of the device; null if it is not known.
    pub device: Option<String>,
    /// Mount point of the file system; null if it is not known.
    pub mount_point: Option<String>,
    /// The file of a sync; null if it is not known.
    pub file: Option<String>,
    /// Name of the process; of a request the one that asked for it, which may be the kernel.
    pub process: String,
    /// Number of the process; null if it had ended.
    pub pid: Option<u32>,
    /// Path of its cgroup; null if it is not known.
    pub cgroup: Option<String>,
    /// Activity of the device at that time; null if no device is known, or it is not observed.
    pub device_then: Option<DeviceActivity>,
}

/// Requests that a device completed while an event lasted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceActivity {
    /// Time that is counted, in seconds: that of the event, made whole to twentieths of a second, at most 30
    /// s.
    pub seconds: f64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes that were read and written.
    pub bytes: u64,
    /// Longest time of a request at the device, in seconds.
    pub longest: f64,
    /// Requests that the device had when the event ended.
    pub in_flight: u64,
}
