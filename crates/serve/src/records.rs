//! Directories of this user's alone where processes keep records of what they serve, for those that come after them.
//!
//! A record is a file that its server keeps locked for as long as it lives. The kernel lets go of a lock when its holder dies,
//! however that happens, so a record that can be locked has no server: no number of a process, which is another's some day, is
//! needed. A directory is locked while records come and go.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use plumb_state::whole_file::lock_directory;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

use crate::error::{ExportError, Result, at};

/// A directory that nobody else can enter.
#[derive(Debug, Clone)]
pub(crate) struct PrivateDirectory(PathBuf);

impl PrivateDirectory {
    /// `path`, made if it is not there.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        DirBuilder::new().mode(0o700).recursive(true).create(path).map_err(at("make", path))?;
        let found = fs::symlink_metadata(path).map_err(at("look at", path))?;
        let is_private =
            found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 == 0;
        if !is_private {
            return Err(ExportError::Directory(path.to_owned()));
        }
        // As the kernel will show it in the paths of backing files.
        path.canonicalize().map(Self).map_err(at("look at", path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Waits until nobody else changes anything here.
    pub(crate) fn lock(&self) -> Result<Lock> {
        Lock::directory(&self.0).map_err(at("lock", &self.0))
    }

    /// What is in it, by name, in order.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let entries = fs::read_dir(&self.0).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = entries.map_err(at("list", &self.0))?;
        let mut names: Vec<String> =
            entries.iter().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        Ok(names)
    }
}

/// A file or directory that is locked against all others, in this process too, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Lock {
    /// Locks a directory, as soon as nobody else does.
    pub(crate) fn directory(path: &Path) -> io::Result<Self> {
        lock_directory(path).map(Self)
    }

    /// Makes the record at `path`, locked, with `text` in it.
    pub(crate) fn new_record(path: &Path, text: &str) -> Result<Self> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).map_err(at("make", path))?;
        let taken = || at::<io::Error>("lock", path)(io::ErrorKind::WouldBlock.into());
        let lock = Self::unless_taken(file.into()).map_err(at("lock", path))?.ok_or_else(taken)?;
        lock.write(text).map_err(at("write", path))?;
        Ok(lock)
    }

    /// What there is of the record at `path`.
    pub(crate) fn found_record(path: &Path) -> Result<Found<Self>> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = match rustix::fs::open(path, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(Found::None),
            opened => File::from(opened.map_err(at("open", path))?),
        };
        let lock = Self::unless_taken(file).map_err(at("lock", path))?;
        Ok(lock.map_or(Found::Served, Found::Dead))
    }

    fn unless_taken(file: File) -> io::Result<Option<Self>> {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(other) => Err(other.into()),
        }
    }

    /// Overwrites the beginning of the record.
    pub(crate) fn write(&self, text: &str) -> io::Result<()> {
        self.0.write_all_at(text.as_bytes(), 0)
    }

    /// What is in the record.
    pub(crate) fn read(&self) -> io::Result<String> {
        io::read_to_string(&self.0)
    }
}

/// What there is of a record.
#[derive(Debug)]
pub(crate) enum Found<R> {
    /// Nothing.
    None,
    /// Its server lives.
    Served,
    /// Its server is dead; the record is ours now.
    Dead(R),
}

/// Removes a file or directory; that it is not there is fine.
pub(crate) fn remove_if_there(path: &Path, remove: impl FnOnce(&Path) -> io::Result<()>) -> Result<()> {
    match remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at("remove", path)(error)),
        _ => Ok(()),
    }
}

/// What was done about what killed servers have left.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// What is gone: names of attachments, `/dev/ublkbN`.
    pub removed: Vec<String>,
    /// What had to stay although its server is dead, each with the reason: somebody uses it. It goes with the next sweep after that
    /// has ended.
    pub kept: Vec<(String, String)>,
}
