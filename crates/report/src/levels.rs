//! A write path as levels: layers of equal depth side by side, with the fate of a flush at each.
//!
//! Both drawings, for the terminal and the page, are made from these levels. Imported paths may be malformed
//! (a link to a missing layer, a cycle, a duplicate name); every layer still appears exactly once.

use std::collections::HashMap;

use plumb_path::{Cache, Finding, Flush, Layer, LayerKind, Severity, WritePath};

use crate::document::{FlushMethod, RunDocument, RunTarget};
use crate::headline::sentence;
use crate::wording;

/// Number of equal layers side by side from which they are drawn as one.
pub const FOLD_ABOVE: usize = 4;

/// Arrival of an application's flush at a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arrival {
    /// Every way down ends above the layer.
    No,
    /// A layer above does not report whether it forwards flushes.
    Unsure,
    /// The flush arrives.
    Yes,
}

/// One layer, or several equal ones side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Indices into the path's layers; never empty.
    pub members: Vec<usize>,
    /// Arrival of a flush at the level.
    pub arrival: Arrival,
}

/// Path as levels, that of the application first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels {
    /// Nodes of each level, from the top.
    pub levels: Vec<Vec<Node>>,
    /// Indices of the layers directly below each layer.
    pub below: Vec<Vec<usize>>,
}

impl Levels {
    /// Returns the levels of `path`.
    pub fn new(path: &WritePath) -> Self {
        let below = links(&path.layers);
        let depth = depths(&below);
        let arrival = arrivals(&path.layers, &below);
        let mut levels: Vec<Vec<Node>> =
            vec![Vec::new(); depth.iter().max().map_or(0, |deepest| deepest + 1)];
        let is_many: Vec<bool> = (0..levels.len())
            .map(|level| depth.iter().filter(|depth| **depth == level).count() > FOLD_ABOVE)
            .collect();
        for (index, layer) in path.layers.iter().enumerate() {
            let level = depth[index];
            let equal = |node: &&mut Node| {
                let first = node.members[0];
                is_many[level]
                    && node.arrival == arrival[index]
                    && looks_equal(&path.layers[first], layer)
                    && below[first] == below[index]
            };
            match levels[level].iter_mut().find(equal) {
                Some(node) => node.members.push(index),
                None => levels[level].push(Node { members: vec![index], arrival: arrival[index] }),
            }
        }
        Self { levels, below }
    }

    /// Returns the level and the node of layer `index`.
    pub fn position(&self, index: usize) -> Option<(usize, usize)> {
        self.levels.iter().enumerate().find_map(|(level, nodes)| {
            nodes.iter().position(|node| node.members.contains(&index)).map(|node| (level, node))
        })
    }
}

/// Returns the index of the layer that holds a write when its call returns: the first below the application
/// that may hold acknowledged data, or the lowest one if none may. If each write is flushed before its call
/// returns, it is the layer that makes it durable. `None` if the path takes no writes, or the layer is
/// unknown.
pub fn acknowledged_at(path: &WritePath) -> Option<usize> {
    if path.takes_no_writes() {
        return None;
    }
    if path.synchronous().is_some() {
        return path.durable_at.write.as_deref().and_then(|name| named(path, name));
    }
    let held = path.layers.iter().skip(1).position(|layer| layer.cache != Cache::None).map(|index| index + 1);
    held.or_else(|| path.layers.len().checked_sub(1).filter(|last| *last > 0))
}

/// Verdicts that contradict a path on which an fsync makes data durable: flushes did not arrive, or the times
/// are too short for durable writes.
const CONTRADICTIONS: [&str; 4] =
    ["flush-dropped", "flushes-missing", "faster-than-the-platter", "one-of-flush-and-fua"];

/// Returns the verdict of this run that contradicts its path; `None` if there is none.
pub(crate) fn contradiction(document: &RunDocument) -> Option<&Finding> {
    let is_so = |finding: &&Finding| {
        finding.severity > Severity::Info && CONTRADICTIONS.contains(&finding.id.as_str())
    };
    document.verdicts.iter().find(is_so)
}

/// Returns `path` corrected by the measurement: if they contradict each other, it is unknown where an fsync
/// makes data durable, and whether the devices forward a flush.
pub(crate) fn as_measured(path: &WritePath, document: &RunDocument) -> WritePath {
    let mut measured = path.clone();
    let claimed = path.durable_at.fsync.as_ref();
    let Some(verdict) = claimed.and_then(|_| contradiction(document)) else { return measured };
    measured.durable_at.fsync = None;
    let is_unseen = |name: &String| {
        named(path, name).is_none_or(|index| wording::is_beyond_sight(path.layers[index].kind))
    };
    for layer in &mut measured.layers {
        if layer.below.iter().all(is_unseen) && layer.flush == Flush::Forwarded {
            layer.flush = Flush::Unknown;
        }
    }
    if !measured.findings.iter().any(|finding| finding.id == verdict.id) {
        measured.findings.push(verdict.clone());
    }
    measured
}

/// State of data after fsync has returned, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FsyncState {
    /// The data is durable in this layer.
    Durable(usize),
    /// The flush ends in a layer, or in memory, although something volatile holds data.
    Lost,
    /// The path takes no writes.
    NoWrites,
    /// The path continues outside of this machine.
    Unknown,
}

/// Returns the state of data after fsync has returned, according to the path.
pub fn synced(path: &WritePath) -> FsyncState {
    if let Some(index) = path.durable_at.fsync.as_deref().and_then(|name| named(path, name)) {
        return FsyncState::Durable(index);
    }
    let ends = path.layers.iter().any(|layer| layer.flush == Flush::Dropped);
    match ends {
        true => FsyncState::Lost,
        false if path.takes_no_writes() => FsyncState::NoWrites,
        false => FsyncState::Unknown,
    }
}

/// Returns true if the effect of a sync is unknown: no layer is known to make data durable or to lose it, and
/// no device certainly receives a flush.
pub fn is_unknown(path: &WritePath) -> bool {
    synced(path) == FsyncState::Unknown && reached(path).is_empty()
}

/// Returns why the effect of a sync is unknown, with the remedy of the finding at the end of the path.
pub fn not_known(path: &WritePath) -> String {
    let why = path.unknown_below.as_deref().unwrap_or("the path ends where it cannot be seen from here");
    let ends = ["remote-storage", "path-ends-unseen", "unknown-below-the-hypervisor", "no-caching-page"];
    let remedy = ends.iter().find_map(|id| path.findings.iter().find(|finding| finding.id == **id));
    let remedy =
        remedy.map_or_else(String::new, |finding| format!(" To know it: {}", sentence(&finding.remedy)));
    format!(
        "What an fsync is worth on {} cannot be seen from this machine: {}{remedy}",
        path.target,
        sentence(why)
    )
}

/// Describes where an fsync ends on the visible path.
pub fn reach(path: &WritePath) -> String {
    let name = |index: usize| &path.layers[index].name;
    match synced(path) {
        // The behaviour of the model is known, whatever the drive reports.
        FsyncState::Durable(index) if path.layers[index].is_served_drive() => {
            format!(
                "Once fsync has returned, data here is durable in {}, by the model of that drive.",
                name(index)
            )
        }
        FsyncState::Durable(index) if path.layers[index].kind == LayerKind::SimulatedDrive => format!(
            "Once a flush is answered, data here is durable in {}, as the drive reports. A drive that lies is not found this \
             way: `plumb prove` cuts its power and looks.",
            name(index)
        ),
        FsyncState::Durable(index) => format!(
            "Once fsync has returned, data here is durable in {}, as far as kernel and drive say.",
            name(index)
        ),
        FsyncState::Lost | FsyncState::NoWrites => sentence(&path.durable_at.sentence),
        FsyncState::Unknown => {
            let below = path.layers.iter().find(|layer| wording::is_beyond_sight(layer.kind));
            let below = below.map_or_else(String::new, |layer| format!(" ({})", wording::kind(layer.kind)));
            match reached(path).as_slice() {
                [] => not_known(path),
                [one] => format!(
                    "An fsync here reaches {one}; whether it is durable is not known below {one}{below}."
                ),
                [first, rest @ ..] => format!(
                    "An fsync here reaches {first} and {} more; whether it is durable is not known below them{below}.",
                    rest.len()
                ),
            }
        }
    }
}

/// Returns true if a power cut loses data after fsync has returned, according to the path.
pub fn is_lost(path: Option<&WritePath>) -> bool {
    path.is_some_and(|path| synced(path) == FsyncState::Lost)
}

/// Returns true if the syncs on `target` make nothing durable: its path loses them, or they were
/// sync_file_range(2).
pub(crate) fn loses_synced(document: &RunDocument, target: &RunTarget) -> bool {
    let by_range = document.job_of(target).is_some_and(|job| job.flush == Some(FlushMethod::Range));
    by_range || is_lost(document.path_of(target))
}

/// Returns the name of writes to `targets` that were each synced.
pub(crate) fn synced_writes<'a>(
    document: &RunDocument,
    targets: impl IntoIterator<Item = &'a RunTarget>,
) -> &'static str {
    let lost = targets.into_iter().any(|target| loses_synced(document, target));
    if lost { "synced writes" } else { "durable writes" }
}

/// Returns the finding that explains why a flush does not arrive; `None` if the survey found no danger.
pub fn cause(path: &WritePath) -> Option<&Finding> {
    path.findings.iter().find(|finding| finding.severity == Severity::Danger)
}

/// Returns the names of all lowest visible layers that a flush reaches.
pub fn reached(path: &WritePath) -> Vec<&str> {
    let levels = Levels::new(path);
    let seen = |node: &&Node| {
        let layer = &path.layers[node.members[0]];
        node.arrival == Arrival::Yes
            && !wording::is_above_devices(layer.kind)
            && !wording::is_beyond_sight(layer.kind)
    };
    let lowest = levels.levels.iter().rev().find(|nodes| nodes.iter().any(|node| seen(&node)));
    lowest
        .into_iter()
        .flatten()
        .filter(seen)
        .flat_map(|node| &node.members)
        .map(|member| path.layers[*member].name.as_str())
        .collect()
}

/// Returns the index of the layer with this name.
pub fn named(path: &WritePath, name: &str) -> Option<usize> {
    path.layers.iter().position(|layer| layer.name == name)
}

fn looks_equal(a: &Layer, b: &Layer) -> bool {
    (a.kind, a.cache, a.flush, a.fua) == (b.kind, b.cache, b.flush, b.fua)
}

/// Returns the layers below each layer. Only forward links count, which excludes cycles.
fn links(layers: &[Layer]) -> Vec<Vec<usize>> {
    let mut index_of = HashMap::new();
    for (index, layer) in layers.iter().enumerate() {
        index_of.entry(layer.name.as_str()).or_insert(index);
    }
    layers
        .iter()
        .enumerate()
        .map(|(index, layer)| {
            let mut below: Vec<usize> = layer
                .below
                .iter()
                .filter_map(|name| index_of.get(name.as_str()).copied())
                .filter(|to| *to > index)
                .collect();
            below.sort_unstable();
            below.dedup();
            below
        })
        .collect()
}

/// Returns the depth of each layer: the longest way from a layer without one above.
fn depths(below: &[Vec<usize>]) -> Vec<usize> {
    let mut depth = vec![0; below.len()];
    for (index, children) in below.iter().enumerate() {
        for child in children {
            depth[*child] = depth[*child].max(depth[index] + 1);
        }
    }
    depth
}

fn arrivals(layers: &[Layer], below: &[Vec<usize>]) -> Vec<Arrival> {
    let mut has_parent = vec![false; layers.len()];
    below.iter().flatten().for_each(|child| has_parent[*child] = true);
    let mut arrival: Vec<Arrival> =
        has_parent.iter().map(|parent| if *parent { Arrival::No } else { Arrival::Yes }).collect();
    for (index, layer) in layers.iter().enumerate() {
        let passed = match layer.flush {
            Flush::Forwarded => arrival[index],
            Flush::Unknown => arrival[index].min(Arrival::Unsure),
            Flush::Absorbed | Flush::Dropped => Arrival::No,
        };
        for child in &below[index] {
            arrival[*child] = arrival[*child].max(passed);
        }
    }
    arrival
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_layer_has_one_node() {
        for document in fixture::all() {
            let levels = Levels::new(document.path.as_ref().unwrap());
            let mut seen: Vec<usize> =
                levels.levels.iter().flatten().flat_map(|node| node.members.clone()).collect();
            seen.sort_unstable();
            assert_eq!(
                seen,
                (0..document.path.as_ref().unwrap().layers.len()).collect::<Vec<_>>(),
                "{}",
                document.target
            );
        }
    }

    #[test]
    fn equal_disks_share_a_node_and_the_odd_one_stands_out() {
        let path = fixture::document("raid-eight-disks").path.unwrap();
        let levels = Levels::new(&path);
        let disks = levels.levels.last().unwrap();
        assert_eq!(disks.iter().map(|node| node.members.len()).collect::<Vec<_>>(), [7, 1]);
        assert_eq!(disks[1].arrival, Arrival::Yes);
    }

    #[test]
    fn a_cycle_and_a_missing_layer_do_no_harm() {
        let mut path = fixture::document("hard-drive").path.unwrap();
        path.layers[4].below = vec!["application".into(), "sda".into(), "nowhere".into()];
        assert_eq!(Levels::new(&path).levels.len(), 5);
        path.layers.clear();
        assert!(Levels::new(&path).levels.is_empty());
    }

    #[test]
    fn a_synchronous_write_is_where_it_is_durable_when_its_call_has_returned() {
        let mut path = fixture::document("hard-drive").path.unwrap();
        let mark = |path: &WritePath| acknowledged_at(path).map(|index| path.layers[index].name.clone());
        assert_ne!(mark(&path).as_deref(), Some("sda"));
        let system = path.layers.iter_mut().find(|layer| layer.kind == LayerKind::FileSystem).unwrap();
        system.evidence.push(plumb_path::Evidence {
            source: "mountinfo".to_owned(),
            value: plumb_path::SYNC_OPTION.to_owned(),
            means: String::new(),
        });
        path.durable_at.write = Some("sda".to_owned());
        assert_eq!(mark(&path).as_deref(), Some("sda"));
        path.durable_at.write = None;
        assert_eq!(mark(&path), None, "where it is durable cannot be seen");
    }

    #[test]
    fn a_measured_drop_takes_the_claim_of_the_path_back() {
        let mut document = fixture::virtual_machine();
        let path = document.path.as_mut().unwrap();
        path.durable_at.fsync = Some("vda".to_owned());
        let path = path.clone();
        assert_eq!(as_measured(&path, &document), path);
        document.verdicts.push(Finding {
            id: "flush-dropped".to_owned(),
            severity: Severity::Danger,
            sentence: "syncs caused no flush".to_owned(),
            ..path.findings.first().cloned().unwrap()
        });
        let measured = as_measured(&path, &document);
        assert_eq!(synced(&measured), FsyncState::Unknown);
        let said = crate::Headline::new(&document).meaning;
        assert!(!said.contains(&sentence(&path.durable_at.sentence)), "{said}");
        assert_eq!(cause(&measured).unwrap().sentence, "syncs caused no flush");
        let disk = measured.layers.iter().find(|layer| layer.name == "vda").unwrap();
        assert_eq!(disk.flush, Flush::Unknown);
    }

    #[test]
    fn a_flush_does_not_pass_a_layer_that_drops_it() {
        let mut path = fixture::document("virtual-machine").path.unwrap();
        path.layers[2].flush = Flush::Dropped;
        let levels = Levels::new(&path);
        let arrivals: Vec<Arrival> = levels.levels.iter().map(|nodes| nodes[0].arrival).collect();
        use Arrival::{No, Yes};
        assert_eq!(arrivals, [Yes, Yes, Yes, No, No, No]);
    }
}
