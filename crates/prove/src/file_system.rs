//! File systems that a subject works on: those of [`plumb_linux::file_system`], none, or the POSIX model.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use plumb_linux::file_system::{self, FileSystemError, Mount};
use serde::{Deserialize, Serialize};

use crate::drives::FurtherDrive;
use crate::error::{Error, ErrorKind, Result, cannot};

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

impl std::fmt::Display for FileSystem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Posix => "posix",
            Self::PosixGarbage => "posix:garbage",
            _ => self.on_drive().map_or("none", file_system::FileSystem::name),
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
        self.on_drive().is_some()
    }

    /// Returns the file system as it is made on a drive; `None` if there is none. Both enumerations begin
    /// with the same ones.
    fn on_drive(self) -> Option<file_system::FileSystem> {
        file_system::FileSystem::ALL.get(self as usize).copied()
    }

    /// Returns the smallest device that it is made on, in MiB.
    pub fn size_min_mib(self) -> u64 {
        self.on_drive().map_or(1, file_system::FileSystem::size_min_mib)
    }

    /// Checks that the mkfs of the file system is installed.
    ///
    /// # Errors
    /// [`NotMeasured`](ErrorKind::NotMeasured) if it is not.
    pub fn find_tool(self) -> Result<()> {
        Ok(self.on_drive().map_or(Ok(()), file_system::FileSystem::find_tool)?)
    }

    /// Makes it on `device`, whatever that holds.
    ///
    /// # Errors
    /// If its mkfs is missing or fails.
    pub fn make(self, device: &Path, options: &FileSystemOptions) -> Result<()> {
        Ok(self.on_drive().map_or(Ok(()), |system| system.make(device, &options.make))?)
    }

    /// Mounts the one on `device` at the directory `at`; without a file system nothing is mounted.
    ///
    /// # Errors
    /// [`Unmountable`](ErrorKind::Unmountable) if what is on the device cannot be mounted, else
    /// [`NotMeasured`](ErrorKind::NotMeasured); the kernel refuses options that it does not know.
    pub fn mount(self, device: &Path, at: &Path, options: &FileSystemOptions) -> Result<MountedFileSystem> {
        let presence = match self.on_drive() {
            Some(system) => Presence::Mounted(system.mount(device, at, &options.mount)?),
            None => Presence::Bare(device.to_owned()),
        };
        Ok(presence.into())
    }
}

impl From<FileSystemError> for Error {
    fn from(error: FileSystemError) -> Self {
        let kind = match error {
            FileSystemError::Unknown(_) => ErrorKind::Usage,
            FileSystemError::Missing(_) => ErrorKind::NotMeasured,
            FileSystemError::Unmountable(_) => ErrorKind::Unmountable,
            FileSystemError::Failed(_) => ErrorKind::Failed,
        };
        Self::new(kind, error.to_string())
    }
}

/// A drive at its path: a mounted file system, or the drive itself. Dropping it takes it away from there.
#[derive(Debug)]
pub struct MountedFileSystem {
    presence: Presence,
    /// File systems that are mounted within it, or links in it.
    further: Vec<MountedFileSystem>,
}

/// Way in which a drive is at its path.
#[derive(Debug)]
enum Presence {
    /// File system that is mounted there.
    Mounted(Mount),
    /// Symbolic link to the block device.
    Linked(Link),
    /// The block device itself, or a directory with links.
    Bare(PathBuf),
}

/// A symbolic link, removed when it is dropped.
#[derive(Debug)]
struct Link(PathBuf);

impl From<Presence> for MountedFileSystem {
    fn from(presence: Presence) -> Self {
        Self { presence, further: Vec::new() }
    }
}

impl MountedFileSystem {
    /// Makes links to several block devices in the directory `at`.
    ///
    /// # Errors
    /// If a link cannot be made.
    pub(crate) fn linked<'d>(
        devices: impl Iterator<Item = (&'d Path, &'d PathBuf)>,
        at: &Path,
    ) -> Result<Self> {
        let mut linked = Self::from(Presence::Bare(at.to_owned()));
        for (name, device) in devices {
            let link = at.join(name);
            symlink(device, &link).map_err(cannot(format!("link {}", link.display())))?;
            linked.add(Presence::Linked(Link(link)).into());
        }
        Ok(linked)
    }

    /// Returns where it is mounted; the block device where there is no file system.
    pub fn path(&self) -> &Path {
        match &self.presence {
            Presence::Mounted(mount) => mount.path(),
            Presence::Linked(Link(path)) | Presence::Bare(path) => path,
        }
    }

    /// Adds one that is mounted within it, and is unmounted with it.
    pub(crate) fn add(&mut self, further: Self) {
        self.further.push(further);
    }

    /// Returns where it is mounted, and all within it.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.path()).chain(self.further.iter().map(Self::path))
    }

    /// Makes everything that was written to it, and to all within it, durable. Without a file system there is
    /// nothing to do.
    ///
    /// # Errors
    /// Fails as open(2) and syncfs(2).
    pub(crate) fn sync(&self) -> io::Result<()> {
        let Presence::Mounted(mount) = &self.presence else { return Ok(()) };
        mount.sync()?;
        self.further.iter().try_for_each(Self::sync)
    }

    /// Unmounts it, with all within it: all that was written is on the device then.
    ///
    /// # Errors
    /// As [`Mount::unmount`].
    pub fn unmount(self) -> Result<()> {
        self.further.into_iter().try_for_each(Self::unmount)?;
        match self.presence {
            Presence::Mounted(mount) => Ok(mount.unmount()?),
            Presence::Linked(_) | Presence::Bare(_) => Ok(()),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Nobody can be told any more.
        fs::remove_file(&self.0).unwrap_or_default();
    }
}
