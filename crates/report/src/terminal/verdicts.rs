//! Verdicts and findings: the sentence, the evidence and the remedy.

use plumb_path::Finding;
use plumb_text::printable;

use super::Style;
use super::pen::{self, Ink};
use super::wrap::hang;
use crate::headline::sentence;

/// Maximum number of lines of evidence. The page has all.
const EVIDENCE_MAX: usize = 4;
/// Width of the label before the sentence: `  warning  `.
const LABEL: usize = 9;

/// Returns the findings in order.
pub(super) fn verdicts(findings: &[Finding], style: Style) -> String {
    let verdict = |finding| verdict(finding, &[], EVIDENCE_MAX, style);
    findings.iter().map(verdict).collect::<Vec<_>>().join("\n")
}

/// Returns a finding with at most `evidence_max` lines of evidence, and the names of its objects in `about`.
pub(super) fn verdict(finding: &Finding, about: &[String], evidence_max: usize, style: Style) -> String {
    let width = style.columns();
    let label = finding.severity.word();
    let lead = format!("  {label:<LABEL$}");
    let painted = style.ink(pen::severity(Some(finding.severity)), label);
    let about: String = about.iter().map(|name| format!(" {}", printable(name))).collect();
    let about = if about.is_empty() { about } else { format!(",{about}") };
    let id = printable(&finding.id);
    let text = format!("{} [{id}{about}]", printable(&sentence(&finding.sentence)));
    let mut out = hang(&lead, &text, width).replacen(label, &painted, 1);
    let bullet = format!("{}- ", " ".repeat(LABEL + 2));
    let evidence: String = finding
        .evidence
        .iter()
        .take(evidence_max)
        .map(|line| hang(&bullet, &printable(line), width))
        .collect();
    out.push_str(&style.ink_lines(Ink::Dim, &evidence));
    if finding.evidence.len() > evidence_max {
        let more = format!("and {} more", finding.evidence.len() - evidence_max);
        out.push_str(&style.ink_lines(Ink::Dim, &hang(&bullet, &more, width)));
    }
    if !finding.remedy.is_empty() {
        let arrow = if style.unicode { "→ " } else { "> " };
        out.push_str(&hang(
            &format!("{}{arrow}", " ".repeat(LABEL + 2)),
            &printable(&sentence(&finding.remedy)),
            width,
        ));
    }
    out
}

impl Style {
    /// Returns every line of `text` in `ink`.
    pub(super) fn ink_lines(self, ink: Ink, text: &str) -> String {
        text.lines().map(|line| format!("{}\n", self.ink(ink, line))).collect()
    }
}
