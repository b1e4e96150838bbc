//! What the path alone says and a reader of the figures should know.

use plumb_path::{Cache, Finding, Flush, Layer, LayerKind, Severity};

use super::{Verdict, device_layers, list};
use crate::document::CheckDocument;

/// `volatile-cache`: devices hold acknowledged data until they are flushed.
pub(super) fn volatile_cache(document: &CheckDocument) -> Option<Finding> {
    if surveyed(document, "volatile-cache") {
        return None;
    }
    let volatile: Vec<&Layer> =
        device_layers(&document.path).filter(|layer| layer.cache == Cache::Volatile).collect();
    if volatile.is_empty()
        || volatile.iter().any(|layer| layer.kind == LayerKind::Ram || layer.kind == LayerKind::Zram)
    {
        return None;
    }
    let names: Vec<&str> = volatile.iter().map(|layer| layer.name.as_str()).collect();
    let holds = if names.len() == 1 { "holds" } else { "hold" };
    Some(
        Verdict {
            id: "volatile-cache",
            severity: Severity::Info,
            sentence: format!("{} {holds} acknowledged writes in a volatile cache until a flush.", list(&names)),
            evidence: volatile.iter().map(|layer| because(layer)).collect(),
            remedy: "Nothing, as long as every layer forwards flushes and the application syncs. Otherwise turn the cache \
                     off.",
        }
        .into(),
    )
}

/// `unknown-below-the-hypervisor`: the path ends where this machine cannot see.
pub(super) fn unknown_below_the_hypervisor(document: &CheckDocument) -> Option<Finding> {
    if surveyed(document, "unknown-below") {
        return None;
    }
    let host = document.path.layers.iter().find(|layer| layer.kind == LayerKind::Hypervisor)?;
    let above: Vec<&str> = document
        .path
        .layers
        .iter()
        .filter(|layer| layer.below.contains(&host.name))
        .map(|layer| layer.name.as_str())
        .collect();
    let subject = if above.is_empty() { "the disk".to_owned() } else { list(&above) };
    Some(
        Verdict {
            id: "unknown-below-the-hypervisor",
            severity: Severity::Info,
            sentence: format!("What the host does with a flush of {subject} cannot be seen from inside."),
            evidence: vec![because(host)],
            remedy: "Ask whoever runs the host for the disk's cache mode, or prove it by a power cut with a witness.",
        }
        .into(),
    )
}

/// Whether the survey said it: a measurement adds nothing to what the path alone tells.
fn surveyed(document: &CheckDocument, id: &str) -> bool {
    document.path.findings.iter().any(|finding| finding.id.starts_with(id))
}

/// The evidence of a layer in one line.
fn because(layer: &Layer) -> String {
    let lines: Vec<String> = layer
        .evidence
        .iter()
        .filter(|line| !line.means.is_empty())
        .map(|line| format!("{} = {}", line.source, line.value))
        .collect();
    let passes = if layer.flush == Flush::Dropped { ", and flushes end there" } else { "" };
    if lines.is_empty() {
        format!("{}: by its kind{passes}", layer.name)
    } else {
        format!("{}: {}{passes}", layer.name, lines.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn volatile_caches_of_devices_are_named_but_not_the_page_cache() {
        let mut document = fixture::document("raid-eight-disks");
        assert!(volatile_cache(&document).is_none(), "the survey said it");
        document.path.findings.clear();
        let finding = volatile_cache(&document).unwrap();
        assert!(finding.sentence.starts_with("sda, sdb, sdc"), "{}", finding.sentence);
        assert!(volatile_cache(&fixture::document("hard-drive")).is_none());
    }

    #[test]
    fn a_virtual_machine_knows_that_it_does_not_know() {
        let mut document = fixture::virtual_machine();
        assert!(unknown_below_the_hypervisor(&document).is_none(), "the survey said it");
        document.path.findings.clear();
        let finding = unknown_below_the_hypervisor(&document).unwrap();
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.sentence.contains("vda"));
        assert!(unknown_below_the_hypervisor(&fixture::document("hard-drive")).is_none());
    }
}
