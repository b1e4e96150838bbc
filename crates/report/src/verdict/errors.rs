//! Operations that failed.

use plumb_path::{Finding, Severity};

use super::Verdict;
use crate::document::CheckDocument;
use crate::quantity::count;

/// `io-errors`: some operation of a load failed.
pub(super) fn io_errors(document: &CheckDocument) -> Option<Finding> {
    let failed: Vec<(&str, u64, u64)> = document
        .io
        .iter()
        .filter_map(|io| Some((io.name.as_str(), io.application.as_ref()?)))
        .filter(|(_, side)| side.errors > 0)
        .map(|(name, side)| (name, side.errors, side.operations))
        .collect();
    let total: u64 = failed.iter().map(|(_, errors, _)| errors).sum();
    (total > 0).then(|| {
        Verdict {
            id: "io-errors",
            severity: Severity::Warning,
            sentence: format!("{} operations failed.", count(total)),
            evidence: failed
                .iter()
                .map(|(name, errors, done)| {
                    format!("{name}: {} failed, {} completed", count(*errors), count(*done))
                })
                .collect(),
            remedy: "Read the kernel's log for this device before anything else is measured on it.",
        }
        .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn errors_are_found_and_their_absence_is_not() {
        let mut document = fixture::virtual_machine();
        assert!(io_errors(&document).is_none());
        document.io[1].application.as_mut().unwrap().errors = 3;
        assert_eq!(io_errors(&document).unwrap().sentence, "3 operations failed.");
    }
}
