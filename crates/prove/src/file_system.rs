//! File systems that a subject works on: made on a block device, mounted, unmounted.
//!
//! Whoever mounts a device that this very process serves does so within [`plumb_linux::apart::run`]: a process that waits for
//! itself in the kernel could not be killed.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// How long a mount may be in use by programs that were killed just now.
const BUSY_MAX: Duration = Duration::from_secs(2);
/// How often it is tried again.
const BUSY_AGAIN: Duration = Duration::from_millis(2);

/// A file system, with the defaults of its mkfs and of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileSystem {
    /// ext4, with blocks of 4 KiB whatever the size, and nothing left to be initialised in the background.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
    /// None: the subject works on the block device.
    None,
}

/// A file system could not be made, mounted or unmounted.
#[derive(Debug, thiserror::Error)]
pub enum FileSystemError {
    /// There is no such file system.
    #[error("`{0}` is not a file system for a proof: expected ext4, xfs, btrfs or none")]
    Unknown(String),
    /// Its mkfs is not installed.
    #[error("`{program}` is not there: install {package}, or choose another file system with --fs")]
    NoProgram {
        /// The program.
        program: &'static str,
        /// Where it comes from.
        package: &'static str,
    },
    /// Its mkfs failed.
    #[error("`{command}` failed: {said}")]
    Make {
        /// The command.
        command: String,
        /// What it said, or how it ended.
        said: String,
    },
    /// The kernel found a file system that it does not mount. After a power cut this is a result.
    #[error("the kernel does not mount the {file_system} on {device}: {source}")]
    Refused {
        /// The file system.
        file_system: FileSystem,
        /// The block device.
        device: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Mounting failed for a reason that does not lie in the file system.
    #[error("cannot mount {device} at {at}: {source}{}", hint(source))]
    Mount {
        /// The block device.
        device: PathBuf,
        /// The mount point.
        at: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It stays mounted.
    #[error("cannot unmount {at}: {source}; end what uses it, then `umount {at}`")]
    Unmount {
        /// The mount point.
        at: PathBuf,
        /// Why.
        source: io::Error,
    },
}

fn hint(source: &io::Error) -> &'static str {
    match Errno::from_io_error(source) {
        Some(Errno::PERM | Errno::ACCESS) => "; run as root",
        Some(Errno::NODEV) => "; this kernel lacks the file system: choose another one with --fs",
        _ => "",
    }
}

impl FileSystemError {
    /// Whether it says that the state on the device cannot be mounted, rather than that mounting could not be tried.
    pub const fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }
}

impl std::fmt::Display for FileSystem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FileSystem {
    type Err = FileSystemError;

    fn from_str(typed: &str) -> Result<Self, FileSystemError> {
        let known = Self::ALL.into_iter().find(|known| known.name() == typed);
        known.ok_or_else(|| FileSystemError::Unknown(typed.to_owned()))
    }
}

impl FileSystem {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ext4, Self::Xfs, Self::Btrfs, Self::None];

    const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::None => "none",
        }
    }

    /// The smallest device that it is made on, in MiB. xfs refuses less than 300, btrfs 109.
    pub const fn size_min_mib(self) -> u64 {
        match self {
            Self::Ext4 => 16,
            Self::Xfs => 300,
            Self::Btrfs => 128,
            Self::None => 1,
        }
    }

    /// Its mkfs with arguments, and the package that has it.
    const fn tool(self) -> Option<(&'static [&'static str], &'static str)> {
        match self {
            // Left to itself it initialises tables in the background for as long as it is mounted.
            Self::Ext4 => Some((
                &["mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
                "e2fsprogs",
            )),
            Self::Xfs => Some((&["mkfs.xfs", "-q", "-f"], "xfsprogs")),
            Self::Btrfs => Some((&["mkfs.btrfs", "-q", "-f"], "btrfs-progs")),
            Self::None => None,
        }
    }

    /// Whether its mkfs is installed.
    ///
    /// # Errors
    /// [`NoProgram`](FileSystemError::NoProgram).
    pub fn find_tool(self) -> Result<(), FileSystemError> {
        let Some((argv, package)) = self.tool() else { return Ok(()) };
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = std::env::split_paths(&path).any(|directory| directory.join(argv[0]).is_file());
        if is_there { Ok(()) } else { Err(FileSystemError::NoProgram { program: argv[0], package }) }
    }

    /// Makes it on `device`, whatever that holds.
    ///
    /// # Errors
    /// If its mkfs is missing or fails.
    pub fn make(self, device: &Path) -> Result<(), FileSystemError> {
        let Some((argv, package)) = self.tool() else { return Ok(()) };
        let mut command = Command::new(argv[0]);
        command.args(&argv[1..]).arg(device).stdin(Stdio::null());
        let failed = |said| FileSystemError::Make {
            command: format!("{} {}", argv.join(" "), device.display()),
            said,
        };
        let output = match command.output() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(FileSystemError::NoProgram { program: argv[0], package });
            }
            output => output.map_err(|error| failed(error.to_string()))?,
        };
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(failed(if said.trim().is_empty() { output.status.to_string() } else { said.trim().to_owned() }))
    }

    /// Mounts the one on `device` at the directory `at`; without a file system nothing is mounted.
    ///
    /// # Errors
    /// [`Refused`](FileSystemError::Refused) if what is on the device cannot be mounted, else
    /// [`Mount`](FileSystemError::Mount).
    pub fn mount(self, device: &Path, at: &Path) -> Result<Mounted, FileSystemError> {
        let options = match self {
            Self::None => return Ok(Mounted { path: device.to_owned(), is_mounted: false }),
            // Several states of one recording are mounted side by side.
            Self::Xfs => c"nouuid",
            Self::Ext4 | Self::Btrfs => c"",
        };
        match mount(device, at, self.name(), MountFlags::empty(), options) {
            Ok(()) => Ok(Mounted { path: at.to_owned(), is_mounted: true }),
            Err(errno) if is_of_the_tool(errno) => Err(FileSystemError::Mount {
                device: device.to_owned(),
                at: at.to_owned(),
                source: errno.into(),
            }),
            Err(errno) => Err(FileSystemError::Refused {
                file_system: self,
                device: device.to_owned(),
                source: errno.into(),
            }),
        }
    }
}

/// Whether mount(2) fails with it for other reasons than what it reads on the device.
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

/// A mounted file system. Dropping it unmounts it, or, while somebody uses it, takes it out of sight until they leave.
#[derive(Debug)]
pub struct Mounted {
    path: PathBuf,
    is_mounted: bool,
}

impl Mounted {
    /// Where it is mounted; the block device where there is no file system.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Unmounts it: all that was written is on the device then.
    ///
    /// # Errors
    /// If somebody uses it for longer than a killed program takes to go. It is taken out of sight then, and goes with the last
    /// who does.
    pub fn unmount(mut self) -> Result<(), FileSystemError> {
        let until = Instant::now() + BUSY_MAX;
        while self.is_mounted {
            match unmount(&self.path, UnmountFlags::NOFOLLOW) {
                Ok(()) => self.is_mounted = false,
                Err(Errno::BUSY) if Instant::now() < until => std::thread::sleep(BUSY_AGAIN),
                Err(errno) => {
                    return Err(FileSystemError::Unmount { at: self.path.clone(), source: errno.into() });
                }
            }
        }
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.is_mounted {
            // Nobody can be told any more.
            unmount(&self.path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW).unwrap_or_default();
        }
    }
}
