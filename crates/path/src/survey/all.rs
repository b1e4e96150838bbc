//! All places for data: the meaning of `--all`.
//!
//! 1. Each mounted file system on block devices, once: bind mounts and subvolumes of one superblock count as
//!    one, named by the shortest mount point.
//! 2. Each unused block device: no holder, and no mounted file system on it or its partitions. A disk with a
//!    partition in use is in use; its other partitions are not listed.
//!
//! Excluded: devices without a size (empty loop and nbd devices, drives without a medium), memory disks
//! (zram, brd) unless mounted, optical and floppy drives, and the hidden paths below a multipath NVMe
//! namespace.

use std::collections::{BTreeMap, BTreeSet};

use plumb_linux::tree::filesystems::{Backing, FileSystemTypes};
use plumb_linux::tree::mountinfo::Mount;

use super::Top;
use super::surveyor::Surveyor;

/// Device name stems that are never places for data of their own.
const NEVER: [&str; 4] = ["sr", "fd", "ram", "zram"];

impl Surveyor<'_> {
    /// Returns the top nodes of all paths.
    pub(super) fn everything(&mut self) -> Vec<Top> {
        let mut tops: Vec<Top> = Vec::new();
        for mount in self.volumes() {
            let node = self.file_system(&mount);
            tops.push(Top { target: mount.point.clone(), node });
        }
        let used = self.used();
        for name in self.tree.list("/sys/block").unwrap_or_default() {
            if !used.contains(&name) && self.is_place(&name) {
                let node = self.device(&name);
                tops.push(Top { target: format!("/dev/{}", name.replace('!', "/")), node });
            }
        }
        tops
    }

    /// Returns one mount of each file system on block devices.
    fn volumes(&self) -> Vec<Mount> {
        let types = FileSystemTypes::parse(&self.tree.text("/proc/filesystems").unwrap_or_default());
        let mut volumes: BTreeMap<String, &Mount> = BTreeMap::new();
        for mount in self.mounts().iter() {
            let block = match types.backing(&mount.kind) {
                Backing::Block => true,
                Backing::NoDevice => mount.kind == "zfs",
                Backing::Unlisted => !mount.device.is_anonymous() || mount.kind == "bcachefs",
            };
            if !block {
                continue;
            }
            // Subvolumes of btrfs share the source; ZFS datasets have nothing visible in common.
            let key =
                if mount.device.is_anonymous() { mount.source.clone() } else { mount.device.to_string() };
            volumes
                .entry(key)
                .and_modify(|kept| {
                    if mount.point.len() < kept.point.len() {
                        *kept = mount;
                    }
                })
                .or_insert(mount);
        }
        let mut volumes: Vec<Mount> = volumes.into_values().cloned().collect();
        volumes.sort_by(|one, other| one.point.cmp(&other.point));
        volumes
    }

    /// Returns the names of all nodes below another one, including the disks of used partitions.
    fn used(&self) -> BTreeSet<String> {
        let mut used = BTreeSet::new();
        for node in self.nodes.values() {
            used.extend(node.below.iter().cloned());
        }
        used
    }

    fn is_place(&self, name: &str) -> bool {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        if NEVER.contains(&stem) {
            return false;
        }
        let Some(place) = self.place(name) else { return false };
        let read = |file: &str| self.tree.text(&format!("{}/{file}", place.sysfs)).unwrap_or_default();
        if read("size") == "0" || read("hidden") == "1" || read("size").is_empty() {
            return false;
        }
        let held =
            |dir: &str| self.tree.list(&format!("{dir}/holders")).is_ok_and(|holders| !holders.is_empty());
        let partitions = place.entries.iter().filter(|entry| entry.starts_with(name));
        !held(&place.sysfs) && !partitions.into_iter().any(|part| held(&format!("{}/{part}", place.sysfs)))
    }
}
