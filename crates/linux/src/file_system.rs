//! File systems on block devices: create, mount, unmount and check, by mount(2) and the file system's tools.
//!
//! A process that mounts a device served by itself must do so within
//! [`isolated_thread::run`](crate::isolated_thread::run); otherwise it may wait for itself in the kernel and
//! cannot be killed.

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

/// Time for which a mount may still be in use by programs that were just killed, or a loop device be claimed
/// by a program that searches for a free one (loop_configure in drivers/block/loop.c).
const BUSY_MAX: Nanos = Nanos::secs(2);

/// A file system with the defaults of its mkfs and the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// ext4, with blocks of 4 KiB at any size, and without background initialisation.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
    /// F2FS.
    F2fs,
}

/// Error of creating, checking, mounting or unmounting a file system.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FileSystemError {
    /// Unknown name of a file system.
    #[error("{0}")]
    Unknown(String),
    /// A program, permission or kernel module is missing on this machine.
    #[error("{0}")]
    Missing(String),
    /// The kernel cannot mount the contents of the device.
    #[error("{0}")]
    Unmountable(String),
    /// A program or a system call failed.
    #[error("{0}")]
    Failed(String),
}

/// Result type of this file.
type Result<T> = std::result::Result<T, FileSystemError>;

/// Properties of a file system type.
struct Kind {
    name: &'static str,
    /// Minimum device size of its mkfs, in MiB.
    size_min_mib: u64,
    make: &'static [&'static str],
    /// Read-only checker of the file system, and the bit of its exit code that reports damage.
    check: (&'static [&'static str], i32),
    /// Package of mkfs and checker.
    package: &'static str,
    mount_options: &'static str,
    /// Offset and bytes of the magic number on the device.
    magic: (u64, &'static [u8]),
}

/// Properties in the order of [`FileSystem::ALL`].
const KINDS: [Kind; 4] = [
    Kind {
        name: "ext4",
        size_min_mib: 16,
        // By default ext4 initialises tables in the background while it is mounted.
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
        // Several states of one recording, with equal UUIDs, are mounted at the same time.
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
    /// All supported file systems.
    pub const ALL: [Self; 4] = [Self::Ext4, Self::Xfs, Self::Btrfs, Self::F2fs];

    const fn kind(self) -> &'static Kind {
        &KINDS[self as usize]
    }

    /// Returns the file system type as mount(2) takes it.
    pub const fn name(self) -> &'static str {
        self.kind().name
    }

    /// Returns the minimum device size in MiB.
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

    /// Creates the file system on `device`, whatever that holds, with additional `arguments` for its mkfs.
    ///
    /// # Errors
    /// If mkfs is missing or fails.
    pub fn make(self, device: &Path, arguments: &[String]) -> Result<()> {
        let kind = self.kind();
        let argv: Vec<&str> = kind.make.iter().copied().chain(arguments.iter().map(String::as_str)).collect();
        let output = kind.run(&argv, device)?;
        if output.status.success() { Ok(()) } else { Err(failed(&argv, device, &output_text(&output))) }
    }

    /// Runs the checker of the file system on `device` and returns the damage that it reports. Since the last
    /// power cut the file system must have been mounted, and it must not be mounted now.
    ///
    /// # Errors
    /// If the device has no known file system, or the checker is missing or fails.
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
            // The exit code of e2fsck consists of bits, and may include the one for giving up.
            Some(code) if code & damaged != 0 => {
                Ok(Some(format!("{} says: {}", argv[0], output_text(&output))))
            }
            _ => Err(failed(argv, device, &output_text(&output))),
        }
    }

    /// Mounts the file system on `device` at the directory `at`, with options in the syntax of mount(8).
    ///
    /// # Errors
    /// [`Unmountable`](FileSystemError::Unmountable) if the contents of the device cannot be mounted, or the
    /// kernel does not know an option. [`Missing`](FileSystemError::Missing) for other reasons.
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

/// Splits options into flags of mount(2) and the options of the file system.
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

    /// Runs a tool of the file system on a device.
    fn run(&self, argv: &[&str], device: &Path) -> Result<Output> {
        let mut command = Command::new(argv[0]);
        command.args(&argv[1..]).arg(device).stdin(Stdio::null());
        // The tool may take hours on a large disk. Ctrl-C reaches the program, which stays in the terminal's
        // process group.
        command.output().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.no_program(argv[0]),
            _ => failed(argv, device, &error.to_string()),
        })
    }
}

fn failed(argv: &[&str], device: &Path, why: &str) -> FileSystemError {
    FileSystemError::Failed(format!("`{} {}` failed: {why}", argv.join(" "), device.display()))
}

/// Returns the remedy for a mount that failed before the contents of the device were read.
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

/// Returns true if this error of mount(2) does not concern the contents of the device.
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

/// Repeats `done` while it fails with EBUSY, at most for [`BUSY_MAX`].
fn once_free(mut done: impl FnMut() -> rustix::io::Result<()>) -> rustix::io::Result<()> {
    let ended = retry_until(BUSY_MAX, || Some(done()).filter(|ended| *ended != Err(Errno::BUSY)));
    ended.unwrap_or(Err(Errno::BUSY))
}

/// A mounted file system. Dropping it unmounts it. If it is busy, it is detached instead, and unmounted when
/// the last user leaves.
#[derive(Debug)]
pub struct Mount {
    path: PathBuf,
    is_mounted: bool,
}

impl Mount {
    /// Returns the mount point.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes everything written to the file system durable.
    ///
    /// # Errors
    /// Fails as open(2) and syncfs(2) do.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(File::open(&self.path)?)?)
    }

    /// Unmounts the file system, which writes everything to the device.
    ///
    /// # Errors
    /// If it stays busy for longer than a killed program needs to end. It is then detached, and unmounted
    /// when the last user leaves.
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
            // A destructor cannot report an error.
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
