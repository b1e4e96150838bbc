//! Run in progress: results so far, judged and saved after every span, so that the recording is readable
//! whatever ends the run.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plumb_block::{Nanos, in_one_line};
use plumb_load::{Event, LoadOutcome, Observer};
use plumb_measure::run::TimeseriesRow;
use plumb_path::Finding;
use plumb_report::document::{RunDocument, RunSpan, RunTarget};
use plumb_report::verdict;
use plumb_workload::{Program, Role, Scenario, Span, Stop};

use crate::check_state::CheckState;
use crate::counters::SurveyedPath;
use crate::document::{self, Facts, Readings};
use crate::error::TrialError;
use crate::interim_record::{self, InterimRecord};
use crate::judge;
use crate::outcome::{GOES_ON, Trial, TrialEnded, ended_by, ended_by_fault};
use crate::record::{self, Recorder};
use crate::replayed;
use crate::request::{Context, Request, ScheduledSpan};
use crate::span::SpanRunner;
use crate::span_run::{SpanEnd, SpanRun};
use crate::spans;
use crate::targets::{JobTarget, Targets};
use crate::verify;

/// Span that was run.
struct Phase {
    /// Index of the span in the scenario.
    number: usize,
    /// Measurements of the phase, or the reason why there are none.
    outcome: Result<SpanRun, String>,
    /// Parts of documents about the phase, built once while its targets are open: a comparison builds a
    /// document after each of many phases.
    told: PhaseDocuments,
}

/// Parts of documents about a phase.
struct PhaseDocuments {
    span: RunSpan,
    targets: Vec<RunTarget>,
    latencies_late: u64,
    /// Remarks on replayed traces and on reading back.
    notes: Vec<String>,
}

/// Facts about the opened targets, each once.
#[derive(Default)]
struct OpenedBefore {
    paths: Vec<(String, Arc<SurveyedPath>)>,
    notes: Vec<String>,
    latency_excess: Option<Nanos>,
}

/// A run in progress.
pub(crate) struct Session<'a> {
    request: &'a Request,
    seed: u64,
    check: Option<CheckState>,
    opened: OpenedBefore,
    phases: Vec<Phase>,
    /// Combined measurements of all phases in the document.
    whole: Option<LoadOutcome>,
    recorder: Recorder,
}

/// Returns the time series of the targets of a phase with the measurements `outcomes`; `first` is the index
/// of the first target in the document.
fn over_time(phase: &Phase, first: usize, outcomes: &[LoadOutcome]) -> Vec<TimeseriesRow> {
    let Ok(run) = &phase.outcome else { return Vec::new() };
    let mut began = Nanos::ZERO;
    let mut rows = Vec::new();
    for (length, series) in &run.ran.series {
        for (target, (outcome, series)) in (first..).zip(outcomes.iter().zip(series)) {
            let shows_operations = outcome.transactions.is_none() || outcome.operations().operations() > 0;
            rows.extend(series.rows(target, began, shows_operations));
        }
        began += *length;
    }
    rows
}

impl<'a> Session<'a> {
    /// Creates a session without measurements. `check` is the state of a check.
    pub(crate) fn begin(request: &'a Request, seed: u64, check: Option<CheckState>) -> Self {
        Self {
            request,
            seed,
            check,
            opened: OpenedBefore::default(),
            phases: Vec::new(),
            whole: None,
            recorder: Recorder::default(),
        }
    }

    /// Returns true for the session of a check.
    pub(crate) fn is_check(&self) -> bool {
        self.check.is_some()
    }

    /// Books the requests to the devices since the last booking under `phase`, for a check.
    pub(crate) fn book(&mut self, phase: &str) {
        if let Some(check) = &mut self.check {
            check.accounts.book(phase);
        }
    }

    /// Determines how flushes are counted.
    ///
    /// # Errors
    /// Those of [`Targets::calibrate`].
    pub(crate) fn calibrate(&mut self, targets: &mut Targets) -> Result<(), TrialError> {
        self.book("recording");
        targets.calibrate(&self.request.scenario)?;
        if let Some(check) = &mut self.check {
            check.calibrated(targets);
        }
        Ok(())
    }

    /// Takes the facts about open targets. Returns the notes that are new.
    pub(crate) fn opened(&mut self, targets: &Targets) -> Vec<String> {
        for (name, surveyed) in targets.surveyed() {
            if !self.opened.paths.iter().any(|(known, _)| known == name) {
                self.opened.paths.push((name.to_owned(), Arc::clone(surveyed)));
            }
        }
        self.opened.latency_excess = self.opened.latency_excess.max(targets.latency_excess());
        if let Some(check) = &mut self.check {
            check.opened(targets, &self.request.scenario);
        }
        let known = &self.opened.notes;
        let new: Vec<String> = targets.notes.iter().filter(|note| !known.contains(note)).cloned().collect();
        self.opened.notes.extend_from_slice(&new);
        new
    }

    /// Creates the run directory, unless it exists. For a check it is updated with the results from then on.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(crate) fn record(&mut self) -> Result<(), TrialError> {
        if self.recorder.is_open() {
            return Ok(());
        }
        self.recorder.open(self.request, self.seed)?;
        if self.is_check() {
            let mut document = self.describe(None, None);
            self.recorder.save(&mut document)?;
        }
        Ok(())
    }

    /// Runs one span on open targets, and saves the results so far. Breaks with the end of the run if the
    /// span, or a signal, ends it.
    ///
    /// # Errors
    /// If nothing could be measured at all. A check ends without an error then.
    pub(crate) fn run_scheduled(
        &mut self,
        scheduled: &ScheduledSpan,
        targets: &Targets,
        context: &Context<'_>,
        observer: &mut dyn Observer,
    ) -> Result<ControlFlow<TrialEnded>, TrialError> {
        let name = name_of(&self.request.scenario, scheduled.span);
        let ended = match targets.left_out.get(&scheduled.span) {
            Some(reason) => {
                let reason = format!("{name}: {reason}");
                observer.note(&reason);
                self.phases.push(self.phase(scheduled.span, Err(reason), targets));
                // A missing feature of the place is a result.
                TrialEnded::Complete
            }
            None => self.run_span(scheduled, targets, context, observer)?,
        };
        self.book(name);
        self.save();
        Ok(match self.recorder.lost() {
            Some(unrecorded) if ended == TrialEnded::Complete => ControlFlow::Break(unrecorded.clone()),
            _ if ended != TrialEnded::Complete => ControlFlow::Break(ended),
            _ if context.stop.load(Ordering::Relaxed) => ControlFlow::Break(TrialEnded::Interrupted),
            _ => ControlFlow::Continue(()),
        })
    }

    /// Returns the measurements of the last span; `None` before the first, and if it measured nothing.
    pub(crate) fn last(&self) -> Option<&SpanRun> {
        self.phases.last()?.outcome.as_ref().ok()
    }

    /// Returns true if no span has been run.
    pub(crate) fn is_empty(&self) -> bool {
        self.phases.is_empty()
    }

    fn run_span(
        &mut self,
        scheduled: &ScheduledSpan,
        targets: &Targets,
        context: &Context<'_>,
        observer: &mut dyn Observer,
    ) -> Result<TrialEnded, TrialError> {
        let scenario = &self.request.scenario;
        let number = scheduled.span;
        observer.on(&Event::Scheduled { lines: &scheduled.standing, done: scheduled.done });
        scheduled.note.iter().for_each(|note| observer.note(note));
        let before = Readings::before(targets, number);
        let mut recorder = std::mem::take(&mut self.recorder);
        let session = &*self;
        let ran = interim_record::run_recorded(
            recorder.is_open(),
            |run| session.record_interim(&mut recorder, targets, number, run),
            |sender| {
                let interim = InterimRecord::new(sender);
                SpanRunner { targets, context, observer, interim }.run_span(scheduled, scenario)
            },
        );
        self.recorder = recorder;
        let run = match ran {
            Ok(run) => run,
            Err(error) => {
                if self.is_check() {
                    self.phases.push(self.phase(number, Err(in_one_line(&error)), targets));
                }
                return self.ended_by_error(error);
            }
        };
        let change = targets.change_of(number).map(str::to_owned);
        let change = change.or_else(|| before.blocks_lost(targets, number, scenario));
        let facts = before.facts_after(targets, number, scenario);
        let ended = self.ended_by(&run, scheduled);
        let ended = match (ended, change) {
            (TrialEnded::Complete | TrialEnded::Empty, Some(change)) => TrialEnded::NotMeasured(change),
            (TrialEnded::Failed(why), Some(change)) => TrialEnded::Failed(format!("{why}; {change}")),
            (ended, _) => ended,
        };
        let phase = self.phase(number, Ok((run, facts)), targets);
        let before = self.whole.take();
        self.whole = self.with(before, &phase);
        self.phases.push(phase);
        Ok(ended)
    }

    /// Returns the end of the run for this error, which keeps the measurements of earlier spans.
    ///
    /// # Errors
    /// The same error if nothing was measured, except for a check.
    pub(crate) fn ended_by_error(&self, error: TrialError) -> Result<TrialEnded, TrialError> {
        match error {
            error if self.is_check() => Ok(ended_by(&error)),
            error if self.is_empty() => Err(error),
            TrialError::Interrupted => Ok(TrialEnded::Interrupted),
            error => Ok(TrialEnded::Failed(in_one_line(&error))),
        }
    }

    /// Returns the end of the run that this span implies.
    fn ended_by(&self, run: &SpanRun, scheduled: &ScheduledSpan) -> TrialEnded {
        let may_be_empty =
            scheduled.may_be_empty || is_unmeasured(&self.request.scenario.spans[scheduled.span]);
        match &run.ran.ended {
            SpanEnd::Complete if !may_be_empty && is_empty(run) => TrialEnded::Empty,
            SpanEnd::Complete => TrialEnded::Complete,
            SpanEnd::Interrupted => TrialEnded::Interrupted,
            SpanEnd::Failed(fault) if self.is_check() => ended_by_fault(fault),
            SpanEnd::Failed(fault) => TrialEnded::Failed(in_one_line(fault)),
        }
    }

    /// Records the interim measurements of the running span, replacing the previous ones.
    fn record_interim(&self, recorder: &mut Recorder, targets: &Targets, number: usize, run: SpanRun) {
        let facts = vec![Facts::default(); run.ran.result.targets.len()];
        let phase = self.phase(number, Ok((run, facts)), targets);
        let mut document = self.describe(None, Some(&phase));
        let outcomes = self.outcomes(&phase);
        let first = document.targets.len().saturating_sub(outcomes.len());
        recorder.add_interim(&mut document, first, &outcomes, over_time(&phase, first, &outcomes));
    }

    /// Judges and saves the results, with the distributions of the last span.
    fn save(&mut self) {
        if !self.recorder.is_open() {
            return;
        }
        let mut document = self.describe(None, None);
        let outcomes = self.phases.last().map(|phase| self.outcomes(phase)).unwrap_or_default();
        let first = document.targets.len().saturating_sub(outcomes.len());
        let over_time = self.phases.last().map(|phase| over_time(phase, first, &outcomes));
        self.recorder.add(&mut document, first, &outcomes, over_time.unwrap_or_default());
    }

    /// Returns the measurements of each target of a phase; empty if documents leave it out.
    fn outcomes(&self, phase: &Phase) -> Vec<LoadOutcome> {
        let Ok(run) = &phase.outcome else { return Vec::new() };
        if self.leaves_out(phase) {
            return Vec::new();
        }
        let result = &run.ran.result;
        (0..result.targets.len()).map(|index| result.of_target(index)).collect()
    }

    /// Returns true if the results leave out the phase, whose jobs only prepare targets.
    fn leaves_out(&self, phase: &Phase) -> bool {
        let jobs = &self.request.scenario.spans[phase.number].jobs;
        jobs.iter().all(|job| job.role == Role::Prepare)
    }

    /// Returns the measurements with one more phase added.
    fn with(&self, whole: Option<LoadOutcome>, phase: &Phase) -> Option<LoadOutcome> {
        let Some(run) = phase.outcome.as_ref().ok().filter(|_| !self.leaves_out(phase)) else {
            return whole;
        };
        let next = run.ran.result.total();
        Some(match whole {
            None => next,
            Some(mut whole) => {
                whole.append(&next);
                whole
            }
        })
    }

    /// Judges the results and completes the recording. A recording that cannot be completed does not
    /// invalidate the result.
    ///
    /// # Errors
    /// If a run directory that the user requested cannot be written.
    pub(crate) fn finish(
        mut self,
        mut ended: TrialEnded,
        time_of_day: &dyn Fn() -> String,
    ) -> Result<Trial, TrialError> {
        if self.request.out.is_named() && self.recorder.lost().is_none() {
            self.record()?;
        }
        self.book("report");
        let mut document = self.describe(Some(&ended), None);
        let kept = self.recorder.finish(&mut document, time_of_day);
        if let Some(unrecorded) = self.recorder.lost() {
            if ended == TrialEnded::Complete {
                ended = unrecorded.clone();
                document = self.describe(Some(&ended), None);
                self.judge(&mut document);
            }
            document.run_directory = None;
        }
        let (recording, run_directory) = match kept {
            Some((recording, path)) => (recording, Some(path)),
            None => (plumb_report::RunRecording::without_distributions(document), None),
        };
        let spans = self.phases.into_iter().filter_map(|phase| phase.outcome.ok()).collect();
        Ok(Trial { spans, recording, ended, run_directory, left_behind: Vec::new() })
    }

    /// Discards a run of which nothing is kept.
    pub(crate) fn abandon(self) -> Result<(), TrialError> {
        self.recorder.abandon()
    }

    /// Returns the judged document of the results between two spans.
    pub(crate) fn interim(&self) -> RunDocument {
        self.describe(None, None)
    }

    /// Returns the judged document of the results; `ended` is `None` while the run continues. `current` is
    /// the running span.
    fn describe(&self, ended: Option<&TrialEnded>, current: Option<&Phase>) -> RunDocument {
        let mut document = record::empty_document(self.request, self.seed);
        document.complete = ended == Some(&TrialEnded::Complete);
        document.incomplete_because = ended.map_or(Some(GOES_ON.to_owned()), TrialEnded::reason);
        document.failed = matches!(ended, Some(TrialEnded::Failed(_)));
        if let Some(check) = &self.check {
            check.describe(&mut document);
        }
        if !self.opened.paths.is_empty() {
            self.describe_spans(&mut document, current);
        }
        self.judge(&mut document);
        document
    }

    fn describe_spans(&self, document: &mut RunDocument, current: Option<&Phase>) {
        for (name, surveyed) in &self.opened.paths {
            add_path(document, name, surveyed);
        }
        let mut runs = Vec::new();
        let phases = || self.phases.iter().chain(current);
        for phase in phases().filter(|phase| !self.leaves_out(phase)) {
            let number = document.spans.len();
            runs.extend(phase.outcome.as_ref().ok());
            document.spans.push(phase.told.span.clone());
            let described = phase.told.targets.iter().cloned();
            document.targets.extend(described.map(|target| RunTarget { span: number, ..target }));
            document.latencies_late += phase.told.latencies_late;
        }
        let mut whole = self.whole.clone();
        if let Some(phase) = current {
            whole = self.with(whole, phase);
        }
        let program = phases().find_map(|phase| self.program_of(phase));
        document.transactions =
            whole.as_ref().zip(program).and_then(|(whole, program)| document::transactions(whole, program));
        let remarks = whole
            .iter_mut()
            .filter_map(|whole| whole.transactions.as_mut())
            .flat_map(|of| std::mem::take(&mut of.notes));
        let remarks: Vec<String> = remarks.collect();
        document.total = spans::whole(whole, &runs, &document.spans, &document.targets);
        document.duration = document.spans.iter().map(|span| span.duration).sum();
        document.notes.extend(self.opened.notes.iter().cloned());
        document.notes.extend(remarks);
        document.notes.extend(phases().flat_map(|phase| phase.told.notes.iter().cloned()));
        document.latency_resolution_seconds = self.opened.latency_excess.map(Nanos::as_secs_f64);
    }

    /// Builds the phase of the span with this number from its measurements, or the reason why there are none.
    fn phase(
        &self,
        number: usize,
        outcome: Result<(SpanRun, Vec<Facts>), String>,
        targets: &Targets,
    ) -> Phase {
        let asked = &self.request.scenario.spans[number];
        let opened: Vec<&JobTarget> = targets.of_span(number).map(|(_, one)| one).collect();
        let (mut outcome, facts) = match outcome {
            Ok((run, facts)) => (Ok(run), facts),
            Err(why) => (Err(why), Vec::new()),
        };
        let (span, described) = match &outcome {
            Ok(run) => {
                let described = match targets.program_of(number) {
                    Some((_, program)) => vec![document::program(&run.ran.result, program)],
                    None => document::targets(run, &facts, &opened, asked, self.is_check()),
                };
                (spans::span(run, asked, &opened, &described), described)
            }
            Err(why) => document::unmeasured(asked, why),
        };
        if let Ok(run) = &mut outcome {
            run.total = span.total.clone();
            run.targets = described.iter().map(|target| target.sides.clone()).collect();
        }
        let total = outcome.as_ref().ok().map(|run| run.ran.result.total());
        let mut notes = Vec::new();
        if let Ok(run) = &outcome
            && !self.phases.iter().any(|before| before.number == number)
        {
            notes = replayed::notes(&self.request.replays, targets, number, run);
        }
        notes.extend(total.as_ref().and_then(|total| verify::note(total.verified.as_ref()?)));
        let latencies_late = total.map_or(0, |total| total.latencies_late);
        Phase { number, outcome, told: PhaseDocuments { span, targets: described, latencies_late, notes } }
    }

    /// Returns the remarks on replayed traces and on reading back.
    pub(crate) fn remarks(&self) -> impl Iterator<Item = &String> {
        self.phases.iter().flat_map(|phase| &phase.told.notes)
    }

    fn program_of(&self, phase: &Phase) -> Option<&Program> {
        self.request.scenario.spans[phase.number].jobs.first()?.program.as_ref()
    }

    fn judge(&self, document: &mut RunDocument) {
        verdict::conclude(document, self.limits());
    }

    /// Judges the measurements by the limits of the profiles in use.
    fn limits(&self) -> Vec<Finding> {
        let judged = self.phases.iter().filter_map(|phase| {
            let program = self.program_of(phase).map(|program| &program.profile);
            let typed = program.or(self.request.profile.as_ref())?;
            let (profile, _) = plumb_application::find(typed).ok()?;
            let run = phase.outcome.as_ref().ok()?;
            Some(judge::findings(&plumb_application::judge(&profile.criteria, &run.ran.result)))
        });
        judged.flatten().collect()
    }
}

/// Adds the surveyed path below a target.
fn add_path(document: &mut RunDocument, opened: &str, surveyed: &SurveyedPath) {
    match surveyed {
        Ok(path) => document.add_path(opened, path),
        Err(why) => {
            document.path_unknown_because.get_or_insert_with(|| why.clone());
        }
    }
}

/// Returns the name of a span's first job.
fn name_of(scenario: &Scenario, span: usize) -> &str {
    scenario.spans[span].jobs.first().map_or("", |job| &job.name)
}

/// Returns true if nothing completed in the window. SQLite's own reads and writes are not visible.
fn is_empty(run: &SpanRun) -> bool {
    let total = run.ran.result.total();
    total.transactions.is_none() && total.operations().operations() + total.flush.operations() == 0
}

/// Returns true if a span only warms up.
fn is_unmeasured(span: &Span) -> bool {
    span.jobs.iter().all(|job| job.workload.stop.duration == Some(Stop::NO_TIME))
}
