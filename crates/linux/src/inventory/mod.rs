//! Inventory of the machine's block devices, how they are stacked, and what uses each of them. Anything that
//! must not disturb a use relies on it.
//!
//! [`Inventory::read`] reads /sys/class/block, the mount table, /proc/swaps, the members of mounted btrfs and
//! the backing files of loop devices through a [`Tree`](crate::tree::Tree) and a
//! [`Probe`](crate::probe::Probe), so it works on recordings too. It **fails closed**: a source that exists
//! and cannot be read is an [`InventoryError`], never "no use". A device that vanishes during reading (a disk
//! that is pulled out) is left out. A kernel without swap has no /proc/swaps, and one without block devices
//! has no /sys/class/block; both count as empty.
//!
//! Usage: read an inventory where the decision is made, call [`Inventory::uses`] with the kernel's name
//! (`loop3`) or [`Inventory::uses_of_file`], and refuse if there is a use or an error. A [`Use`] prints as a
//! sentence: `sda1 is mounted at / (ext4)`.
//!
//! Limitations: an inventory covers only the mount namespace of this process, and not the open descriptors of
//! programs. An exclusive open (`O_EXCL`) detects more.

mod block;
mod identity;
mod lock;
mod overlay;
mod read;
mod storage;
mod usage;

pub use block::{Block, BlockKind, FileId, Partition};
pub use identity::single_spaced;
pub(crate) use lock::Lock;
pub use overlay::{identities_at, identities_of, is_one_file};
pub use read::InventoryError;
pub use storage::Storage;
pub use usage::Use;

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::DeviceNumber;
use crate::tree::mountinfo::Mount;
use block::Backing;

/// All block devices by name, and their uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    blocks: BTreeMap<String, Block>,
    mounts: Vec<Mount>,
    /// Files and devices that are swap space.
    swaps: Vec<Backing>,
    /// Exclusive locks of programs on files or ranges of them.
    locks: Vec<Lock>,
}

impl Inventory {
    /// Returns the block device called `name`.
    pub fn get(&self, name: &str) -> Option<&Block> {
        self.blocks.get(name)
    }

    /// Returns the block device with this number.
    pub fn by_number(&self, number: DeviceNumber) -> Option<&Block> {
        self.blocks.values().find(|block| block.number == number)
    }

    /// Returns all block devices, ordered by name.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.blocks.values()
    }

    /// Returns all disks of non-zero size.
    pub fn disks(&self) -> impl Iterator<Item = &Block> {
        let disks = self.blocks().filter(|block| block.kind == BlockKind::Disk);
        disks.filter(|block| block.sectors != Some(0) && !block.hidden)
    }

    /// Returns all devices stacked on `name`, each after those below it.
    pub fn above(&self, name: &str) -> Vec<&Block> {
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        self.visit(name, &mut seen, &mut order);
        order.retain(|block| block.name != name);
        order.reverse();
        order
    }

    /// Visits depth first; a device comes after all devices above it. `seen` guards against a cycle in a
    /// damaged tree.
    fn visit<'a>(&'a self, name: &str, seen: &mut BTreeSet<&'a str>, order: &mut Vec<&'a Block>) {
        let Some(block) = self.blocks.get(name) else { return };
        if !seen.insert(&block.name) {
            return;
        }
        for above in &block.above {
            self.visit(above, seen, order);
        }
        order.push(block);
    }

    /// Returns the names of the disks below the device called `name`, or its own name if it is a disk.
    pub fn disks_below(&self, name: &str) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut pending = vec![name];
        while let Some(block) = pending.pop().and_then(|name| self.blocks.get(name)) {
            if !seen.insert(&block.name) {
                continue;
            }
            if block.kind == BlockKind::Disk {
                found.insert(block.name.as_str());
            }
            let known = block.below.iter().map(String::as_str).filter(|name| self.blocks.contains_key(*name));
            pending.extend(known);
        }
        found
    }

    /// Returns the mount that contains `path`, which must be absolute and without links.
    pub fn mount_of(&self, path: &str) -> Option<&Mount> {
        let above = |point: &str| {
            point == "/"
                || path == point
                || path.strip_prefix(point).is_some_and(|rest| rest.starts_with('/'))
        };
        // The last of several mounts at one point covers the others.
        self.mounts.iter().filter(|mount| above(&mount.point)).max_by_key(|mount| mount.point.len())
    }

    /// Returns the names of the disks that hold the file or directory at `path`; empty if it is not on a disk
    /// of this machine.
    pub fn disks_under_path(&self, path: &str) -> BTreeSet<&str> {
        let Some(mount) = self.mount_of(path) else { return BTreeSet::new() };
        let holding = self.blocks().filter(|block| block.holds(mount));
        holding.flat_map(|block| self.disks_below(&block.name)).collect()
    }

    /// Returns the loop devices over files of the file systems on `block`.
    pub fn over_files_of<'a>(&'a self, block: &'a Block) -> impl Iterator<Item = &'a Block> {
        let mount = |above: &Block| self.mount_of(above.backing_file()?);
        self.blocks().filter(move |above| mount(above).is_some_and(|mount| block.holds(mount)))
    }
}

#[cfg(test)]
mod tests;
