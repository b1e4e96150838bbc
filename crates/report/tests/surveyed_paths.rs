//! Rules on paths recorded on real kernels. Guards against rules that fit only hand-made paths: a survey ends
//! below the drives, in an adapter or a hypervisor, and a rule that expected the drive at the end of the path
//! accused every drive with native FUA.

use std::path::PathBuf;

use crate::common;
use plumb_block::{Bytes, DeviceCounters, SyncMethod};
use plumb_measure::StorageSide;
use plumb_path::{Cache, Flush, Fua, Severity, WritePath, load, survey};
use plumb_report::document::Sides;
use plumb_report::{RunDocument, verdict};

/// Recordings of machines without problems.
const HONEST: [&str; 13] = [
    "ext4-nvme",
    "ext4-ahci",
    "ext4-virtio-blk",
    "ext4-virtio-scsi",
    "ext4-usb-uas",
    "xfs",
    "btrfs-two-disks",
    "md-raid1",
    "loop",
    "multipath",
    "lvm-on-crypt-on-md",
    "lvm-two-disks",
    "dm-crypt",
];

/// Returns the path of a recording of `plumb survey`, surveyed again.
fn path(kernel: &str, name: &str) -> WritePath {
    let directory =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../path/tests/fixtures").join(kernel).join(name);
    let recorded = load(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let survey = survey(&recorded.tree, &recorded.probe, &recorded.target).expect("a survey");
    survey.paths.into_iter().next().expect("a path")
}

/// Returns the results of each phase of a check, with its method if it is one.
fn phases(document: &mut RunDocument) -> impl Iterator<Item = (Option<SyncMethod>, &mut Sides)> {
    let spans = &document.spans;
    document.targets.iter_mut().map(|target| (spans[target.span].jobs[0].method, &mut target.sides))
}

/// Returns a check of `path` that counted, for each durable write, two writes and `flushes` flushes at every
/// device.
fn document(path: WritePath, flushes: u64) -> RunDocument {
    let mut document = common::document("virtual-machine");
    let devices = path.block_devices();
    for (method, sides) in phases(&mut document) {
        let (writes, counted) = (sides.application.operations, sides.application.operations * flushes);
        let storage = sides.storage.as_mut().expect("counters in the sample");
        let none = |name: &String| DeviceCounters { name: name.clone(), ..DeviceCounters::default() };
        let each = |name: &String| DeviceCounters {
            writes: writes + counted,
            write_bytes: Bytes(writes * 4096),
            flushes: Some(counted),
            ..none(name)
        };
        match method {
            Some(_) => {
                storage.devices = devices.iter().map(each).collect();
                storage.flushes = Some(counted * devices.len() as u64);
            }
            None => storage.devices = devices.iter().map(none).collect(),
        }
    }
    document.path = Some(path);
    document
}

/// Returns the document with no flush in `method`.
fn without_flush(mut document: RunDocument, method: SyncMethod) -> RunDocument {
    for (_, sides) in phases(&mut document).filter(|(its, _)| *its == Some(method)) {
        let storage: &mut StorageSide = sides.storage.as_mut().expect("counters");
        storage.flushes = Some(0);
        storage.devices.iter_mut().for_each(|device| device.flushes = Some(0));
    }
    document
}

fn worst(document: &RunDocument) -> Option<Severity> {
    verdict::judge(document).iter().map(|finding| finding.severity).max()
}

fn has(document: &RunDocument, id: &str) -> Option<Severity> {
    verdict::judge(document).iter().find(|finding| finding.id == id).map(|finding| finding.severity)
}

#[test]
fn honest_paths_with_flushes_have_notes_only() {
    for kernel in ["linux-6.1", "linux-6.12"] {
        for name in HONEST {
            let document = document(path(kernel, name), 1);
            assert!(!document.path.as_ref().unwrap().block_devices().is_empty(), "{kernel}/{name}");
            let found = verdict::judge(&document);
            assert!(
                found.iter().all(|finding| finding.severity == Severity::Info),
                "{kernel}/{name}: {found:#?}"
            );
        }
    }
    let firecracker = document(path("firecracker-ext4-virtio", ""), 1);
    assert_eq!(worst(&firecracker), Some(Severity::Info));
}

#[test]
fn a_drive_that_takes_fua_itself_needs_no_flush_for_direct_dsync() {
    for kernel in ["linux-6.1", "linux-6.12"] {
        let path = path(kernel, "ext4-nvme");
        let drive = path.layers.iter().find(|layer| path.is_lowest_device(layer)).expect("a drive");
        assert_eq!((drive.fua, drive.cache), (Fua::Native, Cache::Volatile));
        assert!(!drive.below.is_empty(), "the recording lost what is below the drive");
        let document = document(path, 1);
        let direct = without_flush(document.clone(), SyncMethod::DirectDsync);
        assert_eq!(worst(&direct), Some(Severity::Info), "{:#?}", verdict::judge(&direct));
        let overwrite = without_flush(document, SyncMethod::OverwriteFdatasync);
        assert_eq!(has(&overwrite, "flush-dropped"), Some(Severity::Danger));
    }
}

#[test]
fn a_drive_without_native_fua_must_be_flushed_by_every_method() {
    for name in ["ext4-ahci", "ext4-virtio-blk", "md-raid1", "loop", "multipath"] {
        let document = document(path("linux-6.1", name), 1);
        for method in [SyncMethod::OverwriteFdatasync, SyncMethod::AppendFdatasync, SyncMethod::DirectDsync] {
            let silent = without_flush(document.clone(), method);
            assert_eq!(has(&silent, "flush-dropped"), Some(Severity::Danger), "{name}");
        }
    }
}

#[test]
fn a_loop_device_over_a_write_through_drive_is_no_danger() {
    let mut path = path("linux-6.1", "loop");
    for layer in path.layers.iter_mut().filter(|layer| layer.name == "sda") {
        (layer.cache, layer.flush, layer.fua) = (Cache::None, Flush::Absorbed, Fua::Dropped);
    }
    path.findings.clear();
    let document = document(path, 0);
    assert_eq!(worst(&document), Some(Severity::Info), "{:#?}", verdict::judge(&document));
    assert_eq!(has(&document, "no-flush-seen"), Some(Severity::Info));
}

#[test]
fn a_member_of_a_mirror_that_is_not_flushed_is_found_and_a_second_path_is_not() {
    let skip = |name: &str| {
        let mut document = document(path("linux-6.1", name), 1);
        for (_, sides) in phases(&mut document).filter(|(method, _)| method.is_some()) {
            let storage = sides.storage.as_mut().unwrap();
            storage.devices[0].flushes = Some(0);
        }
        has(&document, "flush-dropped")
    };
    assert_eq!(skip("md-raid1"), Some(Severity::Danger));
    assert_eq!(skip("multipath"), None);
}

#[test]
fn what_the_survey_says_and_what_was_counted_are_one_finding() {
    for (name, id) in [("h4-stale-dm", "flush-dropped"), ("nobarrier", "barriers-off")] {
        let found = verdict::judge(&document(path("linux-6.1", name), 0));
        let dropped: Vec<_> = found.iter().filter(|finding| finding.id == id).collect();
        assert_eq!(dropped.len(), 1, "{name}: {found:#?}");
        assert!(
            dropped[0].evidence.iter().any(|line| line.contains("0 device flushes")),
            "{name}: {dropped:#?}"
        );
        assert!(found.iter().all(|finding| finding.id != "no-flush-seen"), "{name}: {found:#?}");
    }
}

#[test]
fn a_cache_that_is_off_explains_that_no_flush_is_seen() {
    let document = document(path("linux-6.1", "ext4-ahci-cache-off"), 0);
    assert_eq!(worst(&document), Some(Severity::Info), "{:#?}", verdict::judge(&document));
    assert_eq!(has(&document, "no-flush-seen"), Some(Severity::Info));
}
