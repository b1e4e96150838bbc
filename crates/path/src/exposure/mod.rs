//! Acknowledged data that a power cut would lose at one moment: in memory, journals, caches and drives.
//!
//! ```text
//! survey ── plan: what to read of each layer ──► ExposurePlan ── read: now ──► Exposure
//!                                                   └────── watch: again and again, with ages and bounds
//! ```
//!
//! Invariants:
//! 1. `bytes_max` of a part is never below the actual loss. If there is no upper bound, it is null and has a
//!    reason.
//! 2. Parts are read from the top down, so data that moves down meanwhile is counted twice rather than not at
//!    all.
//! 3. Nothing is queried that could wait for a server: a network file system is measured by the kernel's own
//!    count.

mod kernel;
pub(crate) mod plan;
mod read;
pub(crate) mod settled;
mod watch;

pub use plan::ExposurePlan;
pub use watch::{ExposureWatch, ObservedExposure};

use plumb_linux::open_files::{self, FileInterest, OpenFiles, UnwrittenFile};
use serde::{Deserialize, Serialize};

/// Acknowledged data that a power cut would lose.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Exposure {
    /// Upper bound of the lost bytes, summed over the parts that have one.
    pub bytes_max: u64,
    /// Bytes that are known to be only in volatile memory.
    pub bytes_min: u64,
    /// True if every part has an upper bound, so that `bytes_max` bounds the total loss.
    pub complete: bool,
    /// Parts of the path from the top down.
    pub parts: Vec<ExposedPart>,
    /// Processes that have files with exposed data open for writing, those with most first; empty if unknown.
    pub holders: Vec<Holder>,
    /// Reason why `holders` is incomplete; null if it is complete.
    pub holders_unknown_because: Option<String>,
    /// Upper bound of the bytes in memory of files that no process has open for writing, and of the file
    /// system's own structures; null if unknown.
    pub unheld_bytes_max: Option<u64>,
    /// Reason why `unheld_bytes_max` is null.
    pub unheld_bytes_max_unknown_because: Option<String>,
}

/// A part of the data that a power cut would lose.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ExposedPart {
    /// Name of the layer.
    pub layer: String,
    /// Kind of the part.
    pub kind: PartKind,
    /// Upper bound of the lost bytes; null if unknown.
    pub bytes_max: Option<u64>,
    /// Reason why `bytes_max` is null.
    pub bytes_max_unknown_because: Option<String>,
    /// Bytes that are known to be only here.
    pub bytes_min: u64,
    /// Bytes that are only here but survive a power cut; null if the part keeps nothing.
    pub kept_bytes: Option<u64>,
    /// Seconds for which every reading has found exposed data here, or the age that the cache reports.
    pub age_min: Option<f64>,
    /// Reason why `age_min` is null; itself null if the part exposes no data.
    pub age_min_unknown_because: Option<String>,
    /// Source of the figure and its meaning.
    pub because: String,
}

/// Kinds of part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartKind {
    /// Pages of the page cache that are dirty or under writeback.
    #[default]
    Memory,
    /// Pages of the file behind a loop device.
    LoopFile,
    /// Changes of names and sizes that the file system has not committed, and the data reachable only through
    /// these changes.
    Journal,
    /// Contents of a file system or disk in memory.
    Contents,
    /// Write-back cache on a device.
    Cache,
    /// Cache of a drive or a similar device.
    Drive,
}

/// Process that would lose data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Name of the process.
    pub process: String,
    /// Number of the process.
    pub pid: u32,
    /// Bytes in memory of the files that the process has open for writing.
    pub bytes: u64,
    /// Bytes of `bytes` in files that other processes have open too; they count once in the total.
    pub shared_bytes: u64,
    /// File with most of `bytes`.
    pub file: String,
}

/// Data that only a write-back cache of plumb holds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CacheShare {
    /// Bytes that are only in the log.
    pub bytes: u64,
    /// Lower bound of the age of the oldest such data, in seconds.
    pub oldest: Option<f64>,
}

/// Sources of state on this machine other than /proc and /sys.
pub trait Live {
    /// Returns the number of bytes of the simulated drive `name` that a power cut would lose.
    ///
    /// # Errors
    /// The reason why its server did not report it.
    fn drive(&self, name: &str) -> Result<u64, String>;

    /// Returns the data that only the cache `name` holds.
    ///
    /// # Errors
    /// The reason why its server did not report it.
    fn cache(&self, name: &str) -> Result<CacheShare, String>;

    /// Finds the files that processes have open for writing.
    fn open_files(&self, wanted: &FileInterest) -> OpenFiles {
        open_files::read(wanted)
    }

    /// Returns the amount of data of a file that its device does not have yet.
    ///
    /// # Errors
    /// The reason, for display.
    fn file(&self, path: &str) -> Result<UnwrittenFile, String> {
        open_files::file_at(path).map_err(|error| plumb_block::in_one_line(&error))
    }

    /// Returns the size of all files of a file system in memory; `None` if it is not accessible.
    fn used(&self, point: &str) -> Option<u64> {
        let space = plumb_linux::space::space_at(std::path::Path::new(point)).ok()?;
        Some(space.total.0.saturating_sub(space.free.0))
    }
}
