//! The block devices of the machine and what stands on what: from /sys/class/block, the mount table and /proc/swaps.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use plumb_linux::tree::mountinfo::{self, Mount};
use plumb_linux::tree::{DeviceNumber, Tree};

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
        for name in tree.list("/sys/class/block").unwrap_or_default() {
            if let Some(block) = block(tree, &name) {
                blocks.insert(name, block);
            }
        }
        let mut inventory = Self { blocks };
        inventory.link(tree);
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
    pub fn disks<'a>(&'a self, tree: &'a dyn Tree) -> impl Iterator<Item = &'a Block> {
        self.blocks.values().filter(|block| block.kind == BlockKind::Disk).filter(|block| {
            let read = |file: &str| tree.text(&format!("{}/{file}", block.sysfs)).unwrap_or_default();
            read("size") != "0" && read("hidden") != "1"
        })
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

    /// `slaves` of those above and `holders` of those below say the same; a recording may have one of them only.
    fn link(&mut self, tree: &dyn Tree) {
        let mut edges: Vec<(String, String)> = Vec::new();
        for block in self.blocks.values() {
            let list = |name: &str| tree.list(&format!("{}/{name}", block.sysfs)).unwrap_or_default();
            if block.kind == BlockKind::Partition {
                let parent = block.sysfs.rsplit('/').nth(1).unwrap_or_default();
                edges.push((parent.to_owned(), block.name.clone()));
            } else {
                edges.extend(list("slaves").into_iter().map(|below| (below, block.name.clone())));
            }
            edges.extend(list("holders").into_iter().map(|above| (block.name.clone(), above)));
        }
        for (below, above) in edges {
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

fn block(tree: &dyn Tree, name: &str) -> Option<Block> {
    let sysfs = tree.canonical(&format!("/sys/class/block/{name}")).ok()?;
    let number = tree.text(&format!("{sysfs}/dev")).ok()?.parse().ok()?;
    let entries = tree.list(&sysfs).unwrap_or_default();
    Some(Block {
        kind: kind(name, &entries),
        name: name.to_owned(),
        number,
        sysfs,
        below: BTreeSet::new(),
        above: BTreeSet::new(),
        mounts: Vec::new(),
        swap: false,
    })
}

fn kind(name: &str, entries: &[String]) -> BlockKind {
    let has = |entry: &str| entries.iter().any(|name| name == entry);
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
