//! Findings of the survey about one disk: those of every path that includes it, without those about its
//! siblings.

use std::collections::{BTreeMap, BTreeSet};

use plumb_path::{Finding, Layer, LayerKind, Target, WritePath, survey, survey_path};

use crate::gateway::Gateway;
use plumb_linux::inventory::{Block, Inventory};

/// Findings about the machine or the measurement rather than a disk's cache.
const ELSEWHERE: [&str; 5] =
    ["memory", "unknown-below-the-hypervisor", "path-ends-unseen", "volatile-cache", "lax-order"];

/// Surveyed paths, and an index by layer.
#[derive(Debug, Default)]
pub(super) struct Paths {
    /// Kernel release, as read by the survey.
    pub(super) kernel: Option<String>,
    paths: Vec<WritePath>,
    over: BTreeMap<String, Vec<usize>>,
}

impl Paths {
    /// Surveys the whole machine once.
    pub(super) fn surveyed(gateway: &dyn Gateway) -> Self {
        let mut paths = Self::default();
        if let Ok(found) = survey(gateway.tree(), gateway.probe(), &Target::All) {
            paths.kernel = found.kernel;
            for path in found.paths {
                paths.add(path);
            }
        }
        paths
    }

    /// Surveys those of `wanted` that are not on a path from any place of the machine.
    pub(super) fn complete<'b>(&mut self, gateway: &dyn Gateway, wanted: impl Iterator<Item = &'b Block>) {
        for block in wanted {
            if self.is_uncertain(&block.name) {
                self.follow(gateway, &block.name);
            }
        }
    }

    /// Returns true if no path includes the disk, or a finding that counts some layers instead of naming them
    /// may be about it: surveying it alone names it.
    fn is_uncertain(&self, name: &str) -> bool {
        let Some(over) = self.over.get(name) else { return true };
        let mut findings = over.iter().flat_map(|index| &self.paths[*index].findings);
        findings.any(|finding| finding.sentence.contains(" more "))
    }

    /// Surveys the holders of one disk, including files of its file systems: each mount point, and each
    /// unused device.
    pub(super) fn survey(gateway: &dyn Gateway, inventory: &Inventory, block: &Block) -> Self {
        let (mut paths, mut pending, mut seen) = (Self::default(), vec![block], BTreeSet::new());
        while let Some(top) = pending.pop() {
            if !seen.insert(&top.name) {
                continue;
            }
            for (point, _) in top.mounts.iter().filter(|(point, _)| !point.is_empty()) {
                paths.follow(gateway, point);
            }
            if top.mounts.is_empty() && top.above.is_empty() {
                paths.follow(gateway, &top.name);
            }
            pending.extend(top.above.iter().filter_map(|above| inventory.get(above)));
            pending.extend(inventory.over_files_of(top));
        }
        if paths.is_uncertain(&block.name) {
            paths.follow(gateway, &block.name);
        }
        paths
    }

    fn follow(&mut self, gateway: &dyn Gateway, target: &str) {
        if let Ok(path) = survey_path(gateway.tree(), gateway.probe(), target) {
            self.add(path);
        }
    }

    fn add(&mut self, path: WritePath) {
        let index = self.paths.len();
        for layer in &path.layers {
            self.over.entry(layer.name.clone()).or_default().push(index);
        }
        self.paths.push(path);
    }

    /// Returns the kind of a layer.
    pub(super) fn kind(&self, name: &str) -> Option<LayerKind> {
        self.layer(name).map(|layer| layer.kind)
    }

    /// Returns the layer called `name`.
    pub(super) fn layer(&self, name: &str) -> Option<&Layer> {
        self.paths[*self.over.get(name)?.first()?].layer(name)
    }

    /// Returns the names of all layers below the layer called `name`, from the top down.
    pub(super) fn below(&self, name: &str) -> Vec<&str> {
        let path = self.over.get(name).and_then(|over| over.first()).map(|index| &self.paths[*index]);
        let mut below: Vec<&str> = Vec::new();
        // Layers are in topological order.
        for layer in path.into_iter().flat_map(|path| &path.layers) {
            if layer.name == name || below.contains(&layer.name.as_str()) {
                below.extend(layer.below.iter().map(String::as_str));
            }
        }
        below.dedup();
        below
    }

    /// Returns the findings about `disk`, layers below it, and its holders.
    pub(super) fn findings(&self, disk: &str) -> Vec<Finding> {
        let mut found: Vec<Finding> = Vec::new();
        for index in self.over.get(disk).into_iter().flatten() {
            let path = &self.paths[*index];
            let near = connected(path, disk);
            for finding in &path.findings {
                let known =
                    found.iter().any(|known| known.id == finding.id && known.sentence == finding.sentence);
                if !known && !ELSEWHERE.contains(&finding.id.as_str()) && concerns(finding, &near) {
                    found.push(finding.clone());
                }
            }
        }
        Finding::sort_by_severity(&mut found);
        found
    }
}

/// Returns the names of the layers above and below `disk` on a path, including its own.
fn connected<'a>(path: &'a WritePath, disk: &'a str) -> BTreeSet<&'a str> {
    let mut near = BTreeSet::from([disk]);
    // Layers are in topological order, so one pass down and one up suffice.
    for layer in &path.layers {
        if near.contains(layer.name.as_str()) {
            near.extend(layer.below.iter().map(String::as_str));
        }
    }
    let mut above = BTreeSet::from([disk]);
    for layer in path.layers.iter().rev() {
        if layer.below.iter().any(|below| above.contains(below.as_str())) {
            above.insert(&layer.name);
        }
    }
    near.extend(above);
    near
}

/// Returns true if the finding names one of these layers in its sentence, which names at most four. (A layer
/// above the disk that is only counted is covered by the disks below the named ones.)
fn concerns(finding: &Finding, near: &BTreeSet<&str>) -> bool {
    let boundary = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '-' && c != '_');
    let names = |text: &str, name: &str| {
        text.match_indices(name).any(|(at, _)| {
            boundary(text[..at].chars().next_back()) && boundary(text[at + name.len()..].chars().next())
        })
    };
    // A file system may be named only by its mount point.
    let mounted = |name: &str| {
        let point = name.split_once(' ').map_or("", |(_, point)| point);
        let named = |(at, _): (usize, &str)| {
            let before = finding.sentence[..at].chars().next_back();
            let after = finding.sentence[at + point.len()..].chars().next();
            boundary(before) && boundary(after) && after != Some('/')
        };
        point.starts_with('/') && finding.sentence.match_indices(point).any(named)
    };
    near.iter().any(|name| names(&finding.sentence, name) || mounted(name))
}

#[cfg(test)]
mod tests {
    use plumb_path::Severity;

    use super::*;

    #[test]
    fn a_finding_is_about_the_layers_that_its_sentence_names() {
        let finding = |sentence: &str| Finding {
            id: "x".to_owned(),
            severity: Severity::Danger,
            sentence: sentence.to_owned(),
            evidence: Vec::new(),
            remedy: String::new(),
        };
        let near = BTreeSet::from(["sda", "dm-1"]);
        assert!(concerns(&finding("sda has its write cache on"), &near));
        assert!(concerns(&finding("A flush ends at dm-1 while"), &near));
        for other in
            ["sdb, sdc, sdd, sde and 8 more have", "sdaa has its", "dm-10 was set up", "xsda and sdb"]
        {
            assert!(!concerns(&finding(other), &near), "{other}");
        }
        let near = BTreeSet::from(["ext4 /srv"]);
        assert!(concerns(&finding("fsync is not durable: /srv is mounted nobarrier."), &near));
        for other in ["/srv/db", "/mnt/srv"] {
            assert!(!concerns(
                &finding(&format!("fsync is not durable: {other} is mounted nobarrier.")),
                &near
            ));
        }
    }
}
