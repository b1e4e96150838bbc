//! Tests of the views of disks in guests under Linux 6.1 and 6.12: each trap is found on its disk, with its
//! state and the reason why it is not changed.
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use plumb_block::Nanos;
use plumb_linux::probe::{Probe, RecordedProbe};
use plumb_linux::tree::{RecordedTree, Tree};
use plumb_policy::device::{BlockKind, Claims, Reader};
use plumb_policy::gateway::{Change, Disk, Gateway, GatewayError, Query};
use plumb_policy::state::FoundState;
use plumb_policy::view::DeviceView;

/// A recording as a machine that answers queries, but cannot be changed.
struct RecordedMachine {
    tree: RecordedTree,
    probe: RecordedProbe,
}

impl Gateway for RecordedMachine {
    fn tree(&self) -> &dyn Tree {
        &self.tree
    }

    fn probe(&self) -> &dyn Probe {
        &self.probe
    }

    fn ask(&self, disk: &Disk, _: &Query) -> Result<Vec<u8>, GatewayError> {
        Err(GatewayError::Gone { name: disk.name.clone() })
    }

    fn carry_out(&self, disk: &Disk, _: &Change) -> Result<(), GatewayError> {
        Err(GatewayError::Gone { name: disk.name.clone() })
    }

    fn now(&self) -> Nanos {
        Nanos::ZERO
    }

    fn sleep(&self, _: Nanos) {}
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../path/tests/fixtures")
}

/// Returns the views of all disks of a recording.
fn views(directory: &Path) -> Vec<DeviceView> {
    let mut recorded = plumb_path::load(directory).unwrap();
    // The survey of a device alone does not read the mount table, and that of a path does not list all
    // devices.
    recorded.tree.put_names("/sys/class/block", &[]);
    if recorded.tree.read("/proc/self/mountinfo").is_err() {
        recorded.tree.put_text("/proc/self/mountinfo", "1 0 0:21 / /proc rw - proc proc rw\n");
    }
    let gateway = RecordedMachine { tree: recorded.tree, probe: recorded.probe };
    let claims = Claims::default();
    let reader = Reader::new(&gateway, &claims, Timestamp::UNIX_EPOCH).unwrap();
    let names: Vec<String> = gateway.tree.list("/sys/class/block").unwrap_or_default();
    let disks = names
        .iter()
        .filter(|name| reader.inventory().get(name).is_some_and(|block| block.kind == BlockKind::Disk));
    disks.map(|name| reader.one(name).unwrap()).collect()
}

fn has(view: &DeviceView, id: &str) -> bool {
    view.findings.iter().any(|finding| finding.id == id)
}

#[test]
fn every_trap_is_found_on_its_disk() {
    for (recording, id, state) in [
        ("linux-6.12/h1-temporary", "h3-stale-kernel-view", FoundState::Protected),
        ("linux-6.12/h1-temporary-ahci", "h1-temporary-write-through", FoundState::Protected),
        ("linux-6.12/h2-queue", "h2-queue-write-through", FoundState::Protected),
        ("linux-6.12/h2-queue-nvme", "h2-queue-write-through", FoundState::Protected),
        ("linux-6.12/h2-queue-virtio-blk", "h2-queue-write-through", FoundState::Protected),
        ("linux-6.12/h3-mode-select", "h3-stale-kernel-view", FoundState::Protected),
        ("linux-6.12/h4-stale-dm", "h4-stale-dm-table", FoundState::On),
        ("linux-6.12/h5-dm-over-queue", "h5-dm-over-disabled-queue", FoundState::Protected),
        ("linux-6.12/h7-nvme-feature", "h7-nvme-feature-hidden", FoundState::Off),
        ("linux-6.12/h8-write-protected", "h8-write-protected", FoundState::Protected),
        ("linux-6.12/h9-megasas", "h9-driver-swallows-flush", FoundState::On),
        ("linux-6.1/h4-stale-dm", "h4-stale-dm-table", FoundState::On),
    ] {
        let views = views(&root().join(recording));
        let found = views.iter().find(|view| has(view, id));
        let Some(view) = found else { panic!("{recording}: {id} not among {views:#?}") };
        assert_eq!(view.state, state, "{recording}");
    }
}

#[test]
fn a_trap_of_one_leg_is_not_told_of_the_other() {
    let views = views(&root().join("linux-6.12/h2-one-leg"));
    assert_eq!(views.len(), 2);
    let trapped: Vec<bool> = views.iter().map(|view| has(view, "h2-queue-write-through")).collect();
    assert_eq!(trapped.iter().filter(|trapped| **trapped).count(), 1, "{views:#?}");
}

#[test]
fn healed_recordings_show_no_trap() {
    for recording in ["h1-cleared", "h3-rescanned", "h4-reloaded"] {
        for view in views(&root().join("linux-6.12").join(recording)) {
            assert_eq!(view.state, FoundState::On, "{recording}");
            assert!(!view.findings.iter().any(|finding| finding.id.starts_with('h')), "{:?}", view.findings);
        }
    }
}

#[test]
fn what_must_not_be_changed_is_refused_for_its_own_reason() {
    for (recording, transport, reason) in [
        ("linux-6.12/h8-write-protected", "scsi", "H8"),
        ("linux-6.12/h9-megasas", "raid", "RAID"),
        ("linux-6.12/ext4-virtio-blk-fixed", "virtio", "hypervisor"),
        ("linux-6.12/multipath", "scsi", "multipath"),
    ] {
        for view in views(&root().join(recording)) {
            assert_eq!(view.transport, transport, "{recording}");
            let said = view.refusal.as_ref().map_or("", |refusal| refusal.reason.as_str());
            assert!(said.contains(reason), "{recording}: {said}");
        }
    }
}

#[test]
fn holders_are_listed_from_below() {
    let views = views(&root().join("linux-6.12/lvm-on-crypt-on-md"));
    for view in &views {
        let kinds: Vec<&str> = view.holders.iter().map(|holder| holder.kind.as_str()).collect();
        assert_eq!(kinds, ["md", "dm-crypt", "dm-linear", "ext4"], "{}", view.name);
        assert!(view.redundancy_groups.iter().any(|group| group.starts_with("md")));
    }
    assert!(views.len() > 1);
}

#[test]
fn every_recording_gives_views_that_survive_their_document() {
    let mut seen = 0;
    for kernel in ["linux-6.1", "linux-6.12"] {
        for entry in std::fs::read_dir(root().join(kernel)).unwrap().flatten() {
            if !entry.path().join("recording.json").exists() {
                continue;
            }
            for view in views(&entry.path()) {
                assert_ne!(view.state, FoundState::None, "{}", entry.path().display());
                assert!(view.device.wce.is_some() || view.device.wce_unknown_because.is_some());
                let json = serde_json::to_string(&view).unwrap();
                assert_eq!(serde_json::from_str::<DeviceView>(&json).unwrap(), view);
                seen += 1;
            }
        }
    }
    assert!(seen > 60, "{seen}");
}
