//! Operations that failed, and loads that ended because of one.

use plumb_path::{Finding, Severity};

use super::super::Verdict;
use super::targets;
use crate::document::RunDocument;
use crate::headline::{capital, sentence};
use crate::quantity::count;

/// `load-failed`: a device or a flush failed, which ended the load.
pub(in super::super) fn load_failed(document: &RunDocument) -> Option<Finding> {
    if !document.failed {
        return None;
    }
    let why = document.incomplete_because.as_deref().map(str::trim).filter(|why| !why.is_empty());
    let mut evidence = failures(document);
    if evidence.is_empty() {
        evidence.push("the load ended at its first failure".to_owned());
    }
    Some(
        Verdict {
            id: "load-failed",
            severity: Severity::Danger,
            sentence: capital(&sentence(why.unwrap_or("a device or a flush failed"))),
            evidence,
            remedy: "Find the cause in the kernel's log (dmesg). Do not trust data written since the last good flush.",
        }
        .into(),
    )
}

/// `operations-failed`: the load went on, but some operations failed. A failed flush leaves nobody knowing what of the
/// writes before it is durable.
pub(in super::super) fn operations_failed(document: &RunDocument) -> Option<Finding> {
    let evidence = failures(document);
    if document.failed || evidence.is_empty() {
        return None;
    }
    let flushes = document.targets.iter().map(|target| target.sides.sync.errors).fold(0, u64::saturating_add);
    let (severity, sentence) = match flushes {
        0 => {
            let failed = document.targets.iter().map(|target| target.sides.application.errors);
            let failed = failed.fold(0, u64::saturating_add);
            (
                Severity::Warning,
                format!("{} operations failed; the figures are of those that did not.", count(failed)),
            )
        }
        failed => (
            Severity::Danger,
            format!("{} flushes failed: what was written before them may not be durable.", count(failed)),
        ),
    };
    Some(
        Verdict {
            id: "operations-failed",
            severity,
            sentence,
            evidence,
            remedy: "Find the cause in the kernel's log (dmesg). After a failed flush the data must be written again, \
                     elsewhere: a second flush that succeeds proves nothing about the first.",
        }
        .into(),
    )
}

/// One line for each way in which operations of a target failed.
fn failures(document: &RunDocument) -> Vec<String> {
    let mut lines = Vec::new();
    for (label, target, _) in targets(document) {
        for (direction, result) in target.sides.used() {
            let of = |number, error: &str| format!("{label}: {} of {direction}: {error}", count(number));
            match result.errors_by.as_slice() {
                [] if result.errors > 0 => lines.push(of(result.errors, "failed")),
                ways => lines.extend(ways.iter().map(|way| of(way.count, &way.error))),
            }
        }
    }
    lines
}
