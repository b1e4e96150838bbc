//! The kernel between a load and a drive: what Linux's block layer does to requests before a drive sees them,
//! for devices that have no kernel above them.
//!
//! ```text
//!   load, file system, cache ──► flush ──► split ──► drive
//! ```
//!
//! # What it models
//! - **Volatile cache.** A drive that reports no volatile cache is sent no flush and no FUA: a flush
//!   completes at once, and a FUA write is a write (Linux, `submit_bio_noacct` in block/blk-core.c).
//! - **FUA** on a drive with a volatile cache and without FUA of its own is a write followed by a flush
//!   (block/blk-flush.c).
//! - **Flushes merge.** A device has one flush in flight. Those that arrive meanwhile wait, and share the
//!   next one (block/blk-flush.c). In real time only those of one queue do.
//! - **Long requests** are split at the largest transfer of the drive (block/blk-merge.c).
//!
//! # Limitations
//! It has no I/O scheduler, merges no neighbouring requests, and takes no time. Of flushes that share one the
//! earliest deadline counts for all. One tag, of the flush in flight, is the kernel's own.

mod flush;
mod split;

use std::sync::Arc;

use plumb_block::{Device, Time};

use self::flush::Flushing;
use self::split::Split;

/// Treatment of flushes and FUA by the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Flushes {
    /// The kernel treats them as Linux does.
    #[default]
    AsLinux,
    /// Nothing: the drive sees each of them.
    Raw,
}

/// Returns `device`, whose queues go by `time`, behind a kernel.
pub fn above(device: Arc<dyn Device>, time: &Time, flushes: Flushes) -> Arc<dyn Device> {
    let split: Arc<dyn Device> = Arc::new(Split::at_largest_transfer(device, time.clone()));
    match flushes {
        Flushes::AsLinux => Arc::new(Flushing::above(split, time.clone())),
        Flushes::Raw => split,
    }
}
