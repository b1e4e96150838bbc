//! The field reports as studies: each runs what was reported, on simulated drives or on a target of this machine, and sets the figures
//! beside those that were reported.
//!
//! ```text
//!   a b c d e   one file a field report: what was reported (constants with their source), what is run, the rows
//!      │
//!   bench ──► trial, application: loads in plumb's own words, profiles on a simulated file system
//!   object_store, steady_load: hosts that no words describe
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
mod object_store;
mod row;
mod steady_load;

use std::sync::atomic::Ordering;

use plumb_measure::{Manifest, Out, RunDirectory};
use plumb_report::document::StudyDocument;
use plumb_report::document::study::{Study, StudyRow, StudySeries};
use plumb_report::{Format, Style, render};
use plumb_trial::{Context, FailureKind, Request, TrialEnded, TrialError, Watcher, environment};

use self::bench::{Bench, StudyError};

/// A field report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StudyName {
    /// The write cache turned off on an all-flash cluster.
    A,
    /// The disk, or the file-system cache.
    B,
    /// A write-back cache in front of hard disks.
    C,
    /// fdatasync with the drive's cache on and off.
    D,
    /// Flushes, and the applications that wait for them.
    E,
}

impl StudyName {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::A, Self::B, Self::C, Self::D, Self::E];
}

/// What is studied.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyPlan {
    /// Which field reports.
    pub names: Vec<StudyName>,
    /// A file, a directory or a device to run them on; `None`: simulated drives.
    pub on: Option<String>,
    /// The seed of all random choices.
    pub seed: u64,
}

/// Runs studies; the document, and how they ended. Of `request` the scenario is not looked at. What is known is kept after each
/// chapter.
///
/// # Errors
/// If the target is refused or makes no sense, or nothing can be recorded.
pub fn run(
    plan: &StudyPlan,
    request: &Request,
    context: &Context<'_>,
    watcher: &mut dyn Watcher,
) -> Result<(StudyDocument, TrialEnded), TrialError> {
    let mut manifest =
        Manifest::starting(&request.command, request.argv.clone(), plan.seed, &request.started_at);
    let environment = environment(&request.argv, &request.started_at);
    (manifest.kernel, manifest.host) = (environment.kernel.clone(), environment.host.clone());
    let directory = RunDirectory::create(&request.out, &manifest)?;
    let mut document = StudyDocument {
        schema: StudyDocument::SCHEMA.to_owned(),
        on: plan.on.clone().unwrap_or_else(|| "simulated drives".to_owned()),
        seed: plan.seed,
        environment,
        run_directory: directory.as_ref().map(|directory| directory.path().display().to_string()),
        ..StudyDocument::default()
    };
    let inner = Request { out: Out::Nowhere, notes: Vec::new(), ..request.clone() };
    let mut bench = Bench::new(&inner, context, watcher, plan.on.as_deref(), plan.seed);
    let mut ended = TrialEnded::Complete;
    for name in &plan.names {
        match chapter(*name, &mut bench) {
            Ok(study) => document.studies.push(study),
            Err(StudyError::Trial(error)) if is_refusal(&error) && document.studies.is_empty() => {
                directory.map_or(Ok(()), RunDirectory::abandon)?;
                return Err(error);
            }
            Err(error) => {
                ended = error.ended();
                break;
            }
        }
        conclude(&mut document, &ended);
        directory.as_ref().map_or(Ok(()), |directory| directory.write_result(&document))?;
    }
    if context.stop.load(Ordering::Relaxed) && ended == TrialEnded::Complete {
        ended = TrialEnded::Interrupted;
    }
    conclude(&mut document, &ended);
    if let Some(directory) = directory {
        directory.write_result(&document)?;
        let page = render(&document, Format::Html, Style::PLAIN).unwrap_or_default();
        directory.write_file(Format::Html.file_name(), page.as_bytes())?;
        directory.finish(ended.reason(), (context.time_of_day)())?;
    }
    Ok((document, ended))
}

/// A field report as its file has it: what was reported, and how it is run.
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

fn chapter(name: StudyName, bench: &mut Bench<'_>) -> Result<Study, StudyError> {
    let chapter = match name {
        StudyName::A => a::CHAPTER,
        StudyName::B => b::CHAPTER,
        StudyName::C => c::CHAPTER,
        StudyName::D => d::CHAPTER,
        StudyName::E => e::CHAPTER,
    };
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
    let (level, headline) = match judged.len() {
        _ if document.studies.is_empty() => ("info", "nothing was measured".to_owned()),
        0 => ("info", format!("{had} of {all} figures could be had on {}", document.on)),
        expected if expected == came_out => {
            ("none", format!("all {expected} figures with an expectation came out on {}", document.on))
        }
        expected => (
            "warning",
            format!("{came_out} of {expected} figures with an expectation came out on {}", document.on),
        ),
    };
    (document.level, document.headline) = (level.to_owned(), headline);
    document.complete = *ended == TrialEnded::Complete;
    document.incomplete_because = ended.reason();
}
