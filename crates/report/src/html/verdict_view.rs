//! The verdicts in the page.

use plumb_path::Finding;

use super::glyph;
use crate::headline::sentence;
use crate::printable::printable;
use crate::wording;

pub(super) struct VerdictView {
    pub(super) class: &'static str,
    pub(super) glyph: String,
    pub(super) label: &'static str,
    pub(super) id: String,
    pub(super) sentence: String,
    pub(super) evidence: Vec<String>,
    pub(super) remedy: String,
}

pub(super) fn verdict_count(verdicts: &[Finding]) -> String {
    let of = |severity| verdicts.iter().filter(|finding| finding.severity == severity).count();
    use plumb_path::Severity::{Danger, Info, Warning};
    let words = |count: usize, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        n => Some(format!("{n} {many}")),
    };
    let parts: Vec<String> = [
        words(of(Danger), "danger", "dangers"),
        words(of(Warning), "warning", "warnings"),
        words(of(Info), "note", "notes"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() { String::new() } else { format!("{}.", parts.join(", ")) }
}

pub(super) fn verdict_view(finding: &Finding) -> VerdictView {
    VerdictView {
        class: wording::severity(finding.severity),
        glyph: glyph::severity(Some(finding.severity)),
        label: wording::severity(finding.severity),
        id: printable(&finding.id),
        sentence: printable(&sentence(&finding.sentence)),
        evidence: finding.evidence.iter().map(|line| printable(line)).collect(),
        remedy: printable(&sentence(&finding.remedy)),
    }
}
