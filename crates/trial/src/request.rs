//! Request for a trial: a scenario, and the order of its spans.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::{Clock, Nanos};
use plumb_measure::Out;
use plumb_targets::Permission;
use plumb_workload::{Replays, Scenario};

/// Request for a trial, including the sources of time and randomness.
#[derive(Debug, Clone)]
pub struct Request {
    /// Scenario to run.
    pub scenario: Scenario,
    /// Scenario in plumb's own language, for the recording.
    pub words: String,
    /// Name of the application profile of the scenario, as typed. Its limits are judged.
    pub profile: Option<String>,
    /// Replays of traces, for the jobs that stand for traces.
    pub replays: Replays,
    /// Permission to overwrite.
    pub permission: Permission,
    /// Targets to remove at the end, among the files that plumb has created.
    pub remove_after: Vec<String>,
    /// Notes for the user about the command line.
    pub notes: Vec<String>,
    /// Command: `load`, `diskspd`, ...
    pub command: String,
    /// Command line.
    pub argv: Vec<String>,
    /// Start of the run, RFC 3339 in UTC.
    pub started_at: String,
    /// Directory for the recording.
    pub out: Out,
}

/// Clock, stop flag and wall clock of a run.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Clock: the machine's before targets are open, then that of the targets.
    pub clock: &'a Arc<dyn Clock>,
    /// Flag to end the run early.
    pub stop: &'a AtomicBool,
    /// Returns the time of day, RFC 3339 in UTC.
    pub time_of_day: &'a dyn Fn() -> String,
}

/// Span of a scenario to run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScheduledSpan {
    /// Number of the span in the scenario.
    pub span: usize,
    /// Number of the round: spans of one round make the same random choices, and each round makes others.
    pub round: u64,
    /// Length of the warm-up; `None` for that of the span.
    pub warmup: Option<Nanos>,
    /// True for a block of a comparison: earlier writes are made durable first, so that the block does not
    /// pay for them.
    pub is_block: bool,
    /// True if the run continues when nothing completes in the span.
    pub may_be_empty: bool,
    /// Name of the span and results of the earlier ones, one per line, for display.
    pub standing: Vec<String>,
    /// Share of the run that is complete before the span, from 0 to 1, if known.
    pub done: Option<f64>,
    /// Note to display before the span.
    pub note: Option<String>,
    /// Permission to open the targets for this span alone, and to close them after it. `None`: all such spans
    /// share targets that stay open throughout.
    pub reopens: Option<Permission>,
}
