//! The documents of `plumb cache`. The status of a cache is that of [`plumb_targets`], whose server answers
//! with it.

use plumb_caches::CacheStatus;
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};

/// The status of a cache, as it is shown.
#[derive(Debug)]
pub struct CacheShown {
    /// The status.
    pub status: CacheStatus,
    /// True if it was stopped just now.
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

/// The status of all caches.
#[derive(Debug, Serialize)]
pub struct CachesShown {
    /// [`CachesShown::SCHEMA`].
    pub schema: &'static str,
    /// The caches.
    pub caches: Vec<CacheShown>,
}

impl CachesShown {
    /// The name of the JSON document.
    pub const SCHEMA: &str = "plumb/caches/1";
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
