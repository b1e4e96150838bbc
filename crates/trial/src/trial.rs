//! Runner of a trial: the loop that runs the spans of loads, checks and comparisons.

use std::ops::ControlFlow;

use plumb_block::{Clock as _, Nanos};
use plumb_load::{Event, Observer};
use plumb_measure::RunDirectory;
use plumb_report::RunDocument;
use plumb_targets::OpenedTarget;

use crate::error::TrialError;
use crate::outcome::{Trial, TrialEnded};
use crate::request::{Context, Request, ScheduledSpan};
use crate::session::Session;
use crate::span_run::SpanRun;
use crate::targets::Targets;

/// State of a run between two spans.
pub struct Interim<'a> {
    /// Measurements of the last span; `None` before the first, and if it measured nothing.
    pub last: Option<&'a SpanRun>,
    /// Time since the first span began, on the clock of the run.
    pub elapsed: Nanos,
    session: &'a Session<'a>,
}

impl Interim<'_> {
    /// Returns the judged document of the results so far.
    pub fn document(&self) -> RunDocument {
        self.session.interim()
    }
}

/// Returns the next span to run. `None` ends the run, and so does an error. When it is called, targets opened
/// for a single span are closed.
pub type SpanSchedule<'a> = dyn FnMut(&Interim<'_>) -> Result<Option<ScheduledSpan>, TrialError> + 'a;

/// Runs a trial: each span once, in order.
///
/// # Errors
/// If nothing could be measured at all: a refusal, a workload that does not fit, or a stop while files were
/// prepared.
pub fn run(
    request: &Request,
    context: &Context<'_>,
    observer: &mut dyn Observer,
) -> Result<Trial, TrialError> {
    let numbers = 0..request.scenario.spans.len();
    let mut spans = numbers.map(|span| ScheduledSpan { span, ..ScheduledSpan::default() });
    run_scheduled(request, context, observer, &mut |_| Ok(spans.next()))
}

/// Runs a trial whose spans are chosen by `schedule`. Each becomes a span of the document.
///
/// # Errors
/// Those of [`run`].
pub fn run_scheduled(
    request: &Request,
    context: &Context<'_>,
    observer: &mut dyn Observer,
    schedule: &mut SpanSchedule<'_>,
) -> Result<Trial, TrialError> {
    RunDirectory::check(&request.out)?;
    observer.on(&Event::Scenario(&request.scenario));
    let session = Session::begin(request, request.scenario.seed(), None);
    run_session(request, session, context, observer, schedule)
}

/// Runs the spans of a session.
///
/// # Errors
/// Those of [`run`]; for a check only if the recording cannot be completed.
pub(crate) fn run_session(
    request: &Request,
    session: Session<'_>,
    context: &Context<'_>,
    observer: &mut dyn Observer,
    schedule: &mut SpanSchedule<'_>,
) -> Result<Trial, TrialError> {
    let mut runner = TrialRunner {
        request,
        session,
        began: context.clock.now(),
        measured: Nanos::ZERO,
        left_behind: Vec::new(),
        trouble: None,
    };
    let mut shared = None;
    let ended = runner.run(&mut shared, context, observer, schedule);
    if let Some(targets) = &shared {
        runner.clear_up(targets);
    }
    let TrialRunner { session, left_behind, trouble, .. } = runner;
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
        // A failed cleanup does not affect the measurements.
        (Ok(trial), Some(error)) => Ok(Trial { left_behind, ..trial.but_failed(&error) }),
        (Err(error), None) => Err(error),
        (Err(error), Some(left)) => Err(error.and(&left)),
    }
}

/// Runner of a trial, span by span.
struct TrialRunner<'a> {
    request: &'a Request,
    session: Session<'a>,
    /// Beginning of the first span, on the clock of the run.
    began: Nanos,
    /// Time of the spans whose targets were opened for them alone: simulated drives have a new clock in each.
    measured: Nanos,
    left_behind: Vec<String>,
    /// First failure to remove something.
    trouble: Option<TrialError>,
}

impl TrialRunner<'_> {
    /// Runs spans until the schedule or one of them ends the run. `shared` are the targets of spans that do
    /// not open their own.
    fn run(
        &mut self,
        shared: &mut Option<Targets>,
        context: &Context<'_>,
        observer: &mut dyn Observer,
        schedule: &mut SpanSchedule<'_>,
    ) -> Result<TrialEnded, TrialError> {
        loop {
            let now = shared.as_ref().map_or_else(|| context.clock.now(), |targets| targets.time.now());
            let elapsed = now.since(self.began).max(self.measured);
            let interim = Interim { last: self.session.last(), elapsed, session: &self.session };
            let scheduled = schedule(&interim);
            let ran = scheduled.and_then(|scheduled| match scheduled {
                None => Ok(ControlFlow::Break(TrialEnded::Complete)),
                Some(scheduled) => self.run_one(&scheduled, shared, context, observer),
            });
            match ran {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(ended)) => return Ok(ended),
                Err(error) => return self.session.ended_by_error(error),
            }
        }
    }

    fn run_one(
        &mut self,
        scheduled: &ScheduledSpan,
        shared: &mut Option<Targets>,
        context: &Context<'_>,
        observer: &mut dyn Observer,
    ) -> Result<ControlFlow<TrialEnded>, TrialError> {
        if let Some(permission) = &scheduled.reopens {
            let request = Request { permission: permission.clone(), ..self.request.clone() };
            let targets = self.open(&request, Some(scheduled.span), context, observer)?;
            let ran = self.run_on(scheduled, &targets, context, observer);
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
            Some(targets) => self.run_on(scheduled, targets, context, observer),
            None => Ok(ControlFlow::Break(TrialEnded::Complete)),
        }
    }

    fn run_on(
        &mut self,
        scheduled: &ScheduledSpan,
        targets: &Targets,
        context: &Context<'_>,
        observer: &mut dyn Observer,
    ) -> Result<ControlFlow<TrialEnded>, TrialError> {
        let clock = targets.time.clock();
        self.session.run_scheduled(scheduled, targets, &Context { clock: &clock, ..*context }, observer)
    }

    /// Opens targets, reports their notes, and begins the recording.
    fn open(
        &mut self,
        request: &Request,
        only: Option<usize>,
        context: &Context<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Targets, TrialError> {
        let mut targets = match self.session.is_check() {
            true => Targets::open_supported(request, context, observer)?,
            false => Targets::open(request, only, context, observer)?,
        };
        if self.session.is_empty() {
            request.notes.iter().for_each(|note| observer.note(note));
        }
        self.session.opened(&targets).iter().for_each(|note| observer.note(note));
        self.session.record()?;
        self.session.calibrate(&mut targets)?;
        Ok(targets)
    }

    /// Removes temporary files. Notes the other named files that this run has created, and the first failure
    /// to remove one.
    fn clear_up(&mut self, targets: &Targets) {
        for one in &targets.job_targets {
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
            let is_changed = is_to_go && one.opened.ours && one.opened.is_at_its_name();
            let stays = (one.opened.made || is_changed) && !removed && one.opened.has_name();
            let left = stays.then(|| left_behind(&one.opened, is_to_go)).flatten();
            if let Some(left) = left.filter(|left| !self.left_behind.contains(left)) {
                self.left_behind.push(left);
            }
        }
    }
}

/// Returns a sentence about a file that the run has created, or should have removed, and that remains. A file
/// that others have removed or replaced is mentioned only if it `is_to_go`.
fn left_behind(opened: &OpenedTarget, is_to_go: bool) -> Option<String> {
    let (shown, size) = (&opened.shown, opened.size);
    match (opened.is_at_its_name(), is_to_go) {
        (true, true) => Some(format!(
            "{shown} stays: another program gave it another length than {} bytes meanwhile, so --remove-after did \
             not remove it",
            size.0
        )),
        (true, false) => Some(format!("{shown} ({size}) was made and stays; --remove-after removes it")),
        (false, true) => Some(format!(
            "{shown} was removed, renamed or replaced by another program meanwhile, so --remove-after removed nothing"
        )),
        (false, false) => None,
    }
}
