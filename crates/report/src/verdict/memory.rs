//! The target is memory: a file system in memory, or a device that is one.

use plumb_path::{Finding, LayerKind, Severity};

use super::Verdict;
use crate::document::CheckDocument;
use crate::wording;

/// `memory`: nothing written here survives a power cut, and no figure is of any storage.
pub(super) fn memory(document: &CheckDocument) -> Option<Finding> {
    let in_memory =
        |kind| matches!(kind, LayerKind::Tmpfs | LayerKind::Zram | LayerKind::Ram | LayerKind::NullBlk);
    let layer = document.path.layers.iter().find(|layer| in_memory(layer.kind))?;
    let mut evidence: Vec<String> =
        layer.evidence.iter().map(|line| format!("{}: {}", line.source, line.value)).collect();
    if evidence.is_empty() {
        evidence.push(format!("{} is a {}", layer.name, wording::kind(layer.kind)));
    }
    Some(
        Verdict {
            id: "memory",
            severity: Severity::Warning,
            sentence: format!(
                "{} lies in memory ({}): nothing here survives a power cut, and no figure is of a drive.",
                document.target,
                wording::kind(layer.kind)
            ),
            evidence,
            remedy: "Check a directory on the disk that you mean.",
        }
        .into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn tmpfs_is_memory_and_ext4_is_not() {
        assert_eq!(memory(&fixture::document("tmpfs")).unwrap().severity, Severity::Warning);
        assert!(memory(&fixture::virtual_machine()).is_none());
    }
}
