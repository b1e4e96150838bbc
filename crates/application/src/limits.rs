//! Directory in which a profile runs, and the limits of a run.

use std::path::{Path, PathBuf};

use plumb_block::{Bytes, FileStore, Nanos};
use plumb_workload::Invalid;
use serde::Serialize;

/// Function that opens a directory as a store.
pub type OpenStore<'a> = &'a dyn Fn(&Path) -> plumb_block::Result<Box<dyn FileStore>>;

/// Place of a run: the profile works in a new directory below this one.
#[derive(Clone)]
pub struct Directory<'a> {
    /// Path of the directory.
    pub path: PathBuf,
    /// Free space of the file system, if known. If it is short, the files are scaled down.
    pub free: Option<Bytes>,
    /// Function that opens the new directory.
    pub open: OpenStore<'a>,
}

/// Limits of a run: its length and size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Limits {
    /// Time after which no transaction starts; if this and `count` are `None`, the profile's own limit
    /// applies.
    pub duration: Option<Nanos>,
    /// Number of transactions of all threads together; for a block workload, the number of operations of each
    /// job.
    pub count: Option<u64>,
    /// Number of threads; `None`: that of the profile.
    pub threads: Option<u32>,
    /// Share of the files to use, above 0 and at most 1; `None`: all, or as much as there is space for.
    pub scale: Option<f64>,
    /// Seed of all sizes, positions and choices.
    pub seed: u64,
}

impl Limits {
    /// Largest number of threads.
    pub const THREADS_MAX: u32 = 1024;

    /// Checks each limit.
    ///
    /// # Errors
    /// Returns the first invalid limit.
    pub fn validate(&self) -> Result<(), Invalid> {
        if self.duration == Some(Nanos::ZERO) {
            return Err(Invalid::new("duration", Nanos::ZERO, "a time above zero"));
        }
        if self.count == Some(0) {
            return Err(Invalid::new("count", 0, "at least 1"));
        }
        if let Some(threads) = self.threads.filter(|threads| !(1..=Self::THREADS_MAX).contains(threads)) {
            return Err(Invalid::new("threads", threads, "1 to 1024"));
        }
        if let Some(scale) = self.scale.filter(|scale| !(*scale > 0.0 && *scale <= 1.0)) {
            return Err(Invalid::new("scale", scale, "above 0, at most 1"));
        }
        Ok(())
    }
}
