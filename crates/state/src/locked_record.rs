//! Records that tell a living process from a dead one: files that a process keeps locked while it lives.
//!
//! The kernel releases a flock(2) lock when its holder dies, however that happens. A record that can be
//! locked therefore has no living owner. No process number has to be trusted; another process may reuse one.
//! A lock belongs to an open file, so two records of one process exclude each other, too.

use std::fs::{self, File};
use std::io::{self, Seek as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

use crate::whole_file::{self, FileError, failed};

/// A record that this process has locked. Dropping it releases the lock and leaves the file, as a kill does.
#[derive(Debug)]
pub struct LockedRecord {
    path: PathBuf,
    file: File,
}

/// Owner of a record.
#[derive(Debug)]
pub enum Owner<R> {
    /// The record does not exist.
    None,
    /// A living process.
    Alive,
    /// A dead process; this process has taken over the record.
    Dead(R),
}

impl LockedRecord {
    /// Creates the record at `path`, readable only by its owner, and locks it. Returns `None` if the path is
    /// taken, or if another process took over the new record before it was locked.
    ///
    /// # Errors
    /// Fails as open(2) and flock(2) do.
    pub fn create(path: &Path) -> Result<Option<Self>, FileError> {
        let opened = open(path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL);
        match opened {
            Err(Errno::EXIST) => Ok(None),
            opened => Self::lock(path, opened.map_err(|errno| failed("make", path)(errno.into()))?),
        }
    }

    /// Takes over the record at `path` if its owner is dead. A record may also be a directory.
    ///
    /// # Errors
    /// Fails as open(2) and flock(2) do.
    pub fn take_over(path: &Path) -> Result<Owner<Self>, FileError> {
        let opened = match open(path, OFlags::RDWR) {
            Err(Errno::ISDIR) => open(path, OFlags::RDONLY | OFlags::DIRECTORY),
            opened => opened,
        };
        let file = match opened {
            Err(Errno::NOENT) => return Ok(Owner::None),
            opened => opened.map_err(|errno| failed("open", path)(errno.into()))?,
        };
        let found = Self::lock(path, file)?;
        // A record removed before it was locked does not count; its path may now belong to another.
        Ok(found.map_or(
            Owner::Alive,
            |found| if found.is_at_its_path() { Owner::Dead(found) } else { Owner::None },
        ))
    }

    /// Locks the file at `path` and creates it if it is missing. Releasing the lock leaves the file. Returns
    /// `None` while another process holds it.
    ///
    /// # Errors
    /// Fails as open(2) and flock(2) do.
    pub fn hold(path: &Path) -> Result<Option<Self>, FileError> {
        let opened = open(path, OFlags::RDWR | OFlags::CREATE);
        Self::lock(path, opened.map_err(|errno| failed("open", path)(errno.into()))?)
    }

    fn lock(path: &Path, file: File) -> Result<Option<Self>, FileError> {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { path: path.to_owned(), file })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(failed("lock", path)(errno.into())),
        }
    }

    fn is_at_its_path(&self) -> bool {
        let identity = |found: fs::Metadata| (found.dev(), found.ino());
        let (own, there) = (self.file.metadata(), fs::symlink_metadata(&self.path));
        own.ok().map(identity) == there.ok().map(identity)
    }

    /// Returns the path of the record.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the whole contents.
    ///
    /// # Errors
    /// Fails as read(2) does.
    pub fn read(&self) -> Result<Vec<u8>, FileError> {
        let mut file = &self.file;
        let read = file.rewind().and_then(|()| {
            let mut bytes = Vec::new();
            io::Read::read_to_end(&mut file, &mut bytes).map(|_| bytes)
        });
        read.map_err(failed("read", &self.path))
    }

    /// Overwrites the first bytes: visible to other processes, not durable.
    ///
    /// # Errors
    /// Fails as pwrite(2) does.
    pub fn write_start(&self, bytes: &[u8]) -> Result<(), FileError> {
        self.file.write_all_at(bytes, 0).map_err(failed("write", &self.path))
    }

    /// Replaces the whole contents with `bytes`: visible to other processes, not durable.
    ///
    /// # Errors
    /// Fails as ftruncate(2) and pwrite(2) do.
    pub fn rewrite(&self, bytes: &[u8]) -> Result<(), FileError> {
        self.file.set_len(0).map_err(failed("write", &self.path))?;
        self.write_start(bytes)
    }

    /// Appends `bytes` durably.
    ///
    /// # Errors
    /// Fails as write(2) and fdatasync(2) do.
    pub fn append(&self, bytes: &[u8]) -> Result<(), FileError> {
        let mut file = &self.file;
        let written = file.seek(io::SeekFrom::End(0)).and_then(|_| file.write_all(bytes));
        written.and_then(|()| file.sync_data()).map_err(failed("write", &self.path))
    }

    /// Removes the record, durably.
    ///
    /// # Errors
    /// Fails as unlink(2) and fsync(2) do.
    pub fn remove(&self) -> Result<(), FileError> {
        whole_file::remove(&self.path).map(drop)
    }
}

/// An exclusive lock on a directory, held until it is dropped. It excludes other holders in this process,
/// too.
#[derive(Debug)]
pub struct DirectoryLock(File);

impl AsFd for DirectoryLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl DirectoryLock {
    /// Locks a directory; waits until nobody else holds the lock.
    ///
    /// # Errors
    /// Fails as open(2) and flock(2) do. Directories on NFS cannot be locked (EBADF).
    pub fn acquire(directory: &Path) -> io::Result<Self> {
        let file = File::open(directory)?;
        loop {
            match flock(&file, FlockOperation::LockExclusive) {
                Err(Errno::INTR) => {}
                outcome => return outcome.map(|()| Self(file)).map_err(io::Error::from),
            }
        }
    }

    /// Locks a directory without waiting; returns `None` while another holds the lock.
    ///
    /// # Errors
    /// Fails as [`acquire`](Self::acquire) does.
    pub fn try_take(directory: &Path) -> io::Result<Option<Self>> {
        let file = File::open(directory)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Ok(None),
            outcome => outcome.map(|()| Some(Self(file))).map_err(io::Error::from),
        }
    }
}

fn open(path: &Path, flags: OFlags) -> rustix::io::Result<File> {
    let own = OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::open(path, flags | own, Mode::RUSR | Mode::WUSR).map(File::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_dead(path: &Path) -> bool {
        matches!(LockedRecord::take_over(path).unwrap(), Owner::Dead(_))
    }

    #[test]
    fn a_record_belongs_to_its_owner_until_that_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record");
        assert!(matches!(LockedRecord::take_over(&path).unwrap(), Owner::None));
        let record = LockedRecord::create(&path).unwrap().unwrap();
        record.append(b"one\n").unwrap();
        record.write_start(b"O").unwrap();
        record.append(b"two\n").unwrap();
        assert!(LockedRecord::create(&path).unwrap().is_none() && !is_dead(&path));
        drop(record);
        let Owner::Dead(left) = LockedRecord::take_over(&path).unwrap() else { panic!("its owner is gone") };
        assert_eq!(left.read().unwrap(), b"One\ntwo\n");
        assert!(!is_dead(&path), "it was taken over");
        left.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_record_that_another_one_has_replaced_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let (path, other) = (directory.path().join("record"), directory.path().join("other"));
        drop(LockedRecord::create(&path).unwrap().unwrap());
        let file = open(&path, OFlags::RDWR).unwrap();
        drop(LockedRecord::create(&other).unwrap().unwrap());
        fs::rename(&other, &path).unwrap();
        assert!(!LockedRecord { path: path.clone(), file }.is_at_its_path());
        assert!(is_dead(&path));
    }

    #[test]
    fn what_is_held_stays_and_a_link_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join("lock"), directory.path().join("link"));
        let held = LockedRecord::hold(&path).unwrap().unwrap();
        assert!(LockedRecord::hold(&path).unwrap().is_none());
        drop(held);
        assert!(LockedRecord::hold(&path).unwrap().is_some());
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(LockedRecord::hold(&link).is_err() && LockedRecord::take_over(&link).is_err());
        assert!(is_dead(directory.path()), "a directory is a record, too");
    }
}
