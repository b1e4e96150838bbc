//! Machines put together by hand: what stands on what, and what cannot be read.

use super::*;
use crate::probe::RecordedProbe;
use crate::tree::{Absence, RecordedTree};

const ROOT: &str = "1 0 0:9 / / rw - tmpfs none rw\n";

/// sda with sda1, which dm-0 and md0 stand on, and sdb.
fn tree() -> RecordedTree {
    let mut tree = RecordedTree::new();
    tree.put_text("/proc/self/mountinfo", ROOT);
    for (number, name, parent) in
        [(0, "sda", ""), (1, "sda1", "sda/"), (2, "sdb", ""), (3, "dm-0", ""), (4, "md0", "")]
    {
        let at = format!("/sys/devices/{parent}{name}");
        tree.put_text(&format!("{at}/dev"), &format!("8:{number}\n"));
        tree.put_text(&format!("{at}/size"), "8\n");
        tree.put_link(&format!("/sys/class/block/{name}"), &at);
    }
    tree.put_text("/sys/devices/sda/sda1/partition", "1\n");
    tree.put_text("/sys/devices/dm-0/dm/name", "vg-root\n");
    tree.put_text("/sys/devices/md0/md/level", "raid1\n");
    tree.put_names("/sys/devices/dm-0/slaves", &["sda1".to_owned()]);
    tree.put_names("/sys/devices/sda/sda1/holders", &["md0".to_owned()]);
    tree
}

fn read(tree: &RecordedTree) -> Result<Inventory, InventoryError> {
    Inventory::read(tree, &RecordedProbe::new())
}

fn uses(tree: &RecordedTree, name: &str) -> Vec<String> {
    read(tree).unwrap().uses(name).iter().map(ToString::to_string).collect()
}

#[test]
fn relations_are_known_from_either_side() {
    let inventory = read(&tree()).unwrap();
    let above: Vec<&str> = inventory.above("sda").iter().map(|block| block.name.as_str()).collect();
    assert_eq!(above, ["sda1", "md0", "dm-0"]);
    assert_eq!(inventory.disks_below("md0"), BTreeSet::from(["sda"]));
    let disks: Vec<&str> = inventory.disks().map(|block| block.name.as_str()).collect();
    assert_eq!(disks, ["sda", "sdb"]);
    assert_eq!(uses(&tree(), "sda"), ["sda1 is part of dm-0 (vg-root)", "sda1 is part of md0"]);
    assert!(uses(&tree(), "sdb").is_empty());
}

#[test]
fn every_source_that_is_there_and_cannot_be_read_is_an_error() {
    for source in [
        "/proc/self/mountinfo",
        "/proc/swaps",
        "/sys/fs/btrfs",
        "/sys/devices/sda/dev",
        "/sys/devices/sdb/holders",
        "/sys/devices/sdb/slaves",
        "/sys/devices/sdb/loop/backing_file",
    ] {
        let mut denied = tree();
        denied.remove(source);
        denied.put_absence(source, Absence::Denied);
        let error = read(&denied).map(|_| ()).unwrap_err();
        assert_eq!(error, InventoryError::Unreadable { path: source.to_owned(), absence: Absence::Denied });
    }
}

#[test]
fn a_mount_table_is_always_there_and_whole() {
    let mut made = tree();
    made.remove("/proc/self/mountinfo");
    assert!(matches!(read(&made), Err(InventoryError::Unreadable { absence: Absence::NotThere, .. })));
    made.put_text("/proc/self/mountinfo", "");
    assert_eq!(read(&made), Err(InventoryError::NoMounts));
    made.put_text("/proc/self/mountinfo", &format!("{ROOT}2 1 8:2 / /srv rw - ex"));
    assert!(read(&made).is_ok(), "a type that is cut off is a mount all the same");
    made.put_text("/proc/self/mountinfo", &format!("{ROOT}2 1 8:2 / /s"));
    assert_eq!(read(&made), Err(InventoryError::Mount { line: 2 }));
}

#[test]
fn what_a_kernel_does_not_have_is_none() {
    let mut made = RecordedTree::new();
    made.put_text("/proc/self/mountinfo", ROOT);
    assert!(read(&made).is_err(), "/sys is not mounted");
    made.put_text("/sys/kernel/x", "");
    assert_eq!(read(&made).unwrap().blocks().count(), 0);
}

#[test]
fn a_disk_is_found_under_a_path_by_number_and_by_source() {
    let mut made = tree();
    let mounts = "2 1 8:3 / /srv rw - ext4 /dev/mapper/vg-root rw\n\
        3 1 0:40 / /srv/data rw - btrfs /dev/sdb rw\n\
        4 1 0:41 / /net rw - nfs server:/dev/sda rw\n";
    made.put_text("/proc/self/mountinfo", &format!("{ROOT}{mounts}"));
    let inventory = read(&made).unwrap();
    for (path, expected) in
        [("/srv/x", vec!["sda"]), ("/srv/data/x", vec!["sdb"]), ("/srvx", vec![]), ("/net/x", vec![])]
    {
        assert_eq!(inventory.disks_under_path(path), expected.into_iter().collect(), "{path}");
    }
}

#[test]
fn a_loop_device_over_a_disk_stands_on_it() {
    let mut made = tree();
    made.put_text("/sys/devices/loop0/dev", "7:0\n");
    made.put_text("/sys/devices/loop0/loop/backing_file", "/dev/sdb\n");
    made.put_link("/sys/class/block/loop0", "/sys/devices/loop0");
    let device = DeviceNumber { major: 0, minor: 5 };
    let node = Some(DeviceNumber { major: 8, minor: 2 });
    made.put_stat(
        "/dev/sdb",
        crate::tree::Stat { kind: crate::tree::FileKind::Block, device, node, mount: None },
    );
    made.put_text("/dev/sdb", "");
    assert_eq!(uses(&made, "sdb"), ["sdb is behind loop0"]);
    assert_eq!(read(&made).unwrap().disks_below("loop0"), BTreeSet::from(["sdb"]));
}
