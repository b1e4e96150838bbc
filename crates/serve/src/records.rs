//! Directories of this user's alone where processes keep records of what they serve, for those that come
//! after them.
//!
//! A record is a [`LockedRecord`](plumb_state::LockedRecord). A directory is locked while records come and
//! go.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use plumb_state::DirectoryLock;
use plumb_state::whole_file::FileError;

use crate::error::{ExportError, Result, at};

/// A directory that nobody else can enter.
#[derive(Debug, Clone)]
pub(crate) struct PrivateDirectory(PathBuf);

impl PrivateDirectory {
    /// Returns `path`, made if it is not there.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        DirBuilder::new().mode(0o700).recursive(true).create(path).map_err(at("make", path))?;
        let found = fs::symlink_metadata(path).map_err(at("look at", path))?;
        let is_private =
            found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 == 0;
        if !is_private {
            return Err(ExportError::Directory(path.to_owned()));
        }
        // The kernel will show the canonical path in the paths of backing files.
        path.canonicalize().map(Self).map_err(at("look at", path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Waits until nobody else changes anything here, and keeps others from it.
    pub(crate) fn lock(&self) -> Result<DirectoryLock> {
        DirectoryLock::acquire(&self.0).map_err(at("lock", &self.0))
    }

    /// Keeps others from changing anything here; `None` while somebody does.
    pub(crate) fn try_lock(&self) -> Result<Option<DirectoryLock>> {
        DirectoryLock::try_take(&self.0).map_err(at("lock", &self.0))
    }

    /// Returns the names in the directory, in order.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let entries = fs::read_dir(&self.0).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = entries.map_err(at("list", &self.0))?;
        let mut names: Vec<String> =
            entries.iter().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        Ok(names)
    }
}

impl From<FileError> for ExportError {
    fn from(FileError { operation, path, source }: FileError) -> Self {
        Self::Os { operation, place: path, source }
    }
}

/// Removes a file or directory; that it is not there is fine.
pub(crate) fn remove_if_there(path: &Path, remove: impl FnOnce(&Path) -> io::Result<()>) -> Result<()> {
    match remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Result of sweeping up what killed servers have left.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Removed items: names of attachments, `/dev/ublkbN`.
    pub removed: Vec<String>,
    /// Items that had to stay although their server is dead, each with the reason: somebody uses it. They go
    /// with the next sweep after that has ended.
    pub kept: Vec<(String, String)>,
}
