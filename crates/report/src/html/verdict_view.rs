//! The verdicts in the page.

use plumb_path::{Finding, Rule, Severity};
use plumb_text::printable;

use super::glyph;
use crate::headline::sentence;
use crate::rules;

pub(super) struct VerdictView {
    pub(super) class: &'static str,
    pub(super) glyph: String,
    pub(super) label: &'static str,
    pub(super) id: String,
    /// True if the page says what its rule means.
    pub(super) is_explained: bool,
    pub(super) sentence: String,
    pub(super) evidence: Vec<String>,
    pub(super) remedy: String,
}

pub(super) fn verdict_count(verdicts: &[Finding]) -> String {
    let words = [(Severity::Danger, "danger"), (Severity::Warning, "warning"), (Severity::Info, "note")];
    let counts = words.into_iter().filter_map(|(severity, word)| {
        let count = verdicts.iter().filter(|finding| finding.severity == severity).count();
        (count > 0).then(|| format!("{count} {word}{}", if count == 1 { "" } else { "s" }))
    });
    sentence(&counts.collect::<Vec<_>>().join(", "))
}

/// Returns the rules that explain `verdicts`, each once; a recording of another version may name rules that
/// are not known.
pub(super) fn explanations(verdicts: &[Finding]) -> Vec<&'static Rule> {
    let mut known: Vec<&Rule> = Vec::new();
    for rule in verdicts.iter().filter_map(|finding| rules::find(&finding.id)) {
        if !known.iter().any(|one| one.id == rule.id) {
            known.push(rule);
        }
    }
    known
}

pub(super) fn verdict_view(finding: &Finding) -> VerdictView {
    VerdictView {
        class: finding.severity.word(),
        glyph: glyph::severity(Some(finding.severity)),
        label: finding.severity.word(),
        id: printable(&finding.id),
        is_explained: rules::find(&finding.id).is_some(),
        sentence: printable(&sentence(&finding.sentence)),
        evidence: finding.evidence.iter().map(|line| printable(line)).collect(),
        remedy: printable(&sentence(&finding.remedy)),
    }
}
