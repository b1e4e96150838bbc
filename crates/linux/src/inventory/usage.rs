//! Uses of a device or file: of the device itself, of devices stacked on it, and of everything else that is
//! the same storage.
//!
//! A use counts if its [`Storage`] overlaps that of the queried device: a mounted loop device over the same
//! file, a disk that is mounted below a partition, swap space in the file behind a loop device. A device
//! below the queried one does not count as a use of it, but a mount of that lower device does.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use super::block::{Backing, Block, BlockKind, FileId};
use super::lock::Lock;
use super::{Inventory, Storage};

/// A use of a device or file, or of a device stacked on it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// A mounted file system.
    Mounted {
        /// Mounted device: the queried one, a partition of it, its disk, or a device above.
        device: String,
        /// Mount point; empty if the mount table does not give it.
        point: String,
        /// Type of the file system.
        kind: String,
    },
    /// Active swap space.
    Swap {
        /// The device or file.
        device: String,
    },
    /// The device is part of another one: device mapper, md, bcache.
    Held {
        /// Lower device.
        device: String,
        /// Upper device, with its own name if it has one.
        by: String,
    },
    /// A loop device is bound to the device or file.
    Loop {
        /// The device or file behind the loop device.
        device: String,
        /// The loop device.
        by: String,
    },
    /// A program has locked the file below, or the queried part of it, as a simulated drive or a cache does.
    Locked {
        /// The file.
        file: String,
        /// Process number, if the kernel reports it.
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

/// Query for the uses of a device or file.
struct UsageQuery<'a> {
    storage: Storage,
    /// Name of the device; `None` for a file.
    name: Option<&'a str>,
    /// True for a file.
    is_file: bool,
}

impl Inventory {
    /// Returns all uses of the block device called `name` that a write to it would damage.
    pub fn uses(&self, name: &str) -> Vec<Use> {
        self.uses_of(&UsageQuery { storage: self.storage(name), name: Some(name), is_file: false })
    }

    /// Returns all uses of a byte range of the block device called `name`. Uses of other ranges do not count.
    pub fn uses_of_part(&self, name: &str, bytes: Range<u64>) -> Vec<Use> {
        self.uses_of(&UsageQuery { storage: self.storage_of_part(name, bytes), name: None, is_file: false })
    }

    /// Returns all uses of `bytes` of a regular file with these identities, except locks on it. `path` is the
    /// path by which the kernel may know it.
    ///
    /// Limitation: paths of swap files are resolved in the file system of the running machine.
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
        // A lower device that is held only as part of the queried one is not another use.
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

    /// Returns the names of all devices stacked on the queried one, which is itself included only in a cycle.
    fn names_above<'a>(&'a self, asked: &UsageQuery<'_>) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        let mut pending: Vec<&Block> = asked.name.and_then(|name| self.get(name)).into_iter().collect();
        while let Some(block) = pending.pop() {
            let above = block.above.iter().filter_map(|above| self.get(above));
            pending.extend(above.filter(|above| found.insert(above.name.as_str())));
        }
        found
    }

    /// Returns the use by a lock on a file below the queried device. Ignored for a queried file, where the
    /// lock may be the caller's own.
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
    /// Returns the display name of a backing file or device.
    fn called(&self, backing: &Backing) -> String {
        if self.is_file { "the file".to_owned() } else { backing.path.clone() }
    }
}

/// Returns the use of `device` by the device `above` it.
fn use_by(device: String, above: &Block) -> Use {
    match above {
        Block { kind: BlockKind::Loop, backing: Some(_), name, .. } => Use::Loop { device, by: name.clone() },
        Block { name, mapped_name: Some(own), .. } => Use::Held { device, by: format!("{name} ({own})") },
        Block { name, .. } => Use::Held { device, by: name.clone() },
    }
}

/// Returns the mounts of this device itself, and its use as swap space.
fn uses_of_one(block: &Block) -> impl Iterator<Item = Use> {
    let device = || block.name.clone();
    let mounts = block.mounts.iter().map(move |(point, kind)| Use::Mounted {
        device: device(),
        point: point.clone(),
        kind: kind.clone(),
    });
    mounts.chain(block.swap.then(|| Use::Swap { device: device() }))
}

/// Removes duplicates. Of several mounts of one device, keeps the one with the shortest path.
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
