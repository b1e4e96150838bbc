//! Facts about a target, the input of the rules.

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
    /// A character device, socket or pipe.
    Other(&'static str),
    /// A file of a kernel file system, by the name of that, such as `sysfs`.
    Kernel(&'static str),
}

/// Reason why nothing exists at a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// The directory exists, so a file can be created.
    CanBeMade,
    /// The directory does not exist.
    NoDirectory,
    /// The name is a symbolic link to nothing.
    DanglingLink,
    /// The name is in /dev, where a file would occupy memory under the name of a device.
    InDev,
}

/// Facts about a regular file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFacts {
    /// Values of `--destroy` that name the file: its absolute path. Empty if the path is not UTF-8.
    pub identities: Vec<String>,
    /// Length of the file.
    pub size: Bytes,
    /// True if plumb created the file and its contents are still plumb's.
    pub made_by_plumb: bool,
    /// True if plumb created the file, and others may have written to it since.
    pub changed_since_made: bool,
    /// Signatures in the file.
    pub contents: Contents,
    /// Other uses of the file.
    pub uses: Vec<Use>,
    /// Reason why other uses cannot be excluded; `None` if all were examined.
    pub unseen: Option<String>,
}

/// Facts about a block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockFacts {
    /// Kernel name, such as `sda1`.
    pub kernel_name: String,
    /// Capacity of the device.
    pub size: Bytes,
    /// Values of `--destroy` that name the device; the first is the one for messages.
    pub identities: Vec<String>,
    /// True if the kernel refuses writes to the device.
    pub read_only: bool,
    /// Signatures on the device.
    pub contents: Contents,
    /// Uses of the device.
    pub uses: Vec<Use>,
    /// Reason why other uses cannot be excluded; `None` if all were examined.
    pub unseen: Option<String>,
}

impl BlockFacts {
    /// Returns the path of the device node in /dev. The kernel writes `/` in a name as `!`.
    pub fn node(&self) -> String {
        format!("/dev/{}", self.kernel_name.replace('!', "/"))
    }
}

/// Contents of a file or device, by their signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contents {
    /// All known signatures were searched; these were found.
    Read(Vec<Signature>),
    /// Reading failed, for this reason.
    Unreadable(String),
    /// No own signature, but a name given by blkid(8).
    NamedByBlkid(String),
}

impl Contents {
    /// No signature.
    pub const BLANK: Self = Self::Read(Vec::new());

    /// Returns the name of the first signature whose extent is unknown. Leftover copies of superblocks occupy
    /// no space and do not count.
    pub fn of_unknown_length(&self) -> Option<&'static str> {
        let Self::Read(found) = self else { return None };
        let mut names = found.iter().filter(|found| !found.is_copy).map(|found| found.name);
        names.find(|name| !signature::OF_KNOWN_LENGTH.contains(name))
    }

    /// Returns true if the contents begin with the log of a cache and bear no other signature.
    pub fn is_log(&self) -> bool {
        matches!(self, Self::Read(found) if matches!(found[..], [Signature { name: signature::CACHE_LOG, at: 0 | 4096, .. }]))
    }

    /// Returns true if the contents include the log of a cache.
    pub fn is_of_a_log(&self) -> bool {
        self.is_any_of(&[signature::CACHE_LOG])
    }

    /// Returns true if a write-back cache needs the contents: they may be the only copy of written data.
    pub fn is_of_a_cache(&self) -> bool {
        self.is_any_of(&[signature::CACHE_LOG, signature::CACHE_BACKING])
    }

    /// Returns the byte offsets of leftover copies of superblocks; `None` if there is any other signature.
    pub fn only_copies(&self) -> Option<Vec<u64>> {
        let Self::Read(found) = self else { return None };
        let is_left = !found.is_empty() && found.iter().all(|found| found.is_copy);
        is_left.then(|| found.iter().map(|found| found.at).collect())
    }

    fn is_any_of(&self, names: &[&str]) -> bool {
        matches!(self, Self::Read(found) if found.iter().any(|found| names.contains(&found.name)))
    }
}

/// Formats the names of the signatures: `ext4`, `a GPT and xfs`.
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
