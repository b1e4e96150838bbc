//! Acknowledged data that a power cut would take at one moment: from memory, from journals, from caches and
//! drives.
//!
//! ```text
//! survey ── plan: what to read of each layer ──► ExposurePlan ── read: now ──► Exposure
//!                                                   └────── watch: again and again, with ages and bounds
//! ```
//!
//! Invariants:
//! 1. `bytes_max` of a part is never below what a cut takes from it; where nothing bounds that it is null,
//!    with the reason.
//! 2. Parts are read from the top down, so data that goes down meanwhile is counted twice rather than not at
//!    all.
//! 3. Nothing that could wait for a server is asked: a file system of a server has the kernel's own count.

mod kernel;
pub(crate) mod plan;
mod read;
pub(crate) mod settled;
mod watch;

pub use plan::ExposurePlan;
pub use watch::{ExposureWatch, ObservedExposure};

use plumb_linux::open_files::{self, FileInterest, OpenFiles, UnwrittenFile};
use serde::{Deserialize, Serialize};

/// Acknowledged data that a power cut would take.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Exposure {
    /// Bytes that a cut takes at most, of the parts of which that is known.
    pub bytes_max: u64,
    /// Bytes that are known to be in memory alone.
    pub bytes_min: u64,
    /// True if `bytes_max` is known of every part, so that the sum bounds the loss.
    pub complete: bool,
    /// The parts, from the top of the path down.
    pub parts: Vec<ExposedPart>,
    /// Processes that have files with such data open for writing, those with most first; empty where they are
    /// not known.
    pub holders: Vec<Holder>,
    /// Reason why not all of them are known; null if they are.
    pub holders_unknown_because: Option<String>,
    /// Bytes in memory of files that no process has open for writing, and of the file system's own
    /// structures, at most; null if that is not known.
    pub unheld_bytes_max: Option<u64>,
    /// Reason; null if it is known.
    pub unheld_bytes_max_unknown_because: Option<String>,
}

/// Part of what a power cut would take.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ExposedPart {
    /// Name of the layer.
    pub layer: String,
    /// Kind of the part.
    pub kind: PartKind,
    /// Bytes that a cut takes at most.
    pub bytes_max: Option<u64>,
    /// Reason why that is not known; null if it is.
    pub bytes_max_unknown_because: Option<String>,
    /// Bytes that are known to be there alone.
    pub bytes_min: u64,
    /// Bytes that are here alone and survive a cut; null where the part keeps nothing.
    pub kept_bytes: Option<u64>,
    /// Seconds for which every reading has found such data here, or those that the cache counts.
    pub age_min: Option<f64>,
    /// Reason why that is not known; null if it is, or if nothing is there.
    pub age_min_unknown_because: Option<String>,
    /// Source of the figure, and its meaning.
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
    /// Changes of names and sizes that the file system has not committed, with the data that only they make
    /// reachable.
    Journal,
    /// Contents of a file system or disk that is memory.
    Contents,
    /// Write-back cache on a device.
    Cache,
    /// Cache of a drive, or of what stands for one.
    Drive,
}

/// Process that would lose data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Name of the process.
    pub process: String,
    /// Number of the process.
    pub pid: u32,
    /// Bytes in memory of the files that it has open for writing.
    pub bytes: u64,
    /// Bytes of those that other processes have open too: they count once in the total.
    pub shared_bytes: u64,
    /// File with most of them.
    pub file: String,
}

/// Data that a write-back cache of plumb alone holds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CacheShare {
    /// Bytes that only the log holds.
    pub bytes: u64,
    /// Seconds for which the oldest have been there, at least.
    pub oldest: Option<f64>,
}

/// State of this machine that is not in /proc or /sys.
pub trait Live {
    /// Returns the bytes that a power cut of the simulated drive `name` puts at risk.
    ///
    /// # Errors
    /// The reason why its server did not say.
    fn drive(&self, name: &str) -> Result<u64, String>;

    /// Returns what the cache `name` holds.
    ///
    /// # Errors
    /// The reason why its server did not say.
    fn cache(&self, name: &str) -> Result<CacheShare, String>;

    /// Finds the files that processes have open for writing.
    fn open_files(&self, wanted: &FileInterest) -> OpenFiles {
        open_files::read(wanted)
    }

    /// Counts what of a file its device has not got yet.
    ///
    /// # Errors
    /// The reason in words.
    fn file(&self, path: &str) -> Result<UnwrittenFile, String> {
        open_files::file_at(path).map_err(|error| plumb_block::in_one_line(&error))
    }

    /// Returns the bytes that the files of a file system in memory take; `None` if it cannot be looked at.
    fn used(&self, point: &str) -> Option<u64> {
        let space = plumb_linux::space::space_at(std::path::Path::new(point)).ok()?;
        Some(space.total.0.saturating_sub(space.free.0))
    }
}
