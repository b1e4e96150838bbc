//! Emulation of the kernel between a load and a drive: the processing of requests by Linux's block layer, for
//! devices without a kernel above them.
//!
//! ```text
//!   load, file system, cache ──► flush ──► split ──► drive
//! ```
//!
//! # What it models
//! - **Volatile cache.** A drive without a volatile cache receives no flush and no FUA: a flush completes at
//!   once, and a FUA write becomes a plain write (Linux, `submit_bio_noacct` in block/blk-core.c).
//! - **FUA** on a drive with a volatile cache but without native FUA is a write followed by a flush
//!   (block/blk-flush.c).
//! - **Flushes merge.** A device has one flush in flight. Flushes that arrive meanwhile wait, and share the
//!   next one (block/blk-flush.c). In real time this applies to each queue separately.
//! - **Long requests** are split at the maximum transfer of the drive (block/blk-merge.c).
//!
//! # Limitations
//! Not modelled: I/O schedulers, merging of adjacent requests, and processing time. Merged flushes share the
//! earliest deadline. One tag is reserved for the flush in flight.

mod flush;
mod split;

use std::sync::Arc;

use plumb_block::{Device, Time};

use self::flush::Flushing;
use self::split::Split;

/// Handling of flushes and FUA by the emulated kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Flushes {
    /// Handling as in Linux.
    #[default]
    AsLinux,
    /// Unchanged: the drive receives every flush and FUA.
    Raw,
}

/// Wraps `device`, whose queues use `time`, in the emulated kernel.
pub fn above(device: Arc<dyn Device>, time: &Time, flushes: Flushes) -> Arc<dyn Device> {
    let split: Arc<dyn Device> = Arc::new(Split::at_largest_transfer(device, time.clone()));
    match flushes {
        Flushes::AsLinux => Arc::new(Flushing::above(split, time.clone())),
        Flushes::Raw => split,
    }
}
