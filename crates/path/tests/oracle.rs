//! Tests of the survey's verdict against the counts of emulated drives: guards against a verdict that
//! contradicts the flushes.
//!
//! Every fixture with an `oracle.json` is surveyed again from its recording. For each drive: where the survey
//! says that a layer on the way to it drops flushes, none arrived although its cache was on; where it says
//! that one absorbs them, none arrived and the cache was off; where all forward, some arrived. The recorded
//! cache must match the drive's own state. And there is a finding of danger exactly if data could be lost.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::fixtures_of;
use plumb_path::{Cache, Flush, LayerKind, Severity, Survey, WritePath, load, survey};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct Oracle {
    scenario: String,
    syncs: u32,
    disks: Vec<DiskOracle>,
}

#[derive(Debug, Deserialize)]
struct DiskOracle {
    name: String,
    write_cache: bool,
    flushes_arrived: u64,
}

/// Findings that the scenarios must show.
const SHOWN: [(&str, &str); 24] = [
    // On SCSI an override and a change behind the kernel's back look the same.
    ("h1-temporary", "h3-stale-kernel-view"),
    ("h1-temporary-ahci", "h1-temporary-write-through"),
    ("h2-queue", "h2-queue-write-through"),
    ("h2-queue-nvme", "h2-queue-write-through"),
    ("h2-queue-virtio-blk", "h2-queue-write-through"),
    ("h2-one-leg", "h2-queue-write-through"),
    ("h2-queue-masked", "h2-queue-write-through"),
    ("h3-mode-select", "h3-stale-kernel-view"),
    ("h4-stale-dm", "h4-stale-dm-table"),
    ("h5-dm-over-queue", "h2-queue-write-through"),
    ("h7-nvme-feature", "h7-nvme-feature-hidden"),
    ("h8-write-protected", "h8-write-protected"),
    ("h9-megasas", "h9-driver-swallows-flush"),
    ("nobarrier", "barriers-off"),
    ("btrfs-nobarrier", "barriers-off"),
    ("loop-on-nobarrier", "barriers-off"),
    ("overlay-volatile", "volatile-overlay"),
    ("ext4-zram", "memory"),
    ("tmpfs", "memory"),
    ("loop-on-tmpfs", "memory"),
    ("ext4-external-journal", "external-journal"),
    ("sync-disabled", "zfs-sync-disabled"),
    ("nocacheflush", "barriers-off"),
    ("h10", "h10-zfs-remembers"),
];

#[test]
fn verdicts_agree_with_the_drives() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for directory in fixtures_of::all() {
        let Some(oracle) = oracle(&directory) else { continue };
        let path = surveyed(&directory);
        compared += 1;
        let complaints =
            disagreements(&path, &oracle).into_iter().map(|what| format!("{}: {what}", place(&directory)));
        wrong.extend(complaints);
    }
    assert!(compared > 0, "no fixture has an oracle.json; record them with `cargo xtask guest run --record`");
    assert!(wrong.is_empty(), "of {compared} fixtures:\n{}", wrong.join("\n"));
}

fn disagreements(path: &WritePath, oracle: &Oracle) -> Vec<String> {
    let mut wrong: Vec<String> = Vec::new();
    let mut lost = false;
    for disk in oracle.disks.iter().filter(|_| oracle.syncs > 0) {
        let arrived = disk.flushes_arrived > 0;
        lost |= !arrived && disk.write_cache;
        let Some(layer) = path.layer(&disk.name) else {
            wrong.push(format!("{} is not on the path", disk.name));
            continue;
        };
        let cache = if disk.write_cache { Cache::Volatile } else { Cache::None };
        if layer.cache != cache {
            wrong.push(format!("{} has the cache {:?}, the drive knew {cache:?}", disk.name, layer.cache));
        }
        let agrees = match verdict(path, &disk.name) {
            Flush::Dropped => !arrived && disk.write_cache,
            Flush::Absorbed => !arrived && !disk.write_cache,
            Flush::Forwarded => arrived,
            // Only if the fate is known to depend on the kernel's release.
            Flush::Unknown => path.findings.iter().any(|finding| finding.id == "external-journal"),
        };
        if !agrees {
            wrong.push(format!(
                "{}: the survey says {:?}, {} flushes arrived, its cache was {}",
                disk.name,
                verdict(path, &disk.name),
                disk.flushes_arrived,
                if disk.write_cache { "on" } else { "off" }
            ));
        }
    }
    let found: BTreeMap<&str, Severity> =
        path.findings.iter().map(|finding| (finding.id.as_str(), finding.severity)).collect();
    let danger = found.values().any(|severity| *severity == Severity::Danger);
    let warned = found.values().any(|severity| *severity >= Severity::Warning);
    if !oracle.disks.is_empty() && lost != danger && !found.contains_key("external-journal") {
        wrong.push(format!("data could be lost: {lost}; the survey finds {found:?}"));
    }
    match SHOWN.iter().find(|(scenario, _)| *scenario == oracle.scenario) {
        Some((_, id)) if !found.contains_key(id) => wrong.push(format!("{id} was not found, but {found:?}")),
        None if warned => wrong.push(format!("nothing is wrong here, yet it finds {found:?}")),
        _ => {}
    }
    wrong
}

/// Returns the worst fate of a flush on its way to the disk, including adapters, but not beyond the machine.
fn verdict(path: &WritePath, disk: &str) -> Flush {
    let mut above: Vec<&str> = vec![disk];
    for layer in path.layers.iter().rev() {
        if layer.below.iter().any(|below| above.contains(&below.as_str())) {
            above.push(&layer.name);
        }
    }
    let below = path.layer(disk).into_iter().flat_map(|layer| &layer.below).map(String::as_str);
    let way: Vec<&str> = above.iter().copied().chain(below).collect();
    let fates: Vec<Flush> = path
        .layers
        .iter()
        .filter(|layer| way.contains(&layer.name.as_str()))
        .filter(|layer| !matches!(layer.kind, LayerKind::Hypervisor | LayerKind::Remote))
        .map(|layer| layer.flush)
        .collect();
    [Flush::Dropped, Flush::Unknown, Flush::Absorbed]
        .into_iter()
        .find(|fate| fates.contains(fate))
        .unwrap_or(Flush::Forwarded)
}

#[test]
fn a_recording_of_this_kind_of_machine_is_read_right() {
    let directory = fixtures_of::root().join("firecracker-ext4-virtio");
    let path = surveyed(&directory);
    let kinds: Vec<LayerKind> = path.layers.iter().map(|layer| layer.kind).collect();
    use LayerKind as K;
    assert_eq!(kinds, [K::Application, K::PageCache, K::FileSystem, K::VirtioDisk, K::Hypervisor]);
    assert_eq!(path.block_devices(), ["vda"]);
    assert_eq!(path.file_system().unwrap().below, ["vda"]);
    assert!(path.unknown_below.unwrap().starts_with("hypervisor Firecracker/KVM"));
    assert_eq!(path.durable_at.fsync, None);
    assert!(path.findings.iter().all(|finding| finding.severity == Severity::Info));
}

fn surveyed(directory: &Path) -> WritePath {
    let fixture = load(directory).unwrap_or_else(|error| panic!("{}: {error}", place(directory)));
    let found: Survey = survey(&fixture.tree, &fixture.probe, &fixture.target)
        .unwrap_or_else(|error| panic!("{}: {error}", place(directory)));
    found.paths.into_iter().next().expect("one path for one target")
}

fn oracle(directory: &Path) -> Option<Oracle> {
    let text = std::fs::read_to_string(directory.join("oracle.json")).ok()?;
    // A guest without plumb inside leaves only the oracle.
    if !directory.join("recording.json").exists() {
        eprintln!("skipped: {} holds no recording", place(directory));
        return None;
    }
    Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", place(directory))))
}

fn place(directory: &Path) -> String {
    let root: PathBuf = fixtures_of::root();
    directory.strip_prefix(root).unwrap_or(directory).display().to_string()
}
