//! File systems on block devices: made, mounted, unmounted and checked, by mount(2) and the tools of each.
//!
//! Whoever mounts a device that this very process serves does so within
//! [`isolated_thread::run`](crate::isolated_thread::run): a process that waits for itself in the kernel could
//! not be killed.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::str::FromStr;

use plumb_block::{Nanos, retry_until};
use plumb_text::shell_word;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// Time that a mount may be in use by programs that were killed just now, and a loop device claimed by a
/// program that looks for a free one (loop_configure in drivers/block/loop.c).
const BUSY_MAX: Nanos = Nanos::secs(2);

/// A file system, with the defaults of its mkfs and of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// ext4, with blocks of 4 KiB whatever the size, and nothing left to be initialised in the background.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
    /// F2FS.
    F2fs,
}

/// Reason why a file system is not made, checked, mounted or unmounted.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FileSystemError {
    /// The name stands for no file system.
    #[error("{0}")]
    Unknown(String),
    /// A program, a right or a module of the kernel is missing on this machine.
    #[error("{0}")]
    Missing(String),
    /// The kernel does not mount what is on the device.
    #[error("{0}")]
    Unmountable(String),
    /// A program or a system call failed.
    #[error("{0}")]
    Failed(String),
}

/// Shorthand for results of this file.
type Result<T> = std::result::Result<T, FileSystemError>;

/// Properties of one file system.
struct Kind {
    name: &'static str,
    /// The smallest device that its mkfs takes, in MiB.
    size_min_mib: u64,
    make: &'static [&'static str],
    /// Checker of the file system, which changes nothing, and the bit of its exit code that reports damage.
    check: (&'static [&'static str], i32),
    /// Where both come from.
    package: &'static str,
    mount_options: &'static str,
    /// Where a device says that it holds one.
    magic: (u64, &'static [u8]),
}

/// In the order of [`FileSystem::ALL`].
const KINDS: [Kind; 4] = [
    Kind {
        name: "ext4",
        size_min_mib: 16,
        // Left to itself it initialises tables in the background for as long as it is mounted.
        make: &["mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
        check: (&["e2fsck", "-f", "-n"], 4),
        package: "e2fsprogs",
        mount_options: "",
        magic: (1080, &[0x53, 0xef]),
    },
    Kind {
        name: "xfs",
        size_min_mib: 300,
        make: &["mkfs.xfs", "-q", "-f"],
        check: (&["xfs_repair", "-n"], 1),
        package: "xfsprogs",
        // Several states of one recording are mounted side by side.
        mount_options: "nouuid",
        magic: (0, b"XFSB"),
    },
    Kind {
        name: "btrfs",
        size_min_mib: 128,
        make: &["mkfs.btrfs", "-q", "-f"],
        check: (&["btrfs", "check", "--readonly"], 1),
        package: "btrfs-progs",
        mount_options: "",
        magic: (65_600, b"_BHRfS_M"),
    },
    Kind {
        name: "f2fs",
        size_min_mib: 64,
        make: &["mkfs.f2fs", "-q", "-f"],
        check: (&["fsck.f2fs", "--dry-run"], 4),
        package: "f2fs-tools",
        mount_options: "",
        magic: (1024, &[0x10, 0x20, 0xf5, 0xf2]),
    },
];

impl FromStr for FileSystem {
    type Err = FileSystemError;

    fn from_str(typed: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|known| known.name() == typed);
        let expected = "is not a file system that plumb makes: expected ext4, xfs, btrfs or f2fs";
        known.ok_or_else(|| FileSystemError::Unknown(format!("`{typed}` {expected}")))
    }
}

impl FileSystem {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ext4, Self::Xfs, Self::Btrfs, Self::F2fs];

    const fn kind(self) -> &'static Kind {
        &KINDS[self as usize]
    }

    /// Returns its name, as mount(2) takes it.
    pub const fn name(self) -> &'static str {
        self.kind().name
    }

    /// Returns the smallest device that it is made on, in MiB.
    pub const fn size_min_mib(self) -> u64 {
        self.kind().size_min_mib
    }

    /// Checks that the mkfs of the file system is installed.
    ///
    /// # Errors
    /// [`Missing`](FileSystemError::Missing) if it is not.
    pub fn find_tool(self) -> Result<()> {
        let kind = self.kind();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = std::env::split_paths(&path).any(|directory| directory.join(kind.make[0]).is_file());
        if is_there { Ok(()) } else { Err(kind.no_program(kind.make[0])) }
    }

    /// Makes it on `device`, whatever that holds, with these further arguments of its mkfs.
    ///
    /// # Errors
    /// If its mkfs is missing or fails.
    pub fn make(self, device: &Path, arguments: &[String]) -> Result<()> {
        let kind = self.kind();
        let argv: Vec<&str> = kind.make.iter().copied().chain(arguments.iter().map(String::as_str)).collect();
        let output = kind.run(&argv, device)?;
        if output.status.success() { Ok(()) } else { Err(failed(&argv, device, &output_text(&output))) }
    }

    /// Runs the checker of the file system on `device` and returns what it finds wrong; the file system must
    /// have been mounted since a power cut, and not be mounted now.
    ///
    /// # Errors
    /// If none is found, or its checker is missing or fails.
    pub fn check(device: &Path) -> Result<Option<String>> {
        let holds = |kind: &&Kind| {
            let (at, magic) = kind.magic;
            let mut found = vec![0; magic.len()];
            let read = File::open(device).and_then(|file| file.read_exact_at(&mut found, at));
            read.is_ok() && found == magic
        };
        let kind = KINDS.iter().find(holds);
        let kind = kind.ok_or_else(|| failed(&["fsck"], device, "no known file system is on it"))?;
        let (argv, damaged) = kind.check;
        let output = kind.run(argv, device)?;
        match output.status.code() {
            Some(0) => Ok(None),
            // Bits: e2fsck may add that it gave up.
            Some(code) if code & damaged != 0 => {
                Ok(Some(format!("{} says: {}", argv[0], output_text(&output))))
            }
            _ => Err(failed(argv, device, &output_text(&output))),
        }
    }

    /// Mounts the one on `device` at the directory `at`, with these options, as mount(8) takes them.
    ///
    /// # Errors
    /// [`Unmountable`](FileSystemError::Unmountable) if what is on the device cannot be mounted; the kernel
    /// refuses options that it does not know. [`Missing`](FileSystemError::Missing) for other reasons.
    pub fn mount(self, device: &Path, at: &Path, options: &str) -> Result<Mount> {
        let kind = self.kind();
        let (flags, mut words) = flags_of(options);
        words.extend(Some(kind.mount_options).filter(|own| !own.is_empty()));
        let words = CString::new(words.join(",")).unwrap_or_default();
        let mounted = once_free(|| mount(device, at, kind.name, flags, words.as_c_str()));
        let device = device.display();
        match mounted {
            Ok(()) => Ok(Mount { path: at.to_owned(), is_mounted: true }),
            Err(errno) if is_of_the_tool(errno) => {
                let (at, remedy) = (at.display(), mount_remedy(errno));
                Err(FileSystemError::Missing(format!("cannot mount {device} at {at}: {errno}; {remedy}")))
            }
            Err(errno) => {
                let what = format!("the kernel does not mount the {} on {device}: {errno}", kind.name);
                Err(FileSystemError::Unmountable(what))
            }
        }
    }
}

/// Returns the flags of mount(2) among the options, and the options that are left to the file system.
fn flags_of(options: &str) -> (MountFlags, Vec<&str>) {
    let mut flags = MountFlags::empty();
    let mut own = Vec::new();
    for option in options.split(',').filter(|option| !option.is_empty()) {
        match option {
            "sync" => flags |= MountFlags::SYNCHRONOUS,
            "dirsync" => flags |= MountFlags::DIRSYNC,
            "noatime" => flags |= MountFlags::NOATIME,
            "nodiratime" => flags |= MountFlags::NODIRATIME,
            "lazytime" => flags |= MountFlags::LAZYTIME,
            "defaults" | "rw" | "relatime" => {}
            other => own.push(other),
        }
    }
    (flags, own)
}

impl Kind {
    fn no_program(&self, program: &str) -> FileSystemError {
        let remedy = format!("install {}, or choose another file system with --fs", self.package);
        FileSystemError::Missing(format!("`{program}` is not there; {remedy}"))
    }

    /// Runs one of its programs on a device.
    fn run(&self, argv: &[&str], device: &Path) -> Result<Output> {
        let mut command = Command::new(argv[0]);
        command.args(&argv[1..]).arg(device).stdin(Stdio::null());
        // Hours may pass on a large disk. Ctrl-C reaches the program, which stays in the terminal's group.
        command.output().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.no_program(argv[0]),
            _ => failed(argv, device, &error.to_string()),
        })
    }
}

fn failed(argv: &[&str], device: &Path, why: &str) -> FileSystemError {
    FileSystemError::Failed(format!("`{} {}` failed: {why}", argv.join(" "), device.display()))
}

/// Returns the remedy for a mount that could not be tried.
const fn mount_remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::PERM | Errno::ACCESS => "run as root",
        Errno::NODEV => {
            "this kernel lacks the file system: load its module (modprobe), or choose another one with --fs"
        }
        _ => "end what uses either",
    }
}

/// Returns the output of a program, stderr first, or its exit status if it printed nothing.
fn output_text(output: &Output) -> String {
    let text = [&*output.stderr, &*output.stdout].concat();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() { output.status.to_string() } else { lines.join("; ") }
}

/// Returns true if mount(2) fails with it for other reasons than what it reads on the device.
const fn is_of_the_tool(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::PERM
            | Errno::ACCESS
            | Errno::NOENT
            | Errno::NOTDIR
            | Errno::NODEV
            | Errno::NXIO
            | Errno::NOTBLK
            | Errno::BUSY
            | Errno::NOMEM
            | Errno::MFILE
            | Errno::NFILE
            | Errno::INTR
    )
}

/// Does it once nobody uses what it is done to any more, or has used it for too long.
fn once_free(mut done: impl FnMut() -> rustix::io::Result<()>) -> rustix::io::Result<()> {
    let ended = retry_until(BUSY_MAX, || Some(done()).filter(|ended| *ended != Err(Errno::BUSY)));
    ended.unwrap_or(Err(Errno::BUSY))
}

/// A mounted file system. Dropping it unmounts it, or, while somebody uses it, takes it out of sight until
/// they leave.
#[derive(Debug)]
pub struct Mount {
    path: PathBuf,
    is_mounted: bool,
}

impl Mount {
    /// Returns where it is mounted.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes everything that was written to it durable.
    ///
    /// # Errors
    /// Fails as open(2) and syncfs(2).
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(File::open(&self.path)?)?)
    }

    /// Unmounts it: all that was written is on the device then.
    ///
    /// # Errors
    /// If somebody uses it for longer than a killed program takes to go. It is taken out of sight then, and
    /// goes with the last who does.
    pub fn unmount(mut self) -> Result<()> {
        once_free(|| unmount(&self.path, UnmountFlags::NOFOLLOW)).map_err(|errno| {
            let remedy =
                format!("end what uses it, then `umount {}`", shell_word(&self.path.to_string_lossy()));
            FileSystemError::Failed(format!("cannot unmount {}: {errno}; {remedy}", self.path.display()))
        })?;
        self.is_mounted = false;
        Ok(())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.is_mounted {
            // Nobody can be told any more.
            unmount(&self.path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checker_of_a_file_system_tells_damage_from_none() {
        let image = tempfile::NamedTempFile::new().unwrap();
        image.as_file().set_len(16 << 20).unwrap();
        let error = FileSystem::check(image.path()).unwrap_err().to_string();
        assert!(error.contains("no known file system is on it"), "{error}");
        match FileSystem::Ext4.make(image.path(), &[]) {
            Err(error @ FileSystemError::Missing(_)) => {
                return plumb_testkit::skip(&error.to_string());
            }
            made => made.unwrap(),
        }
        assert_eq!(FileSystem::check(image.path()).unwrap(), None);
        // Where the inodes are.
        image.as_file().write_all_at(&vec![0x5a; 1 << 20], 64 << 10).unwrap();
        let damage = FileSystem::check(image.path()).unwrap().unwrap();
        assert!(damage.starts_with("e2fsck says: "), "{damage}");
    }
}
