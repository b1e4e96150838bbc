//! Plain facts that were found at a target: the input of the rules.

use std::fmt;

use plumb_block::Bytes;
pub use plumb_linux::inventory::Use;

use crate::signature::{self, Signature};

/// Kind of object at a name, with its facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundObject {
    /// Nothing.
    Missing(Missing),
    /// A directory.
    Directory,
    /// A regular file.
    File(FileFacts),
    /// A block device.
    Block(BlockFacts),
    /// A character device, a socket, a pipe.
    Other(&'static str),
    /// A file of a file system in which the kernel shows itself, by the name of that: `sysfs`.
    Kernel(&'static str),
}

/// Reason that nothing is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// The directory is there, so a file can be made.
    CanBeMade,
    /// The directory is not there either.
    NoDirectory,
    /// A symbolic link that leads nowhere.
    DanglingLink,
    /// The name is in /dev, where a file would be in memory under the name of a device.
    InDev,
}

/// Facts about a regular file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFacts {
    /// How it can be named to be destroyed: its absolute path. Empty for a path that is not UTF-8.
    pub identities: Vec<String>,
    /// Length of the file.
    pub size: Bytes,
    /// Set where plumb made it, and what it holds is still plumb's.
    pub made_by_plumb: bool,
    /// Set where plumb made it, and somebody has written to it since, or that cannot be excluded.
    pub changed_since_made: bool,
    /// Contents that the file begins with.
    pub contents: Contents,
    /// Other uses of the file.
    pub uses: Vec<Use>,
    /// Description of what could not be looked at, so that other uses cannot be excluded.
    pub unseen: Option<String>,
}

/// Facts about a block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockFacts {
    /// The kernel's name: `sda1`.
    pub kernel_name: String,
    /// Capacity of the device.
    pub size: Bytes,
    /// How it can be named to be destroyed; the first is the one to show.
    pub identities: Vec<String>,
    /// True if the kernel takes no writes to it.
    pub read_only: bool,
    /// Contents of the device.
    pub contents: Contents,
    /// Uses of the device.
    pub uses: Vec<Use>,
    /// Description of what could not be looked at, so that other uses cannot be excluded.
    pub unseen: Option<String>,
}

impl BlockFacts {
    /// Returns the path of the device's node in /dev. The kernel writes a slash in a name as an exclamation
    /// mark.
    pub fn node(&self) -> String {
        format!("/dev/{}", self.kernel_name.replace('!', "/"))
    }
}

/// Contents of a file or a device, as its bytes tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contents {
    /// The places of all known signatures were read; these were found.
    Read(Vec<Signature>),
    /// The contents could not be read, for this reason.
    Unreadable(String),
    /// None was found, but blkid(8) knows what it is: the words that it gives.
    NamedByBlkid(String),
}

impl Contents {
    /// No signature.
    pub const BLANK: Self = Self::Read(Vec::new());

    /// Returns the name of the first thing that was found of which it is not known how long it is. A copy
    /// that was left of something that is gone takes no room.
    pub fn of_unknown_length(&self) -> Option<&'static str> {
        let Self::Read(found) = self else { return None };
        let mut names = found.iter().filter(|found| !found.is_copy).map(|found| found.name);
        names.find(|name| !signature::OF_KNOWN_LENGTH.contains(name))
    }

    /// Returns true if it begins as the log of a cache, and shows no sign of anything else.
    pub fn is_log(&self) -> bool {
        matches!(self, Self::Read(found) if matches!(found[..], [Signature { name: signature::CACHE_LOG, at: 0 | 4096, .. }]))
    }

    /// Returns true if the log of a cache is on it, beside whatever else.
    pub fn is_of_a_log(&self) -> bool {
        self.is_any_of(&[signature::CACHE_LOG])
    }

    /// Returns true if a write-back cache of plumb needs it: it may have the only copy of what was written.
    pub fn is_of_a_cache(&self) -> bool {
        self.is_any_of(&[signature::CACHE_LOG, signature::CACHE_BACKING])
    }

    /// Returns the places of the copies of superblocks that were left, in bytes; `None` if there is anything
    /// else.
    pub fn only_copies(&self) -> Option<Vec<u64>> {
        let Self::Read(found) = self else { return None };
        let is_left = !found.is_empty() && found.iter().all(|found| found.is_copy);
        is_left.then(|| found.iter().map(|found| found.at).collect())
    }

    fn is_any_of(&self, names: &[&str]) -> bool {
        matches!(self, Self::Read(found) if found.iter().any(|found| names.contains(&found.name)))
    }
}

/// `ext4`, `a GPT and xfs`.
impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(found) => {
                let mut names: Vec<_> = found.iter().map(ToString::to_string).collect();
                // Several parts may hold logs.
                names.dedup();
                f.write_str(&names.join(" and "))
            }
            Self::NamedByBlkid(words) => write!(f, "{words} (as blkid says)"),
            Self::Unreadable(why) => write!(f, "something that cannot be read ({why})"),
        }
    }
}
