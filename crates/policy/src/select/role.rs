//! Use of a disk, derived from its holders.

use std::fmt;

use crate::view::{DeviceView, Holder};

/// A use of a disk, which can have several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Holds at most partitions.
    Unused,
    /// Holds a file system, a member of an array, or a volume group.
    Data,
    /// Holds swap space.
    Swap,
    /// Holds the boot loader or the kernel.
    Boot,
    /// Holds the root file system.
    Root,
}

impl Role {
    /// Words of all roles.
    pub const WORDS: [&str; 5] = ["unused", "data", "swap", "boot", "root"];

    /// Returns the word for the role in expressions.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unused => Self::WORDS[0],
            Self::Data => Self::WORDS[1],
            Self::Swap => Self::WORDS[2],
            Self::Boot => Self::WORDS[3],
            Self::Root => Self::WORDS[4],
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Returns the uses of a disk, the least critical first; never empty.
pub fn roles(view: &DeviceView) -> Vec<Role> {
    roles_of(&view.holders)
}

/// Returns the uses of a disk from its holders, the least critical first; never empty.
pub fn roles_of(holders: &[Holder]) -> Vec<Role> {
    let mut roles = Vec::new();
    for holder in holders {
        let role = match (holder.name.as_str(), holder.kind.as_str()) {
            ("/", _) => Role::Root,
            ("/boot" | "/boot/efi" | "/boot/firmware" | "/efi", _) => Role::Boot,
            (_, "swap") => Role::Swap,
            (_, "partition") => continue,
            _ => Role::Data,
        };
        if !roles.contains(&role) {
            roles.push(role);
        }
    }
    if roles.is_empty() {
        roles.push(Role::Unused);
    }
    roles.sort_unstable();
    roles
}
