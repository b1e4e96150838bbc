//! Shared parts of the tests of attachments: their directories, and the programs that they run on attached
//! devices.

pub(crate) mod disk;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use disk::{Disk, SharedDisk};
use plumb_serve::attach::{AttachOptions, Attachment};

/// Time limit for an expected event, after which a test fails.
pub(crate) const LIMIT: Duration = Duration::from_secs(600);

/// A directory for the attachments of one test.
pub(crate) struct Place {
    root: tempfile::TempDir,
}

impl Place {
    /// Returns a new place; `None`, with a message, if attaching is not possible here.
    pub(crate) fn new() -> Option<Self> {
        for (path, what) in [("/dev/fuse", "FUSE"), ("/dev/loop-control", "loop devices")] {
            if let Err(error) = std::fs::OpenOptions::new().read(true).write(true).open(path) {
                plumb_testkit::skip(&format!("no {what} here: {path}: {error}"));
                return None;
            }
        }
        if !rustix::process::geteuid().is_root() {
            plumb_testkit::skip("only root can mount");
            return None;
        }
        Some(Self { root: tempfile::tempdir().unwrap() })
    }

    /// Returns the directory of the attachments.
    pub(crate) fn directory(&self) -> PathBuf {
        self.root.path().join("attach")
    }

    /// Returns the options for this directory.
    pub(crate) fn options(&self) -> AttachOptions {
        AttachOptions { directory: Some(self.directory()), ..AttachOptions::default() }
    }

    /// Attaches `disk`.
    pub(crate) fn attach(&self, disk: &Arc<Disk>, name: &str) -> Attachment {
        Attachment::new(Arc::new(SharedDisk(Arc::clone(disk))), name, &self.options()).unwrap()
    }

    /// Returns true if anything is mounted below the directory.
    pub(crate) fn has_mounts(&self) -> bool {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        mounts.contains(&self.root.path().display().to_string())
    }

    /// Returns the names of the remaining entries of the directory, except its lock.
    pub(crate) fn left(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    /// Returns the loop devices whose file is below the directory.
    pub(crate) fn loop_devices(&self) -> Vec<PathBuf> {
        let root = self.root.path().canonicalize().unwrap();
        let blocks = std::fs::read_dir("/sys/block").unwrap().map(|entry| entry.unwrap().path());
        let is_ours = |path: &PathBuf| {
            std::fs::read_to_string(path.join("loop/backing_file"))
                .is_ok_and(|file| Path::new(file.trim()).starts_with(&root))
        };
        blocks.filter(is_ours).collect()
    }
}

/// Runs a command. Returns its output, or the reason of the failure.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output =
        Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() { Ok(text) } else { Err(format!("{program} {arguments:?}: {text}")) }
}

/// Waits until `condition` holds; fails the test if it never does.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < until, "waited in vain until {what}");
        std::thread::yield_now();
    }
}

/// A file system mounted in its own directory, unmounted on drop.
pub(crate) struct MountedFileSystem {
    pub(crate) directory: tempfile::TempDir,
}

impl MountedFileSystem {
    pub(crate) fn new(device: &Path) -> Result<Self, String> {
        let directory = tempfile::tempdir().unwrap();
        run("mount", &[&device.display().to_string(), &directory.path().display().to_string()])?;
        Ok(Self { directory })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn unmount(self) -> Result<(), String> {
        let path = self.path().display().to_string();
        std::mem::forget(self);
        run("umount", &[&path])?;
        std::fs::remove_dir(path).map_err(|error| error.to_string())
    }
}

impl Drop for MountedFileSystem {
    fn drop(&mut self) {
        if let Err(error) = run("umount", &["--lazy", &self.path().display().to_string()]) {
            eprintln!("left mounted: {error}");
        }
    }
}
