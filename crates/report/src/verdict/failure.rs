//! Operations that failed, and runs that ended because of one.

use plumb_path::Severity;

use super::evidence::Evidence;
use super::outcome::Verdict;
use crate::document::{RunJob, RunTarget};
use crate::headline::{capital, sentence};
use crate::quantity::{count, counted};

/// Judges `check-failed`: a device or a flush failed, which ended the check.
pub(super) fn check_failed(evidence: &Evidence<'_>) -> Option<Verdict> {
    run_failed(evidence).filter(|_| evidence.document.is_check())
}

/// Judges `load-failed`: a device or a flush failed, which ended the load.
pub(super) fn load_failed(evidence: &Evidence<'_>) -> Option<Verdict> {
    run_failed(evidence).filter(|_| !evidence.document.is_check())
}

fn run_failed(evidence: &Evidence<'_>) -> Option<Verdict> {
    let document = evidence.document;
    let why = document.incomplete_because.as_deref().map(str::trim).filter(|why| !why.is_empty());
    let mut lines = failures(evidence);
    if lines.is_empty() {
        lines.push("the run ended at its first failure".to_owned());
    }
    let sentence = capital(&sentence(why.unwrap_or("a device or a flush failed")));
    document.failed.then(|| with_remedy(evidence, Verdict::new(Severity::Danger, sentence, lines)))
}

/// Judges `operations-failed`: the run continued, but some operations failed. After a failed flush the
/// durability of earlier writes is unknown.
pub(super) fn operations_failed(evidence: &Evidence<'_>) -> Option<Verdict> {
    let targets = || evidence.targets().map(|(_, target, _)| &target.sides);
    let sum = |counts: &mut dyn Iterator<Item = u64>| counts.fold(0, u64::saturating_add);
    let failed = sum(&mut targets().map(|sides| sides.application.errors));
    let flushes = sum(&mut targets().map(|sides| sides.sync.errors));
    if evidence.document.failed || (failed == 0 && flushes == 0) {
        return None;
    }
    let refused = |(label, target, _): (&str, &RunTarget, &RunJob)| {
        let is_refused = target.atomic.is_some_and(|atomic| atomic.refused > 0);
        let why = target.failed_because.as_ref().filter(|_| is_refused)?;
        Some(format!("{label}: {why}."))
    };
    let (severity, sentence) = match (flushes, evidence.targets().find_map(refused)) {
        (0, Some(all)) => (Severity::Warning, all),
        (0, None) => {
            let text = format!("{} failed; the figures cover the others.", counted(failed, "operation"));
            (Severity::Warning, text)
        }
        (flushes, _) => (
            Severity::Danger,
            format!("{} failed: what was written before may not be durable.", counted(flushes, "flush")),
        ),
    };
    Some(with_remedy(evidence, Verdict::new(severity, sentence, failures(evidence))))
}

/// Remedy for faults of simulated drives.
const SIMULATED: &str = "The drive is simulated, and fails as its name (`fault=`) or its model says. Leave the fault out to \
                         measure without it.";
/// Remedy for a write that found no space.
const FULL: &str =
    "Make room: free space or quota on the file system, or in the pool of a thin volume. Then run again.";

/// Sets the remedy for causes that the kernel's log does not show: a simulated drive, or a full file system.
/// A failed flush of a real device keeps the remedy of the rule, even if it failed for lack of space.
fn with_remedy(evidence: &Evidence<'_>, verdict: Verdict) -> Verdict {
    let targets = || evidence.document.targets.iter();
    let is_simulated =
        !evidence.document.targets.is_empty() && targets().all(|one| one.engine == "simulation");
    let is_flush = verdict.sentence.contains("flush") || targets().any(|one| one.sides.sync.errors > 0);
    let is_full = !is_flush && verdict.is_for_want_of_space();
    let remedy = if is_simulated { Some(SIMULATED) } else { is_full.then_some(FULL) };
    Verdict { remedy: remedy.map(str::to_owned), ..verdict }
}

/// Returns one line for each kind of failure of a target or of its operations.
fn failures(evidence: &Evidence<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for (label, target, _) in evidence.targets() {
        let told: u64 =
            target.sides.moving().iter().map(|(_, result)| result.errors).fold(0, u64::saturating_add);
        // Other programs may not report whether the operations were reads or writes.
        let others = target.sides.application.errors.saturating_sub(told);
        lines.extend((others > 0).then(|| format!("{label}: {}: failed", counted(others, "operation"))));
        lines.extend(target.failed_because.iter().map(|why| format!("{label}: {why}")));
        for (direction, result) in target.sides.used() {
            let of = |number, error: &str| format!("{label}: {} of {direction}: {error}", count(number));
            match result.errors_by.as_slice() {
                [] if result.errors > 0 => lines.push(of(result.errors, "failed")),
                each => lines.extend(each.iter().map(|error| of(error.count, &error.error))),
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_failure_is_a_danger_and_an_interruption_is_not() {
        let mut document = fixture::document("interrupted");
        assert!(check_failed(&Evidence::new(&document)).is_none());
        document.failed = true;
        document.incomplete_because = Some("cannot sync /srv/x: Input/output error (5)".to_owned());
        let finding = check_failed(&Evidence::new(&document)).unwrap();
        assert_eq!(finding.severity, Severity::Danger);
        assert!(load_failed(&Evidence::new(&document)).is_none(), "it is a check");
        assert_eq!(finding.sentence, "Cannot sync /srv/x: Input/output error (5).");
        document.incomplete_because = None;
        assert!(!check_failed(&Evidence::new(&document)).unwrap().sentence.is_empty());
    }

    #[test]
    fn the_remedy_is_that_of_the_cause() {
        let mut document = fixture::document("interrupted");
        document.failed = true;
        let remedy =
            |document: &crate::document::RunDocument| check_failed(&Evidence::new(document)).unwrap().remedy;
        document.incomplete_because = Some("write failed: Input/output error (os error 5)".to_owned());
        assert_eq!(remedy(&document), None, "that of the catalogue");
        let full = plumb_block::Errno::ENOSPC;
        document.incomplete_because = Some(format!("write failed: {full}"));
        assert_eq!(remedy(&document).as_deref(), Some(FULL));
        document.incomplete_because = Some(format!("a flush of x failed: {full}"));
        assert_eq!(remedy(&document), None, "what was written cannot be trusted");
        document.targets.iter_mut().for_each(|target| target.engine = "simulation".to_owned());
        assert_eq!(remedy(&document).as_deref(), Some(SIMULATED));
    }

    #[test]
    fn a_phase_that_could_not_be_measured_is_no_failed_operation() {
        assert!(operations_failed(&Evidence::new(&fixture::document("tmpfs"))).is_none());
    }
}
