//! File systems that a subject works on: made on a block device, mounted, unmounted, checked.
//!
//! Whoever mounts a device that this very process serves does so within [`plumb_linux::apart::run`]: a
//! process that waits for itself in the kernel could not be killed.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::str::FromStr;

use plumb_block::{Nanos, retry_until, shell_word};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde::{Deserialize, Serialize};

use crate::drives::FurtherDrive;
use crate::error::{Error, ErrorKind, Result, cannot};

/// Time that a mount may be in use by programs that were killed just now, and a loop device claimed by a
/// program that looks for a free one (loop_configure in drivers/block/loop.c).
const BUSY_MAX: Nanos = Nanos::secs(2);

/// A file system, with the defaults of its mkfs and of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSystem {
    /// ext4, with blocks of 4 KiB whatever the size, and nothing left to be initialised in the background.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
    /// F2FS.
    F2fs,
    /// None: the subject works on the block device.
    None,
    /// The POSIX model ([`posix`](crate::posix)): a directory of this machine, by the system calls alone.
    Posix,
    /// The POSIX model, where blocks that were never written may hold anything.
    #[serde(rename = "posix:garbage")]
    PosixGarbage,
}

/// Options of a file system beside those that every proof needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileSystemOptions {
    /// Arguments of its mkfs, after the others.
    pub make: Vec<String>,
    /// Options of its mount with commas between, as mount(8) takes them.
    pub mount: String,
    /// Drives beside the first, each with a file system that is made and mounted in the same way.
    pub further: Vec<FurtherDrive>,
}

impl FileSystemOptions {
    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.make.is_empty() && self.mount.is_empty() && self.further.is_empty()
    }

    /// Returns the flags of mount(2) among the options, and the options that are left to the file system.
    fn flags(&self) -> (MountFlags, Vec<&str>) {
        let mut flags = MountFlags::empty();
        let mut left = Vec::new();
        for option in self.mount.split(',').filter(|option| !option.is_empty()) {
            match option {
                "sync" => flags |= MountFlags::SYNCHRONOUS,
                "dirsync" => flags |= MountFlags::DIRSYNC,
                "noatime" => flags |= MountFlags::NOATIME,
                "nodiratime" => flags |= MountFlags::NODIRATIME,
                "lazytime" => flags |= MountFlags::LAZYTIME,
                "defaults" | "rw" | "relatime" => {}
                other => left.push(other),
            }
        }
        (flags, left)
    }
}

impl std::fmt::Display for FileSystemOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let made = (!self.make.is_empty()).then(|| format!("mkfs {}", self.make.join(" ")));
        let mounted = (!self.mount.is_empty()).then(|| self.mount.clone());
        let further = self.further.iter();
        let further = further.map(|FurtherDrive { directory, size, profile }| {
            let profile = profile.as_ref().map_or(String::new(), |profile| format!("{profile} "));
            format!("{} on a {profile}drive of {size}", directory.display())
        });
        f.write_str(&made.into_iter().chain(mounted).chain(further).collect::<Vec<String>>().join(", "))
    }
}

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

impl std::fmt::Display for FileSystem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Posix => "posix",
            Self::PosixGarbage => "posix:garbage",
            _ => self.kind().map_or("none", |kind| kind.name),
        })
    }
}

impl FromStr for FileSystem {
    type Err = Error;

    fn from_str(typed: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|known| known.to_string() == typed);
        let expected = "expected ext4, xfs, btrfs, f2fs, none, posix or posix:garbage";
        let unknown = || format!("`{typed}` is not a file system for a proof: {expected}");
        known.ok_or_else(|| Error::usage(unknown()))
    }
}

impl FileSystem {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Ext4, Self::Xfs, Self::Btrfs, Self::F2fs, Self::None, Self::Posix, Self::PosixGarbage];

    /// Returns true for the POSIX model, which has no drive.
    pub const fn is_posix(self) -> bool {
        matches!(self, Self::Posix | Self::PosixGarbage)
    }

    /// Returns true for a file system that is mounted on a drive.
    pub fn is_mounted(self) -> bool {
        self.kind().is_some()
    }

    fn kind(self) -> Option<&'static Kind> {
        KINDS.get(self as usize)
    }

    /// Returns the smallest device that it is made on, in MiB.
    pub fn size_min_mib(self) -> u64 {
        self.kind().map_or(1, |kind| kind.size_min_mib)
    }

    /// Checks that the mkfs of the file system is installed.
    ///
    /// # Errors
    /// [`NotMeasured`](ErrorKind::NotMeasured) if it is not.
    pub fn find_tool(self) -> Result<()> {
        let Some(kind) = self.kind() else { return Ok(()) };
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = std::env::split_paths(&path).any(|directory| directory.join(kind.make[0]).is_file());
        if is_there { Ok(()) } else { Err(kind.no_program(kind.make[0])) }
    }

    /// Makes it on `device`, whatever that holds.
    ///
    /// # Errors
    /// If its mkfs is missing or fails.
    pub fn make(self, device: &Path) -> Result<()> {
        self.make_with(device, &FileSystemOptions::default())
    }

    /// Makes it as [`make`](Self::make) does, with these options.
    ///
    /// # Errors
    /// The errors of [`make`](Self::make).
    pub fn make_with(self, device: &Path, options: &FileSystemOptions) -> Result<()> {
        let Some(kind) = self.kind() else { return Ok(()) };
        let argv: Vec<&str> =
            kind.make.iter().copied().chain(options.make.iter().map(String::as_str)).collect();
        let output = kind.run(&argv, device)?;
        if output.status.success() { Ok(()) } else { Err(failed(&argv, device, said(&output))) }
    }

    /// Runs the checker of the file system on `device` and returns what it finds wrong; the file system must
    /// have been mounted since a power cut, and not be mounted now.
    ///
    /// # Errors
    /// If there is no file system, or its checker is missing or fails.
    pub fn check(device: &Path) -> Result<Option<String>> {
        let holds = |kind: &&Kind| {
            let (at, magic) = kind.magic;
            let mut found = vec![0; magic.len()];
            let read = File::open(device).and_then(|file| file.read_exact_at(&mut found, at));
            read.is_ok() && found == magic
        };
        let kind = KINDS.iter().find(holds);
        let kind = kind.ok_or_else(|| failed(&["fsck"], device, "there is no file system".to_owned()))?;
        let (argv, damaged) = kind.check;
        let output = kind.run(argv, device)?;
        match output.status.code() {
            Some(0) => Ok(None),
            // Bits: e2fsck may add that it gave up.
            Some(code) if code & damaged != 0 => Ok(Some(format!("{} says: {}", argv[0], said(&output)))),
            _ => Err(failed(argv, device, said(&output))),
        }
    }

    /// Mounts the one on `device` at the directory `at`; without a file system nothing is mounted.
    ///
    /// # Errors
    /// [`Unmountable`](ErrorKind::Unmountable) if what is on the device cannot be mounted, else
    /// [`NotMeasured`](ErrorKind::NotMeasured).
    pub fn mount(self, device: &Path, at: &Path) -> Result<MountedFileSystem> {
        self.mount_with(device, at, &FileSystemOptions::default())
    }

    /// Mounts it as [`mount`](Self::mount) does, with these options.
    ///
    /// # Errors
    /// The errors of [`mount`](Self::mount); the kernel refuses options that it does not know.
    pub fn mount_with(
        self,
        device: &Path,
        at: &Path,
        options: &FileSystemOptions,
    ) -> Result<MountedFileSystem> {
        let Some(kind) = self.kind() else {
            return Ok(MountedFileSystem::at(device.to_owned(), Presence::Bare));
        };
        let (flags, mut words) = options.flags();
        words.extend(Some(kind.mount_options).filter(|own| !own.is_empty()));
        let words = CString::new(words.join(",")).unwrap_or_default();
        match once_free(|| mount(device, at, kind.name, flags, words.as_c_str())) {
            Ok(()) => Ok(MountedFileSystem::at(at.to_owned(), Presence::Mounted)),
            Err(errno) if is_of_the_tool(errno) => {
                let what = format!("cannot mount {} at {}: {errno}", device.display(), at.display());
                Err(Error::missing(what, hint(errno)))
            }
            Err(errno) => {
                let what = format!("the kernel does not mount the {self} on {}: {errno}", device.display());
                Err(Error::new(ErrorKind::Unmountable, what))
            }
        }
    }
}

impl Kind {
    fn no_program(&self, program: &str) -> Error {
        let remedy = format!("install {}, or choose another file system with --fs", self.package);
        Error::missing(format!("`{program}` is not there"), remedy)
    }

    /// Runs one of its programs on a device.
    fn run(&self, argv: &[&str], device: &Path) -> Result<Output> {
        let output = Command::new(argv[0]).args(&argv[1..]).arg(device).stdin(Stdio::null()).output();
        output.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.no_program(argv[0]),
            _ => failed(argv, device, error.to_string()),
        })
    }
}

fn failed(argv: &[&str], device: &Path, said: String) -> Error {
    let command = format!("`{} {}` failed", argv.join(" "), device.display());
    Error::failed(command, said)
}

/// Returns the remedy for a mount that could not be tried.
const fn hint(errno: Errno) -> &'static str {
    match errno {
        Errno::PERM | Errno::ACCESS => "run as root",
        Errno::NODEV => {
            "this kernel lacks the file system: load its module (modprobe), or choose another one with --fs"
        }
        _ => "end what uses either",
    }
}

/// Returns the output of a program, stderr first, or its exit status if it printed nothing.
fn said(output: &Output) -> String {
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
pub struct MountedFileSystem {
    path: PathBuf,
    presence: Presence,
    /// File systems that are mounted within it, or links in it.
    further: Vec<MountedFileSystem>,
}

/// Way in which a drive is at its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    /// File system that is mounted there.
    Mounted,
    /// Symbolic link to the block device.
    Linked,
    /// The block device itself, or a directory with links.
    Bare,
}

impl MountedFileSystem {
    const fn at(path: PathBuf, presence: Presence) -> Self {
        Self { path, presence, further: Vec::new() }
    }

    /// Makes links to several block devices in the directory `at`.
    ///
    /// # Errors
    /// If a link cannot be made.
    pub(crate) fn linked<'d>(
        devices: impl Iterator<Item = (&'d Path, &'d PathBuf)>,
        at: &Path,
    ) -> Result<Self> {
        let mut linked = Self::at(at.to_owned(), Presence::Bare);
        for (name, device) in devices {
            let link = at.join(name);
            symlink(device, &link).map_err(cannot(format!("link {}", link.display())))?;
            linked.add(Self::at(link, Presence::Linked));
        }
        Ok(linked)
    }

    /// Returns where it is mounted; the block device where there is no file system.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds one that is mounted within it, and is unmounted with it.
    pub(crate) fn add(&mut self, further: Self) {
        self.further.push(further);
    }

    /// Returns where it is mounted, and all within it.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&*self.path).chain(self.further.iter().map(Self::path))
    }

    /// Makes everything that was written to it, and to all within it, durable. Without a file system there is
    /// nothing to do.
    ///
    /// # Errors
    /// Fails as open(2) and syncfs(2).
    pub(crate) fn sync(&self) -> io::Result<()> {
        let mut paths = self.paths().filter(|_| self.presence == Presence::Mounted);
        paths.try_for_each(|path| Ok(rustix::fs::syncfs(File::open(path)?)?))
    }

    /// Unmounts it, with all within it: all that was written is on the device then.
    ///
    /// # Errors
    /// If somebody uses it for longer than a killed program takes to go. It is taken out of sight then, and
    /// goes with the last who does.
    pub fn unmount(mut self) -> Result<()> {
        std::mem::take(&mut self.further).into_iter().try_for_each(Self::unmount)?;
        if self.presence == Presence::Mounted {
            once_free(|| unmount(&self.path, UnmountFlags::NOFOLLOW)).map_err(|errno| {
                let at = self.path.display();
                let what = format!(
                    "{errno}; end what uses it, then `umount {}`",
                    shell_word(&self.path.to_string_lossy())
                );
                Error::failed(format!("cannot unmount {at}"), what)
            })?;
            self.presence = Presence::Bare;
        }
        Ok(())
    }
}

impl Drop for MountedFileSystem {
    fn drop(&mut self) {
        // Nobody can be told any more.
        match self.presence {
            Presence::Mounted => {
                unmount(&self.path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW).unwrap_or_default();
            }
            Presence::Linked => fs::remove_file(&self.path).unwrap_or_default(),
            Presence::Bare => {}
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
        assert!(error.contains("there is no file system"), "{error}");
        match FileSystem::Ext4.make(image.path()) {
            Err(error) if error.kind == ErrorKind::NotMeasured => {
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
