//! A trial from beginning to end.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::{Clock, Nanos, in_one_line};
use plumb_load::{Event, Observer};
use plumb_measure::{Out, RunDirectory};
use plumb_report::{RunDocument, RunRecording};
use plumb_targets::Permission;
use plumb_workload::{Replays, Scenario};

use crate::error::TrialError;
use crate::rounds::SpanRun;
use crate::session::Session;
use crate::targets::Targets;

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
    /// Opens the targets of the span for this turn alone, with this permission, and closes them after it. `None`: they are those
    /// that all such turns share, open from the first to the last.
    pub reopens: Option<Permission>,
}

/// Interim state of a run between two turns.
pub struct Interim<'a> {
    /// What the last turn measured; `None` before the first, and if it measured nothing.
    pub last: Option<&'a SpanRun>,
    /// Time since the first turn began, on the clock that the run goes by.
    pub elapsed: Nanos,
    session: &'a Session<'a>,
}

impl Interim<'_> {
    /// Makes the document of what is known until now, judged.
    pub fn document(&self) -> RunDocument {
        self.session.interim()
    }
}

/// Says which turn is next; `None` ends the run, and so does an error. No target is open meanwhile that is opened for turns alone.
pub type Course<'a> = dyn FnMut(&Interim<'_>) -> Result<Option<Turn>, TrialError> + 'a;

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

/// Runs a trial: each span once, in order.
///
/// # Errors
/// If nothing could be measured at all: a refusal, a workload that does not fit, a stop while files were made ready.
pub fn run(
    request: &Request,
    context: &Context<'_>,
    observer: &mut dyn Observer,
) -> Result<Trial, TrialError> {
    let mut turns = (0..request.scenario.spans.len()).map(|span| Turn { span, ..Turn::default() });
    run_turns(request, context, observer, &mut |_| Ok(turns.next()))
}

/// Runs a trial whose turns are said by `course`. Each turn is a span of the document.
///
/// # Errors
/// As [`run`].
pub fn run_turns(
    request: &Request,
    context: &Context<'_>,
    observer: &mut dyn Observer,
    course: &mut Course<'_>,
) -> Result<Trial, TrialError> {
    RunDirectory::check(&request.out)?;
    observer.on(&Event::Scenario(&request.scenario));
    let session = Session::begin(request, seed_of(&request.scenario), None);
    let mut turns = Turns {
        request,
        session,
        began: context.clock.now(),
        measured: Nanos::ZERO,
        left_behind: Vec::new(),
        trouble: None,
    };
    let mut shared = None;
    let ended = turns.run(&mut shared, context, observer, course);
    if let Some(targets) = &shared {
        turns.clear_up(targets);
    }
    let Turns { session, left_behind, trouble, .. } = turns;
    let trial = match ended {
        Ok(ended) => {
            session.remarks().for_each(|note| observer.note(note));
            session.finish(ended, context.time_of_day)
        }
        Err(error) => session.abandon().and(Err(error)),
    };
    drop(shared);
    match (trial, trouble) {
        (Ok(trial), None) => Ok(Trial { left_behind, ..trial }),
        // What was measured is none the worse for it.
        (Ok(trial), Some(error)) => Ok(Trial { left_behind, ..trial.but_failed(&error) }),
        (Err(error), None) => Err(error),
        (Err(error), Some(left)) => Err(error.and(&left)),
    }
}

/// A run, turn by turn.
struct Turns<'a> {
    request: &'a Request,
    session: Session<'a>,
    /// When the first turn began, on the clock that the run goes by.
    began: Nanos,
    /// What the turns took whose targets were opened for them: simulated drives have a clock of their own in each.
    measured: Nanos,
    left_behind: Vec<String>,
    /// Why something could not be removed.
    trouble: Option<TrialError>,
}

impl Turns<'_> {
    /// Runs turns until the course or one of them ends the run. `shared` are the targets of turns that do not open their own.
    fn run(
        &mut self,
        shared: &mut Option<Targets>,
        context: &Context<'_>,
        observer: &mut dyn Observer,
        course: &mut Course<'_>,
    ) -> Result<TrialEnded, TrialError> {
        loop {
            let now = shared.as_ref().map_or_else(|| context.clock.now(), |targets| targets.time.now());
            let elapsed = now.since(self.began).max(self.measured);
            let interim = Interim { last: self.session.last(), elapsed, session: &self.session };
            let turn = course(&interim);
            let ran = turn.and_then(|turn| match turn {
                None => Ok(ControlFlow::Break(self.session.ended())),
                Some(turn) => self.run_one(&turn, shared, context, observer),
            });
            match ran {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(ended)) => return Ok(ended),
                Err(error) if self.session.is_empty() => return Err(error),
                // What the turns before have measured is not lost.
                Err(TrialError::Interrupted) => return Ok(TrialEnded::Interrupted),
                Err(error) => return Ok(TrialEnded::Failed(in_one_line(&error))),
            }
        }
    }

    fn run_one(
        &mut self,
        turn: &Turn,
        shared: &mut Option<Targets>,
        context: &Context<'_>,
        observer: &mut dyn Observer,
    ) -> Result<ControlFlow<TrialEnded>, TrialError> {
        if let Some(permission) = &turn.reopens {
            let request = Request { permission: permission.clone(), ..self.request.clone() };
            let targets = self.open(&request, Some(turn.span), context, observer)?;
            let ran = self.run_on(turn, &targets, context, observer);
            self.clear_up(&targets);
            let took =
                self.session.last().map_or(Nanos::ZERO, |run| run.ran.result.warmup + run.ran.result.window);
            self.measured += took;
            return ran;
        }
        if shared.is_none() {
            let targets = self.open(self.request, None, context, observer)?;
            self.began = targets.time.now();
            *shared = Some(targets);
        }
        match shared {
            Some(targets) => self.run_on(turn, targets, context, observer),
            None => Ok(ControlFlow::Break(self.session.ended())),
        }
    }

    fn run_on(
        &mut self,
        turn: &Turn,
        targets: &Targets,
        context: &Context<'_>,
        observer: &mut dyn Observer,
    ) -> Result<ControlFlow<TrialEnded>, TrialError> {
        let clock = targets.time.clock();
        self.session.run_turn(turn, targets, &Context { clock: &clock, ..*context }, observer)
    }

    /// Opens targets, and tells what is to be told of them; begins the recording.
    fn open(
        &mut self,
        request: &Request,
        only: Option<usize>,
        context: &Context<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Targets, TrialError> {
        let mut targets = Targets::open(request, only, context, observer)?;
        targets.calibrate(&request.scenario)?;
        if self.session.is_empty() {
            request.notes.iter().for_each(|note| observer.note(note));
        }
        self.session.opened(&targets).iter().for_each(|note| observer.note(note));
        self.session.record()?;
        Ok(targets)
    }

    /// Removes what is to be removed. Keeps what else this run has made under a name, and why the first could not be removed.
    fn clear_up(&mut self, targets: &Targets) {
        for one in &targets.uses {
            one.opened.mark_as_left();
            let is_to_go = self.request.remove_after.contains(&one.name);
            let removed = match is_to_go.then(|| one.opened.remove_if_ours()) {
                Some(Err(error)) => {
                    self.trouble.get_or_insert(error.into());
                    true
                }
                Some(Ok(removed)) => removed,
                None => false,
            };
            let left = format!("{} ({})", one.opened.shown, one.opened.size);
            if one.opened.made && !removed && one.opened.has_name() && !self.left_behind.contains(&left) {
                self.left_behind.push(left);
            }
        }
    }
}

/// The seed of a scenario: that of its first job.
fn seed_of(scenario: &Scenario) -> u64 {
    let first = scenario.spans.first().and_then(|span| span.jobs.first());
    first.map_or(0, |job| job.workload.seed)
}
