//! Verdicts in the page.

use plumb_path::{Finding, Rule, Severity};

use crate::headline::sentence;
use crate::rules;

pub(super) fn verdict_count(verdicts: &[Finding]) -> String {
    let words = [(Severity::Danger, "danger"), (Severity::Warning, "warning"), (Severity::Info, "note")];
    let counts = words.into_iter().filter_map(|(severity, word)| {
        let count = verdicts.iter().filter(|finding| finding.severity == severity).count();
        (count > 0).then(|| format!("{count} {word}{}", if count == 1 { "" } else { "s" }))
    });
    sentence(&counts.collect::<Vec<_>>().join(", "))
}

/// Returns the rules of `verdicts`, each once. A recording of another version may refer to unknown rules.
pub(super) fn explanations(verdicts: &[Finding]) -> Vec<&'static Rule> {
    let mut known: Vec<&Rule> = Vec::new();
    for rule in verdicts.iter().filter_map(|finding| rules::find(&finding.id)) {
        if !known.iter().any(|one| one.id == rule.id) {
            known.push(rule);
        }
    }
    known
}
