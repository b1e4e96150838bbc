//! Uses of a device or a file: of the device itself, of what stands on it, and of everything else that is the
//! same storage.
//!
//! A use counts where its [`Storage`] overlaps that of the device asked about: a mounted loop device over the
//! same file, a disk that is mounted below a partition, swap space in the file behind a loop device. A device
//! beneath the one asked about is no use for holding it, but is one if it is mounted itself.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use super::block::{Backing, Block, BlockKind, FileId};
use super::lock::Lock;
use super::{Inventory, Storage};

/// One use of a device or file, or of what stands on it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// A mounted file system.
    Mounted {
        /// The device that is mounted: the one asked about, a partition of it, its disk, or something above.
        device: String,
        /// Where; empty if the mount table does not say.
        point: String,
        /// The type of the file system.
        kind: String,
    },
    /// Active swap space.
    Swap {
        /// The device or file.
        device: String,
    },
    /// Another device is made of it: device mapper, md, bcache.
    Held {
        /// The device that is held.
        device: String,
        /// Device that uses it, with its own name if it has one.
        by: String,
    },
    /// A loop device is set up over it.
    Loop {
        /// The device or file behind the loop device.
        device: String,
        /// The loop device.
        by: String,
    },
    /// A program has locked the file beneath it, or the part that is asked about, as a simulated drive and a
    /// cache do.
    Locked {
        /// The file.
        file: String,
        /// The number of the process, if the kernel says it.
        process: Option<String>,
    },
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mounted { device, point, kind } if point.is_empty() => {
                write!(f, "{device} is mounted ({kind})")
            }
            Self::Mounted { device, point, kind } => write!(f, "{device} is mounted at {point} ({kind})"),
            Self::Swap { device } => write!(f, "{device} is active swap space"),
            Self::Held { device, by } => write!(f, "{device} is part of {by}"),
            Self::Loop { device, by } => write!(f, "{device} is behind {by}"),
            Self::Locked { file, process: Some(process) } => {
                write!(f, "{file} is locked by process {process}")
            }
            Self::Locked { file, process: None } => write!(f, "{file} is locked by a program"),
        }
    }
}

/// Device or file whose uses are requested.
struct UsageQuery<'a> {
    storage: Storage,
    /// The name of the device; `None` for a file.
    name: Option<&'a str>,
    /// True for a file.
    is_file: bool,
}

impl Inventory {
    /// Returns all uses of the block device called `name` that would lose by its being written.
    pub fn uses(&self, name: &str) -> Vec<Use> {
        self.uses_of(&UsageQuery { storage: self.storage(name), name: Some(name), is_file: false })
    }

    /// Returns all uses of these bytes of the block device called `name`: what stands on other bytes of it is
    /// none.
    pub fn uses_of_part(&self, name: &str, bytes: Range<u64>) -> Vec<Use> {
        self.uses_of(&UsageQuery { storage: self.storage_of_part(name, bytes), name: None, is_file: false })
    }

    /// Returns all uses of `bytes` of a regular file with these identities, but for locks on it. `path` is
    /// what the kernel may know it by.
    ///
    /// The names of swap files are looked up in the file system of the running machine.
    pub fn uses_of_file(&self, identities: &[FileId], path: &str, bytes: Range<u64>) -> Vec<Use> {
        let storage = Storage::from_file(identities, Some(path), bytes);
        self.uses_of(&UsageQuery { storage, name: None, is_file: true })
    }

    fn uses_of(&self, asked: &UsageQuery<'_>) -> Vec<Use> {
        let is_touched = |storage: Storage| asked.storage.overlaps(&storage);
        let above = self.names_above(asked);
        let touched: BTreeSet<&str> = self
            .blocks()
            .filter(|block| above.contains(block.name.as_str()) || is_touched(self.storage(&block.name)))
            .map(|block| block.name.as_str())
            .collect();
        // A device beneath is made of others for the sake of the one asked about: that is no other use.
        let carries = |block: &Block| asked.name == Some(&block.name) || asked.storage.includes(block.number);
        let mut uses = Vec::new();
        for block in touched.iter().filter_map(|name| self.get(name)) {
            uses.extend(uses_of_one(block));
            let vanished = block.above.iter().filter(|above| self.get(above).is_none());
            uses.extend(vanished.map(|by| Use::Held { device: block.name.clone(), by: by.clone() }));
            if block.partition.is_none() && (!carries(block) || above.contains(block.name.as_str())) {
                let below = block.below.iter().filter(|below| touched.contains(below.as_str()));
                uses.extend(below.map(|below| use_by(below.clone(), block)));
                let file = block.backing.as_ref().filter(|backing| backing.number.is_none());
                uses.extend(file.map(|backing| use_by(asked.called(backing), block)));
            }
        }
        let swaps = self.swaps.iter().filter(|swap| swap.number.is_none());
        let swaps = swaps.filter(|swap| is_touched(self.storage_of_backing(swap)));
        uses.extend(swaps.map(|swap| Use::Swap { device: asked.called(swap) }));
        uses.extend(self.locks.iter().filter_map(|lock| self.locked(asked, lock)));
        each_once(uses)
    }

    /// Returns the names of all devices that stand on the one asked about, which is among them only in a
    /// cycle.
    fn names_above<'a>(&'a self, asked: &UsageQuery<'_>) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        let mut pending: Vec<&Block> = asked.name.and_then(|name| self.get(name)).into_iter().collect();
        while let Some(block) = pending.pop() {
            let above = block.above.iter().filter_map(|above| self.get(above));
            pending.extend(above.filter(|above| found.insert(above.name.as_str())));
        }
        found
    }

    /// Returns the lock on a file beneath the device asked about. Of a file that is asked about itself, the
    /// lock may be the own one.
    fn locked(&self, asked: &UsageQuery<'_>, lock: &Lock) -> Option<Use> {
        let locked = Storage::from_file(&[lock.file], None, lock.bytes.clone());
        if asked.is_file || !asked.storage.overlaps(&locked) {
            return None;
        }
        let mut backings = self.blocks().filter_map(|block| block.backing.as_ref());
        let backing = backings.find(|backing| backing.identities().contains(&lock.file));
        let file = backing.map_or_else(|| "a file beneath it".to_owned(), |backing| backing.path.clone());
        Some(Use::Locked { file, process: lock.process.clone() })
    }
}

impl UsageQuery<'_> {
    /// Returns the name for the file behind something.
    fn called(&self, backing: &Backing) -> String {
        if self.is_file { "the file".to_owned() } else { backing.path.clone() }
    }
}

/// Returns the use that the device or file called `device` has by the device `above` on it.
fn use_by(device: String, above: &Block) -> Use {
    match above {
        Block { kind: BlockKind::Loop, backing: Some(_), name, .. } => Use::Loop { device, by: name.clone() },
        Block { name, mapped_name: Some(own), .. } => Use::Held { device, by: format!("{name} ({own})") },
        Block { name, .. } => Use::Held { device, by: name.clone() },
    }
}

/// Returns the mounts of this very device, and its use as swap space.
fn uses_of_one(block: &Block) -> impl Iterator<Item = Use> {
    let device = || block.name.clone();
    let mounts = block.mounts.iter().map(move |(point, kind)| Use::Mounted {
        device: device(),
        point: point.clone(),
        kind: kind.clone(),
    });
    mounts.chain(block.swap.then(|| Use::Swap { device: device() }))
}

/// Returns each use once; of the mounts of one device that with the shortest path, for a file system may be
/// mounted often.
fn each_once(mut uses: Vec<Use>) -> Vec<Use> {
    uses.sort_by_key(|one| match one {
        Use::Mounted { device, point, .. } => (0, device.clone(), point.is_empty(), point.len()),
        Use::Swap { device } => (1, device.clone(), false, 0),
        Use::Held { device, by } => (2, format!("{device} {by}"), false, 0),
        Use::Loop { device, by } => (3, format!("{device} {by}"), false, 0),
        Use::Locked { file, process } => (4, format!("{file} {process:?}"), false, 0),
    });
    uses.dedup_by(|one, kept| match (&*one, &*kept) {
        (Use::Mounted { device, .. }, Use::Mounted { device: kept, .. }) => device == kept,
        (one, kept) => one == kept,
    });
    uses
}
