//! A problem or a fact worth knowing: a sentence, the evidence, and what to do.

use serde::{Deserialize, Serialize};

/// How bad it is. Only warnings and dangers make plumb exit with 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// A measurement or a setting that should not be relied on.
    Warning,
    /// Acknowledged or synced data can be lost.
    Danger,
}

impl Severity {
    /// Returns the word for the severity that is used in documents.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Danger => "danger",
        }
    }
}

/// One finding of a survey, or one verdict of a measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// A stable name for programs, in kebab-case: `flush-dropped`.
    pub id: String,
    /// How bad it is.
    pub severity: Severity,
    /// One sentence with the layer and the figures in it.
    pub sentence: String,
    /// Evidence for the finding, one line each.
    pub evidence: Vec<String>,
    /// Steps to take, or a way to prove the problem.
    pub remedy: String,
}

impl Finding {
    /// Sorts findings, the most severe first; those of one severity stay in their order.
    pub fn sort_by_severity(findings: &mut [Self]) {
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    }
}
