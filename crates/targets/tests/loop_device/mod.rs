//! Loop devices and mounts that a test makes and takes away again.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::support::run;

/// A loop device of our own. It is set to vanish with its last opener, so nothing stays after SIGKILL.
pub(crate) struct LoopDevice {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
    _holds_it: File,
}

impl LoopDevice {
    /// Returns a loop device over `file`, or why there is none (not root, no losetup).
    pub(crate) fn over(file: &Path, options: &[&str]) -> Result<Self, String> {
        let file = file.display().to_string();
        let arguments = [&["--find", "--show"][..], options, &[&file]].concat();
        let path = PathBuf::from(run("losetup", &arguments)?);
        let opened = File::open(&path).map_err(|error| error.to_string());
        // Detaching a device that is open waits for its last opener.
        run("losetup", &["--detach", &path.display().to_string()])?;
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Ok(Self { path, name, _holds_it: opened? })
    }
}

/// A mount of our own, undone on drop.
pub(crate) struct Mount {
    pub(crate) point: tempfile::TempDir,
}

impl Mount {
    /// Mounts `device`, or says why not.
    pub(crate) fn new(device: &Path) -> Result<Self, String> {
        let point = tempfile::tempdir().map_err(|error| error.to_string())?;
        run("mount", &[&device.display().to_string(), &point.path().display().to_string()])?;
        Ok(Self { point })
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(error) = run("umount", &[&self.point.path().display().to_string()]) {
            eprintln!("left mounted: {error}");
        }
    }
}
