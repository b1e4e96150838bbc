//! A run in progress: what was measured so far, judged and saved after every span, so that whatever ends the run leaves
//! a recording that can be read.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use plumb_block::{Bytes, Nanos, in_one_line};
use plumb_load::LoadOutcome;
use plumb_measure::run::TimeseriesRow;
use plumb_path::{Finding, WritePath};
use plumb_report::document::{CheckDocument, RunDocument, RunSpan, RunTarget};
use plumb_report::verdict;
use plumb_targets::TargetKind;
use plumb_workload::{Job, Role, Scenario, Stop};

use crate::accounts::CheckBegun;
use crate::counters::Surveyed;
use crate::document::{self, Facts, Readings};
use crate::ending::{ended_by, ended_by_fault};
use crate::error::TrialError;
use crate::judge;
use crate::record::{self, Recorder};
use crate::replayed;
use crate::rounds::SpanRun;
use crate::so_far::{self, SoFar};
use crate::span::{Ended, Stage};
use crate::spans;
use crate::targets::{Targets, Use};
use crate::trial::{Context, Course, GOES_ON, Request, Trial, TrialEnded, Turn};
use crate::verify;
use crate::watcher::Watcher;

/// A span that had its turn.
struct Phase {
    /// Its place in the scenario.
    number: usize,
    /// What it measured, or why nothing.
    outcome: Result<(SpanRun, Vec<Facts>), String>,
    /// What documents say of it. It is worked out once: a comparison has a document after each of many phases.
    told: OnceLock<Told>,
}

/// What documents say of a phase.
struct Told {
    span: RunSpan,
    targets: Vec<RunTarget>,
    latencies_late: u64,
    /// What reading back found.
    verified: Option<String>,
}

impl Phase {
    fn of(number: usize, outcome: Result<(SpanRun, Vec<Facts>), String>) -> Self {
        Self { number, outcome, told: OnceLock::new() }
    }
}

/// A run in progress.
pub(crate) struct Session<'a> {
    request: &'a Request,
    seed: u64,
    surveyed: Option<CheckBegun>,
    phases: Vec<Phase>,
    /// What all phases that a document tells have measured, one after the other.
    whole: Option<LoadOutcome>,
    recorder: Recorder,
}

/// What was seen over time of the `count` targets of a phase, the first of which is the `first` of the document.
fn over_time(phase: &Phase, first: usize, count: usize) -> Vec<TimeseriesRow> {
    let Ok((run, _)) = &phase.outcome else { return Vec::new() };
    let mut began = Nanos::ZERO;
    let mut rows = Vec::new();
    for (length, looks) in &run.ran.looks {
        rows.extend(
            (first..)
                .zip(looks.iter().take(count))
                .flat_map(|(target, looks)| looks.rows(target, began, true)),
        );
        began += *length;
    }
    rows
}

impl<'a> Session<'a> {
    /// A session that has measured nothing yet; of a check, with what was surveyed.
    pub(crate) fn begin(request: &'a Request, seed: u64, surveyed: Option<CheckBegun>) -> Self {
        Self { request, seed, surveyed, phases: Vec::new(), whole: None, recorder: Recorder::default() }
    }

    fn is_check(&self) -> bool {
        self.surveyed.is_some()
    }

    /// Books what the devices were handed since the last booking under `phase`.
    pub(crate) fn book(&mut self, phase: &str) {
        if let Some(surveyed) = &mut self.surveyed {
            surveyed.accounts.book(phase);
        }
    }

    /// The targets of a check are ready, `size` of them.
    pub(crate) fn prepared(&mut self, targets: &Targets, size: Bytes) {
        let Some(surveyed) = &mut self.surveyed else { return };
        surveyed.file_bytes = size.0;
        if surveyed.accounts.last.is_none()
            && let Some(beneath) = targets.beneath.first()
        {
            surveyed.accounts.watch = beneath.watch.clone();
        }
        surveyed.accounts.book("prepare");
    }

    /// It is known how flushes are counted.
    pub(crate) fn calibrated(&mut self, targets: &Targets) {
        let is_file = |one: &Use| one.opened.kind == TargetKind::RegularFile;
        let Some(surveyed) = &mut self.surveyed else { return };
        if let Some(beneath) = targets.beneath.first().filter(|_| targets.uses.iter().any(is_file)) {
            surveyed.accounts.watch = beneath.watch.clone();
            surveyed.accounts.book("calibrate");
        }
    }

    /// Makes the run directory, if there is none yet; that of a check holds from then on what is known.
    ///
    /// # Errors
    /// If there is no place for it.
    pub(crate) fn record(&mut self, targets: Option<&Targets>) -> Result<(), TrialError> {
        if self.recorder.is_open() {
            return Ok(());
        }
        self.recorder.open(self.request, self.seed)?;
        if self.is_check() {
            let mut document = self.describe(targets, None, None);
            self.recorder.save(&mut document)?;
        }
        Ok(())
    }

    /// Runs the spans as `course` says, until it or one of them ends the run.
    ///
    /// # Errors
    /// If nothing could be measured at all; of a check that is its end, and no error.
    pub(crate) fn run_spans(
        &mut self,
        targets: &Targets,
        context: &Context<'_>,
        watcher: &mut dyn Watcher,
        course: &mut Course<'_>,
    ) -> Result<TrialEnded, TrialError> {
        let scenario = &self.request.scenario;
        let began = context.clock.now();
        let mut so_far = record::empty_document(self.request, self.seed);
        let mut lacking = None;
        while let Some(turn) = course(&so_far, context.clock.now().since(began)) {
            let number = turn.span;
            let ended = match targets.left_out.get(&number) {
                Some(reason) => {
                    let reason = format!("{}: {reason}", name_of(scenario, number));
                    watcher.note(&reason);
                    self.phases.push(Phase::of(number, Err(reason.clone())));
                    lacking.get_or_insert(reason);
                    TrialEnded::Complete
                }
                None => self.run_span(&turn, targets, context, watcher)?,
            };
            self.book(name_of(scenario, number));
            so_far = self.save(targets);
            match self.recorder.lost() {
                Some(unrecorded) if ended == TrialEnded::Complete => return Ok(unrecorded.clone()),
                _ if ended != TrialEnded::Complete => return Ok(ended),
                _ if context.stop.load(Ordering::Relaxed) => return Ok(TrialEnded::Interrupted),
                _ => {}
            }
        }
        Ok(lacking.map_or(TrialEnded::Complete, TrialEnded::NotMeasured))
    }

    fn run_span(
        &mut self,
        turn: &Turn,
        targets: &Targets,
        context: &Context<'_>,
        watcher: &mut dyn Watcher,
    ) -> Result<TrialEnded, TrialError> {
        let scenario = &self.request.scenario;
        let number = turn.span;
        watcher.standing(&turn.standing, turn.done);
        turn.note.iter().for_each(|note| watcher.note(note));
        let before = Readings::before(targets, number);
        let mut recorder = std::mem::take(&mut self.recorder);
        let session = &*self;
        let ran = so_far::recorded(
            recorder.is_open(),
            |run| session.record_so_far(&mut recorder, targets, number, run),
            |outlet| {
                let so_far = SoFar::of(outlet);
                Stage { targets, context, watcher, so_far }.run_span(turn, scenario)
            },
        );
        self.recorder = recorder;
        let run = match ran {
            Ok(run) => run,
            Err(error) if self.is_check() => {
                self.phases.push(Phase::of(number, Err(in_one_line(&error))));
                return Ok(ended_by(&error));
            }
            Err(error) if self.phases.is_empty() => return Err(error),
            // What the spans before have measured is not lost.
            Err(error) => return Ok(TrialEnded::Failed(in_one_line(&error))),
        };
        let facts = before.facts_after(targets, number, scenario);
        let ended = match &run.ran.ended {
            Ended::Complete
                if !turn.is_block
                    && !self.is_check()
                    && is_empty(&run)
                    && !is_unmeasured(scenario, number) =>
            {
                TrialEnded::Empty
            }
            Ended::Complete => TrialEnded::Complete,
            Ended::Interrupted => TrialEnded::Interrupted,
            Ended::Failed(fault) if self.is_check() => ended_by_fault(fault),
            Ended::Failed(fault) => TrialEnded::Failed(in_one_line(fault)),
        };
        let ended = match (ended, targets.change_of(number)) {
            (TrialEnded::Complete | TrialEnded::Empty, Some(change)) => TrialEnded::NotMeasured(change),
            (TrialEnded::Failed(why), Some(change)) => TrialEnded::Failed(format!("{why}; {change}")),
            (ended, _) => ended,
        };
        let phase = Phase::of(number, Ok((run, facts)));
        let before = self.whole.take();
        self.whole = self.with(before, &phase);
        self.phases.push(phase);
        Ok(ended)
    }

    /// Records what the span that runs has measured until now, in the place of what it had before.
    fn record_so_far(&self, recorder: &mut Recorder, targets: &Targets, number: usize, run: SpanRun) {
        let facts = vec![Facts::default(); run.ran.result.targets.len()];
        let phase = Phase::of(number, Ok((run, facts)));
        let mut document = self.describe(Some(targets), None, Some(&phase));
        let outcomes = self.outcomes(&phase);
        let first = document.targets.len().saturating_sub(outcomes.len());
        recorder.add_so_far(&mut document, first, &outcomes, over_time(&phase, first, outcomes.len()));
    }

    /// Judges and saves what is known, with the distributions of the last span; what was saved.
    fn save(&mut self, targets: &Targets) -> RunDocument {
        let mut document = self.describe(Some(targets), None, None);
        let outcomes = self.phases.last().map(|phase| self.outcomes(phase)).unwrap_or_default();
        let first = document.targets.len().saturating_sub(outcomes.len());
        let over_time = self.phases.last().map(|phase| over_time(phase, first, outcomes.len()));
        self.recorder.add(&mut document, first, &outcomes, over_time.unwrap_or_default());
        document
    }

    /// What each target of a phase measured; nothing of what a document leaves out.
    fn outcomes(&self, phase: &Phase) -> Vec<LoadOutcome> {
        let Ok((run, _)) = &phase.outcome else { return Vec::new() };
        if self.leaves_out(phase) {
            return Vec::new();
        }
        let result = &run.ran.result;
        (0..result.targets.len()).map(|index| result.of_target(index)).collect()
    }

    /// Returns whether the figures of a phase are left out of the result, because its jobs only make targets ready.
    fn leaves_out(&self, phase: &Phase) -> bool {
        let jobs = &self.request.scenario.spans[phase.number].jobs;
        jobs.iter().all(|job| job.role == Role::Prepare)
    }

    /// What was measured with one more phase.
    fn with(&self, whole: Option<LoadOutcome>, phase: &Phase) -> Option<LoadOutcome> {
        let Some((run, _)) = phase.outcome.as_ref().ok().filter(|_| !self.leaves_out(phase)) else {
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

    fn job(&self, span: usize, job: usize) -> &Job {
        &self.request.scenario.spans[span].jobs[job]
    }

    /// Judges what was learnt and writes the last of the recording. A recording that cannot be completed does not take
    /// the result with it.
    ///
    /// # Errors
    /// If a place that was asked for does not take it.
    pub(crate) fn finish(
        mut self,
        targets: Option<&Targets>,
        mut ended: TrialEnded,
        time_of_day: &dyn Fn() -> String,
    ) -> Result<Trial, TrialError> {
        if self.request.out.is_named() && self.recorder.lost().is_none() {
            self.record(targets)?;
        }
        self.book("report");
        let mut document = self.describe(targets, Some(&ended), None);
        let kept = self.recorder.finish(&mut document, time_of_day);
        if let Some(unrecorded) = self.recorder.lost() {
            if ended == TrialEnded::Complete {
                ended = unrecorded.clone();
                document = self.describe(targets, Some(&ended), None);
                self.judge(&mut document);
            }
            document.run_directory = None;
        }
        let (recording, run_directory) = match kept {
            Some((recording, path)) => (recording, Some(path)),
            None => (plumb_report::RunRecording::without_distributions(document), None),
        };
        let spans = self.phases.into_iter().filter_map(|phase| Some(phase.outcome.ok()?.0)).collect();
        Ok(Trial { spans, recording, ended, run_directory, left_behind: Vec::new() })
    }

    /// Gives up a run of which nothing is to be kept.
    pub(crate) fn abandon(self) -> Result<(), TrialError> {
        self.recorder.abandon()
    }

    /// The document of what is known, judged; without an end of a run that goes on. `current` is the span that runs.
    fn describe(
        &self,
        targets: Option<&Targets>,
        ended: Option<&TrialEnded>,
        current: Option<&Phase>,
    ) -> RunDocument {
        let mut document = record::empty_document(self.request, self.seed);
        document.complete = ended == Some(&TrialEnded::Complete);
        document.incomplete_because = ended.map_or(Some(GOES_ON.to_owned()), TrialEnded::reason);
        document.failed = matches!(ended, Some(TrialEnded::Failed(_)));
        if let Some(surveyed) = &self.surveyed {
            CheckDocument::SCHEMA.clone_into(&mut document.schema);
            document.target.clone_from(&surveyed.target);
            document.path = Some(surveyed.path.clone());
            document.accounting.clone_from(&surveyed.accounts.booked);
            document.environment.file_bytes = Some(surveyed.file_bytes);
            document.environment.root_would_add = root_would_add(&surveyed.path);
        }
        if let Some(targets) = targets {
            self.describe_spans(&mut document, targets, current);
        }
        self.judge(&mut document);
        document
    }

    fn describe_spans(&self, document: &mut RunDocument, targets: &Targets, current: Option<&Phase>) {
        for one in &targets.uses {
            add_path(document, &one.opened.shown, &one.surveyed);
        }
        let mut runs = Vec::new();
        for phase in self.phases.iter().chain(current).filter(|phase| !self.leaves_out(phase)) {
            let told = phase.told.get_or_init(|| self.told(phase, targets));
            let number = document.spans.len();
            runs.extend(phase.outcome.as_ref().ok().map(|(run, _)| run));
            document.spans.push(told.span.clone());
            let described = told.targets.iter().cloned();
            document.targets.extend(described.map(|target| RunTarget { span: number, ..target }));
            document.latencies_late += told.latencies_late;
        }
        let mut whole = self.whole.clone();
        if let Some(phase) = current {
            whole = self.with(whole, phase);
        }
        document.total = spans::whole(whole, &runs, &document.spans, &document.targets);
        document.duration = document.spans.iter().map(|span| span.duration).sum();
        document.notes.extend(targets.notes().iter().cloned());
        document.notes.extend(self.said_of(targets));
        document.latency_resolution_seconds = Some(targets.latency_excess().as_secs_f64());
        if self.is_check() {
            let direct = targets.uses.iter().find(|one| {
                let job = self.job(one.span, one.job);
                !job.opening.caching.is_cached() && job.role.method().is_none()
            });
            let route = direct.map(|one| &one.opened.route);
            document.environment.engine = route.map(|route| route.name().to_owned());
            document.environment.engine_because = route.and_then(|route| route.because()).map(str::to_owned);
        }
    }

    /// What a document says of a phase.
    fn told(&self, phase: &Phase, targets: &Targets) -> Told {
        let asked = &self.request.scenario.spans[phase.number];
        let uses: Vec<&Use> = targets.of_span(phase.number).map(|(_, one)| one).collect();
        let (span, described) = match &phase.outcome {
            Ok((run, facts)) => {
                let described = document::targets(run, facts, &uses, asked, self.is_check());
                (spans::span(run, asked, &uses, &described), described)
            }
            Err(why) => document::unmeasured(asked, why),
        };
        let total = phase.outcome.as_ref().ok().map(|(run, _)| run.ran.result.total());
        Told {
            span,
            targets: described,
            latencies_late: total.as_ref().map_or(0, |total| total.latencies_late),
            verified: total.and_then(|total| verify::note(total.verified.as_ref()?)),
        }
    }

    /// What is to be said of how traces were replayed, and what reading back found.
    pub(crate) fn said_of(&self, targets: &Targets) -> Vec<String> {
        let runs: Vec<&SpanRun> =
            self.phases.iter().filter_map(|phase| Some(&phase.outcome.as_ref().ok()?.0)).collect();
        let mut said = replayed::notes(&self.request.replays, targets, &runs);
        let told = self.phases.iter().map(|phase| phase.told.get_or_init(|| self.told(phase, targets)));
        said.extend(told.filter_map(|told| told.verified.clone()));
        said
    }

    fn judge(&self, document: &mut RunDocument) {
        verdict::conclude(document, self.limits());
    }

    /// The limits of the profile that the scenario is of, if it is of one.
    fn limits(&self) -> Vec<Finding> {
        let profile = self.request.profile.as_deref().and_then(|typed| plumb_application::find(typed).ok());
        let Some((profile, _)) = profile else { return Vec::new() };
        let runs = self.phases.iter().filter_map(|phase| phase.outcome.as_ref().ok());
        runs.flat_map(|(run, _)| judge::findings(&plumb_application::judge_span(profile, &run.ran.result)))
            .collect()
    }
}

/// Adds what was surveyed beneath a target.
pub(crate) fn add_path(document: &mut RunDocument, opened: &str, surveyed: &Surveyed) {
    match surveyed {
        Ok(path) => document.add_path(opened, path),
        Err(why) => {
            document.path_unknown_because.get_or_insert_with(|| why.clone());
        }
    }
}

/// What a span is called: its first job.
fn name_of(scenario: &Scenario, span: usize) -> &str {
    scenario.spans[span].jobs.first().map_or("", |job| &job.name)
}

/// What only root could have been told, from the finding that says so.
fn root_would_add(path: &WritePath) -> Vec<String> {
    let finding = path.findings.iter().filter(|finding| finding.id == "needs-root");
    finding.flat_map(|finding| finding.evidence.iter().cloned()).collect()
}

/// Whether nothing at all completed in the window.
fn is_empty(run: &SpanRun) -> bool {
    let total = run.ran.result.total();
    total.operations().operations() + total.flush.operations() == 0
}

/// Whether a span asks for no time to measure in: it only warms up.
fn is_unmeasured(scenario: &Scenario, span: usize) -> bool {
    let jobs = &scenario.spans[span].jobs;
    jobs.iter().all(|job| job.workload.stop.duration == Some(Stop::NO_TIME))
}
