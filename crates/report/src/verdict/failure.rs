//! The check itself ended because something failed.

use plumb_path::{Finding, Severity};

use super::Verdict;
use crate::document::CheckDocument;
use crate::headline::{capital, sentence};
use crate::wording;

/// `check-failed`: a device or a flush failed, which ended the check. A load stops at its first failure, so there is
/// at most one.
pub(super) fn check_failed(document: &CheckDocument) -> Option<Finding> {
    if !document.failed {
        return None;
    }
    let sync = document.sync.iter().map(|result| (wording::method(result.method), &result.failed_because));
    let io = document.io.iter().map(|io| (io.name.as_str(), &io.failed_because));
    let mut evidence: Vec<String> =
        sync.chain(io).filter_map(|(name, why)| Some(format!("{name}: {}", why.as_deref()?))).collect();
    if evidence.is_empty() {
        evidence.push("the check ended at its first failure".to_owned());
    }
    let why = document.incomplete_because.as_deref().map(str::trim).filter(|why| !why.is_empty());
    Some(
        Verdict {
            id: "check-failed",
            severity: Severity::Danger,
            sentence: capital(&sentence(why.unwrap_or("a device or a flush failed"))),
            evidence,
            remedy: "Find the cause in the kernel's log (dmesg). Do not trust data written since the last good flush.",
        }
        .into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_failure_is_a_danger_and_an_interruption_is_not() {
        let mut document = fixture::document("interrupted");
        assert!(check_failed(&document).is_none());
        document.failed = true;
        document.incomplete_because = Some("cannot sync /srv/x: Input/output error (5)".to_owned());
        let finding = check_failed(&document).unwrap();
        assert_eq!(finding.severity, Severity::Danger);
        assert_eq!(finding.sentence, "Cannot sync /srv/x: Input/output error (5).");
        document.incomplete_because = None;
        assert!(!check_failed(&document).unwrap().sentence.is_empty());
    }
}
