//! A problem or noteworthy fact: a sentence, the evidence, and what to do.

use serde::{Deserialize, Serialize};

/// Severity of a finding. Only warnings and dangers make plumb exit with 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Noteworthy, but not a problem.
    Info,
    /// Unreliable measurement or setting.
    Warning,
    /// Acknowledged or synced data can be lost.
    Danger,
}

impl Severity {
    /// Returns the severity's name in documents.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Danger => "danger",
        }
    }
}

/// A finding of a survey, or a verdict of a measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable identifier for programs, in kebab-case: `flush-dropped`.
    pub id: String,
    /// Severity of the finding.
    pub severity: Severity,
    /// One sentence with the layer and the figures.
    pub sentence: String,
    /// Evidence for the finding, one line each.
    pub evidence: Vec<String>,
    /// Steps to take, or a way to prove the problem.
    pub remedy: String,
}

impl Finding {
    /// Sorts findings by severity, the most severe first, keeping the order among equals.
    pub fn sort_by_severity(findings: &mut [Self]) {
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    }
}
