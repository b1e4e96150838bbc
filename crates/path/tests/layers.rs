//! Tests of a small synthetic tree for each kind of device: guards against a layer that is not recognised, or
//! misjudged. Recordings of real kernels are in `oracle.rs`, file systems in `file_systems.rs`.

use crate::machine::{Machine, WB, WT, has, layer, names, stacked};
use plumb_linux::probe::wire::dm;
use plumb_linux::probe::{PageControl, Refusal, Request};
use plumb_linux::tree::{Absence, DeviceNumber, FileKind, Stat};
use plumb_path::{Cache, Flush, LayerKind, Severity, SurveyError, Target, survey, survey_path};

#[test]
fn a_plain_disk_with_its_cache_on_is_durable_after_fsync() {
    let mut machine = Machine::with_disk(WB, true);
    machine.mount("/srv", "8:1", "xfs", "/dev/sda", "rw");
    let path = machine.survey("/srv");
    layer(&path, "sda", LayerKind::ScsiDisk, Cache::Volatile, Flush::Forwarded);
    layer(&path, "mpt3sas 0000:00:03.0", LayerKind::Controller, Cache::None, Flush::Forwarded);
    assert_eq!(path.durable_at.fsync.as_deref(), Some("sda"));
    assert_eq!(path.durable_at.write, None);
    assert_eq!(path.unknown_below, None);
    assert_eq!(has(&path, "volatile-cache"), Some(Severity::Info));
}

#[test]
fn a_cache_that_is_off_absorbs() {
    let mut machine = Machine::with_disk(WT, false);
    machine.mount("/srv", "8:1", "ext4", "/dev/sda", "rw,nobarrier,sync");
    let path = machine.survey("/srv");
    layer(&path, "sda", LayerKind::ScsiDisk, Cache::None, Flush::Absorbed);
    layer(&path, "ext4 /srv", LayerKind::FileSystem, Cache::None, Flush::Absorbed);
    assert_eq!(has(&path, "barriers-off"), Some(Severity::Info));
    assert_eq!(path.durable_at.write.as_deref(), Some("sda"));
}

#[test]
fn a_declared_protection_makes_write_through_harmless() {
    let mut machine = Machine::with_disk(WT, true);
    machine.probe.put("sda", Request::ExtendedInquiry, Ok(vec![0, 0x86, 0, 4, 0, 0, 2, 0]));
    let path = machine.survey("sda");
    layer(&path, "sda", LayerKind::ScsiDisk, Cache::Protected, Flush::Absorbed);
    assert_eq!(has(&path, "flush-dropped"), None);
}

#[test]
fn a_nonvolatile_cache_that_is_switched_off_protects_nothing() {
    for (disabled, cache) in
        [(Some(true), Cache::Volatile), (Some(false), Cache::Protected), (None, Cache::Protected)]
    {
        let mut machine = Machine::with_disk(WB, true);
        machine.nonvolatile("sda", disabled);
        machine.probe.put("sda", Request::ExtendedInquiry, Ok(vec![0, 0x86, 0, 4, 0, 0, 2, 0]));
        layer(&machine.survey("sda"), "sda", LayerKind::ScsiDisk, cache, Flush::Forwarded);
    }
}

#[test]
fn a_raw_device_takes_o_direct_in_place_where_nothing_is_volatile_or_unknown() {
    let sentence = |machine: &Machine, target: &str| machine.survey(target).durable_at.sentence;
    let mut machine = Machine::with_disk(WT, false);
    assert!(sentence(&machine, "sda").contains("With O_DIRECT"));
    machine.scsi("sdb", "mpt3sas", WB, true);
    assert!(sentence(&machine, "sdb").contains("O_DIRECT alone leaves it in the volatile cache of sdb"));
    machine.device("/sys/devices/LNXSYSTM:00/ndbus0/block", "pmem0", WB);
    assert!(!sentence(&machine, "pmem0").contains("O_DIRECT"));
    // A thin volume has its own map, which a flush writes.
    for (target, said) in [("thin", false), ("linear", true)] {
        let mut machine = stacked("dm-0", "dm", WT);
        machine.page("sda", false, false);
        machine.probe.put("dm-0", Request::DmTable, Ok(dm::encode(&[(0, 8, target, "8:1 0")])));
        assert_eq!(sentence(&machine, "dm-0").contains("O_DIRECT"), said, "{target}");
    }
}

#[test]
fn without_root_the_kernels_word_alone_is_not_enough() {
    let mut machine = Machine::with_disk(WT, false);
    machine.probe.put("sda", Request::CachingPage(PageControl::Current), Err(Refusal::Denied));
    let path = machine.survey("sda");
    layer(&path, "sda", LayerKind::ScsiDisk, Cache::Unknown, Flush::Unknown);
    assert_eq!(has(&path, "needs-root"), Some(Severity::Info));
    let evidence = &path.findings.iter().find(|finding| finding.id == "needs-root").unwrap().evidence;
    assert_eq!(evidence, &["sda: MODE SENSE(10) page 08h"]);
}

#[test]
fn a_drive_without_a_caching_page_gets_no_flush() {
    let mut machine = Machine::new();
    machine.scsi("sda", "usb-storage", WT, false);
    let refusal = Err(Refusal::Sense { key: 5, asc: 0x24, ascq: 0 });
    machine.probe.put("sda", Request::CachingPage(PageControl::Current), refusal);
    let path = machine.survey("sda");
    layer(&path, "sda", LayerKind::ScsiDisk, Cache::Unknown, Flush::Unknown);
    assert_eq!(has(&path, "no-caching-page"), Some(Severity::Warning));
}

#[test]
fn sata_and_usb_are_told_by_their_way() {
    let mut machine = Machine::new();
    machine.disk_at("/sys/devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0", "sda", "ahci", WB, true);
    machine.disk_at(
        "/sys/devices/pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host0/target0:0:0",
        "sdb",
        "uas",
        WB,
        true,
    );
    layer(&machine.survey("sda"), "sda", LayerKind::AtaDisk, Cache::Volatile, Flush::Forwarded);
    layer(&machine.survey("sdb"), "sdb", LayerKind::UsbDisk, Cache::Volatile, Flush::Forwarded);
}

#[test]
fn the_drives_registers_outrank_the_emulated_page() {
    let mut machine = Machine::new();
    machine.disk_at("/sys/devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0", "sda", "ahci", WT, false);
    let mut identify = vec![0_u8; 512];
    for (word, value) in [(82, 0x20_u16), (83, 0x4000), (85, 0x20), (87, 0x4000)] {
        identify[word * 2..word * 2 + 2].copy_from_slice(&value.to_le_bytes());
    }
    machine.probe.put("sda", Request::AtaIdentify, Ok(identify));
    let path = machine.survey("sda");
    layer(&path, "sda", LayerKind::AtaDisk, Cache::Volatile, Flush::Dropped);
    assert_eq!(has(&path, "h1-temporary-write-through"), Some(Severity::Danger));
    assert!(path.durable_at.sentence.contains("the flush ends at sda"), "{}", path.durable_at.sentence);
}

#[test]
fn megaraid_without_firmware_support_swallows_flushes() {
    let mut machine = Machine::new();
    machine.scsi("sda", "megaraid_sas", WB, true);
    let adapter = "megaraid_sas 0000:00:03.0";
    // A fusion adapter whose word in the kernel log may not be read.
    machine.tree.put_text("/sys/devices/pci0000:00/0000:00:03.0/device", "0x005d\n");
    layer(&machine.survey("sda"), adapter, LayerKind::Controller, Cache::Unknown, Flush::Unknown);
    assert_eq!(has(&machine.survey("sda"), "driver-may-swallow-flush"), Some(Severity::Warning));
    assert_eq!(has(&machine.survey("sda"), "raid-controller-hides-members"), Some(Severity::Info));
    for (word, flush) in [("No", Flush::Dropped), ("Yes", Flush::Forwarded)] {
        let line = format!("megaraid_sas 0000:00:03.0: FW supports sync cache\t: {word}\n");
        machine.probe.put("kernel", Request::KernelLog, Ok(line.into_bytes()));
        layer(&machine.survey("sda"), adapter, LayerKind::Controller, Cache::Unknown, flush);
    }
    machine.tree.put_text("/sys/devices/pci0000:00/0000:00:03.0/device", "0x0079\n");
    layer(&machine.survey("sda"), adapter, LayerKind::Controller, Cache::Unknown, Flush::Dropped);
    assert_eq!(has(&machine.survey("sda"), "h9-driver-swallows-flush"), Some(Severity::Danger));
}

#[test]
fn other_raid_drivers_are_judged_by_their_settings() {
    for (parameter, flush) in [("2", Flush::Dropped), ("6", Flush::Unknown), ("0", Flush::Forwarded)] {
        let mut machine = Machine::new();
        machine.scsi("sda", "aacraid", WB, true);
        machine.tree.put_text("/sys/module/aacraid/parameters/cache", &format!("{parameter}\n"));
        layer(&machine.survey("sda"), "aacraid 0000:00:03.0", LayerKind::Controller, Cache::Unknown, flush);
    }
    let mut machine = Machine::new();
    machine.scsi("sda", "myrb", WB, true);
    assert_eq!(has(&machine.survey("sda"), "h9-driver-swallows-flush"), Some(Severity::Danger));
    let mut machine = Machine::new();
    let block = machine.scsi("sda", "smartpqi", WB, true);
    machine.tree.put_text(&format!("{}/raid_level", block.replace("/block/sda", "")), "RAID-5\n");
    assert_eq!(has(&machine.survey("sda"), "raid-controller-hides-members"), Some(Severity::Info));
    assert!(machine.survey("sda").unknown_below.unwrap().contains("RAID-5"));
}

#[test]
fn targets_behind_a_network_are_remote() {
    let mut machine = Machine::new();
    machine.disk_at("/sys/devices/platform/host0/session1/target0:0:0", "sda", "iscsi_tcp", WB, true);
    let path = machine.survey("sda");
    layer(&path, "remote end of sda", LayerKind::Remote, Cache::Unknown, Flush::Unknown);
    assert_eq!(has(&path, "remote-storage"), Some(Severity::Info));
    assert_eq!(path.durable_at.fsync, None);
}

#[test]
fn parity_without_a_journal_has_a_write_hole() {
    for (policy, degraded, expected) in [
        ("resync", "0", Some(Severity::Info)),
        ("resync", "1", Some(Severity::Warning)),
        ("journal", "0", None),
        ("ppl", "0", None),
    ] {
        let mut machine = stacked("md0", "md", WB);
        for (file, text) in [("level", "raid5"), ("consistency_policy", policy), ("degraded", degraded)] {
            machine.tree.put_text(&format!("/sys/devices/virtual/block/md0/md/{file}"), text);
        }
        let path = machine.survey("md0");
        layer(&path, "md0", LayerKind::Md, Cache::None, Flush::Forwarded);
        assert_eq!(has(&path, "write-hole"), expected, "{policy} {degraded}");
    }
}

/// Documentation/admin-guide/md.rst: a line for each range, its first sector and its length.
#[test]
fn bad_blocks_of_a_member_are_counted() {
    let with = |ranges: &str| {
        let mut machine = stacked("md0", "md", WB);
        machine.tree.put_text("/sys/devices/virtual/block/md0/md/level", "raid1");
        machine.tree.put_text("/sys/devices/virtual/block/md0/md/dev-sda/bad_blocks", ranges);
        machine.survey("md0")
    };
    assert_eq!(has(&with(""), "errors-recorded"), None);
    let path = with("1024 8\n4096 16\n");
    assert_eq!(has(&path, "errors-recorded"), Some(Severity::Warning));
    let said = path.findings.iter().any(|finding| finding.sentence.contains("(24 bad sectors of sda)"));
    assert!(said, "{:#?}", path.findings);
}

#[test]
fn bcache_tells_what_is_dirty() {
    let mut machine = stacked("bcache0", "bcache", WB);
    for (file, text) in [("state", "dirty"), ("cache_mode", "[writeback]"), ("dirty_data", "1.2M")] {
        machine.tree.put_text(&format!("/sys/devices/virtual/block/bcache0/bcache/{file}"), text);
    }
    let path = machine.survey("bcache0");
    layer(&path, "bcache0", LayerKind::Bcache, Cache::None, Flush::Forwarded);
    assert_eq!(has(&path, "bcache-dirty"), Some(Severity::Info));
}

#[test]
fn memory_is_never_durable() {
    for (name, kind) in [("zram0", LayerKind::Zram), ("ram3", LayerKind::Ram), ("nullb0", LayerKind::NullBlk)]
    {
        let mut machine = Machine::new();
        machine.virtual_device(name, WT);
        let path = machine.survey(name);
        layer(&path, name, kind, Cache::Volatile, Flush::Dropped);
        assert_eq!(has(&path, "memory"), Some(Severity::Danger));
        assert_eq!(has(&path, "flush-dropped"), None);
    }
    for kind in ["tmpfs", "ramfs"] {
        let mut machine = Machine::new();
        machine.mount("/tmp", "0:40", kind, "none", "rw");
        let path = machine.survey("/tmp");
        layer(&path, &format!("{kind} /tmp"), LayerKind::Tmpfs, Cache::Volatile, Flush::Dropped);
        assert_eq!(path.block_devices(), Vec::<String>::new());
    }
}

#[test]
fn devices_with_a_far_end_are_followed_to_it() {
    for (name, kind, flush) in [
        ("nbd0", LayerKind::Nbd, Flush::Forwarded),
        ("rbd0", LayerKind::Rbd, Flush::Forwarded),
        ("drbd0", LayerKind::Drbd, Flush::Forwarded),
        ("ublkb0", LayerKind::Ublk, Flush::Forwarded),
    ] {
        let mut machine = Machine::new();
        machine.virtual_device(name, WB);
        let path = machine.survey(name);
        assert_eq!(path.layer(name).map(|layer| (layer.kind, layer.flush)), Some((kind, flush)));
        assert_eq!(has(&path, "remote-storage"), Some(Severity::Info), "{name}");
        assert_eq!(path.block_devices(), [name]);
    }
}

#[test]
fn virtual_disks_end_at_the_hypervisor() {
    let mut machine = Machine::new();
    machine.guest();
    let block = machine.device("/sys/devices/pci0000:00/0000:00:05.0/virtio2/block", "vda", WT);
    machine.tree.put_text(&format!("{block}/cache_type"), WB);
    let path = machine.survey("vda");
    layer(&path, "vda", LayerKind::VirtioDisk, Cache::Volatile, Flush::Dropped);
    layer(&path, "hypervisor QEMU", LayerKind::Hypervisor, Cache::Unknown, Flush::Unknown);
    assert_eq!(has(&path, "h2-queue-write-through"), Some(Severity::Danger));
    machine.tree.put_text(&format!("{block}/cache_type"), WT);
    let path = machine.survey("vda");
    layer(&path, "vda", LayerKind::VirtioDisk, Cache::None, Flush::Absorbed);
    assert!(path.unknown_below.unwrap().starts_with("hypervisor QEMU"));
    machine.device("/sys/devices/vbd-51712/block", "xvda", WB);
    layer(&machine.survey("xvda"), "xvda", LayerKind::XenDisk, Cache::Volatile, Flush::Forwarded);
}

#[test]
fn a_disk_without_a_flush_command_is_suspect_in_firecracker_alone() {
    let mut machine = Machine::new();
    let block = machine.device("/sys/devices/pci0000:00/0000:00:05.0/virtio2/block", "vda", WT);
    machine.tree.put_text(&format!("{block}/cache_type"), WT);
    machine.tree.put_text(&format!("{block}/device/features"), "0000000000000000");
    machine.guest();
    assert_eq!(has(&machine.survey("vda"), "virtio-no-flush"), Some(Severity::Info));
    machine.tree.remove("/sys/class/dmi");
    machine.tree.put_text("/sys/firmware/acpi/tables/FACP", "FACPllllrcFIRECKFCMVFADT");
    let path = machine.survey("vda");
    layer(&path, "vda", LayerKind::VirtioDisk, Cache::Unknown, Flush::Unknown);
    assert_eq!(has(&path, "virtio-no-flush"), Some(Severity::Warning));
}

#[test]
fn nvme_is_judged_by_both_views() {
    let identify = |vwc: u8| {
        let mut data = vec![0_u8; 4096];
        data[525] = vwc;
        Ok(data)
    };
    let current = Request::NvmeWriteCache(PageControl::Current);
    for (vwc, wce, view, cache, flush, finding) in [
        (1, 1, WB, Cache::Volatile, Flush::Forwarded, "volatile-cache"),
        (1, 1, WT, Cache::Volatile, Flush::Dropped, "h2-queue-write-through"),
        (1, 0, WB, Cache::None, Flush::Forwarded, "h7-nvme-feature-hidden"),
        (0, 0, WT, Cache::Protected, Flush::Absorbed, ""),
    ] {
        let mut machine = Machine::new();
        machine.device("/sys/devices/pci0000:00/0000:01:00.0/nvme/nvme0", "nvme0n1", view);
        machine.tree.put_text("/sys/devices/pci0000:00/0000:01:00.0/nvme/nvme0/transport", "pcie\n");
        machine.probe.put("nvme0n1", Request::NvmeIdentifyController, identify(vwc));
        machine.probe.put("nvme0n1", current, Ok(vec![wce, 0, 0, 0]));
        let path = machine.survey("nvme0n1");
        layer(&path, "nvme0n1", LayerKind::NvmeNamespace, cache, flush);
        assert!(finding.is_empty() || has(&path, finding).is_some(), "{finding}");
    }
    let mut machine = Machine::new();
    machine.device("/sys/devices/virtual/nvme-fabrics/ctl/nvme3", "nvme3n1", WB);
    machine.tree.put_text("/sys/devices/virtual/nvme-fabrics/ctl/nvme3/transport", "tcp\n");
    assert_eq!(has(&machine.survey("nvme3n1"), "remote-storage"), Some(Severity::Info));
}

#[test]
fn cards_and_persistent_memory_are_known() {
    let mut machine = Machine::new();
    machine.device("/sys/devices/platform/mmc0/block", "mmcblk0", WB);
    machine.device("/sys/devices/platform/mmc0/block", "mmcblk1", WT);
    layer(&machine.survey("mmcblk0"), "mmcblk0", LayerKind::MmcDisk, Cache::Volatile, Flush::Forwarded);
    layer(&machine.survey("mmcblk1"), "mmcblk1", LayerKind::MmcDisk, Cache::Unknown, Flush::Unknown);
}

#[test]
fn the_queue_of_persistent_memory_says_nothing_about_the_platform() {
    for (dax, cache, flush) in [
        (None, Cache::Unknown, Flush::Forwarded),
        (Some("1\n"), Cache::Unknown, Flush::Forwarded),
        (Some("0\n"), Cache::Protected, Flush::Forwarded),
    ] {
        let mut machine = Machine::new();
        let region = "/sys/devices/LNXSYSTM:00/ndbus0/region0";
        let block = machine.device(&format!("{region}/namespace0.0/block"), "pmem0", WB);
        if let Some(text) = dax {
            machine.tree.put_text(&format!("{block}/dax/write_cache"), text);
        }
        layer(&machine.survey("pmem0"), "pmem0", LayerKind::Pmem, cache, flush);
        machine.tree.put_text(&format!("{region}/devtype"), "nd_volatile\n");
        layer(&machine.survey("pmem0"), "pmem0", LayerKind::Pmem, Cache::Volatile, Flush::Dropped);
    }
    let mut machine = Machine::new();
    machine.device("/sys/devices/pci0000:00/0000:00:05.0/virtio2/ndbus0/region0/block", "pmem0", WB);
    layer(&machine.survey("pmem0"), "pmem0", LayerKind::Pmem, Cache::Volatile, Flush::Forwarded);
}

#[test]
fn what_is_not_known_keeps_its_name() {
    let mut machine = Machine::new();
    machine.device("/sys/devices/css0/block", "dasda", WB);
    let path = machine.survey("dasda");
    layer(&path, "dasda", LayerKind::Unknown, Cache::Volatile, Flush::Forwarded);
    assert_eq!(has(&path, "path-ends-unseen"), Some(Severity::Info));
    assert_eq!(path.block_devices(), ["dasda"]);
}

#[test]
fn a_loop_in_the_stack_ends() {
    let mut machine = Machine::new();
    // loop0 lies on a file system that lies on loop0.
    let block = machine.virtual_device("loop0", WB);
    machine.tree.put_text(&format!("{block}/loop/backing_file"), "/mnt/image\n");
    machine.tree.put_text(&format!("{block}/loop/dio"), "0\n");
    machine.mount("/mnt", "8:1", "ext4", "/dev/loop0", "rw");
    let image = Stat { kind: FileKind::File, device: "8:1".parse().unwrap(), node: None, mount: None };
    machine.tree.put_stat("/mnt/image", image);
    let path = machine.survey("/mnt");
    assert_eq!(names(&path), ["application", "page cache", "ext4 /mnt", "loop0"]);
    layer(&path, "loop0", LayerKind::Loop, Cache::Volatile, Flush::Forwarded);
    assert_eq!(path.durable_at.fsync, None);
    assert!(path.unknown_below.unwrap().contains("ext4 /mnt, below loop0, could not be followed"));
}

#[test]
fn a_stack_that_is_too_deep_is_not_taken_for_complete() {
    let mut machine = Machine::with_disk(WT, false);
    let mut below = "sda".to_owned();
    for number in 0..120 {
        let name = format!("md{number}");
        let block = machine.virtual_device(&name, WB);
        machine.tree.put_text(&format!("{block}/md/level"), "linear\n");
        machine.slave(&block, &below);
        below = name;
    }
    let path = machine.survey("md119");
    assert!(path.layer("sda").is_none());
    assert_eq!(path.durable_at.fsync, None);
    assert!(path.unknown_below.unwrap().contains("could not be followed"));
    assert_eq!(machine.survey("md50").durable_at.fsync.as_deref(), Some("sda"));
}

#[test]
fn targets_that_are_not_there_are_told_apart() {
    let mut machine = Machine::new();
    let error = survey_path(&machine.tree, &machine.probe, "/none").unwrap_err();
    assert_eq!(error, SurveyError::NotFound { target: "/none".into() });
    machine.tree.put_absence("/secret", Absence::Denied);
    let number: DeviceNumber = "1:3".parse().unwrap();
    let null = Stat { kind: FileKind::Character, device: number, node: Some(number), mount: None };
    machine.tree.put_stat("/dev/null", null);
    let error = survey_path(&machine.tree, &machine.probe, "/dev/null").unwrap_err();
    assert_eq!(error, SurveyError::NotStorage { target: "/dev/null".into() });
}

#[test]
fn all_means_each_volume_once_and_what_nothing_stands_on() {
    let mut machine = Machine::with_disk(WB, true);
    let used = machine.scsi("sdb", "mpt3sas", WB, true);
    machine.tree.put_names(&format!("{used}/holders"), &["dm-0".into()]);
    machine.scsi("sdc", "mpt3sas", WB, true);
    let empty = machine.virtual_device("loop0", WT);
    machine.tree.put_text(&format!("{empty}/size"), "0\n");
    machine.virtual_device("zram0", WT);
    machine.tree.put_text("/proc/filesystems", "nodev\ttmpfs\n\text4\n");
    machine.mount("/data/bound", "8:1", "ext4", "/dev/sda", "rw");
    machine.mount("/data", "8:1", "ext4", "/dev/sda", "rw");
    machine.mount("/tmp", "0:40", "tmpfs", "tmpfs", "rw");
    let found = survey(&machine.tree, &machine.probe, &Target::All).unwrap();
    let targets: Vec<&str> = found.paths.iter().map(|path| path.target.as_str()).collect();
    assert_eq!(targets, ["/data", "/dev/sdc"]);
}

/// SBC-4, Block Device Characteristics, byte 8 bits 5:4; Documentation/ABI/stable/sysfs-block, zoned.
#[test]
fn shingled_disks_are_told_by_their_zones_or_by_their_own_word() {
    for (zoned, byte, expected) in [
        ("none\n", 0b00 << 4, None),
        ("none\n", 0b10 << 4, Some(Severity::Info)),
        ("none\n", 0b01 << 4, None),
        ("host-managed\n", 0b00 << 4, Some(Severity::Info)),
        ("host-aware\n", 0b01 << 4, Some(Severity::Info)),
    ] {
        let mut machine = Machine::new();
        let block = machine.scsi("sda", "mpt3sas", WB, true);
        machine.tree.put_text(&format!("{block}/queue/zoned"), zoned);
        let device = block.rsplit_once("/block").unwrap().0;
        machine.tree.put_bytes(&format!("{device}/vpd_pgb1"), &[0, 0xb1, 0, 0x3c, 0x1c, 0x20, 0, 0, byte]);
        assert_eq!(has(&machine.survey("sda"), "shingled"), expected, "{zoned} {byte:#b}");
    }
}

#[test]
fn an_optical_drive_is_no_disk() {
    let mut machine = Machine::new();
    machine.disk_at("/sys/devices/pci0000:00/0000:00:1f.2/ata2/host1/target1:0:0", "sr0", "ahci", WT, false);
    let path = machine.survey("sr0");
    layer(&path, "sr0", LayerKind::OpticalDrive, Cache::Unknown, Flush::Unknown);
    assert!(has(&path, "no-caching-page").is_none());
}

/// ld.so(8): libraries of /etc/ld.so.preload are loaded into every program; LD_PRELOAD is seen in the
/// mappings of a process.
#[test]
fn a_library_that_takes_syncs_is_a_danger() {
    let mut machine = Machine::with_disk(WB, true);
    assert!(has(&machine.survey("sda"), "syncs-preloaded").is_none());
    machine.tree.put_text("/proc/self/root/etc/ld.so.preload", "/usr/lib/libjemalloc.so.2\n");
    assert!(has(&machine.survey("sda"), "syncs-preloaded").is_none(), "another library");
    for other in ["/opt/lib/libchronosync.so.1", "/opt/nosyncs/libc.so.6", "/opt/eatmydata.sock"] {
        machine.tree.put_text("/proc/self/root/etc/ld.so.preload", other);
        assert!(has(&machine.survey("sda"), "syncs-preloaded").is_none(), "{other}");
    }
    machine.tree.put_text("/proc/self/root/etc/ld.so.preload", "/usr/lib64/nosync/nosync.so");
    assert_eq!(has(&machine.survey("sda"), "syncs-preloaded"), Some(Severity::Danger));
    let eats = "/usr/lib/x86_64-linux-gnu/libeatmydata.so\n";
    machine.tree.put_text("/proc/self/root/etc/ld.so.preload", eats);
    let path = machine.survey("sda");
    assert_eq!(has(&path, "syncs-preloaded"), Some(Severity::Danger));
    assert_eq!((path.layers[0].flush, path.durable_at.fsync.as_deref()), (Flush::Dropped, None));
    machine.tree.put_text("/proc/self/root/etc/ld.so.preload", "");
    let file = Stat { kind: FileKind::File, device: "8:1".parse().unwrap(), node: None, mount: None };
    machine.mount("/srv", "8:1", "ext4", "/dev/sda", "rw");
    machine.tree.put_stat("/proc/71/fd/3", file);
    machine.tree.put_text("/proc/71/maps", &format!("7f00-7f01 r-xp 0 08:01 12   {eats}"));
    assert_eq!(has(&machine.survey("/proc/71/fd/3"), "syncs-preloaded"), Some(Severity::Danger));
    // Mappings that this user may not read are an unanswered query.
    machine.tree.put_absence("/proc/71/maps", Absence::Denied);
    let path = machine.survey("/proc/71/fd/3");
    assert_eq!(has(&path, "needs-root"), Some(Severity::Info), "{:#?}", path.findings);
    let finding = path.findings.iter().find(|finding| finding.id == "needs-root").unwrap();
    assert!(finding.evidence.iter().any(|line| line.contains("/proc/71/maps")), "{finding:#?}");
}
