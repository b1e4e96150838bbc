//! Samples of served caches: requests of clients, and destaging.

use plumb_block::{Bytes, Nanos};
use plumb_caches::CacheStatus;

use super::sample::{LiveApplication, LivePhase, LiveSample, LiveStorage, LiveTarget};

impl LiveSample {
    /// Creates the sample of these caches, `elapsed` seconds after the first.
    pub fn of_caches(caches: &[CacheStatus], elapsed: f64) -> Self {
        Self {
            elapsed,
            phase: LivePhase::Serving,
            targets: caches.iter().map(target).collect(),
            remarks: caches.iter().map(remark).collect(),
            ..Self::default()
        }
    }
}

fn count(status: &CacheStatus, name: &str) -> u64 {
    status.counts.get(name).copied().unwrap_or_default() as u64
}

/// Builds the target for the live view, with the requests of clients as application side, and those to the
/// backing device as storage side.
fn target(status: &CacheStatus) -> LiveTarget {
    let count = |name| count(status, name);
    LiveTarget {
        name: status.name.clone(),
        application: LiveApplication {
            operations: count("reads") + count("writes"),
            bytes: count("read") + count("written"),
            flushes: count("flushes"),
            ..LiveApplication::default()
        },
        storage: status.served.then(|| LiveStorage {
            reads: count("backing_reads"),
            writes: count("destage_writes") + count("bypass_writes"),
            bytes: count("backing_read") + count("destaged") + count("bypassed"),
            flushes: Some(count("backing_flushes")),
        }),
        ..LiveTarget::default()
    }
}

fn remark(status: &CacheStatus) -> String {
    let name = &status.name;
    if status.dirty_bytes.is_none() {
        return format!("{name}: not served");
    }
    let age =
        status.oldest_dirty.map(|age| format!(", the oldest for {} or more", Nanos::from_secs_f64(age)));
    let used = status.log_used.unwrap_or(0);
    let full = 100.0 * used as f64 / status.log_size.unwrap_or(status.size).max(1) as f64;
    let size = |bytes: &str, operations: &str| {
        let (bytes, operations) = (count(status, bytes), count(status, operations));
        bytes.checked_div(operations).map_or_else(|| "-".to_owned(), |mean| Bytes(mean).to_string())
    };
    let legs: Vec<&str> = status.legs.iter().map(|leg| leg.state.as_str()).collect();
    format!(
        "{name}: {} only in the log{}; log {full:.0} % in use, {}; mean write {}, mean write-back {}",
        status.only_in_log(),
        age.unwrap_or_default(),
        legs.join(", "),
        size("written", "writes"),
        size("destaged", "destage_writes"),
    )
}
