//! The field reports as studies: each repeats what was reported, on simulated drives or on a target of this
//! machine, and shows the figures beside the reported ones.
//!
//! ```text
//!   studies/*.toml ──file──► runner ──► experiment ──► trial, application, targets
//!                       rows, texts        │
//!                                          ├──► host: hosts that no words describe
//!                                          └──► switches: states of a real target
//! ```
//!
//! Invariants:
//! 1. Nothing is fitted to the reported figures, except as a model's file states.
//! 2. A missing figure is a row with the reason; a figure that differs from the reported one is a row that
//!    says so.
//! 3. Simulated studies run in virtual time, from one seed.

mod experiment;
mod file;
mod runner;
mod switches;

use std::str::FromStr;
use std::sync::atomic::Ordering;

use plumb_block::{FailureKind, in_one_line};
use plumb_load::Observer;
use plumb_measure::Out;
use plumb_report::Record;
use plumb_report::document::StudyDocument;
use plumb_report::quantity::bytes;
use plumb_trial::{Context, Request, TrialEnded, TrialError, environment};

use self::experiment::Bench;
use self::file::StudyFile;
use self::runner::Runner;
pub use self::switches::Switches;
use crate::setting::failed;

/// Files of the requested field reports.
#[derive(Debug, Clone)]
pub struct Studies(Vec<&'static str>);

impl FromStr for Studies {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let is_typed = |name: &str| [name, "all"].iter().any(|known| known.eq_ignore_ascii_case(typed));
        let shipped = file::SHIPPED.into_iter().filter(|(name, _)| is_typed(name));
        let named: Vec<_> = shipped.map(|(_, text)| text).collect();
        if named.is_empty() { Err("expected A, B, C, D, E or all".to_owned()) } else { Ok(Self(named)) }
    }
}

/// Plan of the studies to run.
#[derive(Debug, Clone)]
pub struct StudyPlan {
    /// Field reports to study.
    pub studies: Studies,
    /// File, directory or device on which the studies run; `None`: simulated drives.
    pub on: Option<String>,
    /// The seed of all random choices.
    pub seed: u64,
}

/// Runs studies. Returns the document, and the end of the studies. Restores what `switches` have set, however
/// the studies end, and records the results after each chapter. The scenario of `request` is not used.
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
    for text in &plan.studies.0 {
        let file = StudyFile::read(text).map_err(|error| failed(&error))?;
        match Runner::new(&file, &mut bench).study() {
            Ok(study) => document.studies.push(study),
            Err(error) if is_refusal(&error) && document.studies.is_empty() => {
                record.abandon()?;
                return Err(error);
            }
            Err(error) => {
                ended = match error {
                    TrialError::Interrupted => TrialEnded::Interrupted,
                    error if error.failure() == FailureKind::NotMeasured => {
                        TrialEnded::NotMeasured(in_one_line(&error))
                    }
                    error => TrialEnded::Failed(in_one_line(&error)),
                };
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

/// Returns true if the user must change the command.
fn is_refusal(error: &TrialError) -> bool {
    matches!(error.failure(), FailureKind::Usage | FailureKind::Refused)
}
