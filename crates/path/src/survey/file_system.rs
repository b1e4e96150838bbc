//! File systems: the kind of each, and the devices that it is on.

use plumb_linux::tree::mountinfo::Mount;
use plumb_linux::tree::{DeviceNumber, FileKind, Stat};

use super::mounts::{MOUNTINFO, attached_drive, served_drive};
use super::network;
use super::surveyor::Surveyor;
use super::write_back_cache::config_of;
use crate::facts::{Mark, Node, Untorn};
use crate::model::{Cache, LayerKind};

/// Directory with an entry for each mounted file system of the ext4 driver, in all mount namespaces.
pub(super) const EXT4_SYSTEMS: &str = "/proc/fs/ext4";
/// Directory with an entry for each journal of ext4 and ocfs2 in use.
const JOURNALS: &str = "/proc/fs/jbd2";

/// File system types that expose kernel state and store nothing.
const PSEUDO: [&str; 18] = [
    "proc",
    "sysfs",
    "cgroup",
    "cgroup2",
    "debugfs",
    "tracefs",
    "securityfs",
    "bpf",
    "devpts",
    "pstore",
    "configfs",
    "efivarfs",
    "mqueue",
    "autofs",
    "binfmt_misc",
    "nsfs",
    "fusectl",
    "rpc_pipefs",
];

/// Profiles of btrfs as named in /sys (fs/btrfs/volumes.c).
const BTRFS_PROFILES: [&str; 9] =
    ["single", "dup", "raid0", "raid1", "raid1c3", "raid1c4", "raid10", "raid5", "raid6"];

/// Returns true if file systems of this type expose kernel state and store nothing, so that there is nothing
/// to measure.
pub fn is_kernel_state(kind: &str) -> bool {
    PSEUDO.contains(&kind)
}

impl Surveyor<'_> {
    /// Builds the node of the file system that holds `path` (canonical, with the result `stat`), and
    /// everything below it. A file system that is in no mount table becomes an unknown layer.
    pub(super) fn file_system_at(&mut self, path: &str, stat: Option<&Stat>) -> String {
        if let Some(mount) = self.mount_at(path, stat) {
            return self.file_system(&mount);
        }
        let of = stat.map_or_else(|| format!("of {path}"), |stat| format!("of device {}", stat.device));
        let name = format!("file system {of}");
        self.ensure(&name, |_| {
            let mut node = Node::new(LayerKind::Unknown, &name);
            node.cache = Cache::Unknown;
            node.saw(MOUNTINFO, "not there", "nothing is known about this file system");
            node.untorn = Untorn::unknown(format!("nothing is known about {name}"));
            let what = format!(
                "no readable mount table shows the {name} (root can read those of other mount namespaces)"
            );
            node.mark(Mark::Unseen { what });
            node
        });
        name
    }

    /// Builds the node of a mounted file system.
    pub(super) fn file_system(&mut self, mount: &Mount) -> String {
        // The later of two mounts at one point hides the earlier one, which a loop device may still use.
        let visible = self.mounts().of_path(&mount.point).is_none_or(|seen| seen.id == mount.id);
        let hidden = match self.namespace_of(mount) {
            Some(process) => format!(" (in the mount namespace of process {process})"),
            None if visible => String::new(),
            None => format!(" (mount {})", mount.id),
        };
        let name = match attached_drive(mount) {
            Some(cache) if self.is_plumb_cache(cache) => format!("plumb cache {cache}{hidden}"),
            Some(drive) => format!("{}{hidden}", served_drive(drive)),
            None => format!("{} {}{hidden}", mount.kind, mount.point),
        };
        self.systems.entry(name.clone()).or_insert_with(|| mount.clone());
        self.ensure(&name, |surveyor| surveyor.build_file_system(mount, &name));
        name
    }

    fn build_file_system(&mut self, mount: &Mount, name: &str) -> Node {
        let kind = mount.kind.as_str();
        let mut node = Node::new(LayerKind::FileSystem, name);
        let table = self.namespace_of(mount).map(|process| format!("/proc/{process}/mountinfo"));
        node.saw(
            table.unwrap_or_else(|| MOUNTINFO.to_owned()),
            format!("{} {} {} {}", mount.device, mount.point, mount.kind, mount.source),
            format!("{} is a file system of the type {kind}", mount.point),
        );
        match kind {
            "tmpfs" | "ramfs" | "devtmpfs" | "hugetlbfs" => self.in_memory(&mut node, kind),
            "overlay" | "overlayfs" => self.overlay(&mut node, mount),
            "zfs" => {
                node.kind = LayerKind::Zfs;
                self.zfs(&mut node, &mount.source);
            }
            _ if network::is_network(kind) => self.network_file_system(&mut node, mount),
            _ if kind == "fuse" || kind.starts_with("fuse.") || kind == "fuseblk" => {
                self.fuse(&mut node, mount)
            }
            _ if is_kernel_state(kind) => {
                node.kind = LayerKind::Unknown;
                node.cache = Cache::None;
                let what = format!("{kind} shows state of the kernel and keeps no files");
                node.mark(Mark::KernelState { what });
            }
            _ => self.on_block_devices(&mut node, mount),
        }
        if !node.is_read_only() && mount.is_read_only() {
            node.saw(MOUNTINFO, "ro", "nothing can be written here");
            node.mark(Mark::ReadOnly);
        }
        self.options(&mut node, mount);
        self.untorn_mount(&mut node, mount);
        node
    }

    fn in_memory(&self, node: &mut Node, kind: &str) {
        node.kind = LayerKind::Tmpfs;
        node.cache = Cache::Volatile;
        node.mark(Mark::InMemory);
        node.saw(MOUNTINFO, kind, "its files are in memory and nowhere else");
    }

    /// Adds the devices of a file system on one device or several.
    pub(super) fn on_block_devices(&mut self, node: &mut Node, mount: &Mount) {
        node.below = match mount.kind.as_str() {
            "btrfs" => self.btrfs_devices(node, mount),
            "bcachefs" => self.bcachefs_devices(node, mount),
            _ => Vec::new(),
        };
        if node.below.is_empty() && !mount.device.is_anonymous() {
            node.below.push(self.device_by_number(mount.device, &mount.source));
        }
        if node.below.is_empty() {
            // bcachefs joins the names of its devices with colons.
            for source in mount.source.split(':').filter(|source| source.starts_with("/dev/")) {
                if let Some(device) = self.device_at(source) {
                    node.below.push(device);
                }
            }
        }
        // xfs(5): the log and the realtime section may be elsewhere.
        for option in ["logdev", "rtdev"] {
            let Some(device) = mount.super_option(option).and_then(|path| self.device_at(path)) else {
                continue;
            };
            node.saw(
                MOUNTINFO,
                format!("{option}={device}"),
                "a part of the file system is on another device",
            );
            if !node.below.contains(&device) {
                node.below.push(device);
            }
        }
        if matches!(mount.kind.as_str(), "ext3" | "ext4") {
            self.external_journal(node);
        }
        if let ("ext2" | "ext3" | "ext4", Some(device)) = (mount.kind.as_str(), node.below.first().cloned()) {
            self.ext4_errors(node, &device);
        }
        if node.below.is_empty() {
            let what = format!(
                "{} is mounted from `{}`, which is not a block device seen here",
                mount.point, mount.source
            );
            node.mark(Mark::Unseen { what });
        }
    }

    /// Finds an external journal. fs/jbd2/journal.c: /proc/fs/jbd2 has `DEVICE-INODE` for a journal inside a
    /// file system and `DEVICE` for a separate one, without the file system that it belongs to. It can be
    /// inferred if exactly one file system has no internal journal; a file system without any journal is
    /// recognisable.
    fn external_journal(&mut self, node: &mut Node) {
        let Some(own) = node.below.first().cloned() else { return };
        let journals = self.tree.list(JOURNALS).unwrap_or_default();
        let is_outside =
            |system: &str| !has_journal_inside(&journals, system) && !self.has_no_journal(system);
        let is_device = |name: &&String| self.tree.link(&format!("/sys/class/block/{name}")).is_ok();
        let external: Vec<&String> = journals.iter().filter(is_device).collect();
        if external.is_empty() || !is_outside(&own) {
            return;
        }
        let others = self.tree.list(EXT4_SYSTEMS).unwrap_or_default();
        let alone = !others.iter().any(|system| *system != own && is_outside(system));
        match external.as_slice() {
            [device] if alone => {
                node.saw(JOURNALS, device.as_str(), "the journal is on a device of its own");
                node.below.push(self.device(device));
                node.mark(Mark::ExternalJournal { device: (*device).clone() });
            }
            devices => {
                let devices: Vec<&str> = devices.iter().map(|device| device.as_str()).collect();
                let devices = devices.join(" ");
                node.saw(JOURNALS, &devices, "journals on devices of their own, of several file systems");
                let what = format!("whether the journal of {} is on one of {devices}", node.name);
                node.mark(Mark::Unseen { what });
            }
        }
    }

    /// Returns true if the file system has no journal. fs/ext4/sysfs.c (journal_task_show): `<none>`, else
    /// the number of its kernel thread.
    fn has_no_journal(&self, system: &str) -> bool {
        self.tree.text(&format!("/sys/fs/ext4/{system}/journal_task")).is_ok_and(|task| task == "<none>")
    }

    /// Returns the device at a path such as /dev/sda1, if the path is a device node or at least has the name
    /// of one.
    pub(super) fn device_at(&mut self, path: &str) -> Option<String> {
        let canonical = self.tree.canonical(path).unwrap_or_else(|_| path.to_owned());
        if let Ok(stat) = self.tree.stat(&canonical) {
            return match (stat.kind, stat.node) {
                (FileKind::Block, Some(number)) => Some(self.device_by_number(number, &canonical)),
                _ => None,
            };
        }
        let name = canonical.strip_prefix("/dev/")?.replace('/', "!");
        let known = self.tree.link(&format!("/sys/class/block/{name}")).is_ok();
        known.then(|| self.device(&name))
    }

    /// Returns the members of a btrfs from /sys/fs/btrfs/UUID/devices; the mount table names only one of
    /// them.
    fn btrfs_devices(&mut self, node: &mut Node, mount: &Mount) -> Vec<String> {
        let root = "/sys/fs/btrfs";
        let source = self.device_at(&mount.source);
        let volumes = self.tree.list(root).unwrap_or_default();
        let members = |uuid: &String| self.tree.list(&format!("{root}/{uuid}/devices")).unwrap_or_default();
        let volumes: Vec<(String, Vec<String>)> = volumes
            .iter()
            .filter(|uuid| uuid.len() == 36)
            .map(|uuid| (uuid.clone(), members(uuid)))
            .filter(|(_, devices)| !devices.is_empty())
            .collect();
        let holds_source = |(_, devices): &&(String, Vec<String>)| {
            source.as_ref().is_some_and(|source| devices.contains(source))
        };
        let only = || if source.is_none() && volumes.len() == 1 { volumes.first() } else { None };
        let Some((uuid, devices)) = volumes.iter().find(holds_source).or_else(only) else {
            return source.into_iter().collect();
        };
        node.identity = Some(uuid.clone());
        node.saw(
            format!("{root}/{uuid}/devices"),
            devices.join(" "),
            "the devices that the file system spans",
        );
        self.btrfs_profiles(node, uuid);
        self.btrfs_errors(node, uuid);
        devices.iter().map(|name| self.device(name)).collect()
    }

    /// Records the profiles of a btrfs. fs/btrfs/sysfs.c: a directory for each profile in use, by kind of
    /// block.
    fn btrfs_profiles(&self, node: &mut Node, uuid: &str) {
        let root = format!("/sys/fs/btrfs/{uuid}/allocation");
        let profiles = |kind: &str| {
            let names = self.tree.list(&format!("{root}/{kind}")).unwrap_or_default();
            names.into_iter().filter(|name| BTRFS_PROFILES.contains(&name.as_str())).collect::<Vec<_>>()
        };
        let of_kind = |kind: &str| {
            let profiles = profiles(kind);
            (!profiles.is_empty()).then(|| format!("{kind} {}", profiles.join(" and ")))
        };
        let all: Vec<String> =
            ["data", "metadata", "system", "mixed"].iter().filter_map(|kind| of_kind(kind)).collect();
        if all.is_empty() {
            return;
        }
        node.saw(root, all.join(", "), "how blocks are kept on the devices");
        let parity: Vec<String> = all
            .into_iter()
            .filter(|kind| ["raid5", "raid6"].iter().any(|profile| kind.contains(profile)))
            .collect();
        if !parity.is_empty() {
            node.mark(Mark::BtrfsParity { what: parity.join(", ") });
        }
    }

    /// Returns the members of a bcachefs from /sys/fs/bcachefs/UUID/dev-N/block; the mount table may name
    /// only the first.
    fn bcachefs_devices(&mut self, node: &mut Node, mount: &Mount) -> Vec<String> {
        let root = "/sys/fs/bcachefs";
        let sources: Vec<String> = mount
            .source
            .split(':')
            .filter(|source| source.starts_with("/dev/"))
            .filter_map(|source| self.device_at(source))
            .collect();
        let members = |uuid: &String| -> Vec<String> {
            let entries = self.tree.list(&format!("{root}/{uuid}")).unwrap_or_default();
            let devices = entries.iter().filter(|entry| entry.starts_with("dev-"));
            let name = |device: &String| {
                let target = self.tree.link(&format!("{root}/{uuid}/{device}/block")).ok()?;
                target.rsplit('/').next().map(str::to_owned)
            };
            devices.filter_map(name).collect()
        };
        let volumes = self.tree.list(root).unwrap_or_default();
        let found = volumes
            .iter()
            .map(|uuid| (uuid, members(uuid)))
            .find(|(_, members)| members.iter().any(|member| sources.contains(member)));
        let Some((uuid, members)) = found else { return sources };
        node.identity = Some(uuid.clone());
        node.saw(
            format!("{root}/{uuid}/dev-*/block"),
            members.join(" "),
            "the devices that the file system spans",
        );
        members.iter().map(|name| self.device(name)).collect()
    }

    fn fuse(&mut self, node: &mut Node, mount: &Mount) {
        node.kind = LayerKind::Fuse;
        node.cache = Cache::Unknown;
        if let Some(device) = self.device_at(&mount.source) {
            node.below.push(device);
        }
        if let Some(cache) = attached_drive(mount).filter(|name| self.is_plumb_cache(name)) {
            return self.plumb_cache(node, cache, &config_of(cache));
        }
        let record = mount.point.strip_suffix("mount").map(|directory| format!("{directory}server"));
        let is_drive = attached_drive(mount).is_some();
        if is_drive && record.is_some_and(|record| self.simulated_drive(node, &record)) {
            return;
        }
        let what = match attached_drive(mount) {
            Some(drive) => format!(
                "a drive that plumb simulates and has attached: what it does with a flush is its model's affair (`plumb drive \
                 status {drive}`)"
            ),
            None => format!(
                "a user-space file system ({}, {}): whether it passes a sync on is up to it",
                mount.kind, mount.source
            ),
        };
        node.mark(Mark::Unseen { what });
    }

    /// Returns the node of a device with this number; `named` is its display name.
    pub(super) fn device_by_number(&mut self, number: DeviceNumber, named: &str) -> String {
        let link = self.tree.link(&format!("/sys/dev/block/{number}"));
        if let Some(name) = link.ok().as_deref().and_then(|target| target.rsplit('/').next()) {
            return self.device(name);
        }
        if let Some(name) = named.strip_prefix("/dev/").filter(|name| *name != "root") {
            let name = name.replace('/', "!");
            if self.tree.link(&format!("/sys/class/block/{name}")).is_ok() {
                return self.device(&name);
            }
        }
        self.unknown_device(&format!("device {number}"), &format!("/sys/dev/block/{number}"))
    }
}

fn has_journal_inside(journals: &[String], system: &str) -> bool {
    let inode = |journal: &String| {
        let rest = journal.strip_prefix(system)?.strip_prefix('-')?;
        rest.bytes().all(|byte| byte.is_ascii_digit()).then_some(())
    };
    journals.iter().any(|journal| inode(journal).is_some())
}
