//! Verdict rules: pure functions from measurements to conclusions.
//!
//! A rule has an id, a sentence with its figures, evidence and a remedy. The catalogue (`rules.toml`, read by
//! [`rules`](crate::rules)) holds the meaning, the condition and the remedy of each. No rule concludes from
//! speed that a path loses nothing: it states what the figures are consistent with, and what would prove it.
//! On a healthy machine no rule is above info, so that plumb exits with 0 there.

mod content;
mod depth;
mod evidence;
mod extents;
mod failure;
mod fleet;
mod flushes;
mod neighbours;
mod one_honoured;
mod outcome;
mod page_cache;
mod platter;
mod samples;
mod schedule;
mod steadiness;
#[cfg(test)]
mod tests;
mod verification;
mod waiting;

use plumb_path::{Finding, Flush, Severity, WritePath};

use self::evidence::Evidence;
pub use self::fleet::{STRAGGLER_SHARE, conclude_fleet, named, names_of_one_machine};
pub(crate) use self::neighbours::Foreign;
use self::outcome::Verdict;
use crate::document::{RunDocument, RunTarget};
use crate::headline::Headline;
use crate::levels::loses_synced;

/// Rule: returns its verdict on a run, if it applies.
type Rule = fn(&Evidence<'_>) -> Option<Verdict>;

/// Rules with their ids in the catalogue, in the order in which verdicts of equal severity are reported.
const RULES: [(&str, Rule); 26] = [
    ("check-failed", failure::check_failed),
    ("load-failed", failure::load_failed),
    ("data-not-as-written", verification::not_as_written),
    ("operations-failed", failure::operations_failed),
    ("flush-dropped", flushes::dropped),
    ("no-flush-seen", flushes::none_seen),
    ("flushes-missing", flushes::missing),
    ("flushes-merged", flushes::merged),
    ("faster-than-the-platter", platter::faster_than_the_platter),
    ("one-of-flush-and-fua", one_honoured::one_of_flush_and_fua),
    ("backlog", schedule::backlog),
    ("depth-not-reached", depth::not_reached),
    ("latency-target-missed", depth::latency_target_missed),
    ("no-steady-state", steadiness::no_steady_state),
    ("not-settled", steadiness::not_settled),
    ("waiting-on-flushes", waiting::waiting_on_flushes),
    ("compressible", content::reducible),
    ("range-is-not-durable", content::not_durable),
    ("unwritten-extents", extents::unwritten),
    ("page-cache", page_cache::page_cache),
    ("cached-below", page_cache::cached_below),
    ("generator-bound", waiting::generator_bound),
    ("device-shared-with-others", neighbours::device_shared),
    ("steal", neighbours::steal),
    ("not-steady", steadiness::not_steady),
    ("too-short", samples::too_short),
];

/// Returns all findings about a run: those of its surveys and the verdicts of the rules, worst first, each
/// once. The document's own `verdicts` are not used, so judging again changes nothing.
pub fn judge(document: &RunDocument) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    for finding in document.all_paths().into_iter().flat_map(|path| &path.findings) {
        if !all.iter().any(|known| (&known.id, &known.sentence) == (&finding.id, &finding.sentence)) {
            all.push(finding.clone());
        }
    }
    let drops = document.all_paths().into_iter().any(is_dropping);
    let evidence = Evidence::new(document);
    for (id, rule) in RULES {
        let Some(verdict) = rule(&evidence) else { continue };
        // The survey may name the layer that drops the flushes missing in a measurement.
        let by_cause = |finding: &Finding| match id {
            "flush-dropped" => drops && finding.severity == Severity::Danger,
            // A flush that is not supported fails for that reason, which the kernel's log does not show.
            "load-failed" | "check-failed" | "operations-failed" => {
                finding.id == "nbd-no-flush" && verdict.is_not_supported()
            }
            _ => false,
        };
        let same = all.iter().position(|finding| finding.id == id);
        match same.or_else(|| all.iter().position(by_cause)) {
            Some(index) => add_evidence(&mut all[index], verdict),
            None => all.push(verdict.named(id)),
        }
    }
    Finding::sort_by_severity(&mut all);
    all
}

/// Judges `document` and sets its verdicts, level and headline. `beside` are findings from outside the rules,
/// such as the user's limits, and come last.
pub fn conclude(document: &mut RunDocument, beside: Vec<Finding>) {
    document.verdicts = judge(document);
    document.verdicts.extend(beside);
    let headline = Headline::new(document);
    headline.level(&document.verdicts).clone_into(&mut document.level);
    document.headline = headline.in_document();
}

/// Returns true if something was written to `targets`, which belong to the document, and a power cut loses
/// data of any of them, synced or not, according to its path or the counted flushes.
pub fn loses_writes<'a>(document: &RunDocument, targets: impl IntoIterator<Item = &'a RunTarget>) -> bool {
    let evidence = Evidence::new(document);
    let mut wrote = targets.into_iter().filter(|target| target.sides.write.ios > 0);
    wrote.any(|target| loses_synced(document, target) || flushes::are_dropped(&evidence, target))
}

/// Returns true if a layer of the path drops flushes.
fn is_dropping(path: &WritePath) -> bool {
    path.layers.iter().any(|layer| layer.flush == Flush::Dropped)
}

/// Keeps the sentence of the survey and adds the measurement to its evidence.
fn add_evidence(surveyed: &mut Finding, verdict: Verdict) {
    surveyed.severity = surveyed.severity.max(verdict.severity);
    for line in verdict.evidence {
        if !surveyed.evidence.contains(&line) {
            surveyed.evidence.push(line);
        }
    }
}
