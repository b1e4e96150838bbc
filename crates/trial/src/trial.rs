//! A trial from beginning to end.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::{Clock, Nanos, in_one_line};
use plumb_measure::{Out, RunDirectory};
use plumb_report::{RunDocument, RunRecording};
use plumb_targets::Permission;
use plumb_workload::{Replays, Scenario};

use crate::error::TrialError;
use crate::rounds::SpanRun;
use crate::session::Session;
use crate::targets::Targets;
use crate::watcher::Watcher;

/// What a recording says until its run has ended.
pub const GOES_ON: &str =
    "the run had not ended when this was recorded: plumb was killed, or is still running";

/// What is asked of a trial. Time and randomness come in here.
#[derive(Debug, Clone)]
pub struct Request {
    /// What is to be run.
    pub scenario: Scenario,
    /// The same in plumb's own words, for the recording.
    pub words: String,
    /// The application profile that the scenario is of, as typed: its limits are judged.
    pub profile: Option<String>,
    /// What the jobs of the scenario replay that stand for traces.
    pub replays: Replays,
    /// What may be overwritten.
    pub permission: Permission,
    /// Targets to remove at the end, of those files that plumb has made.
    pub remove_after: Vec<String>,
    /// What the user should be told, from what was typed.
    pub notes: Vec<String>,
    /// The command: `load`, `diskspd`, ...
    pub command: String,
    /// The command line.
    pub argv: Vec<String>,
    /// When it began, RFC 3339 in UTC.
    pub started_at: String,
    /// Where to put the recording.
    pub out: Out,
}

/// A trial that was run.
#[derive(Debug)]
pub struct Trial {
    /// The spans that were run, in order.
    pub spans: Vec<SpanRun>,
    /// What reports are made from.
    pub recording: RunRecording,
    /// How it ended; see `failed` of the document too.
    pub ended: TrialEnded,
    /// Where the recording is; `None` if it could not be kept.
    pub run_directory: Option<PathBuf>,
    /// The files that this run has made and that stay, with their sizes.
    pub left_behind: Vec<String>,
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrialEnded {
    /// As the workload says.
    Complete,
    /// It was told to stop.
    Interrupted,
    /// Something could not be measured there; the reason.
    NotMeasured(String),
    /// It ran to its end, but nothing completed in the window.
    Empty,
    /// It could not be recorded, although it was measured.
    NotRecorded(String),
    /// Something failed.
    Failed(String),
}

/// What a run goes by, and what ends it.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The clock; before targets are open the machine's, then the one that they go by.
    pub clock: &'a Arc<dyn Clock>,
    /// Becomes true when the run shall end early.
    pub stop: &'a AtomicBool,
    /// The time of day, RFC 3339 in UTC.
    pub time_of_day: &'a dyn Fn() -> String,
}

/// One turn of a span.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Turn {
    /// The number of the span in the scenario.
    pub span: usize,
    /// Turns of one round make the same random choices; each round draws others.
    pub round: u64,
    /// How long it runs before it is measured, if not as the span says.
    pub warmup: Option<Nanos>,
    /// Whether it is one of many that are compared: what earlier turns have written is made durable first, so that this one does not
    /// pay for it; and the run goes on if nothing completes in it.
    pub is_block: bool,
    /// Which it is, and what earlier turns have shown, a line each, for whoever watches.
    pub standing: Vec<String>,
    /// How much of all turns is done before it, from 0 to 1, if that is known.
    pub done: Option<f64>,
    /// What whoever watches is told before it.
    pub note: Option<String>,
}

/// Says which turn is next, from what was measured until now and the time since the targets are open; `None` ends the run.
pub type Course<'a> = dyn FnMut(&RunDocument, Nanos) -> Option<Turn> + 'a;

/// Each of `spans` spans once, in order.
pub(crate) fn each_once(spans: usize) -> impl FnMut(&RunDocument, Nanos) -> Option<Turn> {
    let mut turns = (0..spans).map(|span| Turn { span, ..Turn::default() });
    move |_, _| turns.next()
}

impl Trial {
    /// The same, but something failed when it was over. Why it ended before stands first.
    fn but_failed(mut self, error: &TrialError) -> Self {
        let why = in_one_line(error);
        let document = &mut self.recording.document;
        document.failed = true;
        document.notes.push(why.clone());
        let earlier = self.ended.reason().map(|earlier| format!("{earlier}; "));
        self.ended = TrialEnded::Failed(earlier.unwrap_or_default() + &why);
        self
    }
}

impl TrialEnded {
    /// The same, but it could not be recorded.
    #[must_use]
    pub fn unrecorded(self, error: &plumb_measure::Error) -> Self {
        match (self, in_one_line(error)) {
            (Self::Complete, why) if error.is_for_want_of_space() => Self::NotMeasured(why),
            (Self::Complete, why) => Self::NotRecorded(why),
            (ended, _) => ended,
        }
    }

    /// Why it is not complete; `None` if it is.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Complete => None,
            Self::Interrupted => Some("interrupted by a signal".to_owned()),
            Self::Empty => Some("no operation completed while it was measured".to_owned()),
            Self::NotMeasured(why) | Self::NotRecorded(why) | Self::Failed(why) => Some(why.clone()),
        }
    }
}

/// Runs a trial.
///
/// # Errors
/// If nothing could be measured at all: a refusal, a workload that does not fit, a stop while files were made ready.
pub fn run(request: &Request, context: &Context<'_>, watcher: &mut dyn Watcher) -> Result<Trial, TrialError> {
    run_turns(request, context, watcher, &mut each_once(request.scenario.spans.len()))
}

/// The same, but which span runs when is said by `course`. Each turn is a span of the document.
///
/// # Errors
/// As [`run`].
pub fn run_turns(
    request: &Request,
    context: &Context<'_>,
    watcher: &mut dyn Watcher,
    course: &mut Course<'_>,
) -> Result<Trial, TrialError> {
    RunDirectory::check(&request.out)?;
    watcher.begins(&request.scenario);
    let mut targets = Targets::open(request, context, watcher)?;
    targets.calibrate(&request.scenario)?;
    let trial = run_on(request, &targets, context, watcher, course);
    let (left_behind, failed) = clear_up(request, &targets);
    match (trial, failed) {
        (Ok(trial), None) => Ok(Trial { left_behind, ..trial }),
        // What was measured is none the worse for it.
        (Ok(trial), Some(error)) => Ok(Trial { left_behind, ..trial.but_failed(&error) }),
        (Err(error), None) => Err(error),
        (Err(error), Some(left)) => Err(error.and(&left)),
    }
}

/// Removes what is to be removed. What else this run has made under a name, and why the first could not be removed.
fn clear_up(request: &Request, targets: &Targets) -> (Vec<String>, Option<TrialError>) {
    let (mut left_behind, mut failed) = (Vec::new(), None);
    for one in &targets.uses {
        one.opened.mark_as_left();
        let removed = match request.remove_after.contains(&one.name).then(|| one.opened.remove_if_ours()) {
            Some(Err(error)) => {
                failed.get_or_insert(error.into());
                true
            }
            Some(Ok(removed)) => removed,
            None => false,
        };
        if one.opened.made && !removed && one.opened.has_name() {
            left_behind.push(format!("{} ({})", one.opened.shown, one.opened.size));
        }
    }
    (left_behind, failed)
}

/// Runs a trial on targets that are open.
fn run_on(
    request: &Request,
    targets: &Targets,
    context: &Context<'_>,
    watcher: &mut dyn Watcher,
    course: &mut Course<'_>,
) -> Result<Trial, TrialError> {
    for note in request.notes.iter().chain(targets.notes()) {
        watcher.note(note);
    }
    let clock = targets.time.clock();
    let context = &Context { clock: &clock, ..*context };
    let mut session = Session::begin(request, seed_of(&request.scenario), None);
    session.record(None)?;
    let ended = match session.run_spans(targets, context, watcher, course) {
        Ok(ended) => ended,
        Err(error) => {
            session.abandon()?;
            return Err(error);
        }
    };
    session.said_of(targets).iter().for_each(|note| watcher.note(note));
    session.finish(Some(targets), ended, context.time_of_day)
}

/// The seed of a scenario: that of its first job.
fn seed_of(scenario: &Scenario) -> u64 {
    let first = scenario.spans.first().and_then(|span| span.jobs.first());
    first.map_or(0, |job| job.workload.seed)
}
