//! One small synthetic tree for each kind of file system: guards against one that is not recognised, or misjudged.

#[expect(dead_code, reason = "devices are built by the other test program")]
mod machine;

use machine::{Machine, WB, has, layer};
use plumb_linux::tree::{FileKind, Stat};
use plumb_path::{Cache, Flush, LayerKind, Severity};

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
fn an_overlay_goes_on_with_its_upper_directory() {
    let mut machine = Machine::new();
    machine.scsi("sda", "mpt3sas", WB, true);
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
    let mut machine = Machine::new();
    machine.scsi("sda", "mpt3sas", WB, true);
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
fn zfs_and_fuse_say_that_they_cannot_be_seen_through() {
    let mut machine = Machine::new();
    machine.mount("/tank", "0:36", "zfs", "tank", "rw");
    machine.tree.put_text("/sys/module/zfs/parameters/zfs_nocacheflush", "1\n");
    machine.mount("/ntfs", "0:37", "fuse.mergerfs", "a:b", "rw");
    let path = machine.survey("/tank");
    layer(&path, "zfs /tank", LayerKind::Zfs, Cache::None, Flush::Unknown);
    assert_eq!(has(&path, "barriers-off"), Some(Severity::Warning));
    layer(&machine.survey("/ntfs"), "fuse.mergerfs /ntfs", LayerKind::Fuse, Cache::Unknown, Flush::Unknown);
}
