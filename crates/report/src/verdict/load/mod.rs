//! The rules for loads alone. What checks and loads are judged by alike stands beside this directory.

mod content;
mod depth;
mod failure;
mod flushes;
mod platter;
mod rounds;
mod schedule;
#[cfg(test)]
mod tests;
mod verification;
mod waiting;

use plumb_path::Finding;

use crate::document::{RunDocument, RunJob, RunTarget};

/// A rule: what it finds in a document, if anything.
type LoadRule = fn(&RunDocument) -> Option<Finding>;

/// All rules, in the order in which equals are reported.
pub(super) const RULES: [LoadRule; 16] = [
    verification::not_as_written,
    failure::load_failed,
    failure::operations_failed,
    flushes::dropped,
    flushes::none_seen,
    flushes::missing,
    flushes::merged,
    platter::faster_than_the_platter,
    schedule::backlog,
    depth::not_reached,
    depth::latency_target_missed,
    rounds::no_steady_state,
    rounds::not_settled,
    waiting::waiting_on_flushes,
    content::reducible,
    content::not_durable,
];

/// The targets, each with what to call it and its job.
fn targets(document: &RunDocument) -> impl Iterator<Item = (String, &RunTarget, &RunJob)> {
    let labelled = document.labels().into_iter().zip(&document.targets);
    labelled.filter_map(|(label, target)| Some((label, target, document.job_of(target)?)))
}
