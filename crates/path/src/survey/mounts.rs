//! The mount tables as a survey needs them: that of this process by number and by path, and those of other
//! mount namespaces by number. A path means nothing there: the same name may lead to another file, or to
//! none.

use std::collections::{BTreeMap, BTreeSet};

use plumb_linux::tree::mountinfo::{self, Mount};
use plumb_linux::tree::{DeviceNumber, Stat, Tree};

use super::surveyor::Surveyor;

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

    /// Returns the mount with this number.
    fn of_id(&self, id: u64) -> Option<&Mount> {
        self.mounts.get(*self.by_id.get(&id)?)
    }

    /// Returns the mount that `path` (canonical) is on by the longest mount point above it.
    pub(super) fn of_path(&self, path: &str) -> Option<&Mount> {
        let mut at = path;
        loop {
            if let Some(index) = self.by_point.get(if at.is_empty() { "/" } else { at }) {
                return self.mounts.get(*index);
            }
            at = &at[..at.rfind('/')?];
        }
    }

    /// A mount of the superblock with this device number.
    fn of_device(&self, number: DeviceNumber) -> Option<&Mount> {
        self.mounts.iter().find(|mount| mount.device == number)
    }
}

/// The mounts of other mount namespaces, each with a process there. Empty where this user may not read them.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    mounts: Vec<(u32, Mount)>,
}

impl Elsewhere {
    /// Reads the mount table of one process in each mount namespace except that of this process.
    pub(super) fn read(tree: &dyn Tree) -> Self {
        let mut seen: BTreeSet<String> = tree.link("/proc/self/ns/mnt").into_iter().collect();
        let mut processes: Vec<u32> =
            tree.list("/proc").unwrap_or_default().iter().filter_map(|name| name.parse().ok()).collect();
        processes.sort_unstable();
        let mut mounts = Vec::new();
        for process in processes {
            let is_new = tree.link(&format!("/proc/{process}/ns/mnt")).is_ok_and(|space| seen.insert(space));
            let table = is_new.then(|| tree.read(&format!("/proc/{process}/mountinfo")).unwrap_or_default());
            let table = mountinfo::parse(&table.unwrap_or_default());
            mounts.extend(table.into_iter().map(|mount| (process, mount)));
        }
        Self { mounts }
    }

    fn find(&self, wanted: impl Fn(&Mount) -> bool) -> Option<&Mount> {
        self.mounts.iter().map(|(_, mount)| mount).find(|mount| wanted(mount))
    }
}

impl Surveyor<'_> {
    /// Finds the mount that holds what is at `path` (canonical), of which the kernel says `stat`. The number
    /// of the mount decides where the kernel gives one (since Linux 5.8), in whatever namespace it is; else
    /// the device; and the path only where it does not contradict the device. `None` if no mount table that
    /// can be read has it.
    pub(super) fn mount_at(&self, path: &str, stat: Option<&Stat>) -> Option<Mount> {
        let own = self.mounts();
        let by_path = || own.of_path(path);
        let Some(stat) = stat else { return by_path().cloned() };
        let agrees = |mount: &&Mount| mount.device == stat.device || stat.device.is_anonymous();
        let Some(id) = stat.mount else {
            let found = by_path().filter(agrees).or_else(|| own.of_device(stat.device));
            return found.cloned();
        };
        if let Some(mount) = own.of_id(id) {
            return Some(mount.clone());
        }
        let elsewhere = || self.elsewhere().find(|mount| mount.id == id);
        let found = own.of_device(stat.device).or_else(|| {
            let mount = elsewhere()?;
            own.of_device(mount.device).or(Some(mount))
        });
        found.cloned()
    }

    /// Finds a mount of the superblock with this device number: in this mount namespace if there is one, else
    /// in another.
    pub(super) fn mount_of_device(&self, number: DeviceNumber) -> Option<Mount> {
        let here = self.mounts().of_device(number);
        here.or_else(|| self.elsewhere().find(|mount| mount.device == number)).cloned()
    }

    /// Returns a process in the mount namespace of `mount`; `None` if that is the namespace of this process.
    pub(super) fn namespace_of(&self, mount: &Mount) -> Option<u32> {
        if self.mounts().of_id(mount.id).is_some() {
            return None;
        }
        let mounts = &self.elsewhere().mounts;
        mounts.iter().find(|(_, known)| known.id == mount.id).map(|(process, _)| *process)
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
    use plumb_linux::probe::RecordedProbe;
    use plumb_linux::tree::{FileKind, RecordedTree};

    use super::*;

    const TABLE: &[u8] = b"27 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
        30 27 8:17 / /srv rw - xfs /dev/sdb1 rw\n\
        31 27 8:33 / /srv rw - xfs /dev/sdc1 rw\n\
        32 27 8:1 /data /bind rw - ext4 /dev/sda1 rw\n";

    #[test]
    fn a_path_finds_the_mount_it_is_on() {
        let mounts = Mounts::of(mountinfo::parse(TABLE));
        let id = |path: &str| mounts.of_path(path).map(|mount| mount.id);
        assert_eq!(id("/"), Some(27));
        assert_eq!(id("/srvx/file"), Some(27));
        assert_eq!(id("/srv/db/file"), Some(31));
        assert_eq!(id("/bind/x"), Some(32));
        assert_eq!(Mounts::default().of_path("/"), None);
    }

    #[test]
    fn the_number_of_a_mount_and_the_device_come_before_the_path() {
        let mut tree = RecordedTree::new();
        tree.put_bytes(MOUNTINFO, TABLE);
        tree.put_link("/proc/self/ns/mnt", "mnt:[1]");
        tree.put_link("/proc/8/ns/mnt", "mnt:[1]");
        tree.put_link("/proc/9/ns/mnt", "mnt:[2]");
        tree.put_text(
            "/proc/9/mountinfo",
            "70 1 7:0 / /srv rw - ext4 /dev/loop0 rw\n71 1 8:1 / /x rw - ext4 x rw\n",
        );
        let probe = RecordedProbe::new();
        let surveyor = Surveyor::new(&tree, &probe);
        let id = |device: &str, mount| {
            let stat = Stat { kind: FileKind::File, device: device.parse().unwrap(), node: None, mount };
            surveyor.mount_at("/srv/file", Some(&stat)).map(|mount| mount.id)
        };
        assert_eq!(id("8:17", Some(30)), Some(30), "hidden by a later mount");
        assert_eq!(id("7:0", Some(70)), Some(70), "of another namespace");
        assert_eq!(id("8:1", Some(71)), Some(27), "of another namespace, and mounted here too");
        assert_eq!(id("9:9", Some(99)), None, "the path would lead to another device");
        assert_eq!((id("8:33", None), id("8:17", None)), (Some(31), Some(30)), "a kernel before 5.8");
        assert_eq!(id("0:44", None), Some(31), "a subvolume has a number of its own");
        let found = surveyor.mount_of_device("7:0".parse().unwrap()).unwrap();
        assert_eq!((found.id, surveyor.namespace_of(&found)), (70, Some(9)));
    }
}
