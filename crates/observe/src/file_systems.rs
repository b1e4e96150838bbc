//! File systems of this machine, by the device numbers in events and by their place on a device.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use plumb_linux::tree::mountinfo::{Mount, mounts_of};
use plumb_linux::tree::{DeviceNumber, LiveTree};

/// A mounted file system, or a block device that is synced directly.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileSystem {
    /// Mount point; empty for a device.
    pub mount_point: String,
    /// Type of the file system; empty for a device.
    pub kind: String,
    /// Kernel name of the whole disk below; empty if there is none or more than one.
    pub device: String,
}

/// Mounted file systems at one time.
#[derive(Debug, Default)]
pub(crate) struct FileSystems {
    by_number: HashMap<u32, Arc<FileSystem>>,
    /// Extents on each disk, by the number of the disk.
    extents: HashMap<u32, Vec<Extent>>,
}

/// Sectors of a disk that belong to a file system.
#[derive(Debug)]
struct Extent {
    from: u64,
    until: u64,
    file_system: Arc<FileSystem>,
}

impl FileSystems {
    /// Reads the mounts that this process sees. Only btrfs, which has several numbers, is queried directly: a
    /// query to a dead server of another file system would hang.
    pub(crate) fn read() -> Self {
        let mut all = Self::default();
        let mut mounts = mounts_of("self");
        // Mounts of the root of a file system come before bind mounts of a directory.
        mounts.sort_by_key(|mount| mount.root != "/");
        mounts.iter().for_each(|mount| all.add(mount));
        all
    }

    fn add(&mut self, mount: &Mount) {
        let number = mount.device.to_kernel();
        if self.by_number.contains_key(&number) {
            return;
        }
        let place = match mount.device.is_anonymous() {
            true => mount.source.strip_prefix("/dev/").and_then(|name| DiskPlace::named(Path::new(name))),
            false => DiskPlace::numbered(mount.device),
        };
        let file_system = Arc::new(FileSystem {
            mount_point: mount.point.clone(),
            kind: mount.kind.clone(),
            device: place.as_ref().map(|place| place.disk.clone()).unwrap_or_default(),
        });
        self.by_number.insert(number, Arc::clone(&file_system));
        if let Some(found) = fs::metadata(&mount.point).ok().filter(|_| mount.kind == "btrfs") {
            let number = DeviceNumber::from_stat(found.dev()).to_kernel();
            self.by_number.insert(number, Arc::clone(&file_system));
        }
        if let Some(place) = place {
            let extent = Extent { from: place.from, until: place.until, file_system };
            self.extents.entry(place.number).or_default().push(extent);
        }
    }

    /// Returns the file system with this device number, as in events; for a block device without a file
    /// system the device itself.
    pub(crate) fn numbered(&mut self, number: u32) -> Option<Arc<FileSystem>> {
        if let Some(known) = self.by_number.get(&number) {
            return Some(Arc::clone(known));
        }
        let place = DiskPlace::numbered(DeviceNumber::from_kernel(number))?;
        let itself = Arc::new(FileSystem { device: place.disk, ..FileSystem::default() });
        self.by_number.insert(number, Arc::clone(&itself));
        Some(itself)
    }

    /// Returns the file system at a sector of a disk; without a sector the only one on it.
    pub(crate) fn at(&self, disk: u32, sector: Option<u64>) -> Option<Arc<FileSystem>> {
        let extents = self.extents.get(&disk)?;
        let found = match sector {
            Some(sector) => extents.iter().find(|of| (of.from..of.until).contains(&sector)),
            None => extents.first().filter(|_| extents.len() == 1),
        };
        found.map(|extent| Arc::clone(&extent.file_system))
    }
}

/// Extent of a block device on its disk, in sectors of 512 bytes.
struct DiskPlace {
    disk: String,
    number: u32,
    from: u64,
    until: u64,
}

impl DiskPlace {
    fn numbered(number: DeviceNumber) -> Option<Self> {
        Self::named(Path::new(&number.name(&LiveTree)?))
    }

    /// Looks up a device by its kernel name.
    fn named(name: &Path) -> Option<Self> {
        let own = fs::canonicalize(Path::new("/sys/class/block").join(name)).ok()?;
        let number = |path: &Path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        let is_part = own.join("partition").exists();
        let disk = if is_part { own.parent()? } else { &own };
        let from = if is_part { number(&own.join("start"))? } else { 0 };
        let of_disk: DeviceNumber = fs::read_to_string(disk.join("dev")).ok()?.parse().ok()?;
        Some(Self {
            disk: disk.file_name()?.to_string_lossy().into_owned(),
            number: of_disk.to_kernel(),
            from,
            until: from.saturating_add(number(&own.join("size"))?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_of_the_file_system_at_its_place_and_a_flush_of_the_only_one() {
        let named =
            |point: &str| Arc::new(FileSystem { mount_point: point.to_owned(), ..FileSystem::default() });
        let extent = |from, until, point| Extent { from, until, file_system: named(point) };
        let extents = HashMap::from([
            (7, vec![extent(0, 100, "/a")]),
            (8, vec![extent(100, 200, "/b"), extent(200, 300, "/c")]),
        ]);
        let all = FileSystems { extents, ..FileSystems::default() };
        let at = |disk, sector| all.at(disk, sector).map(|found| found.mount_point.clone());
        assert_eq!(at(7, None).as_deref(), Some("/a"));
        assert_eq!((at(8, None), at(8, Some(99)), at(9, Some(0))), (None, None, None));
        assert_eq!((at(8, Some(199)).as_deref(), at(8, Some(200)).as_deref()), (Some("/b"), Some("/c")));
    }

    #[test]
    fn the_file_system_of_a_file_here_is_known_by_its_number() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let device = file.as_file().metadata().unwrap().dev();
        let number = DeviceNumber::from_stat(device).to_kernel();
        let found = FileSystems::read().numbered(number).unwrap();
        assert!(file.path().starts_with(&found.mount_point), "{found:?}");
        assert!(!found.kind.is_empty());
    }
}
