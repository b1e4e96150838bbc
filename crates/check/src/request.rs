//! What is asked of a check, and what it gives.

use std::path::PathBuf;

use plumb_block::{Bytes, Nanos};
use plumb_measure::Out;
use plumb_report::CheckRecording;

use crate::ended::Ended;

/// What is asked of a check. Time and randomness come in here.
#[derive(Debug, Clone)]
pub struct Request {
    /// The directory to check, or a file in it.
    pub target: PathBuf,
    /// How long to measure.
    pub length: Nanos,
    /// The size of the test file, if it is asked for.
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

/// What a check gave.
#[derive(Debug)]
pub struct Checked {
    /// All that was learnt, with distributions and time series.
    pub recording: CheckRecording,
    /// How it ended.
    pub ended: Ended,
    /// Where the recording and report.html are; `None` if nothing was kept.
    pub run_directory: Option<PathBuf>,
}
