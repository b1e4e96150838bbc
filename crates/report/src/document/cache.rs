//! Documents of `plumb cache`. The status of a single cache is that of [`plumb_targets`], as its server
//! returns it.

use plumb_caches::CacheStatus;
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};

/// Status of a cache, with presentation hints.
#[derive(Debug)]
pub struct CacheShown {
    /// Status.
    pub status: CacheStatus,
    /// True if the command has just stopped the cache.
    pub is_stopped: bool,
}

impl From<CacheStatus> for CacheShown {
    fn from(status: CacheStatus) -> Self {
        Self { status, is_stopped: false }
    }
}

impl Serialize for CacheShown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.status.document().map_err(S::Error::custom)?.serialize(serializer)
    }
}

/// Status of all caches.
#[derive(Debug, Serialize)]
pub struct CachesShown {
    /// Name and version of the document: [`CachesShown::SCHEMA`].
    pub schema: &'static str,
    /// Caches.
    pub caches: Vec<CacheShown>,
}

impl CachesShown {
    /// Name and version of the JSON document.
    pub const SCHEMA: &str = "plumb/caches/1";
}

/// `plumb cache detach`: a cache that was taken away.
#[derive(Debug, Serialize, Deserialize)]
pub struct CacheDetached {
    /// Name and version of the document: [`CacheDetached::SCHEMA`].
    pub schema: String,
    /// Name of the cache.
    pub name: String,
    /// UUID of the cache.
    pub uuid: String,
    /// Path of the backing device.
    pub backing: String,
    /// True if data that only the log held was discarded.
    pub discarded: bool,
    /// Bytes that could not be read from the log. The backing device holds older data for them.
    pub given_up_bytes: u64,
    /// True if the backing device was missing, so that it lacks everything that was not destaged.
    #[serde(skip)]
    pub is_backing_gone: bool,
}

impl CacheDetached {
    /// Name and version of the JSON document.
    pub const SCHEMA: &str = "plumb/cache-detached/1";
}

/// `plumb cache advise`: advice on the size of a log for a recording.
#[derive(Debug, Serialize, Deserialize)]
pub struct CacheAdvice {
    /// Name and version of the document: [`CacheAdvice::SCHEMA`].
    pub schema: String,
    /// Path of the recording.
    pub recording: String,
    /// Writes of the recording.
    pub writes: u64,
    /// Bytes of these writes.
    pub written_bytes: u64,
    /// Reads of the recording, which are left out.
    pub reads: u64,
    /// Flushes of the recording.
    pub flushes: u64,
    /// Time from the first request of the recording to its last, in seconds.
    pub seconds: f64,
    /// Simulated device that represents the backing device.
    pub backing: String,
    /// Simulated device that represents the log.
    pub log: String,
    /// Waiting times without a cache.
    pub uncached: WaitTimes,
    /// Sizes that were tried, the smallest first.
    pub sizes: Vec<CacheSize>,
    /// Smallest size that absorbs the bursts, to within a sixteenth.
    pub advised_size: u64,
}

impl CacheAdvice {
    /// Name and version of the JSON document.
    pub const SCHEMA: &str = "plumb/cache-advice/1";
}

/// Times that clients waited.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct WaitTimes {
    /// Total for all writes and flushes in seconds, each since its time in the recording.
    pub seconds: f64,
    /// Mean latency of a write in seconds.
    pub write_mean: f64,
    /// 99th percentile of the latency of writes, in seconds.
    pub write_p99: f64,
    /// Maximum latency of writes, in seconds.
    pub write_max: f64,
}

/// Size of the log that was tried.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CacheSize {
    /// Size in bytes.
    pub size: u64,
    /// Share of the writes whose latency exceeded the maximum with a log that never fills by at most a tenth.
    pub absorbed: f64,
    /// Total time that clients waited longer than with such a log, in seconds.
    pub stall_seconds: f64,
    /// Ratio of the waiting time without a cache to that with this log.
    pub speed_up: f64,
    /// Waiting times with this log.
    pub waiting: WaitTimes,
    /// Bytes destaged to the backing device during the replay.
    pub destaged_bytes: u64,
    /// Bytes that bypassed the log.
    pub bypassed_bytes: u64,
    /// Bytes written to the log, with its headers.
    #[serde(default)]
    pub log_written_bytes: u64,
    /// Seconds until the given endurance of a new device is used up at this rate; left out if no endurance
    /// was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_lifetime: Option<f64>,
}
