//! Translation of a fio command line: the scenario, and its output options.

use std::ops::Range;

use plumb_block::Nanos;
use plumb_workload::LatencyTarget;

use crate::Meaning;

/// A translated fio command line.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    /// Scenario to run, with notes for the user.
    pub meaning: Meaning,
    /// Output options.
    pub output: Output,
    /// Reports of the sections, in order.
    pub reported: Vec<ReportedJob>,
    /// Options of the global sections as typed, without those that lack a value.
    pub global_options: Vec<(String, String)>,
    /// Options of the global sections as arguments: `--bs=4k`.
    pub global_command: Vec<String>,
    /// Files to remove at the end (`unlink=1`). Only files created by the run may be removed.
    pub remove_after: Vec<String>,
}

/// Output options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Output formats in order.
    pub formats: Vec<Format>,
    /// Output file; `None` for standard output.
    pub file: Option<String>,
    /// Stop after parsing.
    pub parse_only: bool,
    /// Print the [command line](super::command) equivalent to the job files, and stop.
    pub show_command: bool,
    /// Show progress or not; `None` to show it on a terminal.
    pub progress: Option<bool>,
}

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text for readers.
    Normal,
    /// JSON.
    Json,
    /// JSON with all bins of the histograms.
    JsonPlus,
}

/// Report of a section.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReportedJob {
    /// Name of the section.
    pub name: String,
    /// Value of `description`.
    pub description: Option<String>,
    /// Index of the section's span.
    pub span: usize,
    /// Number of the reporting group.
    pub group: u32,
    /// Indices of the section's jobs in its span: one for all clones, or one for each.
    pub jobs: Range<usize>,
    /// Options of the section as typed, without global ones and those that lack a value.
    pub options: Vec<(String, String)>,
    /// Options of the section as arguments: `--name=x --rw=read`.
    pub command: Vec<String>,
    /// Combine all clones, and all such jobs of the group (`group_reporting`).
    pub grouped: bool,
    /// Kind of access as typed, such as `randrw`.
    pub rw: String,
    /// Engine as typed.
    pub engine: String,
    /// Percentiles to print, in percent.
    pub percentiles: Vec<f64>,
    /// Print percentiles of completion latencies.
    pub clat_percentiles: bool,
    /// Print percentiles of total latencies.
    pub lat_percentiles: bool,
    /// Averaging window of the bandwidth.
    pub bandwidth_window: Nanos,
    /// Averaging window of operations per second.
    pub iops_window: Nanos,
    /// Latency target of the search for a depth, if any.
    pub latency_target: Option<LatencyTarget>,
    /// Duration of the trial of each depth; 0 if not given.
    pub latency_window: Nanos,
    /// Steady-state criterion as typed, with its duration.
    pub steady: Option<(String, Nanos)>,
    /// Count failures instead of ending the run.
    pub continue_on_error: bool,
    /// Logs to write.
    pub logs: Logs,
}

/// Logs of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Logs {
    /// Kinds of logs, each with the prefix of its file name.
    pub files: Vec<(LogKind, String)>,
    /// Time covered by a line.
    pub interval: Nanos,
    /// Lines contain the maximum latency of their interval instead of the mean.
    pub maximum: bool,
    /// Write separate files for each clone.
    pub per_job: bool,
    /// Times are relative to 1970 instead of the start.
    pub unix_epoch: bool,
}

/// Quantity of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogKind {
    /// Bandwidth in KiB/s.
    Bandwidth,
    /// Latency in nanoseconds.
    Latency,
    /// Operations per second.
    Iops,
}
