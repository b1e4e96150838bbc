//! Meaning of a fio command line: the scenario, and how it is to be reported.

use std::ops::Range;

use plumb_block::Nanos;
use plumb_workload::LatencyTarget;

use crate::Meaning;

/// A fio command line, understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    /// Scenario to run, and notes for the user.
    pub meaning: Meaning,
    /// How the result is to be printed.
    pub output: Output,
    /// How each section of the job files is to be reported, in order.
    pub reported: Vec<ReportedJob>,
    /// The options of the global sections, as typed, without those that stand alone.
    pub global_options: Vec<(String, String)>,
    /// Options of the global sections as arguments: `--bs=4k`.
    pub global_command: Vec<String>,
    /// Files to remove when all is over (`unlink=1`): only those that the run itself made may be.
    pub remove_after: Vec<String>,
}

/// How the result is to be printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Output formats, one after the other.
    pub formats: Vec<Format>,
    /// Into which file; `None`: standard output.
    pub file: Option<String>,
    /// Stop after parsing.
    pub parse_only: bool,
    /// Print the [command line](super::command) that job files stand for, and stop.
    pub show_command: bool,
    /// True if progress is shown; `None`: it is where a terminal looks at it.
    pub progress: Option<bool>,
}

/// A form of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text for people.
    Normal,
    /// JSON.
    Json,
    /// JSON with all bins of the histograms.
    JsonPlus,
}

/// How a section of a job file is to be reported.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReportedJob {
    /// The section.
    pub name: String,
    /// `description`.
    pub description: Option<String>,
    /// Number of the job's span.
    pub span: usize,
    /// Number of the job's reporting group.
    pub group: u32,
    /// Jobs of the section in its span: one for all clones, or one for each.
    pub jobs: Range<usize>,
    /// Options of the section as typed, without the global ones and those that stand alone.
    pub options: Vec<(String, String)>,
    /// Settings that stood alone, or all, in the form of a command line: `--name=x --rw=read`.
    pub command: Vec<String>,
    /// All clones, and all jobs of the group that say the same, as one (`group_reporting`).
    pub grouped: bool,
    /// The kind of access as typed: `randrw`.
    pub rw: String,
    /// The engine as typed.
    pub engine: String,
    /// The percentiles to print.
    pub percentiles: Vec<f64>,
    /// Print those of completion latencies.
    pub clat_percentiles: bool,
    /// Print those of total latencies.
    pub lat_percentiles: bool,
    /// Window over which bandwidth is averaged for its extremes.
    pub bandwidth_window: Nanos,
    /// Window over which rates of operations are averaged for their extremes.
    pub iops_window: Nanos,
    /// The latency to keep, if the depth is looked for that keeps it.
    pub latency_target: Option<LatencyTarget>,
    /// How long each depth is tried, if that was said.
    pub latency_window: Nanos,
    /// The steady state criterion as typed, and over which time.
    pub steady: Option<(String, Nanos)>,
    /// Failures are counted rather than final.
    pub continue_on_error: bool,
    /// Logs to write.
    pub logs: Logs,
}

/// The logs of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Logs {
    /// The kinds, each with the start of the file's name.
    pub files: Vec<(LogKind, String)>,
    /// One line for so much time.
    pub interval: Nanos,
    /// Lines hold the longest latency of their interval rather than the mean.
    pub maximum: bool,
    /// Each clone has files of its own.
    pub per_job: bool,
    /// Times are those since 1970.
    pub unix_epoch: bool,
}

/// Quantity that a log shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogKind {
    /// KiB per second.
    Bandwidth,
    /// Nanoseconds.
    Latency,
    /// Operations per second.
    Iops,
}
