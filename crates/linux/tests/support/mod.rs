//! Shared parts of the tests of real devices: a rig over anything that can be opened, and things that only
//! root can make.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plumb_block::conformance::{CannotStage, Rig};
use plumb_block::{
    Bytes, Caching, Clock, Device, LbaRange, Pool, PoolShape, QueueOptions, RealClock, Result,
};
use plumb_linux::{FileDevice, FileOptions, Filling, TestFile, layout};

/// Number of requests that the queues of the rigs hold.
pub(crate) const DEPTH: u32 = 8;

/// A step that makes something fail, by the rig's user.
pub(crate) type Stage = Box<dyn FnMut()>;

/// A file or block device as a rig.
pub(crate) struct FileRig {
    path: PathBuf,
    options: FileOptions,
    clock: Arc<RealClock>,
    pool: Pool,
    /// Makes the next flush fail.
    pub(crate) fail_flush: Option<Stage>,
    /// Leaves requests unanswered, and answers them.
    pub(crate) hold: Option<(Stage, Stage)>,
}

impl FileRig {
    pub(crate) fn new(path: &Path, options: FileOptions) -> Self {
        let shape = PoolShape { buffer: Bytes::kib(64), count: DEPTH * 4, alignment: Bytes::kib(4) };
        Self {
            path: path.to_owned(),
            options,
            clock: Arc::new(RealClock::start()),
            pool: Pool::new(shape).expect("memory for a pool"),
            fail_flush: None,
            hold: None,
        }
    }
}

impl Rig for FileRig {
    fn describe(&self) -> String {
        format!("{} opened with {:?}", self.path.display(), self.options)
    }

    fn renew(&mut self) -> Result<Arc<dyn Device>> {
        let device = FileDevice::open(&self.path, self.options, Arc::clone(&self.clock) as _)?;
        Ok(Arc::new(device))
    }

    fn queue_options(&self) -> QueueOptions {
        QueueOptions { depth: DEPTH, pool: self.pool.clone() }
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as _
    }

    fn range(&self) -> LbaRange {
        LbaRange::new(plumb_block::Lba(8), 64)
    }

    /// Returns a loop device copies through the page cache of its file, however it is opened itself.
    fn is_page_cached(&self) -> bool {
        self.options.opening.caching != Caching::Direct || self.path.starts_with("/dev")
    }

    fn fail_next_flush(&mut self) -> std::result::Result<(), CannotStage> {
        let Some(fail) = &mut self.fail_flush else {
            return Err(CannotStage("no flush of this file can be made to fail".to_owned()));
        };
        fail();
        Ok(())
    }

    fn hold_next_request(&mut self) -> std::result::Result<(), CannotStage> {
        let Some((hold, _)) = &mut self.hold else {
            return Err(CannotStage("the kernel answers every request to this file".to_owned()));
        };
        hold();
        Ok(())
    }

    fn release_held(&mut self) {
        if let Some((_, release)) = &mut self.hold {
            release();
        }
    }
}

/// Returns a filled test file of 4 MiB in `directory`.
pub(crate) fn test_file(directory: &Path) -> TestFile {
    let stop = AtomicBool::new(false);
    let filling = Filling { seed: 5, stop: &stop, progress: &mut |_| {} };
    let file = TestFile::create(directory, Bytes::mib(4)).expect("a test file");
    layout::write(&file.path(), Bytes(0), file.size(), Bytes(512), filling).expect("a filled test file");
    file
}

/// Returns one test at a time: while one starts a program, the child holds a copy of the other's exclusive
/// descriptor for a moment, and opening the device again fails with EBUSY. Every test that runs a program or
/// claims a device holds this.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a command; its output, or why not.
pub(crate) fn run(program: &str, arguments: &[&str]) -> std::result::Result<String, String> {
    let output =
        Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(format!("{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}

/// A loop device of our own. It is set to vanish with its last opener, so nothing stays after SIGKILL.
pub(crate) struct LoopDevice {
    pub(crate) path: PathBuf,
    _holds_it: File,
}

impl LoopDevice {
    /// Returns a loop device over `file`, or why there is none (not root, no losetup).
    pub(crate) fn over(file: &Path) -> std::result::Result<Self, String> {
        let path = PathBuf::from(run("losetup", &["--find", "--show", &file.display().to_string()])?);
        let opened = File::open(&path).map_err(|error| error.to_string());
        // Detaching a device that is open waits for its last opener.
        run("losetup", &["--detach", &path.display().to_string()])?;
        Ok(Self { path, _holds_it: opened? })
    }
}

/// A file system of our own, unmounted on drop.
pub(crate) struct Mount {
    pub(crate) directory: tempfile::TempDir,
}

impl Mount {
    /// Mounts with these arguments of mount(8), the directory being added; or why not.
    pub(crate) fn new(arguments: &[&str]) -> std::result::Result<Self, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut arguments = arguments.to_vec();
        let path = directory.path().display().to_string();
        arguments.push(&path);
        run("mount", &arguments)?;
        Ok(Self { directory })
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(error) = run("umount", &["--lazy", &self.directory.path().display().to_string()]) {
            eprintln!("left mounted: {error}");
        }
    }
}
