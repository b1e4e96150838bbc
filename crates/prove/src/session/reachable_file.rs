//! A file of root's at a path that another user can reach.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::mount::{UnmountFlags, mount_bind, unmount};

use crate::error::{Result, cannot};
use crate::mount_point::MountPoint;
use crate::subject::User;

/// A file that is mounted a second time, in a directory of its own. Dropping it unmounts it.
pub(super) struct ReachableFile {
    path: PathBuf,
    directory: Option<MountPoint>,
}

impl ReachableFile {
    /// Mounts `file` in a directory beneath `directory` that `user` can reach. To be called where threads
    /// apart see the mount.
    pub(super) fn new(file: &Path, directory: &Path, user: &User) -> Result<Self> {
        let scratch = MountPoint::scratch(directory)?;
        scratch.open_to_others()?;
        let path = scratch.path().join("acknowledge");
        let bound = File::create(&path).and_then(|_| Ok(mount_bind(file, &path)?));
        bound.map_err(cannot(format!("mount the control file where {} can reach it", user.name())))?;
        Ok(Self { path, directory: Some(scratch) })
    }

    /// Returns where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Unmounts it and removes its directory.
    pub(super) fn close(mut self) -> Result<()> {
        self.unmount();
        self.directory.take().map_or(Ok(()), MountPoint::close)
    }

    fn unmount(&self) {
        // Somebody may still have it open.
        unmount(&self.path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW).unwrap_or_default();
        fs::remove_file(&self.path).unwrap_or_default();
    }
}

impl Drop for ReachableFile {
    fn drop(&mut self) {
        if self.directory.is_some() {
            self.unmount();
        }
    }
}
