//! Location of the bytes of a device or file: the ranges of the devices and files that hold them.
//!
//! Two devices are the same storage if their ranges overlap on any device or file below both. Two loop
//! devices over one file overlap in the file, a partition and its disk on the disk.
//!
//! ```text
//! loop1 (offset 1M) ──► loop0[1M..]  ──► file a.img[1M..]
//! loop2 (offset 8M) ──────────────────► file a.img[8M..]     meets loop1 and loop0 in the file
//! ```
//!
//! Some devices are known only to be somewhere on a device below: a thin volume in its pool, an array on its
//! members. Their range is the whole device below, marked as a *share* of it. Two shares of one device do not
//! overlap, because the driver separates them; a share overlaps every range that is not a share.

use std::ops::Range;
use std::path::Path;

use super::Inventory;
use super::block::FileId;
use super::block::{Backing, Block};
use super::overlay::{identities_at, identities_of_known};
use crate::tree::DeviceNumber;

/// Device or file that ranges refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Base {
    Device(DeviceNumber),
    File(FileId),
    /// A file known only by its path.
    Named(String),
}

/// A byte range of a base.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Extent {
    base: Base,
    /// First byte of the range.
    from: u64,
    to: u64,
    /// Devices along the path of which this range is a share.
    shares: Vec<DeviceNumber>,
}

impl Extent {
    fn meets(&self, other: &Self) -> bool {
        self.base == other.base
            && self.from < other.to
            && other.from < self.to
            && !self.shares.iter().any(|share| other.shares.contains(share))
    }
}

/// Everything that changes when a device or file is written: itself, and the ranges below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Storage {
    extents: Vec<Extent>,
}

impl Storage {
    /// Returns true if writing to one changes the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.extents.iter().any(|extent| other.extents.iter().any(|other| extent.meets(other)))
    }

    /// Returns true if the storage includes a part of the device.
    pub(super) fn includes(&self, device: DeviceNumber) -> bool {
        self.extents.iter().any(|extent| extent.base == Base::Device(device))
    }

    /// Returns the storage of a byte range of a regular file with these identities, which the kernel may also
    /// know by `path`.
    pub fn from_file(identities: &[FileId], path: Option<&str>, bytes: Range<u64>) -> Self {
        let named = path.map(|path| Base::Named(path.to_owned()));
        let Range { start: from, end: to } = bytes;
        let extent = |base| Extent { base, from, to, shares: Vec::new() };
        Self { extents: identities.iter().copied().map(Base::File).chain(named).map(extent).collect() }
    }
}

impl Backing {
    /// Returns the identities of the file; empty if it is unknown, or not on the running machine.
    pub(super) fn identities(&self) -> Vec<FileId> {
        let path = Path::new(&self.path);
        match self.file {
            Some(known) => identities_of_known(known, path),
            None if path.is_file() => identities_at(path),
            None => Vec::new(),
        }
    }
}

/// Bytes of a device during the descent.
#[derive(Clone)]
struct Part {
    from: u64,
    to: u64,
    shares: Vec<DeviceNumber>,
}

impl Part {
    /// Returns the same bytes, `by` bytes further along in the base.
    fn moved(&self, by: u64) -> Self {
        Self {
            from: self.from.saturating_add(by),
            to: self.to.saturating_add(by),
            shares: self.shares.clone(),
        }
    }

    /// Creates a share of `below`, at an unknown position.
    fn share_of(&self, below: &Block) -> Self {
        let mut shares = self.shares.clone();
        shares.push(below.number);
        Self { from: 0, to: below.length(), shares }
    }
}

impl Inventory {
    /// Returns the storage of the block device called `name`; empty if there is no such device.
    pub fn storage(&self, name: &str) -> Storage {
        self.storage_of_part(name, 0..u64::MAX)
    }

    /// Returns the storage of a byte range of the block device called `name`.
    pub fn storage_of_part(&self, name: &str, bytes: Range<u64>) -> Storage {
        let mut storage = Storage::default();
        if let Some(block) = self.get(name) {
            let part = Part { from: bytes.start, to: bytes.end.min(block.length()), shares: Vec::new() };
            self.descend(block, &part, &mut Vec::new(), &mut storage);
        }
        storage
    }

    /// Returns the devices behind loop devices that `name` is or is stacked on. Unlike other devices, a loop
    /// device does not claim the device behind it.
    pub fn behind_loop_devices(&self, name: &str) -> Vec<&Block> {
        let mut found: Vec<&Block> = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        let mut pending: Vec<&Block> = self.get(name).into_iter().collect();
        while let Some(block) = pending.pop() {
            if seen.contains(&block.name.as_str()) {
                continue;
            }
            seen.push(&block.name);
            let below = || block.below.iter().filter_map(|below| self.get(below));
            if block.backing.is_some() {
                found.extend(below());
            }
            pending.extend(below());
        }
        found
    }

    /// Returns the devices that change when `storage` is written and are not below it: those above, and those
    /// over the same file or device by another path.
    pub fn beside<'a>(&'a self, storage: &'a Storage) -> impl Iterator<Item = &'a Block> {
        let is_beneath = |block: &Block| storage.includes(block.number);
        self.blocks().filter(move |block| !is_beneath(block) && self.storage(&block.name).overlaps(storage))
    }

    /// Returns the storage of the whole backing file or device.
    pub(super) fn storage_of_backing(&self, backing: &Backing) -> Storage {
        let mut storage = Storage::default();
        let whole = Part { from: 0, to: u64::MAX, shares: Vec::new() };
        self.descend_to_backing(backing, &whole, &mut Vec::new(), &mut storage);
        storage
    }

    /// Adds `part` of `block` and everything below it. `way` lists the devices above, so that a cycle in a
    /// damaged tree ends.
    fn descend(&self, block: &Block, part: &Part, way: &mut Vec<DeviceNumber>, storage: &mut Storage) {
        if way.contains(&block.number) {
            return;
        }
        let Part { from, to, shares } = part.clone();
        storage.extents.push(Extent { base: Base::Device(block.number), from, to, shares });
        way.push(block.number);
        match (&block.partition, &block.backing) {
            (Some(partition), _) => {
                if let Some(disk) = self.get(&partition.disk) {
                    let start = partition.start.map(|sector| sector.saturating_mul(512));
                    let on_disk = start.map_or_else(|| part.share_of(disk), |start| part.moved(start));
                    self.descend(disk, &on_disk, way, storage);
                }
            }
            (None, Some(backing)) => self.descend_to_backing(backing, part, way, storage),
            (None, None) if block.segments.is_empty() => {
                for below in block.below.iter().filter_map(|below| self.get(below)) {
                    self.descend(below, &part.share_of(below), way, storage);
                }
            }
            (None, None) => self.descend_segments(block, part, way, storage),
        }
        way.pop();
    }

    fn descend_to_backing(
        &self,
        backing: &Backing,
        part: &Part,
        way: &mut Vec<DeviceNumber>,
        storage: &mut Storage,
    ) {
        let part = part.moved(backing.offset);
        if let Some(number) = backing.number {
            if let Some(below) = self.by_number(number) {
                self.descend(below, &part, way, storage);
            }
            return;
        }
        let identities = backing.identities();
        let name = identities.is_empty().then_some(backing.path.as_str());
        let mut on_file = Storage::from_file(&identities, name, part.from..part.to);
        on_file.extents.iter_mut().for_each(|extent| extent.shares.clone_from(&part.shares));
        storage.extents.append(&mut on_file.extents);
    }

    fn descend_segments(
        &self,
        block: &Block,
        part: &Part,
        way: &mut Vec<DeviceNumber>,
        storage: &mut Storage,
    ) {
        for segment in &block.segments {
            let from = part.from.max(segment.from);
            let to = part.to.min(segment.from.saturating_add(segment.length));
            let Some(below) = self.by_number(segment.below).filter(|_| from < to) else { continue };
            let at = |byte: u64| segment.at.saturating_add(byte - segment.from);
            let below_part = Part { from: at(from), to: at(to), shares: part.shares.clone() };
            self.descend(below, &below_part, way, storage);
        }
    }
}
