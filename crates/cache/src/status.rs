//! [`Status`]: condition, contents and figures of an open cache, for its users.

use plumb_block::{Bytes, LbaRange, Nanos};
use serde::Serialize;

use crate::format::superblock::LegState;
use crate::recovery::Findings;
use crate::settings::{Layout, Mode};

/// Condition of a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Reading its log and making its legs equal. Requests wait.
    Recovering,
    /// Serving requests.
    Serving,
    /// Stopped as requested; everything acknowledged is durable.
    Stopped {
        /// True if the backing device has all data.
        is_clean: bool,
    },
    /// Writes and flushes fail after an irreplaceable failure; reads are served. Reopen the cache once the
    /// device is repaired.
    Latched {
        /// Description of the failure, as a sentence.
        because: String,
    },
    /// Not opened: nothing is served, and nothing was changed.
    Failed {
        /// Reason, as a sentence.
        because: String,
    },
}

/// Counters since the cache was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Reads by clients.
    pub reads: u64,
    /// Total size of the clients' reads.
    pub read: Bytes,
    /// Writes, zeroings and discards by clients.
    pub writes: u64,
    /// Total size of the clients' writes, zeroings and discards.
    pub written: Bytes,
    /// Flushes and FUA writes by clients.
    pub flushes: u64,
    /// Writes, zeroings and discards that bypassed the log.
    pub bypass_writes: u64,
    /// Total size of the writes, zeroings and discards that bypassed the log.
    pub bypassed: Bytes,
    /// Client data written to records.
    pub logged: Bytes,
    /// Data written that replaced dirty data, which is then not destaged.
    pub absorbed: Bytes,
    /// Reads of the backing device for clients.
    pub backing_reads: u64,
    /// Total size of the reads of the backing device for clients.
    pub backing_read: Bytes,
    /// Client reads served from freed segments, which keep written-back data until they are reused.
    pub kept_reads: u64,
    /// Total size of the client reads served from freed segments.
    pub kept_read: Bytes,
    /// Records written.
    pub records: u64,
    /// Bytes written to all legs: records and superblocks.
    pub leg_written: Bytes,
    /// Flushes of legs.
    pub leg_flushes: u64,
    /// Flushes of the backing device.
    pub backing_flushes: u64,
    /// Destage writes to the backing device.
    pub destage_writes: u64,
    /// Total size of the destage writes.
    pub destaged: Bytes,
    /// Failed reads and writes of destaging.
    pub destage_errors: u64,
    /// Data given up because no leg had it intact.
    pub unreadable: Bytes,
    /// Total time that writes were delayed because of the fill level of the log.
    pub delayed: Nanos,
    /// True if writes wait for a free segment.
    pub is_full: bool,
    /// Log blocks with a wrong checksum.
    pub checksum_errors: u64,
    /// Failed reads of legs.
    pub leg_read_errors: u64,
    /// Damaged parts of a leg repaired from another.
    pub repaired: u64,
    /// Legs that failed.
    pub legs_lost: u64,
    /// Records written again in the next segment, because a leg failed to write them or an earlier one.
    pub records_retried: u64,
    /// Data copied to replacement legs.
    pub resilvered: Bytes,
}

/// Status of an open cache. Sizes in bytes, durations in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// Condition of the cache.
    pub state: State,
    /// Condition for acknowledging writes.
    pub mode: Mode,
    /// Layout of the log over the legs.
    pub layout: Layout,
    /// State of every leg by the durable superblocks, except that a leg being copied to shows at once.
    pub legs: Vec<LegState>,
    /// Size of the log.
    pub log: Bytes,
    /// Size of the part of the log that holds records.
    pub log_used: Bytes,
    /// Data that the backing device does not have, without zeroed or discarded blocks.
    pub dirty: Bytes,
    /// Zeroed or discarded blocks that the backing device does not have. They need almost no space in the
    /// log.
    pub zeroed: Bytes,
    /// Blocks given up because no leg had them intact: reads of them fail until they are overwritten, and the
    /// backing device has older data.
    pub unreadable: Vec<LbaRange>,
    /// True if the backing device alone is old but consistent by now, in [`Mode::Ordered`].
    pub is_ordered: bool,
    /// Age of the oldest record in the log, if there is one.
    pub oldest: Option<Nanos>,
    /// Rate at which the log becomes free, in bytes per second; 0 if unknown.
    pub drain_rate: f64,
    /// Time to destage everything at the recent rate.
    pub drain_eta: Option<Nanos>,
    /// True while the log is growing; false once the cache is latched.
    pub is_growing: bool,
    /// Reason why the log is sealed; `None` if it is not. Its contents are then being written back, and
    /// writes bypass it, at the speed of the backing device.
    pub log_error: Option<String>,
    /// True if everything is being destaged; false once the cache is latched.
    pub is_draining: bool,
    /// Time since the cache was opened.
    pub open_for: Nanos,
    /// Requests to the backing device after a pause in which it is assumed to have [spun
    /// down](crate::DestageOptions::spin_down), since the cache was opened.
    pub spin_ups: u64,
    /// Reason why destaging is blocked; `None` if it is not.
    pub destage_error: Option<String>,
    /// Counters since the cache was opened.
    pub figures: Figures,
    /// Condition of the log when it was opened.
    pub findings: Findings,
}
