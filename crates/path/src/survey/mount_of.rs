//! Lookup of the mount that holds a file or belongs to a device, in any mount namespace.

use plumb_linux::tree::mountinfo::Mount;
use plumb_linux::tree::{DeviceNumber, Stat};

use super::surveyor::Surveyor;

impl Surveyor<'_> {
    /// Finds the mount that holds `path` (canonical, with the result `stat`). The mount number decides if the
    /// kernel reports it (since Linux 5.8), in any namespace; else the device; and the path only if it does
    /// not contradict the device. `None` if no readable mount table has it.
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

    /// Finds a mount of the superblock with this device number, preferably in this mount namespace.
    pub(super) fn mount_of_device(&self, number: DeviceNumber) -> Option<Mount> {
        let here = self.mounts().of_device(number);
        here.or_else(|| self.elsewhere().find(|mount| mount.device == number)).cloned()
    }

    /// Returns a process in the mount namespace of `mount`; `None` if this process is in it.
    pub(super) fn namespace_of(&self, mount: &Mount) -> Option<u32> {
        if self.mounts().of_id(mount.id).is_some() {
            return None;
        }
        self.elsewhere().process_of(mount)
    }
}

#[cfg(test)]
mod tests {
    use plumb_linux::probe::RecordedProbe;
    use plumb_linux::tree::{FileKind, RecordedTree};

    use super::super::mounts::MOUNTINFO;
    use super::*;

    const TABLE: &[u8] = b"27 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
        30 27 8:17 / /srv rw - xfs /dev/sdb1 rw\n\
        31 27 8:33 / /srv rw - xfs /dev/sdc1 rw\n\
        32 27 8:1 /data /bind rw - ext4 /dev/sda1 rw\n";

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
