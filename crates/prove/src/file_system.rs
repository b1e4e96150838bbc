//! File systems on which a subject works: those of [`plumb_linux::file_system`], none, or the POSIX model.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use plumb_linux::file_system::{self, FileSystemError, Mount};
use serde::{Deserialize, Serialize};

use crate::drives::FurtherDrive;
use crate::error::{Error, ErrorKind, Result, cannot};

/// File system, created with the defaults of its mkfs and mounted with those of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSystem {
    /// ext4 with 4 KiB blocks regardless of its size, and without background initialisation.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
    /// F2FS.
    F2fs,
    /// None: the subject uses the block device.
    None,
    /// The POSIX model ([`posix`](crate::posix)): a directory of this machine, recorded from system calls.
    Posix,
    /// The POSIX model, in which blocks that were never written may hold anything.
    #[serde(rename = "posix:garbage")]
    PosixGarbage,
}

/// Options of a file system in addition to those of every proof.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileSystemOptions {
    /// Additional arguments of mkfs.
    pub make: Vec<String>,
    /// Mount options, separated by commas as for mount(8).
    pub mount: String,
    /// Further drives, each with a file system that is created and mounted in the same way.
    pub further: Vec<FurtherDrive>,
}

impl FileSystemOptions {
    /// Returns true if there are no options.
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
    /// All file systems.
    pub const ALL: [Self; 7] =
        [Self::Ext4, Self::Xfs, Self::Btrfs, Self::F2fs, Self::None, Self::Posix, Self::PosixGarbage];

    /// Returns true for the POSIX model, which has no drive.
    pub const fn is_posix(self) -> bool {
        matches!(self, Self::Posix | Self::PosixGarbage)
    }

    /// Returns true if the file system is mounted on a drive.
    pub fn is_mounted(self) -> bool {
        self.on_drive().is_some()
    }

    /// Returns the file system to create on a drive; `None` if there is none. Both enumerations begin with
    /// the same variants.
    fn on_drive(self) -> Option<file_system::FileSystem> {
        file_system::FileSystem::ALL.get(self as usize).copied()
    }

    /// Returns the capacity of the smallest device that the file system fits, in MiB.
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

    /// Creates the file system on `device` and overwrites its contents.
    ///
    /// # Errors
    /// If its mkfs is missing or fails.
    pub fn make(self, device: &Path, options: &FileSystemOptions) -> Result<()> {
        Ok(self.on_drive().map_or(Ok(()), |system| system.make(device, &options.make))?)
    }

    /// Mounts the file system of `device` at the directory `at`. Without a file system nothing is mounted.
    ///
    /// # Errors
    /// [`Unmountable`](ErrorKind::Unmountable) if the contents of the device cannot be mounted, otherwise
    /// [`NotMeasured`](ErrorKind::NotMeasured). The kernel refuses unknown options.
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

/// Drive made available at a path: a mounted file system, or the drive itself. Dropping it unmounts it.
#[derive(Debug)]
pub struct MountedFileSystem {
    presence: Presence,
    /// File systems mounted below this one, or links in it.
    further: Vec<MountedFileSystem>,
}

/// Way in which a drive is available at its path.
#[derive(Debug)]
enum Presence {
    /// Mounted file system.
    Mounted(Mount),
    /// Symbolic link to the block device.
    Linked(Link),
    /// The block device itself, or a directory with links to block devices.
    Bare(PathBuf),
}

/// Symbolic link, removed on drop.
#[derive(Debug)]
struct Link(PathBuf);

impl From<Presence> for MountedFileSystem {
    fn from(presence: Presence) -> Self {
        Self { presence, further: Vec::new() }
    }
}

impl MountedFileSystem {
    /// Creates links to several block devices in the directory `at`.
    ///
    /// # Errors
    /// If a link cannot be created.
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

    /// Returns the mount point, or the path of the block device without a file system.
    pub fn path(&self) -> &Path {
        match &self.presence {
            Presence::Mounted(mount) => mount.path(),
            Presence::Linked(Link(path)) | Presence::Bare(path) => path,
        }
    }

    /// Adds a file system that is mounted below this one and unmounted with it.
    pub(crate) fn add(&mut self, further: Self) {
        self.further.push(further);
    }

    /// Returns the mount points of this file system and of all below it.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.path()).chain(self.further.iter().map(Self::path))
    }

    /// Makes all data written to this file system, and to all below it, durable. Does nothing without a file
    /// system.
    ///
    /// # Errors
    /// Those of open(2) and syncfs(2).
    pub(crate) fn sync(&self) -> io::Result<()> {
        let Presence::Mounted(mount) = &self.presence else { return Ok(()) };
        mount.sync()?;
        self.further.iter().try_for_each(Self::sync)
    }

    /// Unmounts this file system and all below it. All written data is on the device afterwards.
    ///
    /// # Errors
    /// Those of [`Mount::unmount`].
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
        // Drop cannot report an error.
        fs::remove_file(&self.0).unwrap_or_default();
    }
}
