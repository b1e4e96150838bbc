//! The mount table as a survey needs it: by number and by path.

use std::collections::BTreeMap;

use plumb_linux::tree::mountinfo::{self, Mount};
use plumb_linux::tree::{DeviceNumber, Tree};

/// The source of the table.
pub(super) const MOUNTINFO: &str = "/proc/self/mountinfo";

/// All mounts that this process sees.
#[derive(Debug, Default)]
pub(super) struct Mounts {
    mounts: Vec<Mount>,
    by_id: BTreeMap<u64, usize>,
    by_point: BTreeMap<String, usize>,
}

impl Mounts {
    pub(super) fn read(tree: &dyn Tree) -> Self {
        tree.read(MOUNTINFO).map(|bytes| Self::of(mountinfo::parse(&bytes))).unwrap_or_default()
    }

    fn of(mounts: Vec<Mount>) -> Self {
        let by_id = mounts.iter().enumerate().map(|(index, mount)| (mount.id, index)).collect();
        // A later mount at the same point hides the earlier one.
        let by_point = mounts.iter().enumerate().map(|(index, mount)| (mount.point.clone(), index)).collect();
        Self { mounts, by_id, by_point }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Mount> {
        self.mounts.iter()
    }

    /// The mount that `path` (canonical) is on: by its number if the kernel gave one, else by the longest mount point
    /// above it.
    pub(super) fn of_path(&self, path: &str, id: Option<u64>) -> Option<&Mount> {
        let by_id = id.and_then(|id| self.by_id.get(&id));
        let index = by_id.or_else(|| {
            let mut at = path;
            loop {
                if let Some(index) = self.by_point.get(if at.is_empty() { "/" } else { at }) {
                    return Some(index);
                }
                at = &at[..at.rfind('/')?];
            }
        })?;
        self.mounts.get(*index)
    }

    /// A mount of the superblock with this device number.
    pub(super) fn of_device(&self, number: DeviceNumber) -> Option<&Mount> {
        self.mounts.iter().find(|mount| mount.device == number)
    }
}

/// Returns the name of the drive that `plumb drive serve --attach` keeps in this file system, which is
/// mounted at `NAME/mount`.
pub(super) fn attached_drive(mount: &Mount) -> Option<&str> {
    let directory = mount.point.strip_suffix("/mount").filter(|_| mount.kind == "fuse.plumb")?;
    directory.rsplit('/').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"27 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
        30 27 8:17 / /srv rw - xfs /dev/sdb1 rw\n\
        31 27 8:33 / /srv rw - xfs /dev/sdc1 rw\n\
        32 27 8:1 /data /bind rw - ext4 /dev/sda1 rw\n";

    #[test]
    fn a_path_finds_the_mount_it_is_on() {
        let mounts = Mounts::of(mountinfo::parse(TABLE));
        let id = |path: &str, id| mounts.of_path(path, id).map(|mount| mount.id);
        assert_eq!(id("/", None), Some(27));
        assert_eq!(id("/srvx/file", None), Some(27));
        assert_eq!(id("/srv/db/file", None), Some(31));
        assert_eq!(id("/srv", Some(30)), Some(30));
        assert_eq!(id("/bind/x", Some(999)), Some(32));
        assert_eq!(Mounts::default().of_path("/", None), None);
    }
}
