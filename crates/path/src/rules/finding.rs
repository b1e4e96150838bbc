//! Building findings: one finding for one cause, however many layers show it.

use crate::facts::Node;
use crate::finding::{Finding, Severity};

/// How many names a sentence lists before it counts.
const NAMED_MAX: usize = 4;

/// A finding about some layers, or `None` if there are none.
///
/// `sentence` gets the names, joined for people, and whether there are several; the layers' own evidence is attached.
pub(super) fn about(
    id: &str,
    severity: Severity,
    nodes: &[&Node],
    sentence: impl FnOnce(&str) -> String,
    remedy: impl Into<String>,
) -> Option<Finding> {
    if nodes.is_empty() {
        return None;
    }
    let evidence = nodes.iter().take(NAMED_MAX).flat_map(|node| telling(node)).collect();
    Some(Finding {
        id: id.to_owned(),
        severity,
        sentence: sentence(&names(nodes)),
        evidence,
        remedy: remedy.into(),
    })
}

/// `sda`, `sda and sdb`, `sda, sdb, sdc, sdd and 8 more`.
pub(super) fn names(nodes: &[&Node]) -> String {
    let listed: Vec<&str> = nodes.iter().take(NAMED_MAX).map(|node| node.name.as_str()).collect();
    let rest = nodes.len() - listed.len();
    match (listed.as_slice(), rest) {
        ([only], 0) => (*only).to_owned(),
        ([first @ .., last], 0) => format!("{} and {last}", first.join(", ")),
        (listed, rest) => format!("{} and {rest} more", listed.join(", ")),
    }
}

/// The evidence of a node that is about caches and flushes, one line each.
fn telling(node: &Node) -> impl Iterator<Item = String> {
    node.evidence
        .iter()
        .map(|evidence| format!("{}: {} ({})", evidence.source, evidence.value, evidence.means))
}

/// Takes `plural` where the names of several layers are the subject.
pub(super) fn verb(nodes: &[&Node], singular: &'static str, plural: &'static str) -> &'static str {
    if nodes.len() == 1 { singular } else { plural }
}
