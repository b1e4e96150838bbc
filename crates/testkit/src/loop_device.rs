//! Loop devices and mounts that a test makes and takes away again.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::program::run;

/// Returns why drives cannot be attached and mounted here, if so.
pub fn cannot_attach(programs: &[&str]) -> Option<String> {
    if !Path::new("/proc/self").metadata().is_ok_and(|own| own.uid() == 0) {
        return Some("attaching takes root".to_owned());
    }
    if let Some(missing) = ["/dev/fuse", "/dev/loop-control"].iter().find(|path| !Path::new(path).exists()) {
        return Some(format!("there is no {missing}"));
    }
    let is_missing = |name: &&&str| Command::new(name).arg("--version").output().is_err();
    programs.iter().find(is_missing).map(|name| format!("there is no {name}"))
}

/// Returns true if drives can be attached and mounted here; says so if not.
pub fn can_attach() -> bool {
    cannot_attach(&[]).inspect(|why| crate::skip(why)).is_none()
}

/// A loop device of a test. It is set to vanish with its last opener, so nothing stays after SIGKILL.
pub struct LoopDevice {
    /// Path of the device.
    pub path: String,
    /// Name that the kernel gives the device.
    pub name: String,
    _holds_it: File,
}

impl LoopDevice {
    /// Makes a loop device over `file`, with these options of losetup(8); `None`, and said, if this machine
    /// gives none.
    pub fn over(file: &Path, options: &[&str]) -> Option<Self> {
        Self::try_over(file, options).map_err(|why| crate::skip(&format!("no loop device: {why}"))).ok()
    }

    /// Makes a loop device over `file`, with these options of losetup(8).
    ///
    /// # Errors
    /// Why there is none (not root, no losetup).
    pub fn try_over(file: &Path, options: &[&str]) -> Result<Self, String> {
        let file = file.display().to_string();
        let path = run("losetup", &[&["--find", "--show"][..], options, &[&file]].concat())?;
        let opened = File::open(&path).map_err(|error| error.to_string());
        // Detaching a device that is open waits for its last opener.
        run("losetup", &["--detach", &path])?;
        let name = path.trim_start_matches("/dev/").to_owned();
        Ok(Self { path, name, _holds_it: opened? })
    }

    /// Returns the path of the device.
    pub fn as_path(&self) -> &Path {
        Path::new(&self.path)
    }
}

/// A mount of a test, undone on drop.
pub struct Mount {
    /// Mount point.
    pub point: TempDir,
}

impl Mount {
    /// Mounts with these arguments of mount(8), to which the directory is added.
    ///
    /// # Errors
    /// Why it is not mounted.
    pub fn new(arguments: &[&str]) -> Result<Self, String> {
        let point = tempfile::tempdir().map_err(|error| error.to_string())?;
        run("mount", &[arguments, &[&point.path().display().to_string()]].concat())?;
        Ok(Self { point })
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(error) = run("umount", &["--lazy", &self.point.path().display().to_string()]) {
            eprintln!("left mounted: {error}");
        }
    }
}
