//! The target is memory: a file system in memory, or a device that is one.

use plumb_path::{LayerKind, Severity};

use super::Verdict;
use super::evidence::Evidence;
use crate::wording;

/// `memory`: nothing written here survives a power cut, and no figure is of any storage.
pub(super) fn memory(evidence: &Evidence<'_>) -> Option<Verdict> {
    let in_memory =
        |kind| matches!(kind, LayerKind::Tmpfs | LayerKind::Zram | LayerKind::Ram | LayerKind::NullBlk);
    let path = evidence.document.path.as_ref()?;
    let layer = path.layers.iter().find(|layer| in_memory(layer.kind))?;
    let mut lines: Vec<String> =
        layer.evidence.iter().map(|line| format!("{}: {}", line.source, line.value)).collect();
    if lines.is_empty() {
        lines.push(format!("{} is a {}", layer.name, wording::kind(layer.kind)));
    }
    Some(Verdict {
        id: "memory",
        severity: Severity::Warning,
        sentence: format!(
            "{} lies in memory ({}): nothing here survives a power cut, and no figure is of a drive.",
            evidence.document.names().join(", "),
            wording::kind(layer.kind)
        ),
        evidence: lines,
        remedy: "Check a directory on the disk that you mean.",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn tmpfs_is_memory_and_ext4_is_not() {
        assert_eq!(memory(&Evidence::of(&fixture::document("tmpfs"))).unwrap().severity, Severity::Warning);
        assert!(memory(&Evidence::of(&fixture::virtual_machine())).is_none());
    }
}
