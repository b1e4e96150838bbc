//! A trial from beginning to end.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_block::{Bytes, Clock, Nanos, in_one_line};
use plumb_linux::pagecache;
use plumb_load::{LATENCY_EXCESS_MAX, LoadOutcome};
use plumb_measure::process::surroundings;
use plumb_measure::{Out, RunDirectory};
use plumb_path::Finding;
use plumb_report::RunRecording;
use plumb_report::document::RunDocument;
use plumb_target::{Permission, TargetKind};
use plumb_workload::{Caching, Replays, Scenario};

use crate::document::{self, Facts};
use crate::error::TrialError;
use crate::judge;
use crate::record::{self, Recorded};
use crate::replayed;
use crate::rounds::SpanRun;
use crate::span::{Ended, Stage};
use crate::spans;
use crate::targets::{self, Targets, Use};
use crate::verify;
use crate::watcher::Watcher;

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
    /// Files to remove at the end, of those that this run has made.
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
    /// How it ended; see [`RunDocument::failed`] too.
    pub ended: TrialEnded,
    /// Where the recording is; `None` if it could not be kept.
    pub run_directory: Option<PathBuf>,
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrialEnded {
    /// As the workload says.
    Complete,
    /// It was told to stop.
    Interrupted,
    /// It ran to its end, but nothing completed in the window.
    Empty,
    /// It could not be recorded, although it was measured.
    NotRecorded(String),
    /// Something failed.
    Failed(String),
}

/// Runs a trial.
///
/// # Errors
/// If nothing could be measured at all: a refusal, a workload that does not fit, a stop while files were made ready.
pub fn run(
    request: &Request,
    clock: &Arc<dyn Clock>,
    watcher: &mut dyn Watcher,
    stop: &AtomicBool,
    time_of_day: &dyn Fn() -> String,
) -> Result<Trial, TrialError> {
    RunDirectory::check(&request.out)?;
    let time = targets::time_of(&request.scenario, clock)?;
    let targets =
        Targets::open(&request.scenario, &request.replays, &request.permission, &time, watcher, stop)?;
    let trial = run_on(request, &targets, &time.clock(), watcher, stop, time_of_day);
    for one in targets.uses.iter().filter(|one| request.remove_after.contains(&one.name)) {
        one.opened.remove_if_new()?;
    }
    trial
}

/// Runs a trial on targets that are open.
fn run_on(
    request: &Request,
    targets: &Targets,
    clock: &Arc<dyn Clock>,
    watcher: &mut dyn Watcher,
    stop: &AtomicBool,
    time_of_day: &dyn Fn() -> String,
) -> Result<Trial, TrialError> {
    for note in request.notes.iter().chain(targets.notes()) {
        watcher.note(note);
    }
    let mut runs: Vec<SpanRun> = Vec::new();
    let mut facts: Vec<Facts> = Vec::new();
    let mut ended = TrialEnded::Complete;
    let directory = record::begin(request, seed_of(&request.scenario))?;
    for number in 0..request.scenario.spans.len() {
        let before = Before::read(targets, number);
        let run = match (Stage { targets, clock, stop, watcher }).run_span(number, &request.scenario) {
            Ok(run) => run,
            Err(error) if runs.is_empty() => {
                directory.abandon()?;
                return Err(error);
            }
            // What the spans before have measured is not lost.
            Err(error) => {
                ended = TrialEnded::Failed(in_one_line(&error));
                break;
            }
        };
        facts.extend(before.after(targets, number, &request.scenario));
        match &run.ran.ended {
            Ended::Complete => {}
            Ended::Interrupted => ended = TrialEnded::Interrupted,
            Ended::Failed(fault) => ended = TrialEnded::Failed(in_one_line(fault)),
        }
        if ended == TrialEnded::Complete && is_empty(&run) {
            ended = TrialEnded::Empty;
        }
        runs.push(run);
        if ended != TrialEnded::Complete {
            break;
        }
    }
    let mut said = replayed::notes(&request.replays, targets, &runs);
    said.extend(runs.iter().filter_map(|run| verify::note(run.ran.result.total().verified.as_ref()?)));
    said.iter().for_each(|note| watcher.note(note));
    let mut document = describe(request, targets, &runs, &facts, &ended);
    document.notes.extend(said);
    let results = runs.iter().map(|run| &run.ran.result);
    let outcomes: Vec<LoadOutcome> =
        results.flat_map(|result| (0..result.targets.len()).map(|index| result.of_target(index))).collect();
    let Recorded { recording, run_directory, lost } =
        record::keep(directory, document, &outcomes, time_of_day);
    if let (Some(why), TrialEnded::Complete) = (lost, &ended) {
        ended = TrialEnded::NotRecorded(why);
    }
    if stop.load(Ordering::Relaxed) && ended == TrialEnded::Complete {
        ended = TrialEnded::Interrupted;
    }
    Ok(Trial { spans: runs, recording, ended, run_directory })
}

/// The seed of a scenario: that of its first job.
fn seed_of(scenario: &Scenario) -> u64 {
    let first = scenario.spans.first().and_then(|span| span.jobs.first());
    first.map_or(0, |job| job.workload.seed)
}

/// By how much latencies may be too long.
fn latency_excess(targets: &Targets) -> Nanos {
    if targets.uses.iter().any(|one| one.opened.route.batches()) { LATENCY_EXCESS_MAX } else { Nanos::ZERO }
}

/// Whether nothing at all completed in the window.
fn is_empty(run: &SpanRun) -> bool {
    let total = run.ran.result.total();
    total.operations().operations() + total.flush.operations() == 0
}

/// The limits of the profile that the scenario is of, if it is of one.
fn limits(request: &Request, runs: &[SpanRun]) -> Vec<Finding> {
    let profile = request.profile.as_deref().and_then(|typed| plumb_application::find(typed).ok());
    let Some((profile, _)) = profile else { return Vec::new() };
    runs.iter()
        .flat_map(|run| judge::findings(&plumb_application::judge_span(profile, &run.ran.result)))
        .collect()
}

/// What is read before a span.
struct Before {
    written: Vec<Option<f64>>,
    processors: Option<plumb_measure::process::ProcessorTimes>,
}

impl Before {
    fn read(targets: &Targets, number: usize) -> Self {
        let written = targets.of_span(number).map(|(_, one)| document::share_written(&one.opened));
        Self { written: written.collect(), processors: surroundings::processor_times() }
    }

    fn after(self, targets: &Targets, number: usize, scenario: &Scenario) -> Vec<Facts> {
        let now = surroundings::processor_times();
        let steal = self.processors.zip(now).and_then(|(before, now)| now.steal_since(&before));
        let uses = targets.of_span(number).zip(self.written);
        uses.map(|((_, one), written_share)| {
            let job = &scenario.spans[one.span].jobs[one.job];
            let is_cached = matches!(job.opening.caching, Caching::Cached | Caching::Mapped);
            let dirty_after =
                (is_cached && one.workload_of(job).writes()).then(|| dirty_bytes(one)).flatten();
            let leaves = match one.opened.kind {
                TargetKind::Simulated => 1,
                _ => targets.beneath(one).devices().len(),
            };
            Facts {
                written_share,
                dirty_after,
                steal,
                has_one_leaf: leaves == 1,
                depth_found: None,
                cpu: None,
            }
        })
        .collect()
    }
}

/// Bytes of a file that are dirty in the page cache now.
fn dirty_bytes(one: &Use) -> Option<u64> {
    if one.opened.kind != TargetKind::RegularFile {
        return None;
    }
    let file = std::fs::File::open(one.opened.path()?).ok()?;
    let residency = pagecache::residency(&file, Bytes(0), one.opened.size, &one.opened.shown).ok()?;
    residency.dirty.map(|bytes| bytes.0)
}

/// The document of what was measured.
fn describe(
    request: &Request,
    targets: &Targets,
    runs: &[SpanRun],
    facts: &[Facts],
    ended: &TrialEnded,
) -> RunDocument {
    let mut all_targets = Vec::new();
    let mut all_spans = Vec::new();
    let mut facts = facts.iter();
    for (number, run) in runs.iter().enumerate() {
        let asked = &request.scenario.spans[number];
        let result = &run.ran.result;
        let uses: Vec<&Use> = targets.of_span(number).map(|(_, one)| one).collect();
        let cpu = document::cpu_by_target(result);
        let described: Vec<_> = uses
            .iter()
            .enumerate()
            .map(|(index, one)| {
                let facts = facts.next().copied().unwrap_or_default();
                let facts = Facts { depth_found: run.depth_found, cpu: cpu[index], ..facts };
                document::target(result, index, one, &asked.jobs[one.job], facts)
            })
            .collect();
        all_spans.push(spans::span(run, asked, &uses, &described));
        all_targets.extend(described);
    }
    let total = spans::whole(runs, &all_spans, &all_targets);
    RunDocument {
        seed: seed_of(&request.scenario),
        duration: all_spans.iter().map(|span| span.duration).sum(),
        complete: *ended == TrialEnded::Complete,
        incomplete_because: match ended {
            TrialEnded::Complete => None,
            TrialEnded::Interrupted => Some("interrupted".to_owned()),
            TrialEnded::Empty => Some("no operation completed while it was measured".to_owned()),
            TrialEnded::NotRecorded(why) | TrialEnded::Failed(why) => Some(why.clone()),
        },
        failed: matches!(ended, TrialEnded::Failed(_)),
        targets: all_targets,
        total,
        spans: all_spans,
        notes: request.notes.iter().chain(targets.notes()).cloned().collect(),
        latency_resolution_seconds: Some(latency_excess(targets).as_secs_f64()),
        latencies_late: runs.iter().map(|run| run.ran.result.total().latencies_late).sum(),
        verdicts: limits(request, runs),
        ..record::empty_document(request)
    }
}
