//! Tests of hand-made machines: stacked devices, and facts that cannot be read.

use super::*;
use crate::probe::wire::dm;
use crate::probe::{RecordedProbe, Request};
use crate::tree::{Absence, RecordedTree};

const ROOT: &str = "1 0 0:9 / / rw - tmpfs none rw\n";

/// Returns the tree of a machine with sda, its partition sda1 below dm-0 and md0, and sdb.
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

/// Machine whose devices are ranges of other devices.
struct Stack {
    tree: RecordedTree,
    probe: RecordedProbe,
    minors: u32,
}

impl Stack {
    fn new() -> Self {
        let mut stack = Self { tree: RecordedTree::new(), probe: RecordedProbe::new(), minors: 0 };
        stack.tree.put_text("/proc/self/mountinfo", ROOT);
        stack
    }

    /// Returns a device of 1000 sectors; its number is 8:N in the order of the calls, from 8:1.
    fn device(&mut self, at: &str) -> String {
        self.minors += 1;
        let name = at.rsplit('/').next().unwrap_or_default().to_owned();
        let at = format!("/sys/devices/{at}");
        self.tree.put_text(&format!("{at}/dev"), &format!("8:{}\n", self.minors));
        self.tree.put_text(&format!("{at}/size"), "1000\n");
        self.tree.put_link(&format!("/sys/class/block/{name}"), &at);
        at
    }

    fn partition(&mut self, disk: &str, number: u64, start: u64, sectors: u64) {
        let at = self.device(&format!("{disk}/{disk}{number}"));
        self.tree.put_text(&format!("{at}/partition"), &format!("{number}\n"));
        self.tree.put_text(&format!("{at}/start"), &format!("{start}\n"));
        self.tree.put_text(&format!("{at}/size"), &format!("{sectors}\n"));
    }

    /// Adds a loop device over the device with the minor number `below`, or over the file with this inode.
    fn over(&mut self, name: &str, below: Result<u64, u64>, offset: u64, limit: u64) {
        let at = self.device(name);
        self.tree.put_text(&format!("{at}/loop/backing_file"), "/a/name/of/another/namespace\n");
        let sectors = if limit == 0 { 1000 } else { limit / 512 };
        self.tree.put_text(&format!("{at}/size"), &format!("{sectors}\n"));
        let mut status = vec![0_u8; 232];
        let mut put = |at: usize, value: u64| status[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        put(0, DeviceNumber { major: 9, minor: 9 }.to_huge());
        put(8, below.map_or_else(|inode| inode, |_| 5));
        let node = below.map(|minor| DeviceNumber { major: 8, minor: minor as u32 }.to_huge());
        put(16, node.unwrap_or(0));
        put(24, offset);
        put(32, limit);
        self.probe.put(name, Request::LoopStatus, Ok(status));
    }

    fn mapped(&mut self, name: &str, below: &[&str], table: Option<&[(u64, u64, &str, &str)]>) {
        let at = self.device(name);
        self.tree.put_text(&format!("{at}/dm/name"), "x\n");
        let below: Vec<String> = below.iter().map(|name| (*name).to_owned()).collect();
        self.tree.put_names(&format!("{at}/slaves"), &below);
        if let Some(table) = table {
            self.probe.put(name, Request::DmTable, Ok(dm::encode(table)));
        }
    }

    fn read(&self) -> Inventory {
        Inventory::read(&self.tree, &self.probe).unwrap()
    }

    fn overlap(&self, one: &str, other: &str) -> bool {
        let inventory = self.read();
        let (one, other) = (inventory.storage(one), inventory.storage(other));
        assert_eq!(one.overlaps(&other), other.overlaps(&one), "both ways");
        one.overlaps(&other)
    }
}

#[test]
fn loop_devices_over_one_file_overlap_where_their_ranges_do() {
    let mut stack = Stack::new();
    stack.over("loop0", Err(7), 0, 100 * 512);
    stack.over("loop1", Err(7), 50 * 512, 0);
    stack.over("loop2", Err(7), 100 * 512, 100 * 512);
    stack.over("loop3", Err(8), 0, 0);
    stack.over("loop4", Ok(1), 90 * 512, 5 * 512);
    assert!(stack.overlap("loop0", "loop1") && stack.overlap("loop1", "loop2"));
    assert!(!stack.overlap("loop0", "loop2"), "one ends where the other begins");
    assert!(!stack.overlap("loop0", "loop3"), "another file");
    // Sectors 90 to 95 of loop0 are bytes of the file.
    assert!(stack.overlap("loop4", "loop0") && stack.overlap("loop4", "loop1"));
    assert!(!stack.overlap("loop4", "loop2"));
    let file = |inode| FileId { device: rustix::fs::makedev(9, 9), inode };
    let inventory = stack.read();
    assert!(inventory.storage("loop4").overlaps(&Storage::from_file(&[file(7)], None, 0..u64::MAX)));
    assert!(!inventory.storage("loop4").overlaps(&Storage::from_file(&[file(8)], None, 0..u64::MAX)));
    assert!(!Storage::from_file(&[file(7)], None, 0..u64::MAX).overlaps(&Storage::from_file(
        &[file(8)],
        None,
        0..u64::MAX
    )));
    // Only an overlap is a use, whatever the name of the file.
    let by = |name: &str| inventory.uses(name).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(by("loop3"), Vec::<String>::new());
    assert_eq!(by("loop2"), ["/a/name/of/another/namespace is behind loop1"]);
    assert_eq!(by("loop4"), ["/a/name/of/another/namespace is behind loop1"]);
}

#[test]
fn a_mount_beneath_counts_where_its_range_does() {
    let mut stack = Stack::new();
    stack.device("sda");
    stack.partition("sda", 1, 100, 100);
    stack.partition("sda", 2, 200, 100);
    stack.over("loop0", Ok(1), 150 * 512, 10 * 512);
    stack.over("loop1", Ok(1), 250 * 512, 10 * 512);
    stack.tree.put_text("/proc/self/mountinfo", &format!("{ROOT}2 1 8:2 / /m rw - ext4 /dev/sda1 rw\n"));
    let inventory = stack.read();
    let of = |name: &str| inventory.uses(name).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(of("loop0"), ["sda1 is mounted at /m (ext4)"]);
    assert_eq!(of("loop1"), Vec::<String>::new());
    assert_eq!(of("sda2"), ["sda is behind loop1"]);
    assert_eq!(of("sda1"), ["sda1 is mounted at /m (ext4)", "sda is behind loop0"]);
}

#[test]
fn volumes_of_one_disk_are_told_apart_by_their_tables() {
    let mut stack = Stack::new();
    stack.device("sda");
    stack.mapped("dm-0", &["sda"], Some(&[(0, 100, "linear", "8:1 0"), (100, 50, "linear", "8:1 400")]));
    stack.mapped("dm-1", &["sda"], Some(&[(0, 300, "linear", "8:1 100")]));
    stack.mapped("dm-2", &["sda"], Some(&[(0, 100, "crypt", "aes - 0 8:1 420")]));
    assert!(!stack.overlap("dm-0", "dm-1"));
    assert!(stack.overlap("dm-0", "dm-2"), "the second segment");
    assert!(!stack.overlap("dm-1", "dm-2"));
    stack.over("loop0", Ok(2), 10 * 512, 10 * 512);
    assert!(stack.overlap("loop0", "dm-0") && !stack.overlap("loop0", "dm-2"), "the first segment");
}

#[test]
fn shares_of_one_device_are_apart_and_meet_all_else() {
    let mut stack = Stack::new();
    stack.over("loop0", Err(7), 0, 0);
    stack.over("loop1", Err(7), 0, 0);
    // Two thin volumes in one pool, an array on one loop device, another on the other.
    stack.mapped("dm-0", &["loop0"], Some(&[(0, 1000, "thin-pool", "8:9 8:1 128 0")]));
    stack.mapped("dm-1", &["dm-0"], Some(&[(0, 1000, "thin", "8:3 1")]));
    stack.mapped("dm-2", &["dm-0"], Some(&[(0, 1000, "thin", "8:3 2")]));
    stack.mapped("dm-3", &["loop1"], None);
    assert!(!stack.overlap("dm-1", "dm-2"));
    assert!(stack.overlap("dm-1", "dm-0"));
    assert!(stack.overlap("dm-1", "loop1"), "the pool is on a file that the loop device is over");
    assert!(stack.overlap("dm-1", "dm-3"), "and so is what stands on the loop device");
}

#[test]
fn a_lock_and_swap_space_in_the_file_beneath_are_uses() {
    let mut stack = Stack::new();
    stack.over("loop0", Err(7), 0, 0);
    let locks = "1: FLOCK  ADVISORY  WRITE 708 09:09:7 0 EOF\n2: FLOCK  ADVISORY  WRITE 709 09:09:8 0 EOF\n\
                 3: OFDLCK ADVISORY  WRITE -1 09:09:8 4096 8191\n4: FLOCK  ADVISORY  READ 710 09:09:9 0 EOF\n";
    stack.tree.put_text("/proc/locks", locks);
    let inventory = stack.read();
    assert_eq!(
        inventory.uses("loop0"),
        [Use::Locked { file: "/a/name/of/another/namespace".to_owned(), process: Some("708".to_owned()) }]
    );
    let file = FileId { device: rustix::fs::makedev(9, 9), inode: 7 };
    assert_eq!(
        inventory.uses_of_file(&[file], "", 0..u64::MAX).iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["the file is behind loop0"],
        "a lock on the file itself may be the own one"
    );
}

#[test]
fn a_part_of_a_device_or_file_is_used_by_what_reaches_into_it() {
    let mut stack = Stack::new();
    stack.over("loop0", Err(7), 0, 0);
    stack.over("loop1", Err(7), 4096, 4096);
    stack.mapped("dm-0", &["loop0"], Some(&[(0, 8, "linear", "8:1 16")]));
    let locks = "1: OFDLCK ADVISORY  WRITE -1 09:09:7 0 4095\n";
    stack.tree.put_text("/proc/locks", locks);
    let inventory = stack.read();
    let of =
        |bytes| inventory.uses_of_part("loop0", bytes).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(of(0..4096), ["/a/name/of/another/namespace is locked by a program"]);
    assert_eq!(of(4096..8192), ["/a/name/of/another/namespace is behind loop1"]);
    assert_eq!(of(8192..12288), ["loop0 is part of dm-0 (x)"]);
    assert!(of(12288..16384).is_empty());
    let file = FileId { device: rustix::fs::makedev(9, 9), inode: 7 };
    let by = |bytes| inventory.uses_of_file(&[file], "", bytes).len();
    assert_eq!((by(0..4096), by(4096..8192)), (1, 2), "loop0 has all of the file, loop1 a part");
}
