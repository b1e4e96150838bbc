//! Tests of a small synthetic tree for each kind of file system: guards against one that is not recognised,
//! or misjudged.

use crate::fixtures_of;
use crate::machine::{Machine, WB, WT, has, layer, names};
use plumb_linux::probe::{PageControl, Probe as _, ProbedDevice, Refusal, Request};
use plumb_linux::tree::{Attributes, DeviceNumber, FileKind, Stat, Tree as _};
use plumb_path::{Cache, Flush, Layer, LayerKind, Severity, WritePath, survey_cache};

#[test]
fn network_file_systems_end_at_their_server() {
    for kind in ["nfs4", "cifs", "ceph", "9p", "virtiofs", "fuse.glusterfs"] {
        let mut machine = Machine::new();
        machine.mount("/net", "0:50", kind, "nas:/export", "rw,addr=10.0.0.1");
        let path = machine.survey("/net");
        let system = &path.layers[2];
        assert_eq!((system.kind, system.flush), (LayerKind::NetworkFileSystem, Flush::Forwarded), "{kind}");
        assert_eq!(path.layers[3].name, "server of nas:/export");
        assert_eq!(has(&path, "remote-storage"), Some(Severity::Info));
        assert!(path.block_devices().is_empty());
    }
}

#[test]
fn a_file_system_of_the_kernel_keeps_no_files_and_no_other_place_shows_more() {
    let mut machine = Machine::new();
    machine.mount("/state", "0:50", "proc", "proc", "rw");
    let path = machine.survey("/state");
    let found = path.findings.iter().find(|finding| finding.id == "path-ends-unseen").unwrap();
    assert!(
        found.sentence.contains("proc shows state of the kernel and keeps no files"),
        "{}",
        found.sentence
    );
    assert!(!found.remedy.contains("container"), "{}", found.remedy);
    assert_eq!(path.unknown_below.as_deref(), Some("proc shows state of the kernel and keeps no files"));
}

#[test]
fn a_path_that_is_read_only_takes_no_writes() {
    let surveyed = |options: &str, ro: &str, target: &str| {
        let mut machine = Machine::new();
        let block = machine.scsi("sda", "mpt3sas", WB, true);
        machine.tree.put_text(&format!("{block}/ro"), ro);
        machine.mount("/srv", "8:1", "ext4", "/dev/sda", options);
        machine.survey(target)
    };
    for (options, ro, target, name) in [("ro", "0\n", "/srv", "ext4 /srv"), ("rw", "1\n", "sda", "sda")] {
        let path = surveyed(options, ro, target);
        assert!(path.takes_no_writes());
        assert_eq!(has(&path, "read-only"), Some(Severity::Info));
        assert_eq!((path.durable_at.write, path.durable_at.fsync, path.unknown_below), (None, None, None));
        let sentence = format!("Nothing can be written here: {name} is read-only and takes no writes.");
        assert_eq!(path.durable_at.sentence, sentence);
    }
    // The kernel goes on writing to a disk that was made read-only below a file system.
    let path = surveyed("rw", "1\n", "/srv");
    assert!(!path.takes_no_writes());
    assert_eq!(path.durable_at.fsync.as_deref(), Some("sda"));
}

#[test]
fn an_overlay_goes_on_with_its_upper_directory() {
    let mut machine = Machine::with_disk(WB, true);
    machine.mount("/below", "8:1", "ext4", "/dev/root", "rw");
    machine.mount(
        "/merged",
        "0:30",
        "overlay",
        "overlay",
        "rw,lowerdir=/l,upperdir=/below/upper,workdir=/below/w",
    );
    let upper = Stat { kind: FileKind::Directory, device: "8:1".parse().unwrap(), node: None, mount: None };
    machine.tree.put_stat("/below/upper", upper);
    let path = machine.survey("/merged");
    layer(&path, "overlay /merged", LayerKind::Overlay, Cache::None, Flush::Forwarded);
    assert_eq!(path.durable_at.fsync.as_deref(), Some("sda"));
    assert_eq!(path.block_devices(), ["sda"]);
}

#[test]
fn an_upper_directory_that_cannot_be_told_ends_unseen() {
    let surveyed = |upper: &str, covered: bool| {
        let mut machine = Machine::with_disk(WB, true);
        machine.mount("/below", "8:1", "ext4", "/dev/root", "rw");
        if covered {
            machine.mount("/below/upper", "0:40", "tmpfs", "tmpfs", "rw");
        }
        let options = format!("rw,lowerdir=/l,upperdir={upper},workdir=/below/w");
        machine.mount("/merged", "0:30", "overlay", "overlay", &options);
        let directory = |device: &str| Stat {
            kind: FileKind::Directory,
            device: device.parse().unwrap(),
            node: None,
            mount: None,
        };
        machine.tree.put_stat("/below/w", directory("8:1"));
        machine.tree.put_stat("/below/upper", directory(if covered { "0:40" } else { "8:1" }));
        machine.tree.put_stat("/below/u,p", directory("8:1"));
        machine.tree.put_stat("ram/u", directory("8:1"));
        machine.survey("/merged")
    };
    let relative = surveyed("ram/u", false);
    assert!(
        relative.unknown_below.is_some_and(|why| why.contains("ram/u was named relative to a directory"))
    );
    let covered = surveyed("/below/upper", true);
    assert!(covered.unknown_below.is_some_and(|why| why.contains("beneath a later mount")));
    for known in ["/below/upper", r"/below/u\134\054p"] {
        assert_eq!(surveyed(known, false).durable_at.fsync.as_deref(), Some("sda"), "{known}");
    }
}

#[test]
fn an_overlay_of_a_container_ends_unseen() {
    let mut machine = Machine::new();
    machine.mount(
        "/",
        "0:30",
        "overlay",
        "overlay",
        "rw,lowerdir=/l,upperdir=/var/lib/docker/overlay2/x/diff,workdir=/w",
    );
    let path = machine.survey("/");
    assert!(path.unknown_below.unwrap().contains("/var/lib/docker/overlay2/x/diff is not visible from here"));
    let mut machine = Machine::new();
    machine.mount("/", "0:30", "overlay", "overlay", "rw,upperdir=/u,volatile");
    let path = machine.survey("/");
    assert_eq!(has(&path, "volatile-overlay"), Some(Severity::Danger));
}

#[test]
fn btrfs_spans_its_devices_whatever_number_its_subvolumes_have() {
    let mut machine = Machine::with_disk(WB, true);
    machine.scsi("sdb", "mpt3sas", WB, true);
    machine.mount("/pool", "0:35", "btrfs", "/dev/sda", "rw,nobarrier,subvol=/@");
    let uuid = "01234567-89ab-cdef-0123-456789abcdef";
    for name in ["sda", "sdb"] {
        machine
            .tree
            .put_link(&format!("/sys/fs/btrfs/{uuid}/devices/{name}"), &format!("/sys/class/block/{name}"));
    }
    let path = machine.survey("/pool");
    assert_eq!(path.layers[2].below, ["sda", "sdb"]);
    assert_eq!(path.layers[2].identity.as_deref(), Some(uuid));
    assert_eq!(path.block_devices().len(), 2);
    assert_eq!(has(&path, "barriers-off"), Some(Severity::Danger));
}

#[test]
fn what_zfs_and_fuse_do_not_tell_is_not_known() {
    let mut machine = Machine::new();
    machine.mount("/tank", "0:36", "zfs", "tank", "rw");
    machine.tree.put_text("/sys/module/zfs/parameters/zfs_nocacheflush", "1\n");
    machine.mount("/ntfs", "0:37", "fuse.mergerfs", "a:b", "rw");
    let path = machine.survey("/tank");
    layer(&path, "zfs /tank", LayerKind::Zfs, Cache::None, Flush::Unknown);
    assert_eq!(has(&path, "barriers-off"), Some(Severity::Warning));
    assert!(path.unknown_below.unwrap().contains("/dev/zfs does not tell of tank: not recorded"));
    machine.probe.put("tank", Request::ZfsPool, Err(Refusal::Denied));
    let path = machine.survey("/tank");
    assert_eq!(has(&path, "needs-root"), Some(Severity::Info));
    assert!(path.unknown_below.unwrap().contains("/dev/zfs does not tell of tank: permission denied"));
    // The name of a volume ends at its zero, even if an earlier name follows.
    machine.virtual_device("zd0", WB);
    machine.probe.put("zd0", Request::ZfsVolume, Ok(b"tank/new\0er-name\0".to_vec()));
    assert_eq!(machine.survey("/dev/zd0").layers[2].identity.as_deref(), Some("tank/new"));
    layer(&machine.survey("/ntfs"), "fuse.mergerfs /ntfs", LayerKind::Fuse, Cache::Unknown, Flush::Unknown);
}

/// Tests recordings of real pools; `oracle.rs` compares the fate of their flushes with the drives' own
/// counts.
#[test]
fn a_pool_of_zfs_is_seen_through() {
    let log = ["zfs-single-log"].as_slice();
    for (name, of_pool, rules, remedy) in [
        ("plain", ["sda1"].as_slice(), [].as_slice(), ""),
        ("mirror-log", &["sda1", "sdb1", "sdc1"], log, "zpool attach"),
        ("log-bypassed", &["sda1", "sdb1"], &["zfs-single-log", "zfs-log-bypassed"], "logbias=latency"),
        ("sync-disabled", &["sda1"], &["zfs-sync-disabled"], "`zfs set sync=standard tank/fast`"),
        (
            "nocacheflush",
            &["sda1"],
            &["barriers-off"],
            "echo 0 > /sys/module/zfs/parameters/zfs_nocacheflush",
        ),
        ("raidz", &["sda1", "sdb1", "sdc1"], &[], ""),
        ("volume", &["sda1"], &[], ""),
        ("file", &["ext4 /mnt/below"], &[], ""),
    ] {
        let directory = fixtures_of::root().join("zfs-2.3.2-linux-6.12").join(name);
        let recorded = plumb_path::load(&directory).unwrap();
        let survey = plumb_path::survey(&recorded.tree, &recorded.probe, &recorded.target).unwrap();
        let path = &survey.paths[0];
        assert_eq!(path.layers[2].below, ["pool tank"], "{name}");
        let set = match path.layers[2].kind {
            LayerKind::Zvol => "tank/disk",
            _ if name == "sync-disabled" => "tank/fast",
            _ => "tank",
        };
        assert_eq!(path.layers[2].identity.as_deref(), Some(set), "{name}");
        assert_eq!(path.layers[2].kind == LayerKind::Zvol, name == "volume");
        assert_eq!(path.layer("pool tank").unwrap().below, of_pool, "{name}");
        let always = ["zfs-flush-errors", "volatile-cache", "unknown-below-the-hypervisor"];
        let found: Vec<_> =
            path.findings.iter().filter(|finding| !always.contains(&finding.id.as_str())).collect();
        let ids: Vec<&str> = found.iter().map(|finding| finding.id.as_str()).collect();
        assert_eq!(ids, rules, "{name}");
        assert!(found.last().is_none_or(|finding| finding.remedy.contains(remedy)), "{name}: {found:#?}");
    }
}

/// Flushes are not counted if queue/iostats is off, nor by the head of NVMe multipath.
#[test]
fn a_disk_was_never_flushed_only_if_its_flushes_are_counted() {
    let directory = fixtures_of::root().join("zfs-2.3.2-linux-6.1/h10");
    let recorded = plumb_path::load(&directory).unwrap();
    let sysfs = recorded.tree.canonical("/sys/class/block/vda").unwrap();
    let counted =
        |writes: u32, flushes: u32| format!("9 0 72 1 {writes} 7 900 2 0 3 4 0 0 0 0 {flushes} 0\n");
    for (counts, severity) in [
        (counted(244, 0), Some(Severity::Danger)),
        (counted(243, 0), None),
        (counted(999, 1), None),
        ("9 0 72 1 999 7 900 2 0 3 4\n".to_owned(), None),
    ] {
        let mut tree = recorded.tree.clone();
        tree.put_text(&format!("{sysfs}/stat"), &counts);
        let survey = plumb_path::survey(&tree, &recorded.probe, &recorded.target).unwrap();
        assert_eq!(has(&survey.paths[0], "h10-zfs-remembers"), severity, "{counts}");
    }
    let tank = ProbedDevice { name: "tank", number: DeviceNumber { major: 0, minor: 0 } };
    let mut pool = recorded.probe.ask(tank, Request::ZfsPool).unwrap();
    let at = pool.windows(9).position(|path| path == b"/dev/vda1").unwrap();
    pool[at..at + 9].copy_from_slice(b"/dev/nvme");
    for (place, severity) in [
        ("/sys/devices/pci0000:00/0000:00:04.0/nvme/nvme0", Some(Severity::Danger)),
        ("/sys/devices/virtual/nvme-subsystem/nvme-subsys0", None),
    ] {
        let mut machine = Machine::new();
        let block = machine.device(place, "nvme", WB);
        machine.tree.put_text(&format!("{block}/stat"), &counted(999, 0));
        machine.mount("/tank", "0:36", "zfs", "tank", "rw");
        machine.probe.put("tank", Request::ZfsPool, Ok(pool.clone()));
        assert_eq!(has(&machine.survey("/tank"), "h10-zfs-remembers"), severity, "{place}");
    }
}

/// Adds all options of a mounted ext4, as its driver lists them.
fn ext4_options(machine: &mut Machine, device: &str, options: &str) {
    machine.tree.put_text(&format!("/proc/fs/ext4/{device}/options"), options);
}

/// Returns two disks with their caches off.
fn quiet() -> Machine {
    let mut machine = Machine::with_disk(WT, false);
    machine.scsi("sdb", "mpt3sas", WT, false);
    machine
}

#[test]
fn o_direct_is_praised_only_where_it_overwrites_in_place() {
    for (kind, options, all, said) in [
        ("ext4", "rw", "rw\ndata=ordered\n", true),
        ("ext3", "rw", "rw\ndata=writeback\n", true),
        // Set in the superblock, so that the mount table does not show it.
        ("ext4", "rw", "rw\ndata=journal\n", false),
        ("ext4", "rw,data=journal", "rw\n", false),
        // The options cannot be seen in full.
        ("ext4", "rw", "", false),
        ("xfs", "rw", "", true),
        ("ext2", "rw", "", true),
        ("f2fs", "rw", "", false),
        ("bcachefs", "rw", "", false),
        ("btrfs", "rw", "", false),
    ] {
        let mut machine = quiet();
        machine.mount("/srv", "8:1", kind, "/dev/sda", options);
        if !all.is_empty() {
            ext4_options(&mut machine, "sda", all);
        }
        let sentence = machine.survey("/srv").durable_at.sentence;
        assert_eq!(sentence.contains("With O_DIRECT"), said, "{kind} {options} {all}: {sentence}");
        assert!(said || !sentence.contains("O_DIRECT"), "{kind} {options} {all}: {sentence}");
    }
}

#[test]
fn o_direct_is_not_praised_over_a_cache_that_nothing_is_known_of() {
    let mut machine = Machine::new();
    machine.device("/sys/devices/LNXSYSTM:00/ndbus0/region0/block", "pmem0", WB);
    machine.mount("/srv", "8:1", "xfs", "/dev/pmem0", "rw");
    let path = machine.survey("/srv");
    assert_eq!(path.durable_at.fsync.as_deref(), Some("pmem0"));
    assert!(!path.durable_at.sentence.contains("O_DIRECT"), "{}", path.durable_at.sentence);
}

#[test]
fn the_option_sync_counts_on_the_file_system_that_is_written_to() {
    let mut machine = quiet();
    machine.mount("/below", "8:1", "ext4", "/dev/sda", "rw,sync");
    let written = |machine: &Machine, target: &str| machine.survey(target).durable_at.write;
    assert_eq!(written(&machine, "/below").as_deref(), Some("sda"));
    let upper = Stat { kind: FileKind::Directory, device: "8:1".parse().unwrap(), node: None, mount: None };
    machine.tree.put_stat("/below/upper", upper);
    machine.mount("/merged", "0:30", "overlay", "overlay", "rw,upperdir=/below/upper,workdir=/below/w");
    assert_eq!(written(&machine, "/merged").as_deref(), Some("sda"));
    // A loop device on it writes into the page cache itself.
    let block = machine.virtual_device("loop0", WB);
    machine.tree.put_text(&format!("{block}/loop/backing_file"), "/below/image\n");
    machine.tree.put_text(&format!("{block}/loop/dio"), "0\n");
    let image = Stat { kind: FileKind::File, device: "8:1".parse().unwrap(), node: None, mount: None };
    machine.tree.put_stat("/below/image", image);
    let path = machine.survey("loop0");
    assert!(names(&path).contains(&"ext4 /below"));
    assert_eq!(path.durable_at.write, None);
    machine.mount("/inner", "8:3", "xfs", "/dev/loop0", "rw");
    assert_eq!(written(&machine, "/inner"), None);
}

#[test]
fn a_mount_without_barriers_is_named_with_the_command_that_mends_it() {
    for (kind, option, command) in [
        ("ext4", "nobarrier", "mount -o remount,barrier /srv"),
        ("ext3", "barrier=0", "mount -o remount,barrier /srv"),
        ("btrfs", "nobarrier", "mount -o remount,barrier /srv"),
        ("f2fs", "fsync_mode=nobarrier", "mount -o remount,fsync_mode=posix /srv"),
        ("reiserfs", "barrier=none", "mount -o remount,barrier=flush /srv"),
    ] {
        let mut machine = Machine::with_disk(WB, true);
        machine.mount("/srv", "8:1", kind, "/dev/sda", &format!("rw,{option}"));
        let path = machine.survey("/srv");
        let first = &path.findings[0];
        assert_eq!((first.id.as_str(), first.severity), ("barriers-off", Severity::Danger), "{kind}");
        let cause = format!("fsync is not durable: /srv is mounted {option}. Remount it: `{command}`");
        assert_eq!(first.sentence, cause, "{kind}");
        assert!(first.remedy.starts_with(&format!("`{command}`")), "{kind}: {}", first.remedy);
        let sentence = path.durable_at.sentence;
        assert!(sentence.contains(&format!("/srv is mounted {option}")), "{kind}: {sentence}");
        let alone = has(&machine.survey("/srv"), "flush-dropped").is_none();
        assert!(alone, "{kind}: one cause is one finding");
    }
}

#[test]
fn a_synchronous_mount_is_named_also_where_the_end_cannot_be_seen() {
    let mut machine = Machine::new();
    machine.guest();
    machine.device("/sys/devices/pci0000:00/0000:00:04.0/virtio1/block", "vda", WB);
    machine.mount("/srv", "8:1", "ext4", "/dev/vda", "rw,sync");
    machine.mount("/dirs", "8:1", "ext4", "/dev/vda", "rw,dirsync");
    let path = machine.survey("/srv");
    assert_eq!(has(&path, "synchronous-mount"), Some(Severity::Info));
    let sentence = &path.durable_at.sentence;
    assert!(sentence.starts_with("The mount option sync flushes every write"), "{sentence}");
    let path = machine.survey("/dirs");
    assert!(path.durable_at.sentence.starts_with("A write is in memory"), "{}", path.durable_at.sentence);
    let found = path.findings.iter().find(|finding| finding.id == "synchronous-mount").unwrap();
    assert!(found.sentence.contains("dirsync: every change of a directory"), "{}", found.sentence);
}

#[test]
fn the_files_of_a_device_are_named_by_the_short_way() {
    let mut machine = quiet();
    machine.mount("/srv", "8:1", "ext4", "/dev/sda", "rw");
    let path = machine.survey("/srv");
    let sources: Vec<&str> =
        path.layer("sda").unwrap().evidence.iter().map(|line| line.source.as_str()).collect();
    assert!(sources.contains(&"/sys/block/sda/queue/write_cache"), "{sources:?}");
    assert!(!sources.iter().any(|source| source.contains("/pci")), "{sources:?}");
}

#[test]
fn root_is_not_told_to_become_root() {
    for (user, id, other) in
        [("0", "refused-to-root", "needs-root"), ("1000", "needs-root", "refused-to-root")]
    {
        let mut machine = quiet();
        machine.mount("/srv", "8:1", "ext4", "/dev/sda", "rw");
        machine
            .tree
            .put_text("/proc/self/status", &format!("Name:\tplumb\nUid:\t{user}\t{user}\t{user}\t{user}\n"));
        machine.probe.put("sda", Request::CachingPage(PageControl::Current), Err(Refusal::Denied));
        let path = machine.survey("/srv");
        assert!(has(&path, id).is_some() && has(&path, other).is_none(), "{user}: {:?}", path.findings);
    }
}

#[test]
fn an_attached_drive_of_plumb_has_its_name() {
    let mut machine = Machine::new();
    machine.mount("/run/plumb/attach/tank/mount", "0:44", "fuse.plumb", "plumb", "rw");
    let path = machine.survey("/run/plumb/attach/tank/mount");
    assert_eq!(path.layers[2].name, "plumb drive tank");
    assert!(path.unknown_below.unwrap().contains("plumb drive status tank"));
    assert!(path.layers.iter().all(|layer| !layer.is_block_device()));
}

/// The kernel sees a disk that is flushed. The server has recorded the drive behind it.
#[test]
fn a_drive_that_plumb_serves_is_judged_by_its_model_however_it_is_attached() {
    let served = |drive: &str| {
        let mut machine = Machine::new();
        machine.mount("/run/plumb/attach/tank/mount", "0:44", "fuse.plumb", "plumb", "rw");
        machine.virtual_device("loop0", WB);
        machine.tree.put_text("/sys/devices/virtual/block/loop0/loop/backing_file", DISK);
        machine.tree.put_text("/sys/devices/virtual/block/loop0/loop/dio", "1");
        machine.tree.put_stat(DISK, file_on("0:44"));
        machine.virtual_device("ublkb3", WB);
        machine.tree.put_text("/run/plumb/attach/tank/server", &format!("4711\n{drive}"));
        machine.tree.put_text("/run/plumb/ublk/3", &format!("c\nplumb-ublk 1\ntank\n\n{drive}"));
        ["loop0", "ublkb3"].map(|name| (name, machine.survey(name)))
    };
    let drive = |kept: &str| format!("{{\"model\": \"m\", {kept}}}\n");
    let lie = "\"flush_lie\": \"is answered and not done\"";
    let cases = [
        (drive("\"keeps_nothing\": true"), Some("keeps-nothing"), false),
        (drive(&format!("\"is_volatile\": true, {lie}")), Some("flush-dropped"), false),
        (drive("\"is_volatile\": true"), None, true),
        (drive(lie), None, true),
        // The cache was switched off.
        (drive(&format!("\"is_volatile\": true, {lie}")) + &drive(lie), None, true),
    ];
    for (record, danger, is_durable) in cases {
        for (name, path) in served(&record) {
            let found = path.findings.iter().find(|finding| finding.severity == Severity::Danger);
            assert_eq!(found.map(|finding| finding.id.as_str()), danger, "{name}, {record}: {path:#?}");
            assert_eq!(path.durable_at.fsync.as_deref(), is_durable.then_some("plumb drive tank"), "{name}");
            assert_eq!((path.block_devices(), path.unknown_below.clone()), (vec![name.to_owned()], None));
            assert!(has(&path, "simulated").is_some(), "{name}: {:?}", path.findings);
        }
    }
    for (name, path) in served("") {
        assert!(has(&path, "simulated").is_none() && path.unknown_below.is_some(), "{name}: {path:?}");
    }
}

/// Tests a cache by its name, attached, and as a ublk device: the devices below are equal.
#[test]
fn a_cache_of_plumb_leads_to_its_devices_however_it_is_named() {
    let mut machine = Machine::with_disk(WB, true);
    machine.scsi("sdb", "mpt3sas", WT, false);
    for (node, number) in [("/dev/sda", "8:1"), ("/dev/sdb", "8:2")] {
        let number: DeviceNumber = number.parse().unwrap();
        let stat = Stat { kind: FileKind::Block, device: number, node: Some(number), mount: None };
        machine.tree.put_stat(node, stat);
    }
    let config = "/var/lib/plumb/cache/tank.json";
    let text = r#"{"uuid": "its-uuid", "mode": "write-back", "backing": "/dev/sda", "legs": ["/dev/sdb", "/dev/sdb"]}"#;
    machine.tree.put_text(config, text);
    let control = Stat { kind: FileKind::File, device: "0:9".parse().unwrap(), node: None, mount: None };
    machine.tree.put_stat("/run/plumb/cache/tank.control", control);
    machine.mount("/run/plumb/attach/tank/mount", "0:44", "fuse.plumb", "plumb", "rw");
    machine.virtual_device("ublkb3", WB);
    let record = |contents: &str| format!("c\nplumb-ublk 1\ntank\n{contents}\n");
    machine.tree.put_text("/run/plumb/ublk/3", &record("cache its-uuid"));
    let named = survey_cache(&machine.tree, &machine.probe, "cache:tank", config).paths.remove(0);
    assert_eq!(names(&named)[..2], ["application", "cache:tank"]);
    let below = |path: &WritePath, name: &str| {
        let at = path.layers.iter().position(|layer| layer.name == name).unwrap();
        let Layer { kind, identity, cache, flush, evidence, below, .. } = path.layers[at].clone();
        assert_eq!((kind, cache), (LayerKind::WriteBackCache, Cache::None), "{name}");
        assert!(evidence.iter().any(|line| line.source == config), "{name}: {evidence:?}");
        (identity, flush, below, path.layers[at + 1..].to_vec())
    };
    let found = below(&named, "cache:tank");
    assert_eq!((&*found.2, found.3.len()), (&["sdb".to_owned(), "sda".to_owned()][..], 3), "{:?}", found.3);
    let attached = machine.survey("/run/plumb/attach/tank/mount");
    assert_eq!(below(&attached, "plumb cache tank"), found);
    assert_eq!(
        (attached.devices_above(), attached.block_devices().len()),
        (Vec::new(), 2),
        "a mount is not a device"
    );
    assert_eq!(below(&machine.survey("ublkb3"), "ublkb3"), found);
    // Another server has the number now.
    machine.tree.put_text("/run/plumb/ublk/3", &record("a drive"));
    assert_eq!(machine.survey("ublkb3").layer("ublkb3").unwrap().kind, LayerKind::Ublk);
}

/// File under the loop device of a drive that plumb has attached.
const DISK: &str = "/run/plumb/attach/tank/mount/disk";

/// Returns a file on the device with this number.
fn file_on(device: &str) -> Stat {
    let device = device.parse().expect("a device number");
    Stat { kind: FileKind::File, device, node: None, mount: None }
}

/// Returns a machine with the cache tank, attached, in this mode: its backing device is sda, with a volatile
/// cache, its log is on `log`.
fn cached(mode: &str, log: &str) -> Machine {
    let mut machine = Machine::with_disk(WB, true);
    machine.scsi("sdb", "mpt3sas", WT, false);
    machine.scsi("sdc", "mpt3sas", WB, true);
    for (node, number) in [("/dev/sda", "8:1"), ("/dev/sdb", "8:2"), ("/dev/sdc", "8:3")] {
        let number: DeviceNumber = number.parse().expect("a device number");
        let stat = Stat { kind: FileKind::Block, device: number, node: Some(number), mount: None };
        machine.tree.put_stat(node, stat);
    }
    machine.mount("/plain", "8:2", "xfs", "/dev/sdb", "rw");
    machine.mount("/cow", "8:2", "btrfs", "/dev/sdb", "rw");
    for file in ["/plain/log", "/cow/log"] {
        machine.tree.put_stat(file, file_on("8:2"));
    }
    let text = format!(r#"{{"uuid": "its", "mode": "{mode}", "backing": "/dev/sda", "legs": ["{log}"]}}"#);
    machine.tree.put_text("/var/lib/plumb/cache/tank.json", &text);
    machine.tree.put_stat("/run/plumb/cache/tank.control", file_on("0:9"));
    machine.mount("/run/plumb/attach/tank/mount", "0:44", "fuse.plumb", "plumb", "rw");
    let disk = "/run/plumb/attach/tank/mount/disk";
    machine.tree.put_stat(disk, file_on("0:44"));
    let block = machine.virtual_device("loop3", WB);
    machine.tree.put_text(&format!("{block}/loop/backing_file"), disk);
    machine.tree.put_text(&format!("{block}/loop/dio"), "1\n");
    machine
}

/// In the mode `protected` flushes end at the cache. The log determines the durability, whatever the backing
/// device does, for the attached device and for the cache by its name.
#[test]
fn a_protected_cache_ends_flushes_and_its_log_says_what_that_is_worth() {
    for (mode, log, cache, flush, found) in [
        ("protected", "/dev/sdb", Cache::Protected, Flush::Absorbed, None),
        ("protected", "/plain/log", Cache::Protected, Flush::Absorbed, None),
        ("protected", "/dev/sdc", Cache::Volatile, Flush::Dropped, Some(Severity::Danger)),
        ("protected", "/cow/log", Cache::Unknown, Flush::Unknown, Some(Severity::Warning)),
        ("protected", "/dev/gone", Cache::Unknown, Flush::Unknown, Some(Severity::Warning)),
        ("write-back", "/dev/sdb", Cache::None, Flush::Forwarded, None),
        ("write-back", "/dev/sdc", Cache::Volatile, Flush::Forwarded, None),
        ("ordered", "/dev/gone", Cache::Unknown, Flush::Forwarded, None),
    ] {
        let machine = cached(mode, log);
        let config = "/var/lib/plumb/cache/tank.json";
        let attached = machine.survey("loop3");
        let named = survey_cache(&machine.tree, &machine.probe, "cache:tank", config).paths.remove(0);
        for (path, name) in [(&attached, "plumb cache tank"), (&named, "cache:tank")] {
            let about = format!("{mode}, log {log}, {name}: {:#?}", path.findings);
            layer(path, name, LayerKind::WriteBackCache, cache, flush);
            assert_eq!(has(path, "flush-dropped"), found, "{about}");
            assert_eq!(path.durable_at.fsync.is_some(), found.is_none() && log != "/dev/gone", "{about}");
            let evidence = &path.layer(name).unwrap().evidence;
            let is_said = evidence.iter().any(|line| line.means.contains("whoever set this mode vouches"));
            assert_eq!(is_said, mode == "protected", "{about}");
        }
        assert_eq!(named.durable_at.write, None, "a write past the log is in the cache of sda");
        assert_eq!(attached.durable_at.fsync.is_some(), named.durable_at.fsync.is_some());
        assert_eq!(attached.unknown_below, named.unknown_below);
    }
}

#[test]
fn what_a_vouched_log_may_lose_is_said_with_the_rank_of_the_word_and_what_helps() {
    let machine = cached("protected", "/dev/sdc");
    let path = machine.survey("loop3");
    let finding = path.findings.iter().find(|finding| finding.id == "flush-dropped").unwrap();
    for words in
        ["plumb cache tank", "word of an administrator", "the cache of sdc is volatile", "a power cut takes"]
    {
        assert!(finding.sentence.contains(words), "{words}: {}", finding.sentence);
    }
    let evidence = finding.evidence.concat();
    assert!(evidence.contains("rung 4 of 5") && evidence.contains("WCE=1"), "{evidence}");
    assert!(finding.remedy.contains("`plumb cache mode tank write-back`"), "{}", finding.remedy);
    let sentence = &path.durable_at.sentence;
    assert!(sentence.contains("ends at plumb cache tank while the cache of sdc may lose"), "{sentence}");
    // Two causes are both reported.
    let mut machine = cached("protected", "/dev/sdc");
    machine.tree.put_text("/sys/devices/virtual/block/loop3/queue/write_cache", WT);
    let path = machine.survey("loop3");
    let finding = path.findings.iter().find(|finding| finding.id == "flush-dropped").unwrap();
    assert!(finding.sentence.starts_with("A flush ends at loop3 while"), "{}", finding.sentence);
    assert!(finding.sentence.contains("on the word of an administrator"), "{}", finding.sentence);
}

/// Tests that without volatile devices below a cache, its acknowledged data is durable.
#[test]
fn a_named_cache_is_durable_as_its_devices_are() {
    let config = "/var/lib/plumb/cache/tank.json";
    let survey = |log: &str| {
        let mut machine = cached("write-back", log);
        machine.page("sda", false, false);
        survey_cache(&machine.tree, &machine.probe, "cache:tank", config).paths.remove(0)
    };
    let path = survey("/dev/sdb");
    assert_eq!(path.durable_at.write.as_deref(), Some("cache:tank"), "{:?}", path.durable_at);
    let path = survey("/dev/sdc");
    assert_eq!((path.durable_at.write.clone(), path.durable_at.fsync.as_deref()), (None, Some("cache:tank")));
    let sentence = &path.durable_at.sentence;
    assert!(
        sentence.contains("once a flush was answered") && sentence.contains("cache of sdc"),
        "{sentence}"
    );
}

#[test]
fn an_external_journal_is_given_to_a_file_system_only_where_no_other_can_own_it() {
    let mut machine = quiet();
    machine.scsi("sdc", "mpt3sas", WB, true);
    machine.mount("/data", "8:1", "ext4", "/dev/sda", "rw");
    ext4_options(&mut machine, "sda", "rw\ndata=ordered\n");
    let journals = |machine: &mut Machine, names: &[&str]| {
        machine.tree.remove("/proc/fs/jbd2");
        for name in names {
            machine.tree.put_text(&format!("/proc/fs/jbd2/{name}/info"), "");
        }
    };
    let found = |machine: &Machine| {
        let path = machine.survey("/data");
        (has(&path, "external-journal").is_some(), has(&path, "path-ends-unseen").is_some())
    };
    journals(&mut machine, &["sdc"]);
    assert_eq!(found(&machine), (true, false));
    // The other has its journal inside.
    ext4_options(&mut machine, "sdb", "rw\n");
    journals(&mut machine, &["sdc", "sdb-8"]);
    assert_eq!(found(&machine), (true, false));
    // Either may own the journal; and a similar name is not an internal journal.
    journals(&mut machine, &["sdc", "sdb-old-8"]);
    assert_eq!(found(&machine), (false, true));
    assert_eq!(machine.survey("/data").durable_at.fsync, None);
    // The other has no journal at all.
    machine.tree.put_text("/sys/fs/ext4/sdb/journal_task", "<none>\n");
    assert_eq!(found(&machine), (true, false));
    // This one has none, or has it inside.
    machine.tree.put_text("/sys/fs/ext4/sda/journal_task", "<none>\n");
    assert_eq!(found(&machine), (false, false));
    machine.tree.remove("/sys/fs/ext4/sda/journal_task");
    journals(&mut machine, &["sdc", "sda-8"]);
    assert_eq!(found(&machine), (false, false));
}

#[test]
fn an_option_is_recorded_with_the_file_that_it_was_read_from() {
    let mut machine = quiet();
    machine.mount("/data", "8:1", "ext4", "/dev/sda", "rw,data=writeback");
    ext4_options(&mut machine, "sda", "rw\nnobarrier\ndata=writeback\n");
    let path = machine.survey("/data");
    let evidence = &path.layer("ext4 /data").unwrap().evidence;
    let sources = |value: &str| -> Vec<&str> {
        let those = evidence.iter().filter(|evidence| evidence.value == value);
        those.map(|evidence| evidence.source.as_str()).collect()
    };
    assert_eq!(sources("nobarrier"), ["/proc/fs/ext4/sda/options"]);
    assert_eq!(sources("data=writeback"), ["/proc/self/mountinfo"]);
    assert_eq!(has(&path, "barriers-off"), Some(Severity::Info));
}

#[test]
fn the_file_of_a_loop_device_is_found_by_its_device() {
    let mut machine = Machine::with_disk(WB, true);
    machine.mount("/", "8:0", "ext4", "/dev/sda", "rw");
    // A file system in memory hides the directory, and the name leads there now.
    machine.mount("/img", "0:50", "tmpfs", "none", "rw");
    let hiding = Stat { kind: FileKind::File, device: "0:50".parse().unwrap(), node: None, mount: None };
    machine.tree.put_stat("/img/a", hiding);
    let block = machine.virtual_device("loop0", WB);
    machine.tree.put_text(&format!("{block}/loop/backing_file"), "/img/a\n");
    machine.tree.put_text(&format!("{block}/loop/dio"), "0\n");
    // `struct loop_info64`, linux/loop.h: lo_device is 8:0 as huge_encode_dev has it, lo_inode 12.
    let mut status = vec![0_u8; 232];
    status[..8].copy_from_slice(&0x800_u64.to_ne_bytes());
    status[8..16].copy_from_slice(&12_u64.to_ne_bytes());
    machine.probe.put("loop0", Request::LoopStatus, Ok(status));
    let path = machine.survey("loop0");
    assert_eq!(path.durable_at.fsync.as_deref(), Some("sda"), "{}", path.durable_at.sentence);
    assert_eq!(has(&path, "memory"), None);
}

#[test]
fn the_attribute_s_counts_as_the_mount_option_does() {
    let mut machine = Machine::with_disk(WB, true);
    machine.mount("/srv", "8:0", "ext4", "/dev/sda", "rw");
    let stat = |kind| Stat { kind, device: "8:0".parse().unwrap(), node: None, mount: None };
    for (name, kind) in [("/srv/file", FileKind::File), ("/srv/folder", FileKind::Directory)] {
        machine.tree.put_stat(name, stat(kind));
        assert_eq!(machine.survey(name).durable_at.write, None);
        machine.tree.put_attributes(name, Attributes { synchronous: true, ..Attributes::default() });
        let path = machine.survey(name);
        assert_eq!(path.durable_at.write.as_deref(), Some("sda"), "{name}");
        assert_eq!(path.synchronous(), Some("attribute S (chattr +S)"));
        let found = path.findings.iter().find(|finding| finding.id == "synchronous-mount").unwrap();
        assert!(found.sentence.starts_with(&format!("{name} on ext4 ")), "{}", found.sentence);
        assert!(found.remedy.contains(&format!("`chattr -S {name}`")), "{}", found.remedy);
    }
    assert_eq!(machine.survey("/srv").synchronous(), None);
}

#[test]
fn a_network_block_device_without_flush_cannot_be_durable() {
    let mut machine = Machine::new();
    machine.virtual_device("nbd0", WT);
    let path = machine.survey("nbd0");
    assert_eq!(has(&path, "nbd-no-flush"), Some(Severity::Danger));
    assert_eq!(has(&path, "flush-dropped"), None, "one cause, one finding");
    assert_eq!(path.layer("nbd0").unwrap().flush, Flush::Dropped);
    assert!(
        path.durable_at.sentence.contains("offers neither flush nor FUA"),
        "{}",
        path.durable_at.sentence
    );
    let mut machine = Machine::new();
    machine.virtual_device("nbd0", WB);
    assert_eq!(has(&machine.survey("nbd0"), "nbd-no-flush"), None);
}

/// Returns a machine with btrfs and blocks of these kinds and profiles, as fs/btrfs/sysfs.c shows them.
fn btrfs_with(profiles: &[(&str, &str)]) -> Machine {
    let mut machine = quiet();
    machine.mount("/pool", "0:35", "btrfs", "/dev/sda", "rw");
    let root = "/sys/fs/btrfs/01234567-89ab-cdef-0123-456789abcdef";
    for name in ["sda", "sdb"] {
        machine.tree.put_link(&format!("{root}/devices/{name}"), &format!("/sys/class/block/{name}"));
    }
    for (kind, profile) in profiles {
        machine.tree.put_text(&format!("{root}/allocation/{kind}/{profile}/total_bytes"), "1\n");
        machine.tree.put_text(&format!("{root}/allocation/{kind}/bytes_used"), "1\n");
    }
    machine
}

#[test]
fn parity_profiles_of_btrfs_have_a_write_hole_and_others_do_not() {
    for profile in ["single", "dup", "raid0", "raid1", "raid1c3", "raid1c4", "raid10"] {
        let path = btrfs_with(&[("data", profile), ("metadata", "raid1")]).survey("/pool");
        assert!(has(&path, "btrfs-write-hole").is_none(), "{profile}");
        let said = path.layers[2]
            .evidence
            .iter()
            .any(|line| line.value == format!("data {profile}, metadata raid1"));
        assert!(said, "{:#?}", path.layers[2].evidence);
    }
    for (data, metadata) in [("raid5", "raid1"), ("single", "raid6")] {
        let path = btrfs_with(&[("data", data), ("metadata", metadata)]).survey("/pool");
        assert_eq!(has(&path, "btrfs-write-hole"), Some(Severity::Warning), "{data} {metadata}");
    }
    // A balance that was interrupted leaves both.
    let path = btrfs_with(&[("data", "raid1"), ("data", "raid5")]).survey("/pool");
    assert_eq!(has(&path, "btrfs-write-hole"), Some(Severity::Warning));
}

/// Documentation/ABI/testing/sysfs-fs-ext4: the count stays until fsck has cleared it.
#[test]
fn errors_that_ext4_has_recorded_are_told_with_their_inode() {
    let with = |count: &str| {
        let mut machine = quiet();
        machine.mount("/data", "8:0", "ext4", "/dev/sda", "rw");
        for (name, text) in
            [("errors_count", count), ("last_error_func", "ext4_end_bio"), ("last_error_ino", "12")]
        {
            machine.tree.put_text(&format!("/sys/fs/ext4/sda/{name}"), text);
        }
        machine.survey("/data")
    };
    assert_eq!(has(&with("0\n"), "errors-recorded"), None);
    let path = with("3\n");
    assert_eq!(has(&path, "errors-recorded"), Some(Severity::Warning));
    let finding = path.findings.iter().find(|finding| finding.id == "errors-recorded").unwrap();
    let expected = "has recorded errors (3 since the last fsck, the last one in ext4_end_bio, inode 12)";
    assert!(finding.sentence.contains(expected), "{}", finding.sentence);
    assert!(finding.remedy.contains("e2fsck"), "{}", finding.remedy);
}

#[test]
fn errors_that_btrfs_has_counted_are_told_with_their_device() {
    let with = |flushes: u8| {
        let mut machine = btrfs_with(&[("data", "raid1")]);
        let root = "/sys/fs/btrfs/01234567-89ab-cdef-0123-456789abcdef/devinfo";
        for (device, flushes) in [("1", 0), ("2", flushes)] {
            let text = format!(
                "write_errs 0\nread_errs 0\nflush_errs {flushes}\ncorruption_errs 0\ngeneration_errs 0\n"
            );
            machine.tree.put_text(&format!("{root}/{device}/error_stats"), &text);
        }
        machine.survey("/pool")
    };
    assert_eq!(has(&with(0), "errors-recorded"), None);
    let path = with(7);
    assert_eq!(has(&path, "errors-recorded"), Some(Severity::Warning));
    let said = path.findings.iter().any(|finding| finding.sentence.contains("(device 2: flush_errs 7)"));
    assert!(said, "{:#?}", path.findings);
}

#[test]
fn all_members_of_a_bcachefs_are_shown() {
    let mut machine = quiet();
    machine.mount("/pool", "8:1", "bcachefs", "/dev/sda", "rw");
    let root = "/sys/fs/bcachefs/01234567-89ab-cdef-0123-456789abcdef";
    for (number, name) in ["sda", "sdb"].into_iter().enumerate() {
        machine.tree.put_link(&format!("{root}/dev-{number}/block"), &format!("/sys/class/block/{name}"));
    }
    let path = machine.survey("/pool");
    assert_eq!(path.layers[2].below, ["sda", "sdb"]);
    assert_eq!(path.block_devices().len(), 2);
}

#[test]
fn ext4_says_that_it_replaces_files_unsynced_and_that_commits_are_fast() {
    let mut machine = quiet();
    machine.mount("/srv", "8:1", "ext4", "/dev/sda", "rw");
    ext4_options(&mut machine, "sda", "rw\nbarrier\nnoauto_da_alloc\n");
    machine.tree.put_text("/proc/fs/ext4/sda/fc_info", "fc stats:\n12 commits\n0 ineligible\n24 numblks\n");
    let path = machine.survey("/srv");
    assert_eq!(has(&path, "no-auto-da-alloc"), Some(Severity::Info));
    assert!(path.layers[2].evidence.iter().any(|line| line.value == "12 commits"));
    let mut machine = quiet();
    machine.mount("/srv", "8:1", "ext4", "/dev/sda", "rw");
    ext4_options(&mut machine, "sda", "rw\nbarrier\n");
    machine.tree.put_text("/proc/fs/ext4/sda/fc_info", "fc stats:\n0 commits\n0 ineligible\n0 numblks\n");
    let path = machine.survey("/srv");
    assert!(has(&path, "no-auto-da-alloc").is_none());
    assert!(path.layers[2].evidence.iter().all(|line| !line.value.ends_with("commits")));
}
