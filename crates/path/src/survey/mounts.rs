//! Mount tables for a survey: that of this process by number and by path, those of other mount namespaces
//! only by number. A path of another mount namespace means nothing here: it may lead to another file, or
//! none.

use std::collections::{BTreeMap, BTreeSet};

use plumb_linux::tree::mountinfo::{self, Mount};
use plumb_linux::tree::process::numbers;
use plumb_linux::tree::{DeviceNumber, Tree};

use crate::model::SERVED_DRIVE;

/// File with the mount table of this process.
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
        tree.read(MOUNTINFO).map(|bytes| Self::new(mountinfo::parse(&bytes))).unwrap_or_default()
    }

    fn new(mounts: Vec<Mount>) -> Self {
        let by_id = mounts.iter().enumerate().map(|(index, mount)| (mount.id, index)).collect();
        // A later mount at the same point hides the earlier one.
        let by_point = mounts.iter().enumerate().map(|(index, mount)| (mount.point.clone(), index)).collect();
        Self { mounts, by_id, by_point }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Mount> {
        self.mounts.iter()
    }

    /// Returns the mount with this number.
    pub(super) fn of_id(&self, id: u64) -> Option<&Mount> {
        self.mounts.get(*self.by_id.get(&id)?)
    }

    /// Returns the mount of `path` (canonical): the one with the longest mount point above it.
    pub(super) fn of_path(&self, path: &str) -> Option<&Mount> {
        let mut at = path;
        loop {
            if let Some(index) = self.by_point.get(if at.is_empty() { "/" } else { at }) {
                return self.mounts.get(*index);
            }
            at = &at[..at.rfind('/')?];
        }
    }

    /// Returns a mount of the superblock with this device number.
    pub(super) fn of_device(&self, number: DeviceNumber) -> Option<&Mount> {
        self.mounts.iter().find(|mount| mount.device == number)
    }
}

/// Mounts of other mount namespaces, each with a process there. Empty if this user may not read them.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    mounts: Vec<(u32, Mount)>,
}

impl Elsewhere {
    /// Reads the mount table of one process in each other mount namespace.
    pub(super) fn read(tree: &dyn Tree) -> Self {
        let mut seen: BTreeSet<String> = tree.link("/proc/self/ns/mnt").into_iter().collect();
        let mut mounts = Vec::new();
        for process in numbers(tree, "/proc") {
            let is_new = tree.link(&format!("/proc/{process}/ns/mnt")).is_ok_and(|space| seen.insert(space));
            let table = is_new.then(|| tree.read(&format!("/proc/{process}/mountinfo")).unwrap_or_default());
            let table = mountinfo::parse(&table.unwrap_or_default());
            mounts.extend(table.into_iter().map(|mount| (process, mount)));
        }
        Self { mounts }
    }

    /// Returns a process in the mount namespace of `mount`.
    pub(super) fn process_of(&self, mount: &Mount) -> Option<u32> {
        self.mounts.iter().find(|(_, known)| known.id == mount.id).map(|(process, _)| *process)
    }

    /// Returns the first mount that satisfies `wanted`.
    pub(super) fn find(&self, wanted: impl Fn(&Mount) -> bool) -> Option<&Mount> {
        self.mounts.iter().map(|(_, mount)| mount).find(|mount| wanted(mount))
    }
}

/// Returns the name of the drive that `plumb drive serve --attach` serves through this file system, which is
/// mounted at `NAME/mount`.
pub(super) fn attached_drive(mount: &Mount) -> Option<&str> {
    let directory = mount.point.strip_suffix("/mount").filter(|_| mount.kind == "fuse.plumb")?;
    directory.rsplit('/').next()
}

/// Returns the layer name of the simulated drive `name` served by plumb.
pub(super) fn served_drive(name: &str) -> String {
    format!("{SERVED_DRIVE}{name}")
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
        let mounts = Mounts::new(mountinfo::parse(TABLE));
        let id = |path: &str| mounts.of_path(path).map(|mount| mount.id);
        assert_eq!(id("/"), Some(27));
        assert_eq!(id("/srvx/file"), Some(27));
        assert_eq!(id("/srv/db/file"), Some(31));
        assert_eq!(id("/bind/x"), Some(32));
        assert_eq!(Mounts::default().of_path("/"), None);
    }
}
