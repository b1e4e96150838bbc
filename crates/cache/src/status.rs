//! [`Status`]: condition, contents and figures of an open cache, as its users see them.

use plumb_block::{Bytes, LbaRange, Nanos};
use serde::Serialize;

use crate::format::superblock::LegState;
use crate::recovery::Findings;
use crate::settings::{Layout, Mode};

/// How a cache is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// The cache reads its log, and makes its legs equal. Requests wait.
    Recovering,
    /// The cache serves.
    Serving,
    /// The cache stopped as requested; everything acknowledged is durable.
    Stopped {
        /// True if the backing device has everything.
        is_clean: bool,
    },
    /// A write or a flush failed that nothing can stand in for. Writes and flushes fail, reads are served. To
    /// be opened again once the device is well.
    Latched {
        /// Failure, in a sentence.
        because: String,
    },
    /// The cache was not opened: nothing is served, and nothing was changed.
    Failed {
        /// Why, in a sentence.
        because: String,
    },
}

/// Counters since the cache was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Reads by clients, and how much.
    pub reads: u64,
    /// See `reads`.
    pub read: Bytes,
    /// Writes, zeroings and discards by clients, and how much.
    pub writes: u64,
    /// See `writes`.
    pub written: Bytes,
    /// Flushes and FUA writes by clients.
    pub flushes: u64,
    /// Writes, zeroings and discards that went past the log, and how much.
    pub bypass_writes: u64,
    /// See `bypass_writes`.
    pub bypassed: Bytes,
    /// How much data of clients was put into records.
    pub logged: Bytes,
    /// How much of what was written replaced what only the log had, which is no longer destaged.
    pub absorbed: Bytes,
    /// Reads of the backing device for clients, and how much.
    pub backing_reads: u64,
    /// See `backing_reads`.
    pub backing_read: Bytes,
    /// Reads of the log for clients that the backing device was spared, since a segment keeps what was
    /// written back until it is used again; and how much.
    pub kept_reads: u64,
    /// See `kept_reads`.
    pub kept_read: Bytes,
    /// Records written.
    pub records: u64,
    /// Bytes written to all legs: records and superblocks.
    pub leg_written: Bytes,
    /// Flushes of legs.
    pub leg_flushes: u64,
    /// Flushes of the backing device.
    pub backing_flushes: u64,
    /// Writes to the backing device by destaging, and how much.
    pub destage_writes: u64,
    /// See `destage_writes`.
    pub destaged: Bytes,
    /// Failed reads and writes of destaging.
    pub destage_errors: u64,
    /// How much was left out of the log because no leg had it whole.
    pub unreadable: Bytes,
    /// Total time that writes were delayed because the log was filling.
    pub delayed: Nanos,
    /// True if writes wait for a free segment.
    pub is_full: bool,
    /// Log blocks that were not what was written.
    pub checksum_errors: u64,
    /// Reads of a leg that failed.
    pub leg_read_errors: u64,
    /// Damaged places of a leg that were replaced by what another had.
    pub repaired: u64,
    /// Legs that failed.
    pub legs_lost: u64,
    /// Records that a leg failed to write, or that came after such a record, and that were written again in
    /// the next segment.
    pub records_retried: u64,
    /// How much was copied to legs that replace others.
    pub resilvered: Bytes,
}

/// The state of an open cache. Sizes in bytes, durations in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// How it is.
    pub state: State,
    /// When writes are acknowledged.
    pub mode: Mode,
    /// Layout of the log over the legs.
    pub layout: Layout,
    /// State of every leg, as the log says durably; one that has begun to be copied to shows that at once.
    pub legs: Vec<LegState>,
    /// The log: all of it, and how much holds records.
    pub log: Bytes,
    /// See `log`.
    pub log_used: Bytes,
    /// Amount that the backing device does not have: data, and what was zeroed or discarded, which takes next
    /// to no room in the log.
    pub dirty: Bytes,
    /// See `dirty`.
    pub zeroed: Bytes,
    /// Blocks that were left out of the log because no leg had them whole: reads of them fail until they are
    /// overwritten, and the backing device has something older.
    pub unreadable: Vec<LbaRange>,
    /// True if the backing device alone is old and consistent by now, in [`Mode::Ordered`].
    pub is_ordered: bool,
    /// How long the oldest record has been in the log, if there is one.
    pub oldest: Option<Nanos>,
    /// How much of the log becomes free, in bytes per second; 0 until it is known.
    pub drain_rate: f64,
    /// Time that destaging everything would take at the rate of the backing device's last writes.
    pub drain_eta: Option<Nanos>,
    /// True if the log is to become larger, and is not yet; false once the cache is latched.
    pub is_growing: bool,
    /// Reason why the log is no longer written; `None` if it is. Everything in it is being written back, and
    /// writes go past it: they are as fast as the backing device.
    pub log_error: Option<String>,
    /// True if everything is being destaged; false once the cache is latched.
    pub is_draining: bool,
    /// Time since the cache was opened.
    pub open_for: Nanos,
    /// Requests to the backing device that came after a pause in which it is taken to have
    /// [spun down](crate::DestageOptions::spin_down), since the cache was opened.
    pub spin_ups: u64,
    /// Reason why destaging cannot continue; `None` if it can.
    pub destage_error: Option<String>,
    /// Counters since the cache was opened.
    pub figures: Figures,
    /// Contents of the log when it was opened.
    pub findings: Findings,
}
