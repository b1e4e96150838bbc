//! What the blocks of a drive are for: which file owns them, or which part of the file system they are.

use std::path::PathBuf;

/// Which bytes of a drive belong to what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roles {
    /// By first byte: the byte after the last one, the file beneath the mount, and the role.
    ranges: std::collections::BTreeMap<u64, (u64, Option<PathBuf>, &'static str)>,
}

impl Roles {
    /// What the byte at `offset` of the drive is for: the file that owns it, beneath the mount, and what it is (`data`, `directory`,
    /// `journal`, `inode table`, `superblock`...). None where it is not known.
    pub fn role(&self, offset: u64) -> (Option<&std::path::Path>, Option<&'static str>) {
        let range = self.ranges.range(..=offset).next_back().map(|(_, range)| range);
        range
            .filter(|(end, ..)| offset < *end)
            .map_or((None, None), |(_, file, role)| (file.as_deref(), Some(role)))
    }
}
