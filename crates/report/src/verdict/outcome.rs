//! Common parts of the rules: the result of a rule, and choices of layers.

use plumb_block::Errno;
use plumb_path::{Finding, Layer, Severity, WritePath};

use crate::{rules, wording};

/// Result of a rule. Without a remedy of its own it has that of the catalogue.
pub(super) struct Verdict {
    pub(super) severity: Severity,
    pub(super) sentence: String,
    pub(super) evidence: Vec<String>,
    pub(super) remedy: Option<String>,
}

impl Verdict {
    pub(super) fn new(severity: Severity, sentence: String, evidence: Vec<String>) -> Self {
        Self { severity, sentence, evidence, remedy: None }
    }

    /// Returns true if it concerns an operation that the device does not support (EOPNOTSUPP).
    pub(super) fn is_not_supported(&self) -> bool {
        let mut said = self.evidence.iter().chain([&self.sentence]);
        said.any(|text| text.contains("not supported"))
    }

    /// Returns true if it concerns an operation that failed for lack of space, or over a quota.
    pub(super) fn is_for_want_of_space(&self) -> bool {
        let full = [Errno::ENOSPC, Errno::EDQUOT].map(|errno| errno.to_string());
        let mut said = self.evidence.iter().chain([&self.sentence]);
        said.any(|text| full.iter().any(|full| text.contains(full)))
    }

    /// Returns the finding of the rule `id`.
    pub(super) fn named(self, id: &str) -> Finding {
        let remedy = self.remedy.or_else(|| Some(rules::find(id)?.remedy.clone()));
        Finding {
            id: id.to_owned(),
            severity: self.severity,
            sentence: self.sentence,
            evidence: self.evidence,
            remedy: remedy.unwrap_or_default(),
        }
    }
}

/// Returns the layers from the first block device down.
pub(super) fn device_layers(path: &WritePath) -> impl Iterator<Item = &Layer> {
    path.layers.iter().filter(|layer| !wording::is_above_devices(layer.kind))
}

/// Returns the devices whose counters were read. An adapter, a hypervisor or a server may be below them.
pub(super) fn lowest_devices(path: &WritePath) -> impl Iterator<Item = &Layer> {
    path.layers.iter().filter(|layer| path.is_lowest_device(layer))
}
