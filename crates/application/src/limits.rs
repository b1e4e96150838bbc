//! Directory in which a profile runs, and the limits of its length.

use std::path::{Path, PathBuf};

use plumb_block::{Bytes, FileStore, Nanos};
use plumb_workload::Invalid;
use serde::Serialize;

/// Opens a directory as a store.
pub type OpenStore<'a> = &'a dyn Fn(&Path) -> plumb_block::Result<Box<dyn FileStore>>;

/// Where a profile over files runs: in a directory of its own beneath this one.
#[derive(Clone)]
pub struct Directory<'a> {
    /// Path of the directory.
    pub path: PathBuf,
    /// How much the file system has free, if that is known: less is prepared where it is short.
    pub free: Option<Bytes>,
    /// How the directory that is made there is opened.
    pub open: OpenStore<'a>,
}

/// Time that a profile runs, and other limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Limits {
    /// No transaction starts after this time; `None` with no count either: as long as the profile says.
    pub duration: Option<Nanos>,
    /// Number of transactions, over all threads together; in a block workload the number of operations of
    /// each job.
    pub count: Option<u64>,
    /// Number of threads, rather than as many as the profile says.
    pub threads: Option<u32>,
    /// Part of the files to use, above 0, at most 1; `None`: all, or as much as there is room for.
    pub scale: Option<f64>,
    /// Seed from which all sizes, places and choices follow.
    pub seed: u64,
}

impl Limits {
    /// The most threads that can be asked for.
    pub const THREADS_MAX: u32 = 1024;

    /// Checks each limit.
    ///
    /// # Errors
    /// The first that makes no sense.
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
