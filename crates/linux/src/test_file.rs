//! A temporary file for measurements, which vanishes when the program ends, however it ends.
//!
//! The file preferably has no name (O_TMPFILE): the kernel frees it with its last descriptor, so nothing is
//! left behind even after SIGKILL. It is reopened through `/proc/self/fd/N`, which yields a separate
//! description, with O_DIRECT if requested.
//!
//! An unnamed file must cost as much to sync as any other, or the measurement is wrong. On ext4, xfs and
//! tmpfs it does. On btrfs it does not: fsync skips the log for an inode without links (fs/btrfs/tree-log.c
//! btrfs_log_inode_parent), so nothing is flushed; f2fs instead writes a checkpoint each time (fs/f2fs/file.c
//! need_do_checkpoint). So on all other file systems the file has a name, `.plumb-PID-RANDOM.tmp`, is created
//! with O_EXCL, and removed on drop.
//!
//! Limitations: a named file remains after SIGKILL.

use std::hash::{BuildHasher as _, RandomState};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumb_block::{Bytes, Clock, Error, Result};
use rustix::fs::{AtFlags, Mode, OFlags};

use crate::file::{FileDevice, FileOptions};

/// Maximum number of random names to try.
const NAME_ATTEMPTS: u32 = 16;
/// File systems on which an unnamed file syncs like any other: ext2/3/4, xfs, tmpfs (uapi/linux/magic.h).
const UNNAMED_SYNCS_ALIKE: [u64; 3] = [0xef53, 0x5846_5342, 0x0102_1994];

/// A temporary file of this process. Removed on drop.
pub struct TestFile {
    file: OwnedFd,
    directory: PathBuf,
    name: Option<Name>,
    size: Bytes,
}

struct Name {
    directory: OwnedFd,
    name: String,
}

impl TestFile {
    /// Creates a file of `size` bytes in `directory` without data. Fill it with
    /// [`layout::write`](crate::layout::write), so that reads reach the device. An append-only file starts
    /// with a size of zero.
    ///
    /// # Errors
    /// Fails as open(2) and ftruncate(2) do. Nothing is left behind.
    pub fn create(directory: &Path, size: Bytes) -> Result<Self> {
        let mut file = match unnamed(directory) {
            Some(file) => Self { file, directory: directory.to_owned(), name: None, size },
            None => Self::create_named(directory)?,
        };
        file.size = size;
        rustix::fs::ftruncate(&file.file, size.0)
            .map_err(|errno| Error::io(&errno.into(), "size", file.place()))?;
        Ok(file)
    }

    fn create_named(directory: &Path) -> Result<Self> {
        let failed = |errno: rustix::io::Errno| {
            Error::io(&errno.into(), "create a test file in", directory.display().to_string())
        };
        let parent =
            rustix::fs::open(directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
                .map_err(failed)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for attempt in 0..NAME_ATTEMPTS {
            let random = RandomState::new().hash_one(attempt);
            let name = format!(".plumb-{}-{random:016x}.tmp", std::process::id());
            match rustix::fs::openat(&parent, &name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => {
                    let name = Some(Name { directory: parent, name });
                    return Ok(Self { file, directory: directory.to_owned(), name, size: Bytes(0) });
                }
                Err(rustix::io::Errno::EXIST) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
        Err(failed(rustix::io::Errno::EXIST))
    }

    /// Describes the file for users: `a test file in /srv`.
    pub fn place(&self) -> String {
        format!("a test file in {}", self.directory.display())
    }

    /// Returns the size at creation.
    pub fn size(&self) -> Bytes {
        self.size
    }

    /// Returns true if the file has a name in its directory.
    pub fn is_named(&self) -> bool {
        self.name.is_some()
    }

    /// Returns a path by which this process can reopen the file as long as it lives.
    pub fn path(&self) -> PathBuf {
        match &self.name {
            Some(name) => self.directory.join(&name.name),
            None => unnamed_path(self.file.as_fd()),
        }
    }

    /// Opens the file as a device.
    ///
    /// # Errors
    /// Fails as [`FileDevice::open`] does.
    pub fn open(&self, options: FileOptions, clock: Arc<dyn Clock>) -> Result<FileDevice> {
        let file = crate::file::open_existing(&self.path(), options)
            .map_err(|error| Error { place: self.place(), ..error })?;
        FileDevice::over(file, self.place(), options, clock)
    }
}

impl AsFd for TestFile {
    /// Returns the original descriptor: read-write, through the page cache.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        if let Some(Name { directory, name }) = &self.name
            && let Err(errno) = rustix::fs::unlinkat(directory, name, AtFlags::empty())
            && errno != rustix::io::Errno::NOENT
        {
            // A destructor cannot fail, but the user must learn of the leftover.
            eprintln!("plumb: cannot remove {}: {errno}", self.directory.join(name).display());
        }
    }
}

/// Creates an unnamed file if the file system supports it, syncs it like any other file, and lets it be
/// reopened.
fn unnamed(directory: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    let file = rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR).ok()?;
    let kind = rustix::fs::fstatfs(&file).ok()?.f_type as u64;
    (UNNAMED_SYNCS_ALIKE.contains(&kind) && unnamed_path(file.as_fd()).exists()).then_some(file)
}

fn unnamed_path(file: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use plumb_block::{Device as _, Errno, ExtentState, Lba, LbaRange, RealClock};

    use super::*;
    use crate::layout::{self, Filling};

    fn names(directory: &Path) -> usize {
        std::fs::read_dir(directory).unwrap().count()
    }

    fn fill(file: &TestFile, stop: &AtomicBool, progress: &mut dyn FnMut(Bytes)) -> Result<()> {
        layout::write(&file.path(), Bytes(0), file.size(), Bytes(512), Filling { seed: 1, stop, progress })
    }

    #[test]
    fn a_file_is_written_not_only_reserved_and_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let mut told = Bytes(0);
        let file = TestFile::create(directory.path(), Bytes(3 * 1024 * 1024 + 4096)).unwrap();
        fill(&file, &AtomicBool::new(false), &mut |done| told = done).unwrap();
        assert_eq!(told, file.size());
        assert_eq!(names(directory.path()), usize::from(file.is_named()));
        let device = file.open(FileOptions::read_buffered(), Arc::new(RealClock::start())).unwrap();
        let info = device.info();
        assert_eq!(info.size, file.size());
        let extents = device.extents(LbaRange::new(Lba(0), info.blocks())).unwrap();
        assert!(
            extents.iter().all(|extent| matches!(extent.state, ExtentState::Written | ExtentState::Unknown)),
            "{extents:?}"
        );
        drop((device, file));
        assert_eq!(names(directory.path()), 0);
    }

    #[test]
    fn a_named_file_is_removed_too() {
        let directory = tempfile::tempdir().unwrap();
        let file = TestFile::create_named(directory.path()).unwrap();
        assert!(file.is_named() && file.path().exists());
        assert_eq!(names(directory.path()), 1);
        drop(file);
        assert_eq!(names(directory.path()), 0);
    }

    #[test]
    fn stopping_and_a_full_disk_leave_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(false);
        let mut pieces = 0;
        let mut progress = |_| {
            pieces += 1;
            stop.store(pieces >= 2, Ordering::Relaxed);
        };
        let file = TestFile::create(directory.path(), Bytes::gib(1)).unwrap();
        let Err(stopped) = fill(&file, &stop, &mut progress) else { panic!("it was not stopped") };
        assert_eq!(stopped.errno(), Some(Errno(libc::EINTR)));
        drop(file);
        // More than any disk has, less than the largest file.
        let full = TestFile::create(directory.path(), Bytes::gib(15_000))
            .and_then(|file| fill(&file, &AtomicBool::new(false), &mut |_| {}));
        let Err(full) = full else { panic!("15 TB fit") };
        assert!(full.errno().is_some_and(|errno| errno.is_full() || errno == Errno(libc::EFBIG)), "{full}");
        assert_eq!(names(directory.path()), 0);
    }
}
