//! Runner of experiments: for each workload one trial, whose spans are the blocks.

use plumb_block::in_one_line;
use plumb_load::Observer;
use plumb_measure::{Out, RunDirectory};
use plumb_report::document::ComparisonDocument;
use plumb_trial::{Context, Interim, Request, ScheduledSpan, TrialEnded, TrialError, run_scheduled};

use crate::chapter_record::ChapterRecord;
use crate::course::Course;
use crate::experiment::Experiment;
use crate::setting::Setting;

/// An experiment under one workload.
#[derive(Debug, Clone)]
pub struct Chapter {
    /// Name of the workload; empty if there is only one.
    pub name: String,
    /// Experiment of the chapter.
    pub experiment: Experiment,
    /// Request for a trial of [`Experiment::scenario`].
    pub request: Request,
}

/// Result of a comparison, and its end.
type CompareResult = Result<(ComparisonDocument, TrialEnded), TrialError>;

/// Runs experiments one after the other, recorded together as the first one requests. Returns the document,
/// and the end of the trials. With `setting`, levels are set on the machine: each turn sets its level, opens
/// its targets, and closes them. The earlier settings are restored, however the run ends.
///
/// The results are recorded after every round, so that a run that ends early leaves whole rounds to judge.
///
/// # Errors
/// If nothing could be measured, or the earlier settings could not be restored.
pub fn run(
    first: &Chapter,
    further: &[Chapter],
    context: &Context<'_>,
    observer: &mut dyn Observer,
    mut setting: Option<&mut dyn Setting>,
) -> CompareResult {
    RunDirectory::check(&first.request.out)?;
    let mut kept = ChapterRecord::begin(&first.request)?;
    let mut ended = Ok(TrialEnded::Complete);
    for chapter in std::iter::once(first).chain(further) {
        let set = setting.as_mut().map(|setting| &mut **setting as &mut dyn Setting);
        ended = conduct(chapter, context, observer, set, &mut kept);
        if !matches!(ended, Ok(TrialEnded::Complete)) {
            break;
        }
    }
    let left = setting.and_then(|setting| setting.restore().err());
    let ended = match (ended, left) {
        (ended, None) => ended,
        (Ok(_), Some(left)) => Ok(TrialEnded::Failed(in_one_line(&left))),
        (Err(error), Some(left)) => Err(error.and(&left)),
    };
    kept.finish(ended, context.time_of_day)
}

/// Runs one experiment, and adds it to the record.
fn conduct(
    chapter: &Chapter,
    context: &Context<'_>,
    observer: &mut dyn Observer,
    mut setting: Option<&mut dyn Setting>,
    kept: &mut ChapterRecord,
) -> Result<TrialEnded, TrialError> {
    let Chapter { name, experiment, request } = chapter;
    let request = Request { out: Out::Nowhere, ..request.clone() };
    let mut course = Course::new(name, experiment, &request.scenario);
    let mut proceed = |interim: &Interim<'_>| {
        let mut trouble = None;
        let Some(turn) = course.proceed(interim, &mut |known| trouble = kept.keep(known)) else {
            return Ok(None);
        };
        let note = turn.note.into_iter().chain(trouble).reduce(|note, trouble| format!("{note}; {trouble}"));
        let reopens = match &mut setting {
            None => None,
            Some(setting) => {
                setting.set(turn.span)?;
                Some(setting.permission(turn.span, &request.permission))
            }
        };
        Ok(Some(ScheduledSpan { note, reopens, ..turn }))
    };
    let trial = run_scheduled(&request, context, observer, &mut proceed)?;
    kept.add(course.finish(&trial)?);
    Ok(trial.ended)
}
