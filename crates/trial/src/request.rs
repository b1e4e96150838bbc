//! Request for a trial: a scenario, and the order in which its spans are run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::{Clock, Nanos};
use plumb_measure::Out;
use plumb_targets::Permission;
use plumb_workload::{Replays, Scenario};

/// Request for a trial. Time and randomness come in here.
#[derive(Debug, Clone)]
pub struct Request {
    /// Scenario to run.
    pub scenario: Scenario,
    /// Scenario in plumb's own words, for the recording.
    pub words: String,
    /// The application profile that the scenario is of, as typed: its limits are judged.
    pub profile: Option<String>,
    /// Replays of those jobs of the scenario that stand for traces.
    pub replays: Replays,
    /// Permission to overwrite.
    pub permission: Permission,
    /// Targets to remove at the end, of those files that plumb has made.
    pub remove_after: Vec<String>,
    /// Notes for the user, from what was typed.
    pub notes: Vec<String>,
    /// The command: `load`, `diskspd`, ...
    pub command: String,
    /// The command line.
    pub argv: Vec<String>,
    /// Start of the run, RFC 3339 in UTC.
    pub started_at: String,
    /// Directory for the recording.
    pub out: Out,
}

/// Clock, stop flag and wall clock of a run.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The clock; before targets are open the machine's, then the one that they go by.
    pub clock: &'a Arc<dyn Clock>,
    /// Becomes true when the run must end early.
    pub stop: &'a AtomicBool,
    /// The time of day, RFC 3339 in UTC.
    pub time_of_day: &'a dyn Fn() -> String,
}

/// Span of a scenario that is to be run, once or once more.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScheduledSpan {
    /// The number of the span in the scenario.
    pub span: usize,
    /// Spans of one round make the same random choices; each round draws others.
    pub round: u64,
    /// Length of the warm-up, if not as the span says.
    pub warmup: Option<Nanos>,
    /// True if it is one of many that are compared: what was written before it is made durable first, so
    /// that this one does not pay for it.
    pub is_block: bool,
    /// True if the run goes on when nothing completes in it.
    pub may_be_empty: bool,
    /// Name of the span and results of those before, a line each, for whoever watches.
    pub standing: Vec<String>,
    /// Share of the run that is done before it, from 0 to 1, if known.
    pub done: Option<f64>,
    /// Note for whoever watches, shown before the span.
    pub note: Option<String>,
    /// Permission with which the targets are opened for this span alone, and closed after it. `None`: all
    /// such spans share their targets, which are open from the first to the last.
    pub reopens: Option<Permission>,
}
