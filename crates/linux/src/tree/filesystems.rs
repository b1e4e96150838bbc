//! /proc/filesystems: which file-system types the kernel keeps on block devices. proc_filesystems(5).

use std::collections::BTreeSet;

/// The types that need no block device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileSystemTypes {
    nodev: BTreeSet<String>,
    block: BTreeSet<String>,
}

/// Where the data of a file-system type is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// File system on a block device.
    Block,
    /// Anywhere else: memory, a server, another file system.
    NoDevice,
    /// The kernel does not list the type (a module that has gone, a type with a subtype).
    Unlisted,
}

impl FileSystemTypes {
    /// Reads the file. A line is `nodev<TAB>tmpfs` or `<TAB>ext4`.
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

    /// Returns where file systems of the type `name` keep their data.
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
