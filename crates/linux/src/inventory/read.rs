//! Reading the inventory from /sys/class/block, /proc/self/mountinfo, /proc/swaps, /sys/fs/btrfs and the loop
//! devices.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Inventory;
use super::block::{Backing, Block, BlockKind, FileId, Partition, Segment};
use super::lock::Lock;
use crate::probe::wire::{dm, loop_status};
use crate::probe::{Probe, ProbedDevice, Request};
use crate::tree::mountinfo::{self, Mount};
use crate::tree::{Absence, Answer, DeviceNumber, Tree};

const BLOCKS: &str = "/sys/class/block";
const MOUNTS: &str = "/proc/self/mountinfo";
const SWAPS: &str = "/proc/swaps";
const BTRFS: &str = "/sys/fs/btrfs";
const LOCKS: &str = "/proc/locks";

/// Device-mapper targets that map their sectors contiguously and in order to a device below. In their
/// parameters the first sector there follows the device.
const IN_ONE_PIECE: [&str; 5] = ["linear", "crypt", "delay", "flakey", "dust"];

/// Error that leaves the uses of this machine's devices unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InventoryError {
    /// A source exists and cannot be read.
    #[error("{path} ({absence})")]
    Unreadable {
        /// File or directory.
        path: String,
        /// Reason why it cannot be read.
        absence: Absence,
    },
    /// The mount table is empty, although it always contains the root file system.
    #[error("/proc/self/mountinfo (empty)")]
    NoMounts,
    /// A line of the mount table is truncated or malformed.
    #[error("/proc/self/mountinfo (line {line} is not understood)")]
    Mount {
        /// Number of the line, from 1.
        line: usize,
    },
}

impl Inventory {
    /// Reads the machine through `tree` and `probe`.
    ///
    /// # Errors
    /// [`InventoryError`] if a use may have been missed.
    pub fn read(tree: &dyn Tree, probe: &dyn Probe) -> Result<Self, InventoryError> {
        let reading = Reading { tree, probe };
        let mounts = reading.mounts()?;
        let swaps = reading.swaps()?;
        let blocks = reading.blocks()?;
        let mut inventory = Self { blocks, mounts, swaps, locks: reading.locks()? };
        inventory.link();
        reading.mark_mounted(&mut inventory)?;
        reading.mark_swapped(&mut inventory);
        Ok(inventory)
    }

    /// Completes every relation in both directions. `slaves` of the device above and `holders` of the one
    /// below are equivalent; a recording may have only one of them.
    fn link(&mut self) {
        let mut relations: Vec<(String, String)> = Vec::new();
        let numbers = self.numbers();
        for block in self.blocks.values() {
            relations.extend(block.below.iter().map(|below| (below.clone(), block.name.clone())));
            relations.extend(block.above.iter().map(|above| (block.name.clone(), above.clone())));
            let backing = block.backing.as_ref().and_then(|backing| numbers.get(&backing.number?));
            relations.extend(backing.map(|below| (below.clone(), block.name.clone())));
        }
        for (below, above) in relations {
            if let Some(block) = self.blocks.get_mut(&below) {
                block.above.insert(above.clone());
            }
            if let Some(block) = self.blocks.get_mut(&above) {
                block.below.insert(below);
            }
        }
    }

    fn numbers(&self) -> HashMap<DeviceNumber, String> {
        self.blocks.values().map(|block| (block.number, block.name.clone())).collect()
    }

    fn mark_mount(&mut self, name: &str, point: &str, kind: &str) {
        if let Some(block) = self.blocks.get_mut(name) {
            block.mounts.push((point.to_owned(), kind.to_owned()));
        }
    }
}

struct Reading<'a> {
    tree: &'a dyn Tree,
    probe: &'a dyn Probe,
}

impl Reading<'_> {
    fn mounts(&self) -> Result<Vec<Mount>, InventoryError> {
        let table = self.tree.read(MOUNTS).map_err(|absence| unreadable(MOUNTS, absence))?;
        let lines = table.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty());
        let parse =
            |(index, line)| mountinfo::parse_line(line).ok_or(InventoryError::Mount { line: index + 1 });
        let mounts: Vec<Mount> = lines.map(parse).collect::<Result<_, _>>()?;
        if mounts.is_empty() { Err(InventoryError::NoMounts) } else { Ok(mounts) }
    }

    fn swaps(&self) -> Result<Vec<Backing>, InventoryError> {
        let table = if_there(SWAPS, self.tree.read(SWAPS))?.unwrap_or_default();
        let lines = table.split(|byte| *byte == b'\n').skip(1);
        let paths = lines.filter_map(|line| line.split(u8::is_ascii_whitespace).next());
        let paths = paths.filter(|path| !path.is_empty());
        Ok(paths.map(|path| self.backing(mountinfo::unescape(path))).collect())
    }

    fn blocks(&self) -> Result<BTreeMap<String, Block>, InventoryError> {
        let names = match self.tree.list(BLOCKS) {
            // In a kernel without block devices (a sandbox), /sys has no directory for them.
            Err(Absence::NotThere) if self.tree.list("/sys").is_ok_and(|names| !names.is_empty()) => {
                Vec::new()
            }
            answer => answer.map_err(|absence| unreadable(BLOCKS, absence))?,
        };
        let mut blocks = BTreeMap::new();
        for name in names {
            blocks.extend(self.block(&name)?.map(|block| (name, block)));
        }
        Ok(blocks)
    }

    /// Returns a block device with the neighbours listed in its own directory; `None` if it has vanished.
    fn block(&self, name: &str) -> Result<Option<Block>, InventoryError> {
        let link = format!("{BLOCKS}/{name}");
        let Some(sysfs) = if_there(&link, self.tree.canonical(&link))? else { return Ok(None) };
        let number = self.text(&sysfs, "dev")?.and_then(|text| text.parse().ok());
        let (Some(number), Some(entries)) = (number, if_there(&sysfs, self.tree.list(&sysfs))?) else {
            return Ok(None);
        };
        let has = |entry: &str| entries.iter().any(|name| name == entry);
        let text = |entry: &str| if has(entry) { self.text(&sysfs, entry) } else { Ok(None) };
        let start = text("start")?.and_then(|text| text.parse().ok());
        let partition = text("partition")?.map(|number| {
            let disk = sysfs.rsplit('/').nth(1).unwrap_or_default().to_owned();
            Partition { disk, number, start }
        });
        let mut below = match &partition {
            Some(partition) => BTreeSet::from([partition.disk.clone()]),
            None if has("slaves") => self.names(&sysfs, "slaves")?,
            None => BTreeSet::new(),
        };
        below.remove(name);
        Ok(Some(Block {
            kind: kind(name, partition.is_some(), &has),
            name: name.to_owned(),
            number,
            sectors: text("size")?.and_then(|text| text.parse().ok()),
            hidden: text("hidden")?.as_deref() == Some("1"),
            mapped_name: if has("dm") { self.text(&sysfs, "dm/name")? } else { None },
            below,
            above: if has("holders") { self.names(&sysfs, "holders")? } else { BTreeSet::new() },
            mounts: Vec::new(),
            swap: false,
            backing: if has("loop") { self.loop_backing(name, number, &sysfs)? } else { None },
            segments: if has("dm") { self.segments(name, number) } else { Vec::new() },
            partition,
            sysfs,
        }))
    }

    /// Returns the text of an attribute; `None` if it is missing or empty.
    fn text(&self, sysfs: &str, file: &str) -> Result<Option<String>, InventoryError> {
        let path = format!("{sysfs}/{file}");
        Ok(if_there(&path, self.tree.text(&path))?.filter(|text| !text.is_empty()))
    }

    fn names(&self, sysfs: &str, directory: &str) -> Result<BTreeSet<String>, InventoryError> {
        let path = format!("{sysfs}/{directory}");
        Ok(if_there(&path, self.tree.list(&path))?.unwrap_or_default().into_iter().collect())
    }

    fn locks(&self) -> Result<Vec<Lock>, InventoryError> {
        let table = if_there(LOCKS, self.tree.text(LOCKS))?.unwrap_or_default();
        Ok(table.lines().filter_map(Lock::parse).filter(|lock| lock.is_exclusive).collect())
    }

    fn backing(&self, path: String) -> Backing {
        let number = self.tree.stat(&path).ok().and_then(|stat| stat.node);
        Backing { path, number, file: None, offset: 0 }
    }

    /// Returns the file or device behind a loop device. The ioctl identifies it even if its path now leads
    /// elsewhere (deleted, or of another mount namespace). Without permission for the ioctl, the path is used
    /// instead.
    fn loop_backing(
        &self,
        name: &str,
        number: DeviceNumber,
        sysfs: &str,
    ) -> Result<Option<Backing>, InventoryError> {
        let Some(path) = self.text(sysfs, "loop/backing_file")? else { return Ok(None) };
        let offset = self.text(sysfs, "loop/offset")?.and_then(|text| text.parse().ok()).unwrap_or(0);
        let reply = self.probe.ask(ProbedDevice { name, number }, Request::LoopStatus);
        let Some(status) = reply.ok().and_then(|reply| loop_status::parse(&reply)) else {
            return Ok(Some(Backing { offset, ..self.backing(path) }));
        };
        let device = status.device.to_stat();
        let file = status.node.is_none().then_some(FileId { device, inode: status.inode });
        // The path is not followed: a file system whose server is gone never answers.
        Ok(Some(Backing { path, number: status.node, file, offset: status.offset }))
    }

    /// Returns the locations of a device-mapper device on the devices below, as far as its table gives them.
    fn segments(&self, name: &str, number: DeviceNumber) -> Vec<Segment> {
        let Ok(table) = self.probe.ask(ProbedDevice { name, number }, Request::DmTable) else {
            return Vec::new();
        };
        let targets = dm::parse(&table);
        if !targets.iter().all(|target| IN_ONE_PIECE.contains(&target.kind.as_str())) {
            return Vec::new();
        }
        targets.iter().flat_map(segments_of).collect()
    }

    /// Assigns each mount to its devices: by the number of the superblock, else by the members of btrfs, else
    /// by the sources. A file system on several devices has its own number; bcachefs lists all of its devices
    /// as sources.
    fn mark_mounted(&self, inventory: &mut Inventory) -> Result<(), InventoryError> {
        let numbers = inventory.numbers();
        let btrfs = self.btrfs_members()?;
        let mut mounted = vec![false; btrfs.len()];
        for mount in inventory.mounts.clone() {
            let mut on: Vec<String> = numbers.get(&mount.device).cloned().into_iter().collect();
            if on.is_empty() && mount.device.is_anonymous() {
                let sources = mount.source.starts_with("/dev/").then(|| mount.source.split(':'));
                on.extend(sources.into_iter().flatten().filter_map(|source| self.kernel_name(source)));
                let members = btrfs.iter().position(|members| on.iter().any(|name| members.contains(name)));
                if let Some(index) = members.filter(|_| mount.kind == "btrfs") {
                    mounted[index] = true;
                    on = btrfs[index].clone();
                }
            }
            for name in on {
                inventory.mark_mount(&name, &mount.point, &mount.kind);
            }
        }
        // The kernel lists the members of a btrfs as long as it is mounted anywhere.
        for (members, _) in btrfs.iter().zip(mounted).filter(|(_, mounted)| !mounted) {
            for name in members {
                inventory.mark_mount(name, "", "btrfs");
            }
        }
        Ok(())
    }

    /// Returns the kernel names of the members of each mounted btrfs.
    fn btrfs_members(&self) -> Result<Vec<Vec<String>>, InventoryError> {
        let systems = if_there(BTRFS, self.tree.list(BTRFS))?.unwrap_or_default();
        let members = |system: String| {
            let path = format!("{BTRFS}/{system}/devices");
            if_there(&path, self.tree.list(&path)).transpose()
        };
        systems.into_iter().filter_map(members).collect()
    }

    fn mark_swapped(&self, inventory: &mut Inventory) {
        let numbers = inventory.numbers();
        for swap in &inventory.swaps {
            let name = match swap.number {
                Some(number) => numbers.get(&number).cloned(),
                None => self.kernel_name(&swap.path),
            };
            if let Some(block) = name.and_then(|name| inventory.blocks.get_mut(&name)) {
                block.swap = true;
            }
        }
    }

    /// Returns the kernel's name of a node: `/dev/mapper/x` is a link to `/dev/dm-0` if udev created it.
    fn kernel_name(&self, path: &str) -> Option<String> {
        let name = |path: &str| path.strip_prefix("/dev/").map(|name| name.replace('/', "!"));
        name(path).and_then(|plain| match self.tree.canonical(path) {
            Ok(canonical) => name(&canonical),
            Err(_) => Some(plain),
        })
    }
}

/// Returns each device in the parameters of `target`, with the sector that follows it.
fn segments_of(target: &dm::DmTarget) -> Vec<Segment> {
    let bytes = |sectors: u64| sectors.saturating_mul(512);
    let words: Vec<&str> = target.parameters.split_whitespace().collect();
    let pairs = words.windows(2).filter_map(|pair| {
        let (below, at) = (pair[0].parse().ok()?, bytes(pair[1].parse().ok()?));
        Some(Segment { from: bytes(target.start), length: bytes(target.length), below, at })
    });
    pairs.collect()
}

fn unreadable(path: &str, absence: Absence) -> InventoryError {
    InventoryError::Unreadable { path: path.to_owned(), absence }
}

/// Returns the answer for `path`; `None` if it does not exist.
fn if_there<T>(path: &str, answer: Answer<T>) -> Result<Option<T>, InventoryError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        // Only a recording answers "not recorded", for files that its survey did not read.
        Err(Absence::NotThere | Absence::NotRecorded) => Ok(None),
        Err(absence) => Err(unreadable(path, absence)),
    }
}

fn kind(name: &str, is_partition: bool, has: &dyn Fn(&str) -> bool) -> BlockKind {
    match name.trim_end_matches(|c: char| c.is_ascii_digit()) {
        _ if is_partition => BlockKind::Partition,
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
