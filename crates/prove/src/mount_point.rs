//! Temporary directories for mounts and files. Directories of a killed plumb are removed by the next one.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use plumb_state::{LockedRecord, Owner};
use tempfile::TempDir;

use crate::error::{Error, Result, cannot};

/// Number of attempts to remove a directory in which other processes still create files.
const REMOVALS_MAX: usize = 100;

/// Use of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Something is mounted at it.
    Mounts,
    /// Files are created in it.
    Files,
}

impl Use {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Mounts => "plumb-prove-",
            Self::Files => "plumb-scratch-",
        }
    }
}

/// Temporary directory, empty at first and locked while in use. Removed on drop.
pub(crate) struct MountPoint {
    directory: TempDir,
    holds: Use,
    _lock: LockedRecord,
}

impl Drop for MountPoint {
    fn drop(&mut self) {
        if self.holds == Use::Files {
            // Interrupted processes may still create files.
            (0..REMOVALS_MAX).find(|_| remove_tree(self.path()).is_ok() || !self.path().exists());
        }
    }
}

impl MountPoint {
    /// Creates a mount point in `directory`, and removes those that killed processes left there.
    pub(crate) fn new(directory: &Path) -> Result<Self> {
        Self::make(directory, Use::Mounts)
    }

    /// Creates a directory for files in `directory`, and removes those that killed processes left there.
    pub(crate) fn scratch(directory: &Path) -> Result<Self> {
        Self::make(directory, Use::Files)
    }

    fn make(directory: &Path, of: Use) -> Result<Self> {
        sweep(directory, of);
        let made = tempfile::Builder::new().prefix(of.prefix()).tempdir_in(directory);
        let made = made.map_err(|error| {
            let what = format!("cannot make a directory in {}: {error}", directory.display());
            Error::missing(what, "make room there, or name another directory with TMPDIR")
        })?;
        match LockedRecord::take_over(made.path()).map_err(|error| Error::failed(&error, &error.source))? {
            Owner::Dead(lock) => {
                let made = Self { directory: made, holds: of, _lock: lock };
                made.open_to_others()?;
                Ok(made)
            }
            // Another process took the directory for an abandoned one before it was locked.
            Owner::Alive | Owner::None => Self::make(directory, of),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Lets other users open files in the directory by name, since a program that root starts may become
    /// another user. Programs of other users do not know the names.
    fn open_to_others(&self) -> Result<()> {
        if self.holds == Use::Mounts || !rustix::process::geteuid().is_root() {
            return Ok(());
        }
        let opened = fs::set_permissions(self.path(), fs::Permissions::from_mode(0o711));
        opened.map_err(cannot(format!("open {} to others", self.path().display())))
    }

    /// Removes the directory and its contents.
    pub(crate) fn close(self) -> Result<()> {
        let failed = cannot(format!("remove {}", self.path().display()));
        if fs::remove_dir(self.path()).is_ok() {
            return Ok(());
        }
        remove_tree(self.path()).map_err(failed)
    }
}

/// Removes a directory and its contents, including directories that deny access to their owner.
pub(crate) fn remove_tree(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_directories(directory)?;
            fs::remove_dir_all(directory)
        }
        removed => removed,
    }
}

fn open_directories(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_directories(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes abandoned directories.
fn sweep(directory: &Path, of: Use) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(of.prefix());
        if is_ours && let Ok(Owner::Dead(_lock)) = LockedRecord::take_over(&entry.path()) {
            let removed = match of {
                // A directory that is not empty, or is a mount point, is in use by another program.
                Use::Mounts => fs::remove_dir(entry.path()),
                Use::Files => remove_tree(&entry.path()),
            };
            removed.unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_killed_process_go_and_those_of_a_living_one_stay() {
        let place = tempfile::tempdir().unwrap();
        let in_use = MountPoint::scratch(place.path()).unwrap();
        fs::write(in_use.path().join("file"), "x").unwrap();
        let left = place.path().join("plumb-scratch-left");
        fs::create_dir_all(left.join("closed/within")).unwrap();
        fs::set_permissions(left.join("closed"), fs::Permissions::from_mode(0o0)).unwrap();
        MountPoint::scratch(place.path()).unwrap().close().unwrap();
        assert_eq!([left.exists(), in_use.path().join("file").exists()], [false, true]);
        in_use.close().unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_killed_process_has_left_goes_and_what_is_in_use_or_not_empty_stays() {
        let place = tempfile::tempdir().unwrap();
        let in_use = MountPoint::new(place.path()).unwrap();
        let [left, full, other] =
            ["plumb-prove-left", "plumb-prove-full", "other"].map(|name| place.path().join(name));
        [&left, &full, &other].into_iter().for_each(|path| fs::create_dir(path).unwrap());
        fs::write(full.join("file"), "x").unwrap();
        let next = MountPoint::new(place.path()).unwrap();
        let there = [&left, &full, &other, &in_use.path().to_owned()].map(|path| path.exists());
        assert_eq!(there, [false, true, true, true]);
        next.close().unwrap();
        in_use.close().unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2);
    }
}
