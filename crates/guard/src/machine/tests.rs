//! Uses, identities and numbers of disks on constructed machines.

use plumb_block::Bytes;
use plumb_linux::inventory::FileId;
use plumb_linux::probe::RecordedProbe;
use plumb_linux::tree::{Absence, DeviceNumber, FileKind, RecordedTree, Stat};

use super::*;
use crate::facts::{BlockFacts, Contents};
use crate::look::block_facts;

/// Machine constructed by a test.
struct MadeMachine {
    tree: RecordedTree,
    probe: RecordedProbe,
    minors: u32,
    mounts: String,
}

const ROOT: &str = "1 0 0:9 / / rw - tmpfs none rw\n";

impl MadeMachine {
    fn new() -> Self {
        let mut made = Self {
            tree: RecordedTree::new(),
            probe: RecordedProbe::new(),
            minors: 0,
            mounts: ROOT.to_owned(),
        };
        made.mount("0:8", "/proc", "proc", "proc");
        made
    }

    /// Adds a whole disk and returns its device number.
    fn disk(&mut self, name: &str) -> String {
        self.device(&format!("/sys/devices/{name}"), name)
    }

    /// Adds a partition of `disk` and returns its device number.
    fn partition(&mut self, disk: &str, name: &str, number: &str) -> String {
        let at = format!("/sys/devices/{disk}/{name}");
        self.tree.put_text(&format!("{at}/partition"), number);
        let device = self.device(&at, name);
        // Consecutive partitions of 8 sectors each.
        self.tree.put_text(&format!("{at}/size"), "8\n");
        let start = 8 * number.parse::<u64>().unwrap();
        self.tree.put_text(&format!("{at}/start"), &format!("{start}\n"));
        device
    }

    fn device(&mut self, at: &str, name: &str) -> String {
        self.minors += 1;
        let number = format!("8:{}", self.minors);
        self.tree.put_text(&format!("{at}/dev"), &format!("{number}\n"));
        self.tree.put_text(&format!("{at}/size"), "2048\n");
        self.tree.put_text(&format!("{at}/ro"), "0\n");
        self.tree.put_link(&format!("/sys/class/block/{name}"), at);
        self.tree.put_link(&format!("/sys/dev/block/{number}"), at);
        if !at.trim_start_matches("/sys/devices/").contains('/') {
            self.tree.put_link(&format!("/sys/block/{name}"), at);
        }
        number
    }

    fn says(&mut self, name: &str, file: &str, text: &str) {
        self.tree.put_text(&format!("/sys/devices/{name}/{file}"), text);
    }

    fn holder(&mut self, of: &str, holder: &str) {
        self.tree.put_text(&format!("/sys/devices/{of}/holders/{holder}"), "");
    }

    fn mount(&mut self, number: &str, point: &str, kind: &str, source: &str) {
        self.mounts += &format!("2 1 {number} / {point} rw - {kind} {source} rw\n");
        self.tree.put_text("/proc/self/mountinfo", &self.mounts);
    }

    fn swap(&mut self, path: &str) {
        let lines = format!("Filename\t\t\tType\n{path}                partition 8 0 -2\n");
        self.tree.put_text("/proc/swaps", &lines);
    }

    fn node(&mut self, path: &str, number: &str) {
        let node = Some(number.parse().unwrap());
        let device = DeviceNumber { major: 0, minor: 5 };
        self.tree.put_stat(path, Stat { kind: FileKind::Block, device, node, mount: None });
        self.tree.put_text(path, "");
    }

    fn facts(&self, number: &str) -> BlockFacts {
        let number: DeviceNumber = number.parse().unwrap();
        let rdev = rustix::fs::makedev(number.major, number.minor);
        block_facts(&Machine::new(&self.tree, &self.probe), rdev, Bytes::mib(1), Some(Contents::BLANK))
    }

    fn uses(&self, number: &str) -> Vec<String> {
        self.facts(number).uses.iter().map(ToString::to_string).collect()
    }

    fn words(&self, number: &str) -> Vec<String> {
        self.facts(number).identities
    }
}

#[test]
fn an_idle_disk_has_no_uses_and_its_partitions_are_a_sign() {
    let mut made = MadeMachine::new();
    let sda = made.disk("sda");
    let facts = made.facts(&sda);
    assert_eq!((facts.uses, facts.contents, facts.unseen), (vec![], Contents::BLANK, None));
    let sda1 = made.partition("sda", "sda1", "1");
    assert_ne!(made.facts(&sda).contents, Contents::BLANK, "the kernel sees a partition");
    assert_eq!(made.facts(&sda1).contents, Contents::BLANK);
}

#[test]
fn a_mounted_partition_is_a_use_of_its_disk_and_of_no_other_partition() {
    let mut made = MadeMachine::new();
    let sda = made.disk("sda");
    let sda1 = made.partition("sda", "sda1", "1");
    let sda2 = made.partition("sda", "sda2", "2");
    made.mount(&sda1, "/mnt/long", "ext4", "/dev/sda1");
    made.mount(&sda1, "/mnt", "ext4", "/dev/sda1");
    for used in [&sda, &sda1] {
        assert_eq!(made.uses(used), ["sda1 is mounted at /mnt (ext4)"]);
    }
    assert!(made.uses(&sda2).is_empty());
    // A mount of the whole disk uses every partition.
    made.mount(&sda, "/whole", "xfs", "/dev/sda");
    assert_eq!(made.uses(&sda2), ["sda is mounted at /whole (xfs)"]);
}

#[test]
fn what_stands_on_a_device_is_followed_to_the_top() {
    let mut made = MadeMachine::new();
    let sda = made.disk("sda");
    let sda1 = made.partition("sda", "sda1", "1");
    let sda2 = made.partition("sda", "sda2", "2");
    made.holder("sda/sda1", "md0");
    made.disk("md0");
    made.holder("md0", "dm-0");
    let dm = made.disk("dm-0");
    made.says("dm-0", "dm/name", "vg-root\n");
    made.mount(&dm, "/", "xfs", "/dev/mapper/vg-root");
    let expected = ["dm-0 is mounted at / (xfs)", "md0 is part of dm-0 (vg-root)", "sda1 is part of md0"];
    assert_eq!(made.uses(&sda), expected);
    assert_eq!(made.uses(&sda1), expected);
    assert!(made.uses(&sda2).is_empty());
    // A holder of the whole disk (multipath) uses each partition too.
    made.holder("sda", "dm-1");
    made.disk("dm-1");
    assert_eq!(made.uses(&sda2), ["sda is part of dm-1"]);
}

#[test]
fn a_circle_of_holders_ends() {
    let mut made = MadeMachine::new();
    let one = made.disk("dm-0");
    made.disk("dm-1");
    made.holder("dm-0", "dm-1");
    made.holder("dm-1", "dm-0");
    assert_eq!(made.uses(&one).len(), 2);
}

#[test]
fn every_member_of_a_mounted_btrfs_is_in_use() {
    let mut made = MadeMachine::new();
    let (sda, sdb) = (made.disk("sda"), made.disk("sdb"));
    let sdc = made.disk("sdc");
    for member in ["sda", "sdb"] {
        made.tree.put_text(&format!("/sys/fs/btrfs/uuid/devices/{member}"), "");
    }
    made.mount("0:40", "/data", "btrfs", "/dev/sda");
    made.mount("0:41", "/many", "bcachefs", "/dev/sdx:/dev/sdc");
    assert_eq!(made.uses(&sda), ["sda is mounted at /data (btrfs)"]);
    assert_eq!(made.uses(&sdb), ["sdb is mounted at /data (btrfs)"]);
    assert_eq!(made.uses(&sdc), ["sdc is mounted at /many (bcachefs)"]);
}

#[test]
fn swap_and_loop_devices_over_a_device_are_uses_of_it() {
    let mut made = MadeMachine::new();
    let sda = made.disk("sda");
    let sda1 = made.partition("sda", "sda1", "1");
    let sdb = made.disk("sdb");
    made.swap("/dev/sda1");
    assert_eq!(made.uses(&sda), ["sda1 is active swap space"], "by its name, where there is no node");
    made.node("/dev/disk/swap", &sdb);
    made.swap("/dev/disk/swap");
    assert_eq!(made.uses(&sdb), ["sdb is active swap space"], "by its number");
    assert!(made.uses(&sda).is_empty());
    let loop0 = made.disk("loop0");
    made.node("/dev/sda1", &sda1);
    made.says("loop0", "loop/backing_file", "/dev/sda1\n");
    made.mount(&loop0, "/img", "ext4", "/dev/loop0");
    assert_eq!(made.uses(&sda1), ["loop0 is mounted at /img (ext4)", "sda1 is behind loop0"]);
    assert_eq!(made.uses(&sda), made.uses(&sda1));
    // A loop device over the whole disk uses each partition.
    made.node("/dev/sda", &sda);
    made.says("loop0", "loop/backing_file", "/dev/sda\n");
    assert_eq!(made.uses(&sda1), ["loop0 is mounted at /img (ext4)", "sda is behind loop0"]);
}

#[test]
fn what_cannot_be_read_is_said_not_assumed() {
    let mut made = MadeMachine::new();
    let sda = made.disk("sda");
    assert_eq!(made.facts("9:9").unseen.as_deref(), Some("/sys/class/block has no device 9:9"));
    made.tree.put_absence("/proc/swaps", Absence::Denied);
    assert!(made.facts(&sda).unseen.is_some_and(|unseen| unseen.contains("/proc/swaps")));
    made.tree.remove("/proc/swaps");
    assert_eq!(made.facts(&sda).unseen, None, "a kernel without swap has no such table");
    made.tree.put_absence("/sys/devices/sda/holders", Absence::Denied);
    assert!(made.facts(&sda).unseen.is_some_and(|unseen| unseen.contains("sda/holders")));
    made.tree.remove("/sys/devices/sda/holders");
    made.tree.remove("/proc/self/mountinfo");
    assert!(made.facts(&sda).unseen.is_some());
    made.tree.put_text("/proc/self/mountinfo", "");
    assert!(made.facts(&sda).unseen.is_some());
}

#[test]
fn disks_are_called_by_what_does_not_change() {
    let mut made = MadeMachine::new();
    let vda = made.disk("vda");
    made.says("vda", "serial", "VIRT 1\n");
    let vda2 = made.partition("vda", "vda2", "2");
    let sda = made.disk("sda");
    made.tree.put_bytes("/sys/devices/sda/device/vpd_pg80", b"\0\x80\0\x0a  WD-1 23  ");
    made.says("sda", "device/wwid", "t10.ATA     WDC   WD-1 23\n");
    made.node("/dev/sda", &sda);
    made.tree.put_link("/dev/disk/by-id/ata-WDC_1", "../../sda");
    assert_eq!(made.words(&vda), ["VIRT 1"]);
    assert_eq!(made.words(&vda2), ["VIRT 1-part2"]);
    assert_eq!(made.words(&sda), ["WD-1 23", "t10.ATA WDC WD-1 23", "ata-WDC_1"]);
    let sdb = made.disk("sdb");
    assert_eq!(made.words(&sdb), ["sdb"], "nothing but the kernel's name");
    made.says("sdb", "device/wwid", "naa.5000\n");
    assert_eq!(made.words(&sdb), ["naa.5000"]);
}

#[test]
fn a_word_that_two_disks_share_names_neither() {
    let mut made = MadeMachine::new();
    let (sda, sdb) = (made.disk("sda"), made.disk("sdb"));
    let sdb1 = made.partition("sdb", "sdb1", "1");
    for disk in ["sda", "sdb"] {
        made.says(disk, "device/serial", "0123456789ABCDEF\n");
    }
    assert_eq!(made.words(&sda), ["sda=0123456789ABCDEF"]);
    assert_eq!(made.words(&sdb1), ["sdb1=0123456789ABCDEF"]);
    made.says("sdb", "wwid", "eui.1\n");
    assert_eq!(made.words(&sdb), ["eui.1"]);
    // A serial of zeroes does not identify a disk, and a hidden path does not count as a second disk.
    let sdc = made.disk("sdc");
    made.says("sdc", "serial", "00000000\n");
    made.says("sdc", "wwid", "eui.2\n");
    made.disk("nvme0c0n1");
    made.says("nvme0c0n1", "hidden", "1\n");
    made.says("nvme0c0n1", "wwid", "eui.2\n");
    assert_eq!(made.words(&sdc), ["eui.2"]);
}

#[test]
fn loop_and_memory_devices_are_called_by_name() {
    let mut made = MadeMachine::new();
    let loop3 = made.disk("loop3");
    made.says("loop3", "loop/backing_file", "/srv/a b.img\n");
    let part = made.partition("loop3", "loop3p1", "1");
    let zram = made.disk("zram0");
    assert_eq!(made.words(&loop3), ["loop3=/srv/a b.img"]);
    assert_eq!(made.words(&part), ["loop3p1=/srv/a b.img"]);
    assert_eq!(made.words(&zram), ["zram0"]);
}

#[test]
fn numbers_count_whole_disks_in_use_or_not() {
    let mut made = MadeMachine::new();
    for name in [
        "sdb",
        "sda",
        "sdaa",
        "loop0",
        "zram0",
        "ram0",
        "sr0",
        "dm-0",
        "md0",
        "nvme0n1",
        "vda",
        "mmcblk0",
        "mmcblk0boot0",
        "nvme1c0n1",
        "nbd0",
    ] {
        made.disk(name);
    }
    made.partition("sda", "sda1", "1");
    made.says("nvme1c0n1", "hidden", "1");
    made.says("nbd0", "size", "0");
    let numbered = |made: &MadeMachine| {
        let machine = Machine::new(&made.tree, &made.probe);
        super::numbered(machine.inventory().unwrap())
            .into_iter()
            .map(|disk| disk.name.clone())
            .collect::<Vec<_>>()
    };
    let expected = ["mmcblk0", "nvme0n1", "sda", "sdb", "sdaa", "vda"];
    assert_eq!(numbered(&made), expected);
    made.mount("8:2", "/mnt", "ext4", "/dev/sda");
    assert_eq!(numbered(&made), expected, "a mount numbers nothing anew");
}

#[test]
fn a_file_is_known_behind_whatever_name() {
    use std::os::unix::fs::MetadataExt as _;
    let directory = tempfile::tempdir().unwrap();
    let (file, link) = (directory.path().join("a"), directory.path().join("b"));
    std::fs::write(&file, "x").unwrap();
    std::fs::hard_link(&file, &link).unwrap();
    let stat = std::fs::metadata(&file).unwrap();
    let id = FileId { device: stat.dev(), inode: stat.ino() };
    let mut made = MadeMachine::new();
    made.disk("loop0");
    let uses = |made: &MadeMachine| {
        let machine = Machine::new(&made.tree, &made.probe);
        let uses = machine.inventory().unwrap().uses_of_file(&[id], &file.display().to_string(), 0..u64::MAX);
        uses.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert!(uses(&made).is_empty());
    made.says("loop0", "loop/backing_file", &link.display().to_string());
    assert_eq!(uses(&made), ["the file is behind loop0"]);
    made.says("loop0", "loop/backing_file", &format!("{} (deleted)", link.display()));
    assert!(uses(&made).is_empty());
    made.swap(&link.display().to_string());
    assert_eq!(uses(&made), ["the file is active swap space"]);
}

#[test]
fn a_machine_without_sys_is_unseen_one_without_block_devices_is_not() {
    let mut made = MadeMachine::new();
    let read = |made: &MadeMachine| {
        let machine = Machine::new(&made.tree, &made.probe);
        machine.inventory().map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(read(&made), Err("/sys/class/block (not there)".to_owned()));
    made.tree.put_text("/sys/kernel/x", "");
    assert_eq!(read(&made), Ok(()));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(100))]
    #[test]
    fn any_tables_are_read_without_panic(
        swaps in "[ -~\n\\\\]{0,60}",
        mounts in "[ -~\n\\\\]{0,60}",
        serial in ".{0,12}",
    ) {
        let mut made = MadeMachine::new();
        let sda = made.disk("sda");
        made.tree.put_text("/proc/swaps", &swaps);
        made.tree.put_text("/proc/self/mountinfo", &(mounts + "\n" + ROOT));
        made.says("sda", "serial", &serial);
        let facts = made.facts(&sda);
        proptest::prop_assert!(!facts.identities.is_empty());
    }
}
