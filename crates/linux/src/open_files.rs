//! Files that processes have open for writing, with the amount of data of each that its device does not have
//! yet: /proc (proc(5)) and cachestat(2).
//!
//! The mount number in `fdinfo` gives the file system of a descriptor. Only files of requested file systems
//! are accessed, so an unresponsive server of another file system cannot block the search.
//!
//! # Limitations
//! The search misses files that are mapped and closed, files registered with io_uring and closed, files
//! opened through an overlay, and descriptor tables private to single threads.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use plumb_block::Bytes;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::pagecache;
use crate::tree::mountinfo::{self, Mount};
use crate::tree::process::{self, numbers};
use crate::tree::{DeviceNumber, LiveTree};

/// File systems and devices whose files are searched for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileInterest {
    /// File systems, by the device of their superblock in mountinfo. They must not depend on a server.
    pub file_systems: BTreeSet<DeviceNumber>,
    /// Block devices that programs write to without a file system.
    pub devices: BTreeSet<DeviceNumber>,
}

/// A file or block device that processes have open for writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenFile {
    /// Path of the file as the first process sees it.
    pub path: String,
    /// Bytes that are dirty or being written to the device.
    pub unwritten: Bytes,
    /// Names of the processes that have the file open for writing, by their numbers.
    pub writers: BTreeMap<u32, String>,
}

/// Files that processes have open for writing, as far as this user may see them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenFiles {
    /// Files, each listed once whatever the number of descriptors.
    pub files: Vec<OpenFile>,
    /// Number of processes that this user may not inspect.
    pub denied: usize,
    /// Number of descriptors for writing whose data could not be counted.
    pub uncounted: usize,
    /// True if the kernel cannot count the pages of a file (before Linux 6.5); then no files are listed.
    pub is_unsupported: bool,
}

/// Finds the requested files of all processes. A file or process that is closed or ends before it is
/// inspected is left out.
pub fn read(wanted: &FileInterest) -> OpenFiles {
    let mut search = Search::default();
    for process in numbers(&LiveTree, "/proc") {
        search.process(process, wanted);
        if search.found.is_unsupported {
            break;
        }
    }
    OpenFiles { files: search.by_inode.into_values().collect(), ..search.found }
}

/// A file, by its identity in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnwrittenFile {
    /// Device that stat(2) reports.
    pub device: DeviceNumber,
    /// Inode number on the device.
    pub inode: u64,
    /// Bytes that are dirty or being written to the device; `None` before Linux 6.5.
    pub unwritten: Option<Bytes>,
}

/// Counts the bytes of the file at `path` that its device does not have yet. Opens the file for reading.
///
/// # Errors
/// Fails as open(2) and cachestat(2) do.
pub fn file_at(path: &str) -> plumb_block::Result<UnwrittenFile> {
    let failed = |error: rustix::io::Errno| plumb_block::Error::io(&error.into(), "open", path);
    let how = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, how, Mode::empty()).map_err(failed)?;
    let stat = rustix::fs::fstat(&file).map_err(failed)?;
    Ok(UnwrittenFile {
        device: DeviceNumber::from_stat(stat.st_dev),
        inode: stat.st_ino,
        unwritten: pagecache::unwritten(&file, path)?,
    })
}

/// Kinds of file whose descriptors are inspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interest {
    /// Regular files.
    Files,
    /// Nodes of block devices.
    Nodes,
}

/// Returns the kind of file to inspect on a mount; `None` if there is none.
fn interest(mount: &Mount, wanted: &FileInterest) -> Option<Interest> {
    if wanted.file_systems.contains(&mount.device) {
        return Some(Interest::Files);
    }
    let has_nodes = matches!(mount.kind.as_str(), "devtmpfs" | "tmpfs");
    (has_nodes && !wanted.devices.is_empty()).then_some(Interest::Nodes)
}

/// State of the search through the processes.
#[derive(Debug, Default)]
struct Search {
    /// Kind of file to inspect on each mount. Mount numbers are unique on the machine.
    mounts: BTreeMap<u64, Interest>,
    /// Mount namespaces whose mounts have been read.
    namespaces: BTreeSet<String>,
    by_inode: BTreeMap<(u64, u64), OpenFile>,
    found: OpenFiles,
}

impl Search {
    fn process(&mut self, process: u32, wanted: &FileInterest) {
        let place = Path::new("/proc").join(process.to_string());
        let descriptors = match fs::read_dir(place.join("fd")) {
            Ok(descriptors) => descriptors,
            Err(error) => {
                self.found.denied += usize::from(error.kind() == io::ErrorKind::PermissionDenied);
                return;
            }
        };
        self.learn_mounts(&place, wanted);
        let mut name = None;
        for entry in descriptors.flatten() {
            let Some(fd) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
                continue;
            };
            let Some(interest) = self.of_descriptor(&place, fd) else { continue };
            let link = entry.path();
            let path = fs::read_link(&link).map(|path| path.to_string_lossy().into_owned());
            let (Ok(path), Ok(file)) = (path, duplicate(process, fd, &link)) else {
                self.found.uncounted += 1;
                continue;
            };
            let name = name.get_or_insert_with(|| process::name(&LiveTree, process));
            self.take(Descriptor { process, name, path, file, interest }, wanted);
        }
    }

    /// Reads the mounts of a namespace once.
    fn learn_mounts(&mut self, place: &Path, wanted: &FileInterest) {
        let Ok(namespace) = fs::read_link(place.join("ns/mnt")) else { return };
        if !self.namespaces.insert(namespace.to_string_lossy().into_owned()) {
            return;
        }
        let table = fs::read(place.join("mountinfo")).unwrap_or_default();
        let mounts = mountinfo::parse(&table).into_iter();
        self.mounts.extend(mounts.filter_map(|mount| Some((mount.id, interest(&mount, wanted)?))));
    }

    /// Returns the kind of file to count behind a descriptor; `None` if it is not open for writing, or its
    /// mount was not requested.
    fn of_descriptor(&self, place: &Path, fd: i32) -> Option<Interest> {
        let info = fs::read_to_string(place.join("fdinfo").join(fd.to_string())).ok()?;
        let field = |key: &str| info.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let flags = u32::from_str_radix(field("flags:")?, 8).ok()?;
        let is_written = flags & OFlags::ACCMODE.bits() & !OFlags::PATH.bits() != 0;
        let is_path = flags & OFlags::PATH.bits() != 0;
        let mount = field("mnt_id:")?.parse().ok()?;
        self.mounts.get(&mount).copied().filter(|_| is_written && !is_path)
    }

    fn take(&mut self, descriptor: Descriptor<'_>, wanted: &FileInterest) {
        let Ok(stat) = rustix::fs::fstat(&descriptor.file) else { return };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let key = match descriptor.interest {
            Interest::Files if kind == FileType::RegularFile => (stat.st_dev, stat.st_ino),
            Interest::Nodes
                if kind == FileType::BlockDevice
                    && wanted.devices.contains(&DeviceNumber::from_stat(stat.st_rdev)) =>
            {
                (stat.st_rdev, 0)
            }
            _ => return,
        };
        let Descriptor { process, name, path, file, .. } = descriptor;
        let known = match self.by_inode.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => match pagecache::unwritten(file.as_fd(), &path) {
                Ok(Some(unwritten)) => place.insert(OpenFile { path, unwritten, writers: BTreeMap::new() }),
                Ok(None) => {
                    self.found.is_unsupported = true;
                    return;
                }
                Err(_) => {
                    self.found.uncounted += 1;
                    return;
                }
            },
        };
        known.writers.insert(process, name.to_owned());
    }
}

/// Descriptor of another process, with a duplicate in this one.
struct Descriptor<'a> {
    process: u32,
    name: &'a str,
    path: String,
    file: OwnedFd,
    interest: Interest,
}

/// Duplicates the descriptor of a process, or opens its file again if the kernel does not allow that. Opening
/// comes second because it breaks leases; duplication usually requires root.
fn duplicate(process: u32, fd: i32, link: &Path) -> rustix::io::Result<OwnedFd> {
    let copied = || {
        let pid = i32::try_from(process).ok().and_then(Pid::from_raw).ok_or(rustix::io::Errno::SRCH)?;
        pidfd_getfd(pidfd_open(pid, PidfdFlags::empty())?, fd, PidfdGetfdFlags::empty())
    };
    let how = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    copied().or_else(|_| rustix::fs::open(link, how, Mode::empty()))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_file_that_is_written_is_counted_once_with_all_that_write_it() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let stat = file.as_file().metadata().unwrap();
        let mounts = mountinfo::parse(&fs::read("/proc/self/mountinfo").unwrap());
        let device = DeviceNumber::from_stat(stat.dev());
        if !mounts.iter().any(|mount| mount.device == device) {
            return plumb_testkit::skip("the temporary directory is on a file system with several numbers");
        }
        let wanted = FileInterest { file_systems: BTreeSet::from([device]), devices: BTreeSet::new() };
        file.write_all(&vec![7; 1 << 20]).unwrap();
        let again = file.reopen().unwrap();
        let read_only = fs::File::open(file.path()).unwrap();
        let counted = || {
            let found = read(&wanted);
            let path = file.path().to_str().unwrap();
            let own: Vec<OpenFile> = found.files.into_iter().filter(|file| file.path == path).collect();
            (own, found.is_unsupported)
        };
        let (own, is_unsupported) = counted();
        if is_unsupported {
            return plumb_testkit::skip("the kernel does not count pages of files (before 6.5)");
        }
        assert_eq!(own.len(), 1, "{own:?}");
        assert!(own[0].writers.contains_key(&std::process::id()));
        let at = file_at(file.path().to_str().unwrap()).unwrap();
        assert_eq!((at.device, at.inode), (device, stat.ino()));
        file.as_file().sync_all().unwrap();
        assert_eq!(counted().0[0].unwritten, Bytes(0), "after a sync");
        drop((again, read_only));
    }
}
