//! Who uses a device or a file: the device itself, its partitions, its disk, and everything that stands on them.

use super::tables::{FileId, LoopDevice, Place, Tables};
use super::{Block, Machine};
use crate::facts::Use;

/// More devices than any stack has; keeps a hostile tree from exhausting ours.
const FAMILY_MAX: usize = 10_000;

impl Tables {
    /// All uses of a block device that would lose by its being written.
    pub(crate) fn uses_of_block(&self, machine: &Machine<'_>, block: &Block) -> Vec<Use> {
        let mut uses = self.uses_above(machine, vec![block.clone()]);
        // A disk that is used as a whole is used in each of its parts; its other partitions do not matter.
        if let Some(disk) = block.part.as_ref().and_then(|part| machine.block_named(&part.disk)) {
            uses.extend(self.uses_of_one(&disk));
            for holder in machine.holders(&disk) {
                uses.push(held(machine, &disk, &holder));
                uses.extend(self.uses_above(machine, vec![holder]));
            }
            for above in self.loops_over(&disk) {
                uses.push(Use::Loop { device: disk.name.clone(), by: above.name.clone() });
                uses.extend(self.uses_above(machine, machine.block_named(&above.name).into_iter().collect()));
            }
        }
        tidy(uses)
    }

    /// All uses of a regular file. `path` is what the kernel may know it by.
    pub(crate) fn uses_of_file(&self, machine: &Machine<'_>, file: FileId, path: &str) -> Vec<Use> {
        let is_it = |place: &Place| match place.file {
            Some(id) => id == file,
            None => place.number.is_none() && place.path == path,
        };
        let mut uses = Vec::new();
        if self.swaps.iter().any(is_it) {
            uses.push(Use::Swap { device: "the file".to_owned() });
        }
        for above in self.loops.iter().filter(|device| is_it(&device.backing)) {
            uses.push(Use::Loop { device: "the file".to_owned(), by: above.name.clone() });
            uses.extend(self.uses_above(machine, machine.block_named(&above.name).into_iter().collect()));
        }
        tidy(uses)
    }

    /// The uses of these devices, of their partitions, and of all that is made of them.
    fn uses_above(&self, machine: &Machine<'_>, start: Vec<Block>) -> Vec<Use> {
        let mut uses = Vec::new();
        let mut pending = start;
        let mut seen: Vec<String> = Vec::new();
        while let Some(block) = pending.pop() {
            if seen.contains(&block.name) || seen.len() >= FAMILY_MAX {
                continue;
            }
            seen.push(block.name.clone());
            uses.extend(self.uses_of_one(&block));
            pending.extend(machine.partitions(&block));
            for holder in machine.holders(&block) {
                uses.push(held(machine, &block, &holder));
                pending.push(holder);
            }
            for above in self.loops_over(&block) {
                uses.push(Use::Loop { device: block.name.clone(), by: above.name.clone() });
                pending.extend(machine.block_named(&above.name));
            }
        }
        uses
    }

    /// Whether this very device is mounted or swapped to.
    fn uses_of_one(&self, block: &Block) -> Vec<Use> {
        let mut uses: Vec<Use> = self
            .mounts
            .iter()
            .filter(|mount| mount.device == block.number)
            .map(|mount| mounted(block, &mount.point, &mount.kind))
            .collect();
        for members in self.btrfs.iter().filter(|members| members.contains(&block.name)) {
            let is_source =
                |source: &str| members.iter().any(|member| source.strip_prefix("/dev/") == Some(member));
            let mount = self.mounts.iter().find(|mount| mount.kind == "btrfs" && is_source(&mount.source));
            uses.push(mounted(block, mount.map_or("", |mount| &mount.point), "btrfs"));
        }
        // File systems of several devices name them all as their source (bcachefs), or one (btrfs in older kernels).
        let node = block.node();
        let anonymous = self.mounts.iter().filter(|mount| mount.device.is_anonymous());
        let of_source = anonymous.filter(|mount| mount.source.split(':').any(|source| source == node));
        uses.extend(of_source.map(|mount| mounted(block, &mount.point, &mount.kind)));
        let name = |place: &Place| place.path.rsplit('/').next() == Some(block.name.as_str());
        let is_swap =
            |place: &Place| place.number.map_or_else(|| name(place), |number| number == block.number);
        if self.swaps.iter().filter(|place| place.file.is_none()).any(is_swap) {
            uses.push(Use::Swap { device: block.name.clone() });
        }
        uses
    }

    fn loops_over(&self, block: &Block) -> impl Iterator<Item = &LoopDevice> {
        let number = block.number;
        self.loops.iter().filter(move |device| device.backing.number == Some(number))
    }
}

fn mounted(block: &Block, point: &str, kind: &str) -> Use {
    Use::Mounted { device: block.name.clone(), point: point.to_owned(), kind: kind.to_owned() }
}

fn held(machine: &Machine<'_>, block: &Block, holder: &Block) -> Use {
    let own_name = machine.says(holder, "dm/name");
    let by = if own_name.is_empty() { holder.name.clone() } else { format!("{} ({own_name})", holder.name) };
    Use::Held { device: block.name.clone(), by }
}

/// Each use once; of the mounts of one device that with the shortest path, for a file system may be mounted often.
fn tidy(mut uses: Vec<Use>) -> Vec<Use> {
    uses.sort_by_key(|one| match one {
        Use::Mounted { device, point, .. } => (0, device.clone(), point.is_empty(), point.len()),
        Use::Swap { device } => (1, device.clone(), false, 0),
        Use::Held { device, by } => (2, format!("{device} {by}"), false, 0),
        Use::Loop { device, by } => (3, format!("{device} {by}"), false, 0),
    });
    uses.dedup_by(|one, kept| match (&*one, &*kept) {
        (Use::Mounted { device, .. }, Use::Mounted { device: kept, .. }) => device == kept,
        (one, kept) => one == kept,
    });
    uses
}
