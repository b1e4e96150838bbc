//! Common parts of the rules: the result of a rule, the layers that it looks at, names in a sentence.

use plumb_block::Errno;
use plumb_path::{Finding, Layer, Severity, WritePath};

use crate::{rules, wording};

/// Result of a rule. The remedy is that of the catalogue unless the rule has a better one.
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

    /// Returns whether it is about an operation that a device does not have (EOPNOTSUPP).
    pub(super) fn is_not_supported(&self) -> bool {
        let mut said = self.evidence.iter().chain([&self.sentence]);
        said.any(|text| text.contains("not supported"))
    }

    /// Returns whether it is about an operation that found no space, or was over a quota.
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

/// Returns the devices whose counters were read. Below them there may be an adapter, a hypervisor or a
/// server.
pub(super) fn lowest_devices(path: &WritePath) -> impl Iterator<Item = &Layer> {
    path.layers.iter().filter(|layer| path.is_lowest_device(layer))
}
