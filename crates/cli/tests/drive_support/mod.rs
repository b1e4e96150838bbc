//! Support for tests of served drives: a server that ends with its test, orders to it, and file systems on
//! it.

pub(crate) mod papers;

use std::fs::{self, File};
use std::io::{BufReader, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub(crate) use plumb_testkit::loop_device::cannot_attach;
use rustix::fs::OFlags;
use rustix::io::Errno;
use serde_json::Value;

use crate::common::{own_words, plumb, said};

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Returns a name that no other test and no user has.
pub(crate) fn name() -> String {
    format!("test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Starts a server, and waits for the document that it prints when it is ready.
pub(crate) fn served(command: &mut Command) -> (Value, Child) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let document = serde_json::Deserializer::from_reader(&mut stdout).into_iter().next();
    let Some(Ok(document)) = document else {
        panic!("{command:?} did not get ready: {}", said(&child.wait_with_output().unwrap()));
    };
    (document, child)
}

/// Process of `plumb drive serve`; ended on drop.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) document: Value,
    child: Option<Child>,
}

impl Server {
    /// Serves a drive, and waits until it is ready.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_named(&name(), arguments)
    }

    /// Serves a drive under this name, and waits until it is ready.
    pub(crate) fn start_named(name: &str, arguments: &[&str]) -> Self {
        let name = name.to_owned();
        let (document, child) =
            served(plumb().args(["drive", "serve", "--json", "--name", &name]).args(arguments));
        Self { name, document, child: Some(child) }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Returns the loop device.
    pub(crate) fn device(&self) -> &str {
        self.document["device"].as_str().unwrap()
    }

    /// Returns the output of `plumb drive ORDER NAME ARGUMENTS --json`.
    pub(crate) fn try_order(&self, order: &str, arguments: &[&str]) -> Output {
        plumb().args(["drive", order, &self.name, "--json"]).args(arguments).output().unwrap()
    }

    /// Gives an order, which must succeed, and returns the new status.
    pub(crate) fn order(&self, order: &str, arguments: &[&str]) -> Value {
        let output = self.try_order(order, arguments);
        assert!(output.status.success(), "{order} {arguments:?}: {}", said(&output));
        crate::common::document(&output)
    }

    /// Waits for the end, and returns the exit code and stderr.
    pub(crate) fn wait(mut self) -> (Option<i32>, String) {
        let mut child = self.child.take().unwrap();
        let status = child.wait().unwrap();
        let mut text = Vec::new();
        child.stderr.take().unwrap().read_to_end(&mut text).unwrap();
        (status.code(), own_words(&text))
    }

    /// Kills the server.
    pub(crate) fn kill(mut self) -> String {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        self.name.clone()
    }

    /// Detaches the drive; the process must succeed.
    pub(crate) fn detach(self) {
        self.order("detach", &[]);
        assert_eq!(self.wait(), (Some(0), String::new()));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // The test has failed already, so further errors are ignored.
            child.kill().unwrap_or_default();
            drop(child.wait());
            drop(plumb().args(["drive", "detach", &self.name]).output());
        }
    }
}

/// File system that can be created on a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Ext4,
    Xfs,
    Btrfs,
}

impl Kind {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// Returns the size of a small drive for the file system: xfsprogs requires 300 MiB.
    pub(crate) const fn size(self) -> &'static str {
        match self {
            Self::Ext4 => "64M",
            Self::Xfs => "320M",
            Self::Btrfs => "128M",
        }
    }

    pub(crate) fn make(self, device: &str) {
        let options: &[&str] = match self {
            Self::Ext4 => &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
            Self::Xfs | Self::Btrfs => &["-q", "-f"],
        };
        let output = among_mounts(Command::new(format!("mkfs.{}", self.word())).args(options).arg(device));
        assert!(output.status.success(), "{}: {}", self.word(), said(&output));
    }

    /// Checks the file system on `device`. Returns true if it is sound, and the output.
    pub(crate) fn check(self, device: &str) -> (bool, String) {
        let (program, options): (_, &[&str]) = match self {
            Self::Ext4 => ("e2fsck", &["-f", "-n"]),
            Self::Xfs => ("xfs_repair", &["-n"]),
            Self::Btrfs => ("btrfs", &["check", "--readonly"]),
        };
        let output = among_mounts(Command::new(program).args(options).arg(device));
        (output.status.success(), said(&output))
    }
}

/// Mounted file system; unmounted on drop, lazily if necessary. A mount namespace that another test creates
/// meanwhile has a copy of the mount, so dropping waits until the device is free there as well.
pub(crate) struct MountedFileSystem {
    pub(crate) at: PathBuf,
    /// Source of the mount; not a device for a file system in memory.
    pub(crate) device: String,
}

impl MountedFileSystem {
    /// # Errors
    /// If mounting fails, with the message of mount.
    pub(crate) fn new(kind: Kind, device: &str, at: &Path) -> Result<Self, String> {
        let output = Command::new("mount").args(["-t", kind.word(), device]).arg(at).output().unwrap();
        match output.status.success() {
            true => Ok(Self { at: at.to_owned(), device: device.to_owned() }),
            false => Err(said(&output)),
        }
    }

    /// Returns true if a mount or another holder claims the device.
    fn is_claimed(&self) -> bool {
        let mut exclusive = File::options();
        exclusive.read(true).custom_flags(OFlags::EXCL.bits().cast_signed());
        let busy = Some(Errno::BUSY.raw_os_error());
        exclusive.open(&self.device).is_err_and(|error| error.raw_os_error() == busy)
    }
}

/// Binding of a loop device. Another test may bind the device soon after it is free.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LoopBinding {
    /// Name of the device below /sys/block.
    name: String,
    /// Value of `diskseq`, which rises with each binding.
    sequence: String,
}

impl LoopBinding {
    /// Returns the present binding of the device; `None` if there is none.
    pub(crate) fn read(device: &str) -> Option<Self> {
        let name = device.trim_start_matches("/dev/").to_owned();
        fs::metadata(format!("/sys/block/{name}/loop")).ok()?;
        let sequence = fs::read_to_string(format!("/sys/block/{name}/diskseq")).ok()?;
        Some(Self { name, sequence })
    }

    pub(crate) fn is_there(&self) -> bool {
        Self::read(&self.name).as_ref() == Some(self)
    }
}

/// Time for which the mount of a server killed by another test may stay.
const DEAD_MAX: Duration = Duration::from_secs(600);

/// Runs a program that reads all mounts, as those of btrfs do. It fails while the server of one mount has
/// been killed by another test, and is then repeated.
fn among_mounts(command: &mut Command) -> Output {
    let begun = Instant::now();
    loop {
        let output = command.output().unwrap();
        let is_beside = said(&output).contains("Transport endpoint is not connected");
        if !is_beside || begun.elapsed() > DEAD_MAX {
            return output;
        }
    }
}

/// Time for which a device may stay claimed after unmounting.
const CLAIMED_MAX: Duration = Duration::from_secs(10);

impl Drop for MountedFileSystem {
    fn drop(&mut self) {
        let umount = |options: &[&str]| {
            let output = Command::new("umount").args(options).arg(&self.at).output();
            output.is_ok_and(|output| output.status.success())
        };
        if umount(&[]) {
            let begun = Instant::now();
            while self.is_claimed() && begun.elapsed() < CLAIMED_MAX {
                std::thread::yield_now();
            }
        } else if !umount(&["-l"]) {
            eprintln!("{} stays mounted", self.at.display());
        }
    }
}

/// Returns true if `program` is installed.
pub(crate) fn has(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|path| path.join(program).exists())
}

/// Runs a command that must succeed.
pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", said(&output));
    output
}
