//! /proc/filesystems: which file system types need a block device. proc_filesystems(5).

use std::collections::BTreeSet;

/// File system types, with whether each needs a block device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileSystemTypes {
    nodev: BTreeSet<String>,
    block: BTreeSet<String>,
}

/// Location of the data of a file system type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// On a block device.
    Block,
    /// Elsewhere: in memory, on a server, in another file system.
    NoDevice,
    /// Unknown, because the kernel does not list the type (an unloaded module, a type with a subtype).
    Unlisted,
}

impl FileSystemTypes {
    /// Parses the file. A line is `nodev<TAB>tmpfs` or `<TAB>ext4`.
    pub fn parse(text: &str) -> Self {
        let mut types = Self::default();
        for line in text.lines() {
            match line.split_once('\t') {
                Some(("nodev", name)) => types.nodev.insert(name.trim().to_owned()),
                Some((_, name)) => types.block.insert(name.trim().to_owned()),
                None => false,
            };
        }
        types
    }

    /// Returns the location of the data of file systems of the type `name`.
    pub fn backing(&self, name: &str) -> Backing {
        if self.block.contains(name) {
            Backing::Block
        } else if self.nodev.contains(name) {
            Backing::NoDevice
        } else {
            Backing::Unlisted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_told_apart() {
        let types = FileSystemTypes::parse("nodev\tsysfs\nnodev\ttmpfs\n\text4\n\tbtrfs\njunk\n\n");
        assert_eq!(types.backing("ext4"), Backing::Block);
        assert_eq!(types.backing("tmpfs"), Backing::NoDevice);
        assert_eq!(types.backing("zfs"), Backing::Unlisted);
        assert_eq!(types.backing("junk"), Backing::Unlisted);
    }
}
