//! Tests of untorn writes on synthetic stacks, each with the answer by the kernel's own rules and their
//! source: guards against a page that is reported to stay whole although the kernel would split or refuse it.

use plumb_linux::probe::Request;
use plumb_linux::tree::{Attributes, FileKind, Stat, Tree, UntornLimits, WriteLimits};
use plumb_path::{PAGE_SIZES, PageAnswer, UntornRank, WritePath};

use crate::machine::{Machine, WB, WT, has, stacked};

const KIB: u64 = 1 << 10;
const LINUX: &str = "/proc/sys/kernel/osrelease";

/// Sets the limits of a queue: Documentation/ABI/stable/sysfs-block.
fn limits(machine: &mut Machine, block: &str, min: u64, max: u64, boundary: u64) {
    for (name, value) in [("max", max), ("unit_min", min), ("unit_max", max), ("boundary", boundary)] {
        machine.tree.put_text(&format!("{block}/queue/atomic_write_{name}_bytes"), &format!("{value}\n"));
    }
}

/// Adds an NVMe drive of 4 KiB blocks, whose namespace declares that a power cut does not tear `blocks`
/// blocks. Returns its directory.
fn nvme(machine: &mut Machine, blocks: u16, kernel_max: u64) -> String {
    let controller = "/sys/devices/pci0000:00/0000:00:04.0/nvme/nvme0";
    let block = machine.device(controller, "nvme0n1", WB);
    machine.tree.put_text(&format!("{controller}/model"), "DRIVE\n");
    let mut identify = vec![0_u8; 4096];
    identify[525] = 1;
    machine.probe.put("nvme0n1", Request::NvmeIdentifyController, Ok(identify));
    let mut namespace = vec![0_u8; 4096];
    namespace[24] = 1 << 1;
    namespace[36..38].copy_from_slice(&(blocks - 1).to_le_bytes());
    namespace[130] = 12;
    machine.probe.put("nvme0n1", Request::NvmeIdentifyNamespace, Ok(namespace));
    limits(machine, &block, if kernel_max > 0 { 4096 } else { 0 }, kernel_max, 0);
    machine.tree.put_text(LINUX, "6.16.1\n");
    block
}

/// Returns a machine whose only drive is that of [`nvme`].
fn with_nvme(blocks: u16, kernel_max: u64) -> Machine {
    let mut machine = Machine::new();
    nvme(&mut machine, blocks, kernel_max);
    machine
}

fn file(machine: &mut Machine, path: &str, device: &str, untorn: Option<UntornLimits>, block: u32) {
    let device = device.parse().expect("a device number of the test");
    machine.tree.put_stat(path, Stat { kind: FileKind::File, device, node: None, mount: None });
    machine.tree.put_write_limits(path, WriteLimits { block, untorn });
}

fn units(unit_min: u32, unit_max: u32, unit_max_optimised: u32) -> Option<UntornLimits> {
    Some(UntornLimits { unit_min, unit_max, unit_max_optimised, segments_max: 1 })
}

/// Checks the answers for 4, 8, 16, 32 and 64 KiB as letters (`y`es, `n`o, `u`nknown), and the layer of the
/// last one.
#[track_caller]
fn answers(path: &WritePath, expected: &str, layer: &str) {
    assert_eq!(path.untorn.iter().map(|page| page.page_bytes).collect::<Vec<_>>(), PAGE_SIZES);
    let letter = |answer| match answer {
        PageAnswer::Yes => 'y',
        PageAnswer::No => 'n',
        PageAnswer::Unknown => 'u',
    };
    let found: String = path.untorn.iter().map(|page| letter(page.answer)).collect();
    assert_eq!(found, expected, "{:#?}", path.untorn);
    assert_eq!(path.untorn[4].layer.as_deref(), Some(layer), "{:#?}", path.untorn[4]);
    for page in &path.untorn {
        assert_eq!(page.rank.is_some(), page.answer == PageAnswer::Yes);
        assert_eq!(page.proof.is_none(), page.answer == PageAnswer::No);
    }
}

fn is_torn_in_page_cache(path: &WritePath) {
    assert!(path.untorn.iter().all(|page| page.cached.answer == PageAnswer::No), "{:#?}", path.untorn);
}

/// block/fops.c: a block device takes what its queue says. `queue/atomic_write_unit_max_bytes`.
#[test]
fn a_drive_takes_what_its_queue_says() {
    let machine = with_nvme(4, 16 * KIB);
    let path = machine.survey("nvme0n1");
    answers(&path, "yyynn", "nvme0n1");
    assert_eq!(path.untorn[2].rank, Some(UntornRank::Declared));
    is_torn_in_page_cache(&path);
    assert!(has(&path, "untorn-lost-above").is_none());
    let units = path.layer("nvme0n1").unwrap().untorn.as_ref().unwrap();
    assert_eq!((units.bytes_min, units.bytes_max), (Some(4096), Some(16384)));
}

/// block/blk-settings.c, `blk_validate_atomic_write_limits`: zeroes are a device without untorn writes.
#[test]
fn a_queue_without_units_takes_none() {
    let machine = with_nvme(4, 0);
    let path = machine.survey("nvme0n1");
    answers(&path, "nnnnn", "nvme0n1");
    assert!(has(&path, "untorn-lost-above").is_some(), "the drive declares 16 KiB");
}

/// The files came with Linux 6.11; before, `RWF_ATOMIC` is refused with EOPNOTSUPP (fs/read_write.c).
#[test]
fn an_old_kernel_takes_none_and_an_unreadable_queue_is_not_known() {
    for (release, expected) in [("6.1.0-18-amd64\n", "nnnnn"), ("6.12.48\n", "uuuuu")] {
        let mut machine = Machine::with_disk(WB, true);
        machine.tree.put_text(LINUX, release);
        answers(&machine.survey("sda"), expected, "sda");
    }
}

/// include/linux/blkdev.h, `bdev_can_atomic_write`: the start of a partition must be a multiple of the
/// smallest unit and of the boundary.
#[test]
fn a_partition_that_starts_askew_takes_none() {
    for (start, boundary, expected, layer) in [
        ("2048", 0, "yyynn", "nvme0n1"),
        ("2049", 0, "nnnnn", "nvme0n1"),
        ("2056", 65536, "nnnnn", "nvme0n1"),
    ] {
        let mut machine = Machine::new();
        let disk = nvme(&mut machine, 4, 16 * KIB);
        limits(&mut machine, &disk, 4096, 16 * KIB, boundary);
        let part = machine.device(&disk, "nvme0n1p1", WB);
        machine.tree.put_text(&format!("{part}/partition"), "1\n");
        machine.tree.put_text(&format!("{part}/start"), &format!("{start}\n"));
        let path = machine.survey("nvme0n1p1");
        answers(&path, expected, layer);
        assert_eq!(has(&path, "untorn-lost-above").is_some(), expected == "nnnnn");
    }
}

/// drivers/md/dm-table.c, `dm_table_supports_atomic_writes`: only targets with the flag keep the limits;
/// dm-crypt has none, so the kernel clears them; dm-linear has (Linux 6.14).
#[test]
fn device_mapper_is_what_the_kernel_stacks() {
    for (max, expected, sixteen) in [(16 * KIB, "yyynn", "sda"), (0, "nnnnn", "dm-0")] {
        let mut machine = stacked("dm-0", "dm", WB);
        machine.tree.put_text(LINUX, "6.16.0\n");
        let sda = canonical(&machine, "sda");
        limits(&mut machine, &sda, 4096, 16 * KIB, 0);
        limits(&mut machine, "/sys/devices/virtual/block/dm-0", max.min(4096), max, 0);
        let path = machine.survey("dm-0");
        // The drive is named for pages that it does not take, the layer that clears its limits for others.
        answers(&path, expected, "sda");
        assert_eq!(path.untorn[2].layer.as_deref(), Some(sixteen), "{:#?}", path.untorn[2]);
    }
}

/// Returns the directory of a disk in /sys, without links.
fn canonical(machine: &Machine, disk: &str) -> String {
    machine.tree.canonical(&format!("/sys/class/block/{disk}")).expect("the disk was put into the tree")
}

/// block/blk-settings.c, `blk_stack_atomic_writes_chunk_sectors`: a chunk of 8 KiB bounds the unit of a RAID
/// 0 over drives that take 64 KiB.
#[test]
fn the_chunk_of_an_array_bounds_its_unit() {
    let mut machine = stacked("md0", "md", WB);
    machine.tree.put_text(LINUX, "6.16.0\n");
    let sda = canonical(&machine, "sda");
    limits(&mut machine, &sda, 512, 64 * KIB, 0);
    limits(&mut machine, "/sys/devices/virtual/block/md0", 512, 8 * KIB, 0);
    answers(&machine.survey("md0"), "yynnn", "md0");
}

/// drivers/md/raid5.c sets no BLK_FEAT_ATOMIC_WRITES, so a parity array has no units.
#[test]
fn a_parity_array_takes_none() {
    let mut machine = stacked("md0", "md", WB);
    machine.tree.put_text(LINUX, "6.16.0\n");
    let sda = canonical(&machine, "sda");
    limits(&mut machine, &sda, 512, 64 * KIB, 0);
    limits(&mut machine, "/sys/devices/virtual/block/md0", 0, 0, 0);
    machine.tree.put_text("/sys/devices/virtual/block/md0/md/level", "raid5\n");
    answers(&machine.survey("md0"), "nnnnn", "md0");
}

/// Documentation/filesystems/ext4/atomic_writes.rst: of a file statx tells; with bigalloc up to the cluster.
#[test]
fn a_file_on_ext4_takes_what_statx_says() {
    for (max, expected) in [(16384, "yyynn"), (4096, "ynnnn"), (0, "nnnnn")] {
        let mut machine = with_nvme(16, 64 * KIB);
        machine.mount("/srv", "8:1", "ext4", "/dev/nvme0n1", "rw");
        file(&mut machine, "/srv/db", "8:1", units(if max > 0 { 4096 } else { 0 }, max, 0), 4096);
        let path = machine.survey("/srv/db");
        answers(&path, expected, "ext4 /srv");
        is_torn_in_page_cache(&path);
        assert!(has(&path, "untorn-lost-above").is_some(), "the drive takes 64 KiB");
    }
}

/// fs/ext4/super.c, `ext4_atomic_write_init`: without bigalloc the unit is the block, which every file takes;
/// the cluster of bigalloc is not seen from a directory.
#[test]
fn a_directory_on_ext4_answers_for_its_block_only() {
    let mut machine = with_nvme(4, 16 * KIB);
    machine.mount("/srv", "8:1", "ext4", "/dev/nvme0n1", "rw");
    machine.tree.put_write_limits("/srv", WriteLimits { block: 4096, untorn: None });
    let path = machine.survey("/srv");
    answers(&path, "yuunn", "nvme0n1");
    assert!(path.untorn[1].because.contains("name one"), "{:#?}", path.untorn[1]);
    assert!(path.untorn[1].proof.as_ref().unwrap().contains("name a file"), "{:#?}", path.untorn[1]);
}

/// statx(2) leaves STATX_WRITE_ATOMIC out where a kernel or a file system does not know it: who has named a
/// file is not told to name one.
#[test]
fn a_named_file_without_limits_is_not_known() {
    for (system, untorn) in [("ext4", None), ("xfs", None), ("xfs", Some("max_atomic_write=16k"))] {
        let mut machine = with_nvme(4, 16 * KIB);
        machine.mount("/srv", "8:1", system, "/dev/nvme0n1", &format!("rw,{}", untorn.unwrap_or("noatime")));
        file(&mut machine, "/srv/db", "8:1", None, 4096);
        let path = machine.survey("/srv/db");
        let page = &path.untorn[1];
        assert_eq!(page.answer, PageAnswer::Unknown, "{system}: {page:#?}");
        let told = format!("{} {}", page.because, page.proof.as_deref().unwrap_or_default());
        assert!(told.contains("STATX_WRITE_ATOMIC") && !told.contains("name"), "{system}: {told}");
    }
}

/// fs/ext4/file.c: with data=journal there is no direct I/O; ext4 takes untorn writes from Linux 6.13 on.
#[test]
fn ext4_that_journals_data_or_is_older_takes_none() {
    for (release, options) in [("6.16.0\n", "rw,data=journal"), ("6.12.0\n", "rw")] {
        let mut machine = with_nvme(4, 16 * KIB);
        machine.tree.put_text(LINUX, release);
        machine.mount("/srv", "8:1", "ext4", "/dev/nvme0n1", options);
        let path = machine.survey("/srv");
        answers(&path, "nnnnn", "nvme0n1");
        assert_eq!(path.untorn[0].layer.as_deref(), Some("ext4 /srv"), "{:#?}", path.untorn[0]);
    }
}

/// fs/xfs/xfs_file.c, `xfs_file_dio_write_atomic`: since Linux 6.16 XFS copies what the device does not take.
#[test]
fn a_file_on_xfs_is_copied_where_the_drive_takes_less() {
    let mut machine = with_nvme(4, 16 * KIB);
    machine.mount("/srv", "8:1", "xfs", "/dev/nvme0n1", "rw");
    file(&mut machine, "/srv/db", "8:1", units(4096, 65536, 16384), 4096);
    let path = machine.survey("/srv/db");
    answers(&path, "yyyyy", "xfs /srv");
    let ranks: Vec<_> = path.untorn.iter().map(|page| page.rank.unwrap()).collect();
    assert_eq!(ranks[2..4], [UntornRank::Declared, UntornRank::ByDesign]);
    is_torn_in_page_cache(&path);
    // The drive has none: everything is a copy.
    let mut machine = with_nvme(1, 0);
    machine.mount("/srv", "8:1", "xfs", "/dev/nvme0n1", "rw");
    file(&mut machine, "/srv/db", "8:1", units(4096, 65536, 0), 4096);
    let path = machine.survey("/srv/db");
    answers(&path, "yyyyy", "xfs /srv");
    assert!(path.untorn.iter().all(|page| page.rank == Some(UntornRank::ByDesign)));
    assert!(path.untorn.iter().all(|page| page.needs_rwf_atomic), "a copy is made of no other write");
    // The answer of statx about the file holds against the promise of the mount: a file without such writes,
    // and one of larger blocks.
    for (file_units, expected) in [((0, 0, 0), "nnnnn"), ((16384, 32768, 0), "nnyyn")] {
        let mut machine = with_nvme(1, 0);
        machine.mount("/srv", "8:1", "xfs", "/dev/nvme0n1", "rw,max_atomic_write=64k");
        let (min, max, optimised) = file_units;
        file(&mut machine, "/srv/db", "8:1", units(min, max, optimised), 16384);
        let path = machine.survey("/srv/db");
        let letters: String =
            path.untorn.iter().map(|page| if page.answer == PageAnswer::Yes { 'y' } else { 'n' }).collect();
        assert_eq!(letters, expected, "{:#?}", path.untorn);
    }
}

/// Documentation/admin-guide/xfs.rst, `max_atomic_write`: the size that is promised for every file, from a
/// block of the file system on.
#[test]
fn a_directory_on_xfs_answers_by_its_mount_option() {
    for (options, block, expected, layer) in [
        ("rw,max_atomic_write=16k", 4096, "yyynn", "nvme0n1"),
        ("rw,max_atomic_write=64k", 16384, "nnyyy", "xfs /srv"),
        ("rw", 4096, "uuuuu", "xfs /srv"),
    ] {
        let mut machine = with_nvme(1, 0);
        machine.mount("/srv", "8:1", "xfs", "/dev/nvme0n1", options);
        machine.tree.put_write_limits("/srv", WriteLimits { block, untorn: None });
        let path = machine.survey("/srv");
        answers(&path, expected, layer);
        let is_conditional =
            |page: &plumb_path::UntornPage| page.needs_rwf_atomic == (page.answer == PageAnswer::Yes);
        assert!(path.untorn.iter().all(is_conditional), "{:#?}", path.untorn);
    }
}

/// NVM Command Set 1.0, figure 97: NAWUPF counts if NSFEAT bit 1 is set, and 0 in it stands for AWUPF; no
/// write over a multiple of NABSPF plus one is whole. drivers/nvme/host/core.c: boundaries at an offset
/// (NABO) leave single blocks.
#[test]
fn a_drive_declares_its_own_limits_or_those_of_its_controller() {
    struct Fields {
        has_own: bool,
        nawupf: u16,
        nabo: u16,
        nabspf: u16,
        awupf: u16,
    }
    let fields = |has_own, nawupf, nabo, nabspf, awupf| Fields { has_own, nawupf, nabo, nabspf, awupf };
    for (fields, largest) in [
        (fields(true, 3, 0, 0, 15), "16 KiB"),
        (fields(true, 0, 0, 0, 7), "32 KiB"),
        (fields(false, 3, 0, 0, 1), "8 KiB"),
        (fields(true, 15, 0, 1, 0), "8 KiB"),
        (fields(true, 15, 1, 15, 0), "4 KiB"),
    ] {
        let mut machine = with_nvme(1, 0);
        let mut controller = vec![0_u8; 4096];
        controller[528..530].copy_from_slice(&fields.awupf.to_le_bytes());
        machine.probe.put("nvme0n1", Request::NvmeIdentifyController, Ok(controller));
        let mut namespace = vec![0_u8; 4096];
        namespace[24] = if fields.has_own { 1 << 1 } else { 0 };
        for (at, value) in [(36, fields.nawupf), (42, fields.nabo), (44, fields.nabspf)] {
            namespace[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        namespace[130] = 12;
        machine.probe.put("nvme0n1", Request::NvmeIdentifyNamespace, Ok(namespace));
        let path = machine.survey("nvme0n1");
        let finding = path.findings.iter().find(|finding| finding.id == "untorn-lost-above");
        let sentence = &finding.unwrap_or_else(|| panic!("{:#?}", path.findings)).sentence;
        assert!(sentence.contains(&format!("writes of {largest} are not torn")), "{sentence}");
    }
}

/// A layer of which nothing is known neither keeps a page whole nor tears it for certain.
#[test]
fn an_unknown_layer_is_not_known() {
    let mut machine = Machine::new();
    machine.tree.put_text(LINUX, "6.16.0\n");
    machine.mount("/srv", "0:50", "ext4", "/dev/none", "rw");
    file(&mut machine, "/elsewhere/db", "0:51", units(4096, 65536, 0), 4096);
    let path = machine.survey("/elsewhere/db");
    assert!(
        !path.untorn.is_empty() && path.untorn.iter().all(|page| page.answer == PageAnswer::Unknown),
        "{path:#?}"
    );
    assert!(path.untorn.iter().all(|page| page.cached.answer == PageAnswer::Unknown), "{:#?}", path.untorn);
}

const UUID: &str = "11111111-2222-3333-4444-555555555555";

/// btrfs on a SCSI disk with a volatile cache, with a file `db`, and one whose attributes cannot be read.
fn btrfs(options: &str) -> Machine {
    let mut machine = Machine::with_disk(WB, true);
    machine.tree.put_text(LINUX, "6.16.0\n");
    machine.tree.put_link(&format!("/sys/fs/btrfs/{UUID}/devices/sda"), "/sys/class/block/sda");
    machine.tree.put_text(&format!("/sys/fs/btrfs/{UUID}/sectorsize"), "4096\n");
    machine.mount("/srv", "0:30", "btrfs", "/dev/sda", options);
    file(&mut machine, "/srv/db", "0:30", None, 4096);
    machine.tree.put_attributes("/srv/db", Attributes::default());
    file(&mut machine, "/srv/closed", "0:30", None, 4096);
    machine
}

/// A switch to a new copy that survives while the copy does not tears the page: flushes have to reach the
/// drive (`nobarrier` of btrfs; fs/btrfs/disk-io.c, `barrier_all_devices`), and a crash must not damage the
/// parity beside it (btrfs(5), RAID56 status).
#[test]
fn a_replaced_page_needs_flushes_below() {
    let first = |machine: &Machine| {
        let path = machine.survey("/srv/db");
        let page = path.untorn[0].clone();
        (page.answer, page.cached.answer, page.layer.unwrap(), page.because)
    };
    let (answer, cached, layer, _) = first(&btrfs("rw,nobarrier"));
    assert_eq!((answer, cached, &*layer), (PageAnswer::No, PageAnswer::No, "btrfs /srv"));
    // The drive has a volatile cache, and the kernel was told that it has none: the disk is the cause.
    let mut machine = btrfs("rw");
    let sda = canonical(&machine, "sda");
    machine.tree.put_text(&format!("{sda}/queue/write_cache"), WT);
    let (answer, cached, layer, because) = first(&machine);
    assert_eq!((answer, cached, &*layer), (PageAnswer::No, PageAnswer::No, "sda"), "{because}");
    let mut machine = btrfs("rw");
    machine.tree.put_text(&format!("/sys/fs/btrfs/{UUID}/allocation/data/raid5/total_bytes"), "1\n");
    let (answer, cached, layer, because) = first(&machine);
    assert_eq!((answer, cached, &*layer), (PageAnswer::Unknown, PageAnswer::Unknown, "btrfs /srv"));
    assert!(because.contains("raid5"), "{because}");
    // A guest does not know what its host does with a flush.
    let mut machine = btrfs("rw");
    machine.guest();
    let (answer, cached, _, because) = first(&machine);
    assert_eq!((answer, cached), (PageAnswer::Unknown, PageAnswer::Unknown), "{because}");
}

/// drivers/block/loop.c: a loop device has no limits (no BLK_FEAT_ATOMIC_WRITES) and writes its file in its
/// own portions, whatever the file system of the file does with each.
#[test]
fn a_loop_device_tears_pages_on_btrfs_too() {
    let mut machine = btrfs("rw");
    let block = machine.virtual_device("loop0", WB);
    limits(&mut machine, &block, 0, 0, 0);
    machine.tree.put_text(&format!("{block}/loop/backing_file"), "/srv/db\n");
    let path = machine.survey("loop0");
    // A page of one block is torn by the loop device alone.
    answers(&path, "nnnnn", "btrfs /srv");
    assert_eq!(path.untorn[0].layer.as_deref(), Some("loop0"), "{:#?}", path.untorn[0]);
    is_torn_in_page_cache(&path);
    // btrfs on a loop device replaces pages, and needs the flushes of all below it.
    let inner = "99999999-2222-3333-4444-555555555555";
    for (options, expected, layer) in
        [("rw", PageAnswer::Yes, "btrfs /in"), ("rw,nobarrier", PageAnswer::No, "ext4 /low")]
    {
        let mut machine = Machine::with_disk(WB, true);
        machine.tree.put_text(LINUX, "6.16.0\n");
        machine.mount("/low", "8:1", "ext4", "/dev/sda", options);
        file(&mut machine, "/low/image", "8:1", None, 4096);
        let block = machine.virtual_device("loop0", WB);
        machine.tree.put_text(&format!("{block}/loop/backing_file"), "/low/image\n");
        machine.tree.put_link(&format!("/sys/fs/btrfs/{inner}/devices/loop0"), "/sys/class/block/loop0");
        machine.tree.put_text(&format!("/sys/fs/btrfs/{inner}/sectorsize"), "4096\n");
        machine.mount("/in", "0:30", "btrfs", "/dev/loop0", "rw");
        file(&mut machine, "/in/db", "0:30", None, 4096);
        machine.tree.put_attributes("/in/db", Attributes::default());
        let page = machine.survey("/in/db").untorn[0].clone();
        assert_eq!(
            (page.answer, page.cached.answer, page.layer.as_deref()),
            (expected, expected, Some(layer))
        );
    }
}

/// fs/btrfs/inode.c, `cow_file_range`: a write of several blocks may become several extents; with nodatacow
/// or attribute C blocks are overwritten, and RWF_ATOMIC is refused (no FMODE_CAN_ATOMIC_WRITE).
#[test]
fn btrfs_keeps_single_blocks_whole() {
    // Attributes that cannot be read may hold attribute C, as those of database files often do.
    let closed = btrfs("rw").survey("/srv/closed");
    answers(&closed, "uuuuu", "btrfs /srv");
    assert_eq!(closed.untorn[0].cached.answer, PageAnswer::Unknown);
    let path = btrfs("rw").survey("/srv/db");
    answers(&path, "ynnnn", "btrfs /srv");
    assert_eq!(path.untorn[0].rank, Some(UntornRank::ByDesign));
    assert_eq!(path.untorn[0].cached.answer, PageAnswer::Yes, "the page cache writes whole blocks");
    answers(&btrfs("rw,nodatacow").survey("/srv/db"), "nnnnn", "btrfs /srv");
    let mut machine = btrfs("rw");
    machine.tree.put_attributes("/srv/db", Attributes { no_copy_on_write: true, ..Attributes::default() });
    answers(&machine.survey("/srv/db"), "nnnnn", "btrfs /srv");
}

/// OpenZFS: a record is written whole by one transaction group; statx gives the record of a file. A record
/// needs the flushes of the drives of the pool, which the mount does not show.
#[test]
fn zfs_keeps_records_whole_through_the_page_cache_too() {
    let mut machine = Machine::new();
    machine.tree.put_text(LINUX, "6.12.0\n");
    machine.mount("/tank", "0:40", "zfs", "tank/db", "rw");
    answers(&machine.survey("/tank"), "uuuuu", "zfs /tank");
    file(&mut machine, "/tank/db", "0:40", None, 16384);
    let path = machine.survey("/tank/db");
    answers(&path, "uuunn", "zfs /tank");
    assert!(path.untorn[2].because.contains("flush at zfs /tank is not known"), "{:#?}", path.untorn[2]);
    let cached: Vec<_> = path.untorn.iter().map(|page| page.cached.answer).collect();
    let unknown = PageAnswer::Unknown;
    assert_eq!(cached, [unknown, unknown, unknown, PageAnswer::No, PageAnswer::No]);
    // Flushes that the module is told not to send are not there.
    machine.tree.put_text("/sys/module/zfs/parameters/zfs_nocacheflush", "1\n");
    let page = machine.survey("/tank/db").untorn[2].clone();
    assert_ne!(page.answer, PageAnswer::Yes, "{page:#?}");
}

/// mm/shmem.c, fs/overlayfs/file.c, drivers/block/loop.c: none sets FMODE_CAN_ATOMIC_WRITE or limits.
#[test]
fn memory_overlays_and_loop_devices_take_none() {
    let mut machine = Machine::new();
    machine.mount("/tmp", "0:21", "tmpfs", "tmpfs", "rw");
    answers(&machine.survey("/tmp"), "nnnnn", "tmpfs /tmp");
    let mut machine = with_nvme(16, 64 * KIB);
    machine.mount("/", "8:1", "ext4", "/dev/nvme0n1", "rw");
    machine.mount("/box", "0:44", "overlay", "overlay", "rw,upperdir=/up");
    let device = "8:1".parse().unwrap();
    machine.tree.put_stat("/up", Stat { kind: FileKind::Directory, device, node: None, mount: None });
    answers(&machine.survey("/box"), "nnnnn", "overlay /box");
    let mut machine = Machine::new();
    machine.tree.put_text(LINUX, "6.16.0\n");
    let block = machine.virtual_device("loop0", WT);
    limits(&mut machine, &block, 0, 0, 0);
    answers(&machine.survey("loop0"), "nnnnn", "loop0");
}
