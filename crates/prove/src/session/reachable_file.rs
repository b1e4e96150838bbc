//! Control file at a path that every user can reach.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::mount::{UnmountFlags, mount_bind, unmount};

use crate::error::{Error, Result, cannot};
use crate::mount_point::MountPoint;

/// File mounted a second time, in a directory of its own. Dropping it unmounts it.
pub(super) struct ReachableFile {
    path: PathBuf,
    directory: Option<MountPoint>,
}

impl ReachableFile {
    /// Mounts `file` in a directory below `directory` that every user can reach. Must be called where
    /// isolated threads see the mount.
    pub(super) fn new(file: &Path, directory: &Path) -> Result<Self> {
        let scratch = MountPoint::scratch(directory)?;
        let path = scratch.path().join("acknowledge");
        let bound = File::create(&path).and_then(|_| Ok(mount_bind(file, &path)?));
        bound.map_err(cannot("mount the control file where every user can reach it"))?;
        Ok(Self { path, directory: Some(scratch) })
    }

    /// Returns the path of the second mount.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Unmounts the file and removes its directory.
    pub(super) fn close(mut self) -> Result<()> {
        self.unmount();
        self.directory.take().map_or(Ok(()), MountPoint::close)
    }

    fn unmount(&self) {
        // The file may still be open.
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

/// Adds a hint on access to the control file to an error of a program that names it.
pub(super) fn with_hint(error: Error, control: &Path) -> Error {
    let what = error.to_string();
    if !what.contains(&*control.to_string_lossy()) {
        return error;
    }
    let hint = "a program in a chroot or a container does not see PLUMB_ACK: let it write to a descriptor that was \
                opened outside (`exec 3> \"$PLUMB_ACK\"`); one that becomes another user needs a TMPDIR that this user can \
                reach, and --user NAME runs it as another user from its start";
    Error::new(error.kind, format!("{what}; {hint}"))
}
