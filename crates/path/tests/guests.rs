//! Tests of disks of virtual machines, from the command lines of their hypervisors. The cache modes are those
//! of the table in qemu(1), `-drive cache=`.

use plumb_path::{Cache, Flush, LayerKind, Severity, Target, WritePath, survey_guests, survey_on_host};

use crate::machine::{Machine, WB, WT, has, names};

/// Returns a host with an image on ext4 on a disk with a volatile cache, and processes with these command
/// lines.
fn host(processes: &[(u32, &[&str])]) -> Machine {
    let mut machine = Machine::with_disk(WB, true);
    machine.mount("/images", "8:1", "ext4", "/dev/sda", "rw");
    machine.tree.put_text("/images/db1.img", "");
    let names: Vec<String> = processes.iter().map(|(process, _)| process.to_string()).collect();
    machine.tree.put_names("/proc", &[names, vec!["meminfo".to_owned()]].concat());
    machine.tree.put_link("/proc/self/ns/mnt", "mnt:[1]");
    for (process, words) in processes {
        let line: String = words.iter().map(|word| format!("{word}\0")).collect();
        machine.tree.put_bytes(&format!("/proc/{process}/cmdline"), line.as_bytes());
        machine.tree.put_link(&format!("/proc/{process}/ns/mnt"), "mnt:[1]");
    }
    machine
}

fn guests(processes: &[(u32, &[&str])]) -> Vec<WritePath> {
    let machine = host(processes);
    survey_guests(&machine.tree, &machine.probe).paths
}

fn qemu(drive: &str) -> WritePath {
    let mut found = guests(&[(
        7,
        &["/usr/bin/qemu-system-x86_64", "-name", "guest=db1,debug-threads=on", "-drive", drive],
    )]);
    assert_eq!(found.len(), 1, "{drive}");
    found.remove(0)
}

/// Returns facts about the path of `mode`: true if it uses the host's page cache, the fate of a flush, and
/// true if each write is durable.
fn mode(mode: &str) -> (bool, Flush, bool) {
    let path = qemu(&format!("file=/images/db1.img,if=virtio,id=root{mode}"));
    assert_eq!(path.target, "db1, disk root: /images/db1.img");
    assert_eq!(path.layers[0].kind, LayerKind::VirtualMachine, "{path:#?}");
    let is_cached = path.layers.iter().any(|layer| layer.kind == LayerKind::PageCache);
    (is_cached, path.layers[0].flush, path.durable_at.write.is_some())
}

#[test]
fn the_cache_modes_of_qemu_are_told_apart() {
    for (name, is_cached, flush, is_durable) in [
        ("", true, Flush::Forwarded, false),
        (",cache=writeback", true, Flush::Forwarded, false),
        (",cache=none", false, Flush::Forwarded, false),
        (",cache=writethrough", true, Flush::Forwarded, true),
        (",cache=directsync", false, Flush::Forwarded, true),
        (",cache=unsafe", true, Flush::Dropped, false),
        (",cache=none,cache.no-flush=on", false, Flush::Dropped, false),
        (",cache.direct=on", false, Flush::Forwarded, false),
        (",cache=writethrough,cache.writeback=on", true, Flush::Forwarded, false),
    ] {
        assert_eq!(mode(name), (is_cached, flush, is_durable), "{name}");
    }
}

#[test]
fn flushes_that_a_hypervisor_drops_are_a_danger_and_others_are_not() {
    let path = qemu("file=/images/db1.img,cache=unsafe");
    assert_eq!(has(&path, "flush-dropped"), Some(Severity::Danger));
    assert_eq!(path.durable_at.fsync, None);
    let said = &path.durable_at.sentence;
    assert!(said.starts_with("A flush of the guest makes nothing durable here"), "{said}");
    assert!(said.contains("the page cache and the cache of sda may lose data"), "{said}");
    let path = qemu("file=/images/db1.img,cache=none");
    assert_eq!(has(&path, "flush-dropped"), None);
    assert_eq!(path.durable_at.fsync.as_deref(), Some("sda"));
    let said = &path.durable_at.sentence;
    assert!(said.contains("once a flush of the guest was answered it is durable at sda"), "{said}");
}

/// Tests the forms in which libvirt 7 and 9 write one disk.
#[test]
fn the_nodes_that_libvirt_names_are_followed_to_the_image() {
    let storage = r#"{"driver":"file","filename":"/images/db1.img","node-name":"libvirt-1-storage","cache":{"direct":true,"no-flush":false},"auto-read-only":true,"discard":"unmap"}"#;
    let format = r#"{"node-name":"libvirt-1-format","read-only":false,"cache":{"direct":true,"no-flush":false},"driver":"qcow2","file":"libvirt-1-storage"}"#;
    let plain = "virtio-blk-pci,drive=libvirt-1-format,id=virtio-disk0,serial=WD-42,write-cache=off";
    let json = r#"{"driver":"virtio-blk-pci","drive":"libvirt-1-format","id":"virtio-disk0","serial":"WD-42","write-cache":"off"}"#;
    for device in [plain, json] {
        let words = [
            "/usr/bin/qemu-kvm",
            "-name",
            "db1",
            "-blockdev",
            storage,
            "-blockdev",
            format,
            "-device",
            device,
        ];
        let found = guests(&[(9, &words)]);
        let [path] = &found[..] else { panic!("{found:#?}") };
        assert_eq!(path.target, "db1, disk virtio-disk0: /images/db1.img");
        assert_eq!(path.layers[0].identity.as_deref(), Some("WD-42"));
        assert!(path.layers.iter().all(|layer| layer.kind != LayerKind::PageCache));
        assert_eq!(path.durable_at.write.as_deref(), Some("sda"), "each write is flushed");
    }
}

/// Tests nested drivers of one `-blockdev`, and an image that is not a file of the host.
#[test]
fn nested_drivers_are_followed_and_an_image_elsewhere_is_said() {
    let nested = r#"{"driver":"throttle","node-name":"a","file":{"driver":"raw","file":{"driver":"host_device","filename":"/images/db1.img","cache":{"no-flush":true}}}}"#;
    let rbd = r#"{"driver":"rbd","node-name":"b","pool":"vms","image":"db1"}"#;
    let words = [
        "kvm",
        "-blockdev",
        nested,
        "-blockdev",
        rbd,
        "-device",
        "virtio-blk,drive=a,id=one",
        "-device",
        "virtio-blk,drive=b,id=two",
    ];
    let found = guests(&[(9, &words)]);
    let [one, two] = &found[..] else { panic!("{found:#?}") };
    assert_eq!(one.target, "process 9, disk one: /images/db1.img");
    assert_eq!(one.layers[0].flush, Flush::Dropped);
    assert_eq!(two.target, "process 9, disk two: rbd, no file of this host");
    assert!(two.unknown_below.is_some(), "{two:#?}");
}

#[test]
fn what_a_guest_only_reads_is_no_path_and_commas_in_names_are_names() {
    let words = [
        "qemu-system-aarch64",
        "-drive",
        "file=/images/a.iso,media=cdrom",
        "-drive",
        "file=/images/code.fd,if=pflash,readonly=on",
        "-drive",
        "file=/images/with,,comma.img,id=d",
        "-hda",
        "/images/db1.img",
    ];
    let targets: Vec<String> = guests(&[(5, &words)]).into_iter().map(|path| path.target).collect();
    assert_eq!(
        targets,
        ["process 5, disk d: /images/with,comma.img", "process 5, disk db1.img: /images/db1.img"]
    );
}

#[test]
fn other_hypervisors_are_as_their_documentation_says() {
    let mut machine = host(&[
        (3, &["/usr/bin/firecracker", "--id", "vm3", "--config-file", "/images/vm.json"]),
        (
            4,
            &[
                "cloud-hypervisor",
                "--disk",
                "path=/images/db1.img,direct=on",
                "path=/images/db1.img,readonly=on",
                "--cpus",
                "boot=1",
            ],
        ),
        (6, &["crosvm", "run", "--block", "path=/images/db1.img", "--mem", "512"]),
        (8, &["bash", "-c", "qemu-system-x86_64 -drive file=/images/db1.img"]),
    ]);
    let config = r#"{"drives":[{"drive_id":"rootfs","path_on_host":"/images/db1.img","is_root_device":true},
        {"drive_id":"data","path_on_host":"/images/db1.img","cache_type":"Writeback"}]}"#;
    machine.tree.put_text("/images/vm.json", config);
    let found = survey_guests(&machine.tree, &machine.probe).paths;
    let seen: Vec<_> = found
        .iter()
        .map(|path| {
            let is_cached = path.layers.iter().any(|layer| layer.kind == LayerKind::PageCache);
            (path.target.split(':').next().unwrap_or_default(), is_cached, path.layers[0].flush)
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("vm3, disk rootfs", true, Flush::Dropped),
            ("vm3, disk data", true, Flush::Forwarded),
            ("process 4, disk 0", false, Flush::Forwarded),
            ("process 6, disk 0", true, Flush::Forwarded),
        ]
    );
    let declared = found
        .iter()
        .all(|path| path.layers[0].evidence.iter().any(|line| line.means.ends_with("by its documentation")));
    assert!(declared, "{found:#?}");
}

#[test]
fn an_image_that_cannot_be_reached_is_said() {
    let path = qemu("file=rbd:pool/image,cache=none");
    assert!(path.unknown_below.is_some_and(|why| why.contains("rbd:pool/image")), "{:?}", path.durable_at);
    assert_eq!(path.layers[0].cache, Cache::None);
}

/// Returns the path of a guest whose disk vda has the serial number WD-42, by the survey of a host on which
/// QEMU has this drive. `view` is the view of the guest's kernel.
fn joined(drive: &str, view: &str) -> WritePath {
    let drive = format!("file=/images/db1.img,if=none,id=root{drive}");
    let words = [
        "qemu-system-x86_64",
        "-name",
        "db1",
        "-drive",
        &drive,
        "-device",
        "virtio-blk,drive=root,serial=WD-42",
    ];
    let host = host(&[(7, &words)]);
    let host = survey_guests(&host.tree, &host.probe);
    let mut guest = Machine::new();
    guest.guest();
    let block = guest.device("/sys/devices/pci0000:00/0000:00:05.0/virtio2/block", "vda", view);
    guest.tree.put_text(&format!("{block}/serial"), "WD-42");
    guest.tree.put_text(&format!("{block}/cache_type"), view);
    guest.mount("/srv", "8:1", "ext4", "/dev/vda", "rw");
    let target = Target::Named("/srv".to_owned());
    survey_on_host(&guest.tree, &guest.probe, &target, &host)
        .expect("the guest has a mount there")
        .paths
        .remove(0)
}

#[test]
fn a_guests_path_goes_on_to_the_drive_of_its_host() {
    let path = joined(",cache=none", WB);
    assert_eq!(path.durable_at.fsync.as_deref(), Some("host: sda"), "{path:#?}");
    assert_eq!((path.durable_at.write.as_deref(), path.unknown_below.as_deref()), (None, None));
    assert!(
        path.durable_at.sentence.contains("once fsync has returned it is durable at host: sda"),
        "{path:#?}"
    );
    assert_eq!(has(&path, "unknown-below-the-hypervisor"), None);
    assert!(
        names(&path).ends_with(&["host: ext4 /images", "host: sda", "host: mpt3sas 0000:00:03.0"]),
        "{path:#?}"
    );
}

#[test]
fn a_flush_that_the_guest_or_its_host_drops_is_a_danger_on_the_whole_path() {
    let path = joined(",cache=unsafe", WB);
    assert_eq!(
        (has(&path, "flush-dropped"), path.durable_at.fsync.as_deref()),
        (Some(Severity::Danger), None)
    );
    // The guest sends no flush to a disk that it takes for one without a cache, and the host has one.
    let path = joined(",cache=writeback", WT);
    assert_eq!(
        (has(&path, "flush-dropped"), path.durable_at.fsync.as_deref()),
        (Some(Severity::Danger), None)
    );
    // The host flushes each write, so the guest need not.
    let path = joined(",cache=writethrough", WT);
    assert_eq!((has(&path, "flush-dropped"), path.durable_at.fsync.as_deref()), (None, Some("host: sda")));
    assert_eq!(path.durable_at.write, None, "the guest's own memory holds it");
}

#[test]
fn a_disk_that_the_host_does_not_name_stays_unknown_and_says_why() {
    let mut guest = Machine::new();
    guest.guest();
    guest.device("/sys/devices/pci0000:00/0000:00:05.0/virtio2/block", "vda", WB);
    guest.mount("/srv", "8:1", "ext4", "/dev/vda", "rw");
    let host = host(&[(7, &["qemu-system-x86_64", "-drive", "file=/images/db1.img,if=virtio"])]);
    let host = survey_guests(&host.tree, &host.probe);
    let target = Target::Named("/srv".to_owned());
    let path = survey_on_host(&guest.tree, &guest.probe, &target, &host).unwrap().paths.remove(0);
    assert!(path.unknown_below.is_some(), "{path:#?}");
    let vda = path.layers.iter().find(|layer| layer.name == "vda").unwrap();
    assert!(
        vda.evidence.iter().any(|line| line.means.contains("no disk there has this serial number")),
        "{vda:#?}"
    );
}
