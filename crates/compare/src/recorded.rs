//! Runs that were recorded earlier, compared: each is one value, and the test is that of two independent samples.
//!
//! # Limitations
//! The runs did not take turns. Whatever changed between them (other load, a warmer drive, more data) is taken for a difference of
//! the levels, and no test can tell. The document says so.

use plumb_report::document::RunJob;
use plumb_report::document::comparison::{Block, DesignFacts};
use plumb_report::{ComparisonDocument, RunDocument};

use crate::block::block_of;
use crate::judge::{Asked, Question, values};
use crate::outcome::judge;
use crate::statistics::ShiftInterval;

/// What is said of every comparison of recorded runs.
const NOT_INTERLEAVED: &str = "The runs were recorded one after the other, not interleaved: what changed between them is taken for a \
    difference of the levels.";

/// Runs that do not do the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{run} has no {figure}: it cannot be compared by that figure")]
pub struct Unlike {
    run: String,
    figure: String,
}

/// Compares `runs`, by their names, with the runs `against`. The first level is that of `against`.
///
/// # Errors
/// If a run lacks the figure that decides.
pub fn compare_recorded(
    question: &Question,
    against: &[(String, RunDocument)],
    runs: &[(String, RunDocument)],
) -> Result<ComparisonDocument, Unlike> {
    let mut blocks = Vec::new();
    for (level, group) in [against, runs].into_iter().enumerate() {
        for (round, (name, run)) in (1..).zip(group) {
            let jobs: Vec<RunJob> = run.spans.iter().flat_map(|span| span.jobs.clone()).collect();
            let page_cache = !jobs.is_empty() && jobs.iter().all(|job| job.caching.is_cached());
            let block = Block { level, round, ..block_of(&run.total, page_cache, run.duration) };
            if !block.figures.contains_key(&question.figure) {
                return Err(Unlike { run: name.clone(), figure: question.figure.clone() });
            }
            blocks.push(block);
        }
    }
    let rounds = against.len().max(runs.len());
    let judged = |level: usize, figure: &str, error: f64| {
        let (one, base) = (values(&blocks, level, rounds, figure)?, values(&blocks, 0, rounds, figure)?);
        let shift = ShiftInterval::of(&one, &base);
        Some(judge(shift.center(), |error| shift.interval(error), error, &question.terms))
    };
    let asked = Asked { question, rounds, error: question.terms.error, judged: &judged };
    let mut document = asked.document(DesignFacts::default(), &blocks);
    let all = || against.iter().chain(runs);
    let mut notes = vec![NOT_INTERLEAVED.to_owned()];
    notes.extend(all().filter_map(|(_, run)| Some(format!("Imported: {}.", run.imported_from.as_ref()?))));
    let workloads: Vec<&str> = all().map(|(_, run)| run.workload.as_str()).collect();
    if workloads.windows(2).any(|pair| pair[0] != pair[1]) {
        notes.push("The runs did not all run the same workload, or not from the same seed.".to_owned());
    }
    document.blocks = against.len().min(runs.len()) as u64;
    document.complete = true;
    document.notes = notes;
    document.measured = blocks;
    Ok(document)
}
