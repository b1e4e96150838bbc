//! What is asked of a check, and what it gives.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use plumb_block::{Bytes, Device, Nanos, StorageCounters, VirtualClock};
use plumb_measure::Out;
use plumb_path::WritePath;
use plumb_report::RunRecording;

use crate::ended::Ended;

/// What is asked of a check. Time and randomness come in here.
#[derive(Debug, Clone)]
pub struct Request {
    /// What to check.
    pub subject: Subject,
    /// How long to measure.
    pub length: Nanos,
    /// The size of the test file, or of the part of the drive, if it is asked for.
    pub size: Option<Bytes>,
    /// The seed of all random choices.
    pub seed: u64,
    /// Where to put the recording.
    pub out: Out,
    /// The command line, for the recording.
    pub argv: Vec<String>,
    /// The time of day, RFC 3339 in UTC, for the recording.
    pub started_at: String,
}

/// What is checked.
#[derive(Debug, Clone)]
pub enum Subject {
    /// A directory, or a file in it.
    Directory(PathBuf),
    /// A simulated drive, all of it the check's own.
    Drive(Box<Drive>),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => path.display().fmt(f),
            Self::Drive(drive) => f.write_str(&drive.name),
        }
    }
}

/// A simulated drive with a clock of its own.
#[derive(Clone)]
pub struct Drive {
    /// As it was typed, which is its name in its counters and in `path`.
    pub name: String,
    /// The drive.
    pub device: Arc<dyn Device>,
    /// What reaches it.
    pub counters: Arc<dyn StorageCounters>,
    /// The way to it.
    pub path: WritePath,
    /// Its clock.
    pub clock: Arc<VirtualClock>,
}

impl fmt::Debug for Drive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drive").field("name", &self.name).field("path", &self.path).finish_non_exhaustive()
    }
}

/// What a check gave.
#[derive(Debug)]
pub struct Checked {
    /// All that was learnt, with distributions and time series.
    pub recording: RunRecording,
    /// How it ended.
    pub ended: Ended,
    /// Where the recording and report.html are; `None` if nothing was kept.
    pub run_directory: Option<PathBuf>,
}
