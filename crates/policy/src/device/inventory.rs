//! The block devices of the machine and what stands on what: from /sys/class/block, the mount table and /proc/swaps.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use plumb_linux::tree::mountinfo::{self, Mount};
use plumb_linux::tree::{DeviceNumber, Tree};

use crate::many;

/// Which kind of block device it is, as far as it matters for a write cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    /// A disk, or what a controller or a hypervisor shows as one.
    Disk,
    /// A part of a disk.
    Partition,
    /// A device-mapper device.
    DeviceMapper,
    /// An md array.
    Md,
    /// A bcache device.
    Bcache,
    /// A loop device.
    Loop,
    /// zram, brd, null_blk: memory.
    Memory,
    /// nbd, rbd, drbd, ublk: what is behind is elsewhere.
    Remote,
    /// Optical and floppy drives.
    Removable,
}

/// One block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The kernel's name.
    pub name: String,
    /// Its number.
    pub number: DeviceNumber,
    /// Its directory in /sys, without links.
    pub sysfs: String,
    /// What it is.
    pub kind: BlockKind,
    /// Its capacity in sectors of 512 bytes, whatever its blocks are; `None` if the kernel does not say.
    pub sectors: Option<u64>,
    /// The kernel hides it: one path of an NVMe namespace that has several.
    pub hidden: bool,
    /// The names of the devices directly below.
    pub below: BTreeSet<String>,
    /// The names of the devices directly above.
    pub above: BTreeSet<String>,
    /// Mount points and types of the file systems on it.
    pub mounts: Vec<(String, String)>,
    /// Whether it is swapped to.
    pub swap: bool,
}

/// All block devices by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    blocks: BTreeMap<String, Block>,
}

impl Inventory {
    /// Reads the machine. What cannot be read is left out.
    pub fn read(tree: &dyn Tree) -> Self {
        let mut blocks = BTreeMap::new();
        let mut neighbours = Vec::new();
        let names = tree.list("/sys/class/block").unwrap_or_default();
        for (block, beside) in many::map(&names, |name| block(tree, name)).into_iter().flatten() {
            neighbours.extend(beside);
            blocks.insert(block.name.clone(), block);
        }
        let mut inventory = Self { blocks };
        inventory.link(neighbours);
        inventory.mount(tree);
        inventory.swap(tree);
        inventory
    }

    /// The block device called `name`.
    pub fn get(&self, name: &str) -> Option<&Block> {
        self.blocks.get(name)
    }

    /// The block device with this number.
    pub fn by_number(&self, number: DeviceNumber) -> Option<&Block> {
        self.blocks.values().find(|block| block.number == number)
    }

    /// All disks that have a size: what `--all` means.
    pub fn disks(&self) -> impl Iterator<Item = &Block> {
        let disks = self.blocks.values().filter(|block| block.kind == BlockKind::Disk);
        disks.filter(|block| block.sectors != Some(0) && !block.hidden)
    }

    /// All devices that stand on `name`, each after those below it.
    pub fn above(&self, name: &str) -> Vec<&Block> {
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        self.visit(name, &mut seen, &mut order);
        order.retain(|block| block.name != name);
        order.reverse();
        order
    }

    /// The names of the disks that the device called `name` stands on; its own if it is one.
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
            pending.extend(
                block.below.iter().map(String::as_str).filter(|name| self.blocks.contains_key(*name)),
            );
        }
        found
    }

    /// The names of the disks that the file or directory at `path` is on; none where it is on no disk of this machine.
    pub fn disks_under_path(&self, tree: &dyn Tree, path: &str) -> Vec<String> {
        let mounts =
            tree.read("/proc/self/mountinfo").map(|bytes| mountinfo::parse(&bytes)).unwrap_or_default();
        let Some(mount) = mount_of(&mounts, path) else { return Vec::new() };
        let devices = match self.by_number(mount.device) {
            Some(block) => vec![block.name.clone()],
            None => devices_of(tree, mount),
        };
        let disks: BTreeSet<&str> = devices.iter().flat_map(|name| self.disks_below(name)).collect();
        disks.into_iter().map(str::to_owned).collect()
    }

    /// Depth first, a device behind all above it; `seen` keeps a cycle of a damaged tree from being followed.
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

    fn link(&mut self, neighbours: Vec<Neighbours>) {
        for Neighbours { below, above } in neighbours {
            if !self.blocks.contains_key(&below) || !self.blocks.contains_key(&above) {
                continue;
            }
            if let Some(block) = self.blocks.get_mut(&below) {
                block.above.insert(above.clone());
            }
            if let Some(block) = self.blocks.get_mut(&above) {
                block.below.insert(below);
            }
        }
    }

    fn mount(&mut self, tree: &dyn Tree) {
        let mounts =
            tree.read("/proc/self/mountinfo").map(|bytes| mountinfo::parse(&bytes)).unwrap_or_default();
        let numbers: HashMap<DeviceNumber, String> =
            self.blocks.values().map(|block| (block.number, block.name.clone())).collect();
        for mount in mounts {
            let names = match numbers.get(&mount.device) {
                Some(name) => vec![name.clone()],
                None => devices_of(tree, &mount),
            };
            for name in names {
                if let Some(block) = self.blocks.get_mut(&name) {
                    block.mounts.push((mount.point.clone(), mount.kind.clone()));
                }
            }
        }
    }

    fn swap(&mut self, tree: &dyn Tree) {
        let swaps = tree.text("/proc/swaps").unwrap_or_default();
        for path in swaps.lines().skip(1).filter_map(|line| line.split_ascii_whitespace().next()) {
            let name = kernel_name(tree, &mountinfo::unescape(path.as_bytes()));
            if let Some(block) = self.blocks.get_mut(&name) {
                block.swap = true;
            }
        }
    }
}

/// The mount that `path`, which is without links, is on.
pub(super) fn mount_of<'a>(mounts: &'a [Mount], path: &str) -> Option<&'a Mount> {
    let above = |point: &str| {
        point == "/" || path == point || path.strip_prefix(point).is_some_and(|rest| rest.starts_with('/'))
    };
    // Of mounts at one point the last one covers the others.
    mounts.iter().filter(|mount| above(&mount.point)).max_by_key(|mount| mount.point.len())
}

/// The devices of a file system that has a number of its own: btrfs, on one device or several.
fn devices_of(tree: &dyn Tree, mount: &Mount) -> Vec<String> {
    if mount.kind != "btrfs" {
        return Vec::new();
    }
    let source = kernel_name(tree, &mount.source);
    for uuid in tree.list("/sys/fs/btrfs").unwrap_or_default() {
        let devices = tree.list(&format!("/sys/fs/btrfs/{uuid}/devices")).unwrap_or_default();
        if devices.contains(&source) {
            return devices;
        }
    }
    vec![source]
}

/// The kernel's name of a node: `/dev/mapper/x` is a link to `/dev/dm-0` where udev made it.
fn kernel_name(tree: &dyn Tree, path: &str) -> String {
    let canonical = tree.canonical(path).unwrap_or_else(|_| path.to_owned());
    canonical.strip_prefix("/dev/").unwrap_or(&canonical).replace('/', "!")
}

/// Two devices of which one stands directly on the other.
struct Neighbours {
    below: String,
    above: String,
}

/// A block device, and what it says of its neighbours.
fn block(tree: &dyn Tree, name: &str) -> Option<(Block, Vec<Neighbours>)> {
    let sysfs = tree.canonical(&format!("/sys/class/block/{name}")).ok()?;
    let attribute = |file: &str| tree.text(&format!("{sysfs}/{file}")).ok();
    let number = attribute("dev")?.parse().ok()?;
    let entries = tree.list(&sysfs).unwrap_or_default();
    let has = |entry: &str| entries.iter().any(|name| name == entry);
    let block = Block {
        kind: kind(name, &has),
        name: name.to_owned(),
        number,
        sectors: attribute("size").and_then(|text| text.parse().ok()),
        hidden: has("hidden") && attribute("hidden").as_deref() == Some("1"),
        below: BTreeSet::new(),
        above: BTreeSet::new(),
        mounts: Vec::new(),
        swap: false,
        sysfs,
    };
    let list = |entry: &str| {
        let names = has(entry).then(|| tree.list(&format!("{}/{entry}", block.sysfs)).ok());
        names.flatten().unwrap_or_default().into_iter()
    };
    let own = || block.name.clone();
    // `slaves` of those above and `holders` of those below say the same; a recording may have one of them only.
    let mut beside: Vec<Neighbours> =
        list("holders").map(|above| Neighbours { below: own(), above }).collect();
    if block.kind == BlockKind::Partition {
        let parent = block.sysfs.rsplit('/').nth(1).unwrap_or_default().to_owned();
        beside.push(Neighbours { below: parent, above: own() });
    } else {
        beside.extend(list("slaves").map(|below| Neighbours { below, above: own() }));
    }
    Some((block, beside))
}

fn kind(name: &str, has: &dyn Fn(&str) -> bool) -> BlockKind {
    if has("partition") {
        return BlockKind::Partition;
    }
    match name.trim_end_matches(|c: char| c.is_ascii_digit()) {
        _ if has("dm") => BlockKind::DeviceMapper,
        _ if has("md") => BlockKind::Md,
        "bcache" => BlockKind::Bcache,
        "loop" => BlockKind::Loop,
        "zram" | "ram" | "nullb" => BlockKind::Memory,
        "nbd" | "rbd" | "drbd" | "ublkb" => BlockKind::Remote,
        "sr" | "fd" => BlockKind::Removable,
        _ => BlockKind::Disk,
    }
}
