//! The field reports as studies: each runs what was reported, on simulated drives or on a target of this
//! machine, and sets the figures beside those that were reported.
//!
//! ```text
//!   studies/*.toml ──file──► runner ──► experiment ──► bench ──► trial, application, targets
//!                       rows, texts        │
//!                                          └──► host: hosts that no words describe
//! ```
//!
//! Invariants:
//! 1. Nothing is fitted to what was reported but what a model's file says of itself.
//! 2. A figure that could not be had is a row with its reason; one that came out otherwise is a row that says
//!    so.
//! 3. Simulated studies run in virtual time, from one seed.

mod bench;
mod experiment;
mod file;
mod runner;

use std::str::FromStr;
use std::sync::atomic::Ordering;

use plumb_block::{FailureKind, in_one_line};
use plumb_load::Observer;
use plumb_measure::Out;
use plumb_report::Record;
use plumb_report::document::StudyDocument;
use plumb_report::quantity::bytes;
use plumb_trial::{Context, Request, TrialEnded, TrialError, environment};

pub use self::bench::Switches;
use self::bench::{Bench, ended as ended_by};
use self::file::StudyFile;
use self::runner::Runner;

/// The field reports that were typed.
#[derive(Debug, Clone)]
pub struct Studies(Vec<&'static str>);

impl FromStr for Studies {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let is_typed = |name: &&str| [*name, "all"].iter().any(|known| known.eq_ignore_ascii_case(typed));
        let named: Vec<_> = file::names().filter(is_typed).collect();
        if named.is_empty() { Err("expected A, B, C, D, E or all".to_owned()) } else { Ok(Self(named)) }
    }
}

/// Plan of the studies to run.
#[derive(Debug, Clone)]
pub struct StudyPlan {
    /// Field reports to study.
    pub studies: Studies,
    /// A file, a directory or a device to run them on; `None`: simulated drives.
    pub on: Option<String>,
    /// The seed of all random choices.
    pub seed: u64,
}

/// Runs studies, and returns the document and how they ended. Puts back what `switches` have set, whatever
/// ends it, and keeps what is known after each chapter. The scenario of `request` is not used.
///
/// # Errors
/// If the target is refused or makes no sense, or nothing can be recorded.
pub fn run(
    plan: &StudyPlan,
    request: &Request,
    context: &Context<'_>,
    observer: &mut dyn Observer,
    switches: &mut Switches,
) -> Result<(StudyDocument, TrialEnded), TrialError> {
    let ran = conduct(plan, request, context, observer, switches);
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
    observer: &mut dyn Observer,
    switches: &mut Switches,
) -> Result<(StudyDocument, TrialEnded), TrialError> {
    let mut record = Record::new(plumb_trial::begin_recording(request, plan.seed)?);
    let mut document = StudyDocument {
        schema: StudyDocument::SCHEMA.to_owned(),
        on: plan.on.clone().unwrap_or_else(|| "simulated drives".to_owned()),
        seed: plan.seed,
        environment: environment(&request.argv, &request.started_at),
        run_directory: record.shown(),
        ..StudyDocument::default()
    };
    let inner = Request { out: Out::Nowhere, notes: Vec::new(), ..request.clone() };
    let mut bench =
        Bench { request: &inner, context, observer, on: plan.on.as_deref(), seed: plan.seed, switches };
    let mut ended = TrialEnded::Complete;
    let length = || Some(std::fs::metadata(plan.on.as_ref()?).ok().filter(std::fs::Metadata::is_file)?.len());
    let before = length();
    for name in &plan.studies.0 {
        let file =
            StudyFile::shipped(name).map_err(|problem| TrialError::new(FailureKind::Failed, problem))?;
        match Runner::new(&file, &mut bench).study() {
            Ok(study) => document.studies.push(study),
            Err(error) if is_refusal(&error) && document.studies.is_empty() => {
                record.abandon()?;
                return Err(error);
            }
            Err(error) => {
                ended = ended_by(&error);
                break;
            }
        }
        document.conclude(ended.reason());
        if let Some(trouble) = record.attempt(|directory| directory.write_result(&document)) {
            bench.observer.note(&trouble);
        }
    }
    if context.stop.load(Ordering::Relaxed) && ended == TrialEnded::Complete {
        ended = TrialEnded::Interrupted;
    }
    if let (Some(study), Some(before), Some(after)) = (document.studies.last_mut(), before, length())
        && before != after
    {
        let (before, after) = (bytes(before as f64), bytes(after as f64));
        study
            .notes
            .push(format!("{} had {before}; the studies wrote to it, and it now has {after}", document.on));
    }
    document.conclude(ended.reason());
    if let Err(error) = record.close(&document, ended.reason(), (context.time_of_day)()) {
        document.run_directory = None;
        ended = ended.unrecorded(&error);
        document.conclude(ended.reason());
    }
    Ok((document, ended))
}

/// Returns true if the user has to type something else.
fn is_refusal(error: &TrialError) -> bool {
    matches!(error.failure(), FailureKind::Usage | FailureKind::Refused)
}
