//! The field reports as studies: each runs what was reported, on simulated drives or on a target of this machine, and sets the figures
//! beside those that were reported.
//!
//! ```text
//!   a b c d e   one file a field report: what was reported (constants with their source), what is run, the rows
//!      │
//!   bench ──► trial, application: loads in plumb's own words, profiles on a simulated file system
//!   object_store, live_switch: hosts that no words describe
//! ```
//!
//! Invariants:
//! 1. Nothing is fitted to what was reported but what a model's file says of itself.
//! 2. A figure that could not be had is a row with its reason; one that came out otherwise is a row that says so.
//! 3. Simulated studies run in virtual time, from one seed.

mod a;
mod b;
mod bench;
mod c;
mod d;
mod e;
mod live_switch;
mod object_store;
mod row;

use std::str::FromStr;
use std::sync::atomic::Ordering;

use plumb_block::in_one_line;
use plumb_measure::Out;
use plumb_report::Record;
use plumb_report::document::StudyDocument;
use plumb_report::document::study::{Study, StudyRow, StudySeries};
use plumb_report::quantity::bytes;
use plumb_trial::{Context, FailureKind, Request, TrialEnded, TrialError, Watcher, environment};

pub use self::bench::Switches;
use self::bench::{Bench, StudyError};

/// The field reports that were typed.
#[derive(Debug, Clone)]
pub struct Studies(Vec<&'static Chapter>);

impl FromStr for Studies {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let all = [&a::CHAPTER, &b::CHAPTER, &c::CHAPTER, &d::CHAPTER, &e::CHAPTER];
        let is_typed = |of: &&Chapter| [of.name, "all"].iter().any(|name| name.eq_ignore_ascii_case(typed));
        let named: Vec<_> = all.into_iter().filter(is_typed).collect();
        if named.is_empty() { Err("expected A, B, C, D, E or all".to_owned()) } else { Ok(Self(named)) }
    }
}

/// What is studied.
#[derive(Debug, Clone)]
pub struct StudyPlan {
    /// Which field reports.
    pub studies: Studies,
    /// A file, a directory or a device to run them on; `None`: simulated drives.
    pub on: Option<String>,
    /// The seed of all random choices.
    pub seed: u64,
}

/// Runs studies; the document, and how they ended. What `switches` have set is put back, whatever ends it. Of `request` the scenario is not looked at. What is known is kept after each
/// chapter.
///
/// # Errors
/// If the target is refused or makes no sense, or nothing can be recorded.
pub fn run(
    plan: &StudyPlan,
    request: &Request,
    context: &Context<'_>,
    watcher: &mut dyn Watcher,
    switches: &mut Switches,
) -> Result<(StudyDocument, TrialEnded), TrialError> {
    let ran = conduct(plan, request, context, watcher, switches);
    match (ran, switches.restore().err()) {
        (ran, None) => ran,
        (Ok((document, _)), Some(left)) => Ok((document, TrialEnded::Failed(in_one_line(&left)))),
        (Err(error), Some(left)) => Err(error.and(&left)),
    }
}

fn conduct(
    plan: &StudyPlan,
    request: &Request,
    context: &Context<'_>,
    watcher: &mut dyn Watcher,
    switches: &mut Switches,
) -> Result<(StudyDocument, TrialEnded), TrialError> {
    let mut record = Record::of(plumb_trial::begin_recording(request, plan.seed)?);
    let mut document = StudyDocument {
        schema: StudyDocument::SCHEMA.to_owned(),
        on: plan.on.clone().unwrap_or_else(|| "simulated drives".to_owned()),
        seed: plan.seed,
        environment: environment(&request.argv, &request.started_at),
        run_directory: record.shown(),
        ..StudyDocument::default()
    };
    let inner = Request { out: Out::Nowhere, notes: Vec::new(), ..request.clone() };
    let mut bench = Bench::new(&inner, context, watcher, plan, switches);
    let mut ended = TrialEnded::Complete;
    let length = || Some(std::fs::metadata(plan.on.as_ref()?).ok().filter(std::fs::Metadata::is_file)?.len());
    let before = length();
    for of in &plan.studies.0 {
        match chapter(of, &mut bench) {
            Ok(study) => document.studies.push(study),
            Err(StudyError::Trial(error)) if is_refusal(&error) && document.studies.is_empty() => {
                record.abandon()?;
                return Err(error);
            }
            Err(error) => {
                ended = error.ended();
                break;
            }
        }
        conclude(&mut document, &ended);
        if let Some(trouble) = record.attempt(|directory| directory.write_result(&document)) {
            bench.say(&trouble);
        }
    }
    if context.stop.load(Ordering::Relaxed) && ended == TrialEnded::Complete {
        ended = TrialEnded::Interrupted;
    }
    if let (Some(study), Some(before), Some(after)) = (document.studies.last_mut(), before, length())
        && before != after
    {
        let (before, after) = (bytes(before as f64), bytes(after as f64));
        study.notes.push(format!(
            "{} was {before} long, and is left with {after} of the data of the studies",
            document.on
        ));
    }
    conclude(&mut document, &ended);
    if let Err(error) = record.close(&document, ended.reason(), (context.time_of_day)()) {
        document.run_directory = None;
        ended = ended.unrecorded(&error);
        conclude(&mut document, &ended);
    }
    Ok((document, ended))
}

/// A field report as its file has it: what was reported, and how it is run.
#[derive(Debug)]
struct Chapter {
    name: &'static str,
    title: &'static str,
    source: &'static str,
    finding: &'static str,
    simulated: fn(&mut Bench<'_>) -> Result<Found, StudyError>,
    real: fn(&mut Bench<'_>, &str) -> Result<Found, StudyError>,
    notes: fn(&Bench<'_>) -> Vec<String>,
}

/// What came of a field report: its rows, what happened over time, and the answer.
type Found = (Vec<StudyRow>, Vec<StudySeries>, String);

fn chapter(chapter: &Chapter, bench: &mut Bench<'_>) -> Result<Study, StudyError> {
    let (rows, series, answer) = match bench.on() {
        None => (chapter.simulated)(bench)?,
        Some(target) => (chapter.real)(bench, target)?,
    };
    Ok(Study {
        name: chapter.name.to_owned(),
        title: chapter.title.to_owned(),
        source: chapter.source.to_owned(),
        finding: chapter.finding.to_owned(),
        answer,
        rows,
        series,
        notes: (chapter.notes)(bench),
    })
}

/// Whether the user has to type something else.
fn is_refusal(error: &TrialError) -> bool {
    matches!(error.kind(), FailureKind::Usage | FailureKind::Refused)
}

/// What all chapters together say.
fn conclude(document: &mut StudyDocument, ended: &TrialEnded) {
    let judged: Vec<bool> = document.rows().filter_map(|(_, row)| row.came_out).collect();
    let came_out = judged.iter().filter(|came_out| **came_out).count();
    let all = document.rows().count();
    let had = document.rows().filter(|(_, row)| row.ours.is_some()).count();
    let far = document.rows().filter(|(_, row)| row.came_out != Some(false) && !row.is_reproduced());
    let far = match far.count() {
        0 => String::new(),
        more => {
            format!("; {more} did not come out within a factor of {} of what was reported", StudyRow::NEAR)
        }
    };
    let on = &document.on;
    let (level, headline) = match judged.len() {
        _ if document.studies.is_empty() => ("info", "nothing was measured".to_owned()),
        0 => ("info", format!("{had} of {all} figures could be had on {on}{far}")),
        expected => (
            if expected == came_out { "none" } else { "warning" },
            format!("{came_out} of {expected} figures with an expectation came out on {on}{far}"),
        ),
    };
    (document.level, document.headline) = (level.to_owned(), headline);
    document.complete = *ended == TrialEnded::Complete;
    document.incomplete_because = ended.reason();
}
