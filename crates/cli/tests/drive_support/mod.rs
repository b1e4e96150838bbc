//! Support code for the tests of served drives: a server that does not outlive its test, orders to it, file
//! systems on it.

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

/// Starts a server that prints a document when it is ready.
pub(crate) fn served(command: &mut Command) -> (Value, Child) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let document = serde_json::Deserializer::from_reader(&mut stdout).into_iter().next();
    let Some(Ok(document)) = document else {
        panic!("{command:?} did not get ready: {}", said(&child.wait_with_output().unwrap()));
    };
    (document, child)
}

/// A `plumb drive serve`. Dropping it ends it, if it has not ended.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) document: Value,
    child: Option<Child>,
}

impl Server {
    /// Serves and waits until it is ready.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_named(&name(), arguments)
    }

    /// Serves under this name and waits until it is ready.
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

    /// Returns `plumb drive ORDER NAME ARGUMENTS --json`, as it comes.
    pub(crate) fn try_order(&self, order: &str, arguments: &[&str]) -> Output {
        plumb().args(["drive", order, &self.name, "--json"]).args(arguments).output().unwrap()
    }

    /// Gives an order, which must succeed, and returns the state afterwards.
    pub(crate) fn order(&self, order: &str, arguments: &[&str]) -> Value {
        let output = self.try_order(order, arguments);
        assert!(output.status.success(), "{order} {arguments:?}: {}", said(&output));
        crate::common::document(&output)
    }

    /// Waits for the end: the exit code, and what was said on stderr of this server.
    pub(crate) fn wait(mut self) -> (Option<i32>, String) {
        let mut child = self.child.take().unwrap();
        let status = child.wait().unwrap();
        let mut text = Vec::new();
        child.stderr.take().unwrap().read_to_end(&mut text).unwrap();
        (status.code(), own_words(&text))
    }

    /// Kills it as a crash would.
    pub(crate) fn kill(mut self) -> String {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        self.name.clone()
    }

    /// Takes the drive away; the process must end well.
    pub(crate) fn detach(self) {
        self.order("detach", &[]);
        assert_eq!(self.wait(), (Some(0), String::new()));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // The test has failed already, and nobody is to be told more.
            child.kill().unwrap_or_default();
            drop(child.wait());
            drop(plumb().args(["drive", "detach", &self.name]).output());
        }
    }
}

/// A file system that can be made on a drive.
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

    /// Returns a small drive that it fits on: xfsprogs refuses less than 300 MiB.
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

    /// Checks the file system on `device`: returns true if nothing is wrong, and what the check says.
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

/// A file system that is mounted. Dropping it unmounts it, lazily if it must be. A mount namespace that
/// another test makes meanwhile has a copy of the mount: dropping waits until the device is free there too.
pub(crate) struct MountedFileSystem {
    pub(crate) at: PathBuf,
    /// The source of the mount; no device for a file system in memory.
    pub(crate) device: String,
}

impl MountedFileSystem {
    /// # Errors
    /// If it cannot be mounted, with what mount said.
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

/// One use of a loop device: another test may have the device a moment after it is free.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LoopBinding {
    /// Name of the device below /sys/block.
    name: String,
    /// Value of `diskseq`, which rises each time the device is bound.
    sequence: String,
}

impl LoopBinding {
    /// Returns the present use of the device; `None` if nothing is bound to it.
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

/// Time that the mount of a server that another test has killed may stay.
const DEAD_MAX: Duration = Duration::from_secs(600);

/// Runs a program that looks at all mounts, as those of btrfs do: it fails while one is that of a server that
/// another test has just killed, and runs again then.
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

/// Time that a device may stay claimed after it was unmounted.
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
