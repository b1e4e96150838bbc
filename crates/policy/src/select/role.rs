//! Use of a disk, from what stands on it.

use std::fmt;

use crate::view::{DeviceView, Holder};

/// A use of a disk. One disk can have several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Nothing but partitions stands on it.
    Unused,
    /// Something stands on it: a file system, a member of an array, a volume group.
    Data,
    /// The machine swaps to it.
    Swap,
    /// The boot loader or the kernel is on it.
    Boot,
    /// The root file system is on it.
    Root,
}

impl Role {
    /// All of them by their words.
    pub const WORDS: [&str; 5] = ["unused", "data", "swap", "boot", "root"];

    /// Returns the word that an expression uses for the role.
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

/// Returns the uses of a disk from what stands on it, the least critical first; never empty.
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
