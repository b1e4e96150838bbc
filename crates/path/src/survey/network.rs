//! File systems and block devices whose other end is on another machine or in another program.

use plumb_linux::tree::mountinfo::Mount;

use super::mounts::MOUNTINFO;
use super::surveyor::Surveyor;
use super::write_back_cache::config_of;
use crate::facts::{Mark, NO_FLUSH_NO_FUA, Node};
use crate::model::{Cache, LayerKind};

/// Types of file systems kept by a server.
const NETWORK: [&str; 17] = [
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "9p", "virtiofs", "lustre", "afs", "beegfs", "gpfs",
    "orangefs", "pvfs2", "vboxsf", "vmhgfs", "coda",
];

/// Types of FUSE file systems that are clients of a server.
const NETWORK_FUSE: [&str; 6] =
    ["fuse.glusterfs", "fuse.sshfs", "fuse.ceph-fuse", "fuse.ceph", "fuse.juicefs", "fuse.s3fs"];

/// Types of network file systems whose server is the host of this guest.
const FROM_HOST: [&str; 4] = ["9p", "virtiofs", "vboxsf", "vmhgfs"];

/// Returns true if file systems of this type are kept by a server.
pub(super) fn is_network(kind: &str) -> bool {
    NETWORK.contains(&kind) || NETWORK_FUSE.contains(&kind)
}

impl Surveyor<'_> {
    /// Fills in a client: a sync becomes a request to the server, whose handling is invisible.
    pub(super) fn network_file_system(&mut self, node: &mut Node, mount: &Mount) {
        node.kind = LayerKind::NetworkFileSystem;
        let address = mount.super_option("addr").map(|address| format!(" at {address}")).unwrap_or_default();
        node.saw(
            MOUNTINFO,
            format!("{}{address}", mount.source),
            "a sync is a request to the server (COMMIT, FLUSH); what the server promises cannot be seen from here",
        );
        if mount.kind == "nfs" || mount.kind == "nfs4" {
            node.saw("exports(5)", "sync or async", "an async export acknowledges a COMMIT from memory");
        }
        let below = if FROM_HOST.contains(&mount.kind.as_str()) && self.guest().name.is_some() {
            self.hypervisor()
        } else {
            self.remote(
                format!("server of {}", mount.source),
                format!("the server of {} ({})", mount.source, mount.kind),
            )
        };
        node.below = vec![below];
    }

    /// Adds the layer of the remote end of a network.
    pub(super) fn remote(&mut self, name: String, what: String) -> String {
        self.ensure(&name, |_| {
            let mut node = Node::new(LayerKind::Remote, name.clone());
            node.cache = Cache::Unknown;
            node.mark(Mark::RemoteEnd { what });
            node
        });
        name
    }

    /// Fills in network block devices: nbd, rbd, drbd, ublk.
    pub(super) fn network_device(&mut self, node: &mut Node, sysfs: &str) {
        let name = node.name.clone();
        if let Some(cache) = name.strip_prefix("ublkb").and_then(|number| self.ublk_cache(number)) {
            return self.plumb_cache(node, &cache, &config_of(&cache));
        }
        if let Some(drive) = name.strip_prefix("ublkb").and_then(|number| self.drive_of_ublk(number)) {
            node.kind = LayerKind::Ublk;
            node.below = vec![drive];
            return;
        }
        node.cache = match node.queue {
            crate::facts::KernelView::WriteBack => Cache::Volatile,
            _ => Cache::Unknown,
        };
        let (kind, what) = match name.trim_end_matches(|c: char| c.is_ascii_digit()) {
            "nbd" => {
                node.saw(
                    "drivers/block/nbd.c",
                    "NBD_FLAG_SEND_FLUSH",
                    "the queue says write back where the server offered it; without it no flush can be sent",
                );
                if node.queue == crate::facts::KernelView::WriteThrough && !node.is_read_only() {
                    node.mark(Mark::NoFlushOffered { offered: NO_FLUSH_NO_FUA });
                }
                (LayerKind::Nbd, "the NBD server".to_owned())
            }
            "rbd" => {
                // drivers/block/rbd.c: the kernel's client has no cache; all replicas acknowledge a write.
                node.cache = Cache::None;
                let number = name.trim_start_matches("rbd");
                let image =
                    |file: &str| self.tree.text(&format!("/sys/bus/rbd/devices/{number}/{file}")).ok();
                let (pool, image) = (image("pool").unwrap_or_default(), image("name").unwrap_or_default());
                node.identity = Some(format!("{pool}/{image}"));
                (LayerKind::Rbd, format!("the Ceph cluster with {pool}/{image}"))
            }
            "ublkb" => (LayerKind::Ublk, "the user-space server behind ublk".to_owned()),
            _ => (LayerKind::Drbd, "the DRBD peer".to_owned()),
        };
        node.kind = kind;
        let disks = self.tree.list(&format!("{sysfs}/slaves")).unwrap_or_default();
        node.below = disks.iter().map(|disk| self.device(disk)).collect();
        if kind == LayerKind::Drbd && !node.below.is_empty() {
            node.cache = Cache::None;
        }
        let remote = self.remote(format!("remote end of {name}"), format!("{what} of {name}"));
        node.below.push(remote);
    }
}
