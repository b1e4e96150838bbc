//! Private directories in which processes keep records of what they serve, for later processes.
//!
//! A record is a [`LockedRecord`](plumb_state::LockedRecord). A directory is locked while records are added
//! or removed.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use plumb_state::DirectoryLock;
use plumb_state::whole_file::FileError;

use crate::error::{ExportError, Result, at};

/// A directory that only its owner can enter.
#[derive(Debug, Clone)]
pub(crate) struct PrivateDirectory(PathBuf);

impl PrivateDirectory {
    /// Opens `path`, creating it if needed.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        DirBuilder::new().mode(0o700).recursive(true).create(path).map_err(at("make", path))?;
        let found = fs::symlink_metadata(path).map_err(at("look at", path))?;
        if found.uid() != rustix::process::geteuid().as_raw() {
            let why = io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user");
            return Err(at("use", path)(why));
        }
        if !found.is_dir() || found.mode() & 0o077 != 0 {
            return Err(ExportError::Directory(path.to_owned()));
        }
        // The kernel shows canonical paths of backing files.
        path.canonicalize().map(Self).map_err(at("look at", path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Locks the directory against changes by others; waits for the lock.
    pub(crate) fn lock(&self) -> Result<DirectoryLock> {
        DirectoryLock::acquire(&self.0).map_err(at("lock", &self.0))
    }

    /// Locks the directory against changes by others; `None` if it is locked already.
    pub(crate) fn try_lock(&self) -> Result<Option<DirectoryLock>> {
        DirectoryLock::try_take(&self.0).map_err(at("lock", &self.0))
    }

    /// Returns the sorted names in the directory.
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

/// Removes a file or directory; a missing one is not an error.
pub(crate) fn remove_if_there(path: &Path, remove: impl FnOnce(&Path) -> io::Result<()>) -> Result<()> {
    match remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Result of removing the remains of killed servers.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Removed items: names of attachments, `/dev/ublkbN`.
    pub removed: Vec<String>,
    /// Items that could not be removed because they are in use, each with the reason. A later sweep removes
    /// them.
    pub kept: Vec<(String, String)>,
}
