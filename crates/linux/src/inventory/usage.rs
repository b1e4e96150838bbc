//! Who uses a device or a file: the device itself, its partitions, its disk, and everything that stands on them.

use std::collections::BTreeSet;
use std::fmt;
use std::os::unix::fs::MetadataExt as _;

use super::Inventory;
use super::block::{Backing, Block, BlockKind, FileId};

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
        /// By which device, with its own name if it has one.
        by: String,
    },
    /// A loop device is set up over it.
    Loop {
        /// The device or file behind the loop device.
        device: String,
        /// The loop device.
        by: String,
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
        }
    }
}

impl Inventory {
    /// All uses of the block device called `name` that would lose by its being written.
    pub fn uses(&self, name: &str) -> Vec<Use> {
        let mut uses = Vec::new();
        let mut seen = BTreeSet::new();
        self.uses_above(name, &mut seen, &mut uses);
        // A disk that is used as a whole is used in each of its parts; its other partitions do not matter.
        let disk = self.get(name).and_then(|block| block.partition.as_ref());
        if let Some(disk) = disk.and_then(|partition| self.get(&partition.disk)) {
            uses.extend(uses_of_one(disk));
            for above in &disk.above {
                if let Some(used) = self.use_by(disk, above) {
                    uses.push(used);
                    self.uses_above(above, &mut seen, &mut uses);
                }
            }
        }
        each_once(uses)
    }

    /// All uses of a regular file. `path` is what the kernel may know it by.
    ///
    /// The names of swap files are looked up in the file system of the running machine.
    pub fn uses_of_file(&self, file: FileId, path: &str) -> Vec<Use> {
        let is_it = |backing: &Backing| match backing.number {
            Some(_) => false,
            None => {
                backing.file.or_else(|| file_at(&backing.path)).map_or(backing.path == path, |id| id == file)
            }
        };
        let mut uses = Vec::new();
        if self.swaps.iter().any(is_it) {
            uses.push(Use::Swap { device: "the file".to_owned() });
        }
        let mut seen = BTreeSet::new();
        for above in self.blocks().filter(|block| block.backing.as_ref().is_some_and(is_it)) {
            uses.push(Use::Loop { device: "the file".to_owned(), by: above.name.clone() });
            self.uses_above(&above.name, &mut seen, &mut uses);
        }
        each_once(uses)
    }

    /// The uses of this device, of its partitions, and of all that is made of them.
    fn uses_above<'a>(&'a self, name: &str, seen: &mut BTreeSet<&'a str>, uses: &mut Vec<Use>) {
        let mut pending: Vec<&str> = vec![name];
        while let Some(block) = pending.pop().and_then(|name| self.get(name)) {
            if !seen.insert(&block.name) {
                continue;
            }
            uses.extend(uses_of_one(block));
            uses.extend(block.above.iter().filter_map(|above| self.use_by(block, above)));
            pending.extend(block.above.iter().map(String::as_str).filter(|above| self.get(above).is_some()));
        }
    }

    /// The use that `block` has by the device `above` on it. A partition alone is none.
    fn use_by(&self, block: &Block, above: &str) -> Option<Use> {
        let device = block.name.clone();
        match self.get(above) {
            Some(above) if above.partition.is_some() => None,
            Some(above) if above.kind == BlockKind::Loop && above.backing.is_some() => {
                Some(Use::Loop { device, by: above.name.clone() })
            }
            Some(Block { name, mapped_name: Some(own), .. }) => {
                Some(Use::Held { device, by: format!("{name} ({own})") })
            }
            _ => Some(Use::Held { device, by: above.to_owned() }),
        }
    }
}

/// Whether this very device is mounted or swapped to.
fn uses_of_one(block: &Block) -> impl Iterator<Item = Use> {
    let device = || block.name.clone();
    let mounts = block.mounts.iter().map(move |(point, kind)| Use::Mounted {
        device: device(),
        point: point.clone(),
        kind: kind.clone(),
    });
    mounts.chain(block.swap.then(|| Use::Swap { device: device() }))
}

fn file_at(path: &str) -> Option<FileId> {
    let file = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    Some(FileId { device: file.dev(), inode: file.ino() })
}

/// Each use once; of the mounts of one device that with the shortest path, for a file system may be mounted often.
fn each_once(mut uses: Vec<Use>) -> Vec<Use> {
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
