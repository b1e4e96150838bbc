//! A directory of this machine as a [`FileStore`].
//!
//! - `beneath`: paths that cannot leave the directory.
//! - `open_file`: an open file and the record of its failed syncs.
//!
//! Invariant: after a failed sync of a file by any call (fsync, fdatasync, sync_file_range, a write to a file
//! opened with `dsync`), every later sync of that file fails with the same error number, even through another
//! [`FileId`] or after the file was closed and reopened. The kernel would report success, because it reports
//! a failed write-back once and marks the pages clean.

mod beneath;
mod open_file;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plumb_block::{Bytes, Error, ErrorKind, FileId, FileStore, OpenOptions, Result};
use rustix::fs::{AtFlags, Mode, OFlags};

use beneath::Root;
use open_file::{FailedSyncs, OpenFile};

/// Files in a directory tree.
pub struct DirectoryStore {
    root: Root,
    files: Mutex<HashMap<FileId, Arc<OpenFile>>>,
    next: AtomicU64,
    failed: Arc<FailedSyncs>,
}

impl DirectoryStore {
    /// Opens the store in an existing directory.
    ///
    /// # Errors
    /// Fails as open(2) does; ENOTDIR if the path is not a directory.
    pub fn open(directory: &Path) -> Result<Self> {
        Ok(Self {
            root: Root::open(directory)?,
            files: Mutex::default(),
            next: AtomicU64::new(0),
            failed: Arc::default(),
        })
    }

    fn file(&self, file: FileId) -> Result<Arc<OpenFile>> {
        self.table().get(&file).cloned().ok_or_else(|| self.not_open(file))
    }

    fn table(&self) -> MutexGuard<'_, HashMap<FileId, Arc<OpenFile>>> {
        // A panic elsewhere cannot leave the map half-changed: entries are only inserted and removed.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn not_open(&self, file: FileId) -> Error {
        Error::new(ErrorKind::Invalid, "use", self.root.place(Path::new(&format!("file #{}", file.0))))
            .because("it is not open")
    }

    fn failed(&self, errno: rustix::io::Errno, operation: &'static str, path: &Path) -> Error {
        Error::io(&errno.into(), operation, self.root.place(path))
    }
}

impl FileStore for DirectoryStore {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<FileId> {
        let mut flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY;
        if options.create {
            flags |= OFlags::CREATE | OFlags::EXCL;
        }
        if options.direct {
            flags |= OFlags::DIRECT;
        }
        if options.dsync {
            // `OFlags::DSYNC` of rustix is O_SYNC on this system, which syncs more than needed.
            flags |= OFlags::from_bits_retain(libc::O_DSYNC.cast_unsigned());
        }
        let mode = if options.create { Mode::RUSR | Mode::WUSR } else { Mode::empty() };
        let file = self.root.open_beneath(path, flags, mode).map_err(|errno| match errno {
            rustix::io::Errno::INVAL if options.direct => crate::file::direct_refused(&self.root.place(path)),
            errno => self.failed(errno, "open", path),
        })?;
        let file = OpenFile::new(file, self.root.place(path), options.dsync, Arc::clone(&self.failed))?;
        let id = FileId(self.next.fetch_add(1, Ordering::Relaxed));
        self.table().insert(id, Arc::new(file));
        Ok(id)
    }

    fn close(&self, file: FileId) -> Result<()> {
        self.table().remove(&file).map(|_| ()).ok_or_else(|| self.not_open(file))
    }

    fn read_at(&self, file: FileId, offset: Bytes, into: &mut [u8]) -> Result<()> {
        self.file(file)?.read_at(offset, into)
    }

    fn write_at(&self, file: FileId, offset: Bytes, bytes: &[u8]) -> Result<()> {
        self.file(file)?.write_at(offset, bytes)
    }

    fn append(&self, file: FileId, bytes: &[u8]) -> Result<Bytes> {
        self.file(file)?.append(bytes)
    }

    fn truncate(&self, file: FileId, size: Bytes) -> Result<()> {
        self.file(file)?.truncate(size)
    }

    fn fsync(&self, file: FileId) -> Result<()> {
        self.file(file)?.fsync()
    }

    fn fdatasync(&self, file: FileId) -> Result<()> {
        self.file(file)?.fdatasync()
    }

    fn sync_file_range(&self, file: FileId, offset: Bytes, length: Bytes) -> Result<()> {
        self.file(file)?.sync_file_range(offset, length)
    }

    /// Limitation: the kernel reports failures of write-back here only since Linux 5.8.
    fn syncfs(&self) -> Result<()> {
        self.failed
            .guard_all(|| rustix::fs::syncfs(self.root.directory()))
            .map_err(|errno| self.failed(errno, "sync the file system of", Path::new("")))
    }

    fn fsync_directory(&self, directory: &Path) -> Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = self
            .root
            .open_beneath(directory, flags, Mode::empty())
            .map_err(|errno| self.failed(errno, "open", directory))?;
        OpenFile::new(opened, self.root.place(directory), false, Arc::clone(&self.failed))?.fsync()
    }

    fn create_directory(&self, directory: &Path) -> Result<()> {
        let failed = |errno| self.failed(errno, "create", directory);
        let (parent, name) = self.root.parent_of(directory).map_err(failed)?;
        rustix::fs::mkdirat(parent, name, Mode::RWXU).map_err(failed)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let failed = |errno| self.failed(errno, "rename", from);
        let (from_parent, from_name) = self.root.parent_of(from).map_err(failed)?;
        let (to_parent, to_name) = self.root.parent_of(to).map_err(failed)?;
        rustix::fs::renameat(from_parent, from_name, to_parent, to_name).map_err(failed)
    }

    fn unlink(&self, path: &Path) -> Result<()> {
        let failed = |errno| self.failed(errno, "unlink", path);
        let (parent, name) = self.root.parent_of(path).map_err(failed)?;
        rustix::fs::unlinkat(parent, name, AtFlags::empty()).map_err(failed)
    }
}

#[cfg(test)]
mod tests;
