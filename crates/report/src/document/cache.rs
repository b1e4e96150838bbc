//! The documents of `plumb cache`. The status of a cache belongs to whoever serves it: here is the part of it
//! that reports show, as it stands in the JSON document.

use std::collections::BTreeMap;

use plumb_block::Bytes;
use plumb_measure::Latency;
use serde::{Deserialize, Serialize};

/// The status of a cache.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct CacheShown {
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) uuid: String,
    pub(crate) mode: String,
    pub(crate) served: bool,
    pub(crate) backing: BackingShown,
    pub(crate) legs: Vec<LegShown>,
    pub(crate) size: u64,
    pub(crate) dirty_bytes: Option<u64>,
    pub(crate) zeroed_bytes: Option<u64>,
    pub(crate) oldest_dirty: Option<f64>,
    pub(crate) flushes: FlushesShown,
    pub(crate) write_amplification: Option<f64>,
    pub(crate) state: Option<String>,
    pub(crate) log_used: Option<u64>,
    pub(crate) log_size: Option<u64>,
    pub(crate) draining: bool,
    pub(crate) ordered: bool,
    pub(crate) unreadable: Vec<ExtentShown>,
    pub(crate) damaged: Vec<ExtentShown>,
    pub(crate) recovery: Option<RecoveryShown>,
    pub(crate) write_back_error: Option<String>,
    pub(crate) log_error: Option<String>,
    pub(crate) drain_rate: Option<f64>,
    pub(crate) drain_eta: Option<f64>,
    pub(crate) sleep: Option<SleepShown>,
    pub(crate) spin_ups: Option<u64>,
    pub(crate) wear: Option<WearShown>,
    pub(crate) latency: Option<BTreeMap<String, LatencyShown>>,
    pub(crate) counts: BTreeMap<String, f64>,
    pub(crate) nbd_uris: Vec<String>,
    pub(crate) nbd_clients: u64,
    pub(crate) device: Option<String>,
    pub(crate) transport: Option<String>,
    pub(crate) warnings: Vec<String>,
    /// True if it was stopped just now.
    #[serde(skip)]
    pub is_stopped: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct BackingShown {
    pub(crate) path: String,
    pub(crate) size: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct LegShown {
    pub(crate) path: String,
    pub(crate) state: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct SleepShown {
    pub(crate) at_percent: u32,
    pub(crate) age: f64,
    pub(crate) spin_down: f64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct WearShown {
    pub(crate) written_bytes: u64,
    pub(crate) seconds: f64,
    pub(crate) bytes_per_day: Option<f64>,
    pub(crate) endurance: Option<EnduranceShown>,
    pub(crate) lifetime: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct EnduranceShown {
    pub(crate) bytes: u64,
    pub(crate) by: String,
    pub(crate) used: Option<f64>,
}

/// Latency of one kind of request.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct LatencyShown {
    #[serde(flatten)]
    pub(crate) summary: Latency,
    pub(crate) buckets: Vec<LatencyBucketShown>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct LatencyBucketShown {
    pub(crate) at_most: f64,
    pub(crate) count: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct FlushesShown {
    pub(crate) front: u64,
    pub(crate) log: u64,
    pub(crate) backing: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ExtentShown {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// Findings of recovery in a log.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct RecoveryShown {
    pub(crate) records: u64,
    pub(crate) record_bytes: Bytes,
    pub(crate) given_up_records: u64,
    pub(crate) lost_records: u64,
    pub(crate) legs: Vec<LegRecovery>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct LegRecovery {
    pub(crate) behind_bytes: Bytes,
    pub(crate) damaged_bytes: Bytes,
    pub(crate) front_lost: bool,
}

impl CacheShown {
    /// Returns the number of bytes that only the log holds: data, and what was zeroed or discarded. 0 if that
    /// is not known.
    pub(crate) fn only_in_log(&self) -> Bytes {
        Bytes(self.dirty_bytes.unwrap_or(0) + self.zeroed_bytes.unwrap_or(0))
    }

    /// Returns true if nothing that was written durably is damaged or gone.
    pub(crate) fn is_sound(&self) -> bool {
        let is_whole = |leg: &LegRecovery| leg.damaged_bytes == Bytes(0) && !leg.front_lost;
        let found = self.recovery.as_ref();
        self.damaged.is_empty()
            && self.unreadable.is_empty()
            && found.is_none_or(|found| found.lost_records == 0 && found.legs.iter().all(is_whole))
    }
}

/// The status of all caches: `plumb/caches/1`.
#[derive(Debug, Default, Deserialize)]
pub struct CachesShown {
    pub(crate) caches: Vec<CacheShown>,
}

/// `plumb cache detach`: a cache that is no more.
#[derive(Debug, Serialize, Deserialize)]
pub struct CacheDetached {
    /// [`CacheDetached::SCHEMA`].
    pub schema: String,
    /// Name of the cache.
    pub name: String,
    /// UUID of the cache.
    pub uuid: String,
    /// The device that was cached.
    pub backing: String,
    /// True if what only the log held was discarded.
    pub discarded: bool,
    /// Bytes that the log could not read, of which the backing device has something older.
    pub given_up_bytes: u64,
    /// True if the backing device was not there, so that it lacks what was not written back to it.
    #[serde(skip)]
    pub is_backing_gone: bool,
}

impl CacheDetached {
    /// The name of the JSON document.
    pub const SCHEMA: &str = "plumb/cache-detached/1";
}

/// `plumb cache advise`: advice for a recording.
#[derive(Debug, Serialize, Deserialize)]
pub struct CacheAdvice {
    /// [`CacheAdvice::SCHEMA`].
    pub schema: String,
    /// The recording.
    pub recording: String,
    /// Writes of the recording.
    pub writes: u64,
    /// Bytes of them.
    pub written_bytes: u64,
    /// Reads of the recording, which are left out.
    pub reads: u64,
    /// Flushes of the recording.
    pub flushes: u64,
    /// From its first request to its last.
    pub seconds: f64,
    /// The device that stood for the real one behind the cache.
    pub backing: String,
    /// The device that stood for the log.
    pub log: String,
    /// Without a cache.
    pub uncached: WaitTimes,
    /// By size, the smallest first.
    pub sizes: Vec<CacheSize>,
    /// The smallest that absorbs the bursts, to a sixteenth of it.
    pub advised_size: u64,
}

impl CacheAdvice {
    /// The name of the JSON document.
    pub const SCHEMA: &str = "plumb/cache-advice/1";
}

/// Time that a client waited.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct WaitTimes {
    /// For all writes and flushes together, each from the moment at which the recording has it.
    pub seconds: f64,
    /// Mean latency of a write in seconds.
    pub write_mean: f64,
    /// Time within which 99 writes in 100 are answered.
    pub write_p99: f64,
    /// Time within which all are.
    pub write_max: f64,
}

/// A size of the log that was tried.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CacheSize {
    /// The size in bytes.
    pub size: u64,
    /// Share of the writes that were answered no later than a tenth after the slowest of a log that never
    /// fills.
    pub absorbed: f64,
    /// For how long clients waited more than for such a log, all together.
    pub stall_seconds: f64,
    /// How many times as long clients waited without a cache.
    pub speed_up: f64,
    /// With this log.
    pub waiting: WaitTimes,
    /// Bytes that the backing device took meanwhile.
    pub destaged_bytes: u64,
    /// Bytes that went past the log.
    pub bypassed_bytes: u64,
    /// Bytes that were written to the log, with its own headers.
    #[serde(default)]
    pub log_written_bytes: u64,
    /// Seconds after which the endurance that was given will have been written, from new, if this goes on;
    /// left out if none was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_lifetime: Option<f64>,
}
