//! [`OpenedTarget`]: an open device with its name, kind, size, identity and route.

use std::ops::Range;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use plumb_block::{Bytes, Caching, Clock, Device, StorageCounters};
use plumb_linux::{Access, Engine, FileDevice, FileOptions, Filling, layout};
use plumb_path::{DeviceKind, Survey, survey_device};
use rustix::fs::OFlags;

use crate::error::{Error, Result};
use crate::locate::LocatedName;
use crate::look::{Key, open_same};
use crate::make::Making;
use crate::mark::mark_as_left;
use crate::shared::{Claim, KeepingDevice};
use crate::test_file::MadeFile;

/// Kind of an open target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// A regular file.
    RegularFile,
    /// A block device.
    BlockDevice,
    /// A simulated drive in this process.
    Simulated,
    /// An export of a server.
    Network,
    /// A write-back cache in this process.
    Cache,
}

impl TargetKind {
    /// Returns the kind of device for a survey; `None` for files and devices of the kernel.
    pub const fn device_kind(self) -> Option<DeviceKind> {
        match self {
            Self::RegularFile | Self::BlockDevice => None,
            Self::Simulated => Some(DeviceKind::Simulated),
            Self::Network => Some(DeviceKind::Nbd),
            Self::Cache => Some(DeviceKind::Cache),
        }
    }
}

/// Path of requests to a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// Kernel I/O by this engine.
    Kernel(Engine),
    /// Direct calls of the simulation.
    Simulated,
    /// NBD protocol.
    Network,
    /// Write-back cache in this process.
    Cache,
}

impl Route {
    /// Returns the name for display and recordings: `io_uring`, `pread/pwrite`, `simulation`.
    pub fn name(&self) -> &str {
        match self {
            Self::Kernel(engine) => engine.name(),
            Self::Simulated => "simulation",
            Self::Network => "nbd",
            Self::Cache => "cache",
        }
    }

    /// Returns the reason for this route, if it is a fallback.
    pub fn because(&self) -> Option<&str> {
        match self {
            Self::Kernel(engine) => engine.because(),
            Self::Simulated | Self::Network | Self::Cache => None,
        }
    }

    /// Returns the maximum number of requests in flight; `None` if unlimited.
    pub fn depth_max(&self) -> Option<u32> {
        match self {
            Self::Kernel(engine) => engine.depth_max(),
            Self::Simulated | Self::Network | Self::Cache => None,
        }
    }

    /// Returns true if completions may share one reading of the clock.
    pub fn batches(&self) -> bool {
        match self {
            Self::Kernel(engine) => engine.depth_max().is_none(),
            Self::Network | Self::Cache => true,
            Self::Simulated => false,
        }
    }
}

/// Target that passed all safety checks for its intended use.
pub struct OpenedTarget {
    /// The open device. Any number of jobs may share it. A block device stays claimed for its lifetime.
    pub device: Arc<dyn Device>,
    /// Path of requests to the target.
    pub route: Route,
    /// Name for display: as typed, with the path or device that it stands for.
    pub shown: String,
    /// Kind of the target.
    pub kind: TargetKind,
    /// True if this run created the file.
    pub made: bool,
    /// True if plumb created the file, in this run or an earlier one, and no other program has changed it
    /// since.
    pub ours: bool,
    /// Capacity of the target.
    pub size: Bytes,
    /// Permanent identity of a block device: serial, WWN or equivalent.
    pub identity: Option<String>,
    /// Notes for the user: resolution of `#N`, contents to be destroyed, changed options.
    pub notes: Vec<String>,
    /// Byte range of holes to lay out before measuring: a new file as a whole, or the added end of an
    /// extended one, aligned to the device's logical blocks. Call [`lay_out`](Self::lay_out), or after a
    /// failed layout by other means [`remove_if_made`](Self::remove_if_made).
    pub needs_layout: Option<Range<u64>>,
    /// Counters of the I/O at the target; `None` for targets that the kernel counts.
    pub counters: Option<Arc<dyn StorageCounters>>,
    /// Origin of the target.
    pub(crate) origin: Origin,
    pub(crate) making: Option<Making>,
}

/// Origin of a target.
pub(crate) enum Origin {
    /// A path to a file or block device.
    Node(Node),
    /// A test file created in a directory that the user named.
    TestFile(MadeFile),
    /// A device unknown to the kernel.
    Elsewhere,
}

impl Origin {
    pub(crate) fn node(&self) -> Option<&Node> {
        match self {
            Self::Node(node) => Some(node),
            Self::TestFile(_) | Self::Elsewhere => None,
        }
    }

    pub(crate) fn test_file(&self) -> Option<&MadeFile> {
        match self {
            Self::TestFile(made) => Some(made),
            Self::Node(_) | Self::Elsewhere => None,
        }
    }
}

/// An open file or block device.
pub(crate) struct Node {
    /// Absolute path without symbolic links.
    pub(crate) path: PathBuf,
    pub(crate) options: FileOptions,
    pub(crate) key: Key,
    pub(crate) claim: Option<Claim>,
    /// Length in bytes when opened, after any resizing. The device covers whole blocks of it.
    pub(crate) length: u64,
    /// First change by others that was detected since opening.
    pub(crate) change: OnceLock<String>,
}

impl Node {
    fn is_at_its_path(&self) -> std::result::Result<bool, rustix::io::Errno> {
        match rustix::fs::lstat(&self.path) {
            Ok(there) => Ok(Key::from_stat(&there) == self.key),
            Err(rustix::io::Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno),
        }
    }
}

impl OpenedTarget {
    /// Returns the path for access by this process: absolute, without symbolic links; below /proc for a test
    /// file. `None` for devices unknown to the kernel.
    pub fn path(&self) -> Option<&Path> {
        match &self.origin {
            Origin::Node(node) => Some(&node.path),
            Origin::TestFile(made) => Some(&made.path),
            Origin::Elsewhere => None,
        }
    }

    /// Returns the write path of a device unknown to the kernel, from the device's own description. `None`
    /// for a file or a block device.
    pub fn survey(&self) -> Option<Survey> {
        let kind = self.kind.device_kind()?;
        Some(survey_device(&self.shown, &self.device.info(), kind))
    }

    /// Returns true if others can open the target by its name: a file or block device.
    pub fn has_name(&self) -> bool {
        self.origin.node().is_some()
    }

    /// Returns false if the file was removed, renamed or replaced; true if that cannot be determined.
    pub fn is_at_its_name(&self) -> bool {
        self.origin.node().is_some_and(|node| node.is_at_its_path().unwrap_or(true))
    }

    /// Returns true if this run holds the claim on the block device, so that nobody else can mount or claim
    /// it.
    pub fn is_claimed(&self) -> bool {
        self.kind == TargetKind::BlockDevice && self.origin.node().is_some_and(|node| node.claim.is_some())
    }

    /// Returns the path at which a survey of the write path starts; for a test file its directory.
    pub fn surveyed_from(&self) -> Option<&Path> {
        self.origin.test_file().map_or_else(|| self.path(), |made| Some(&made.directory))
    }

    /// Writes the range [`needs_layout`](Self::needs_layout) in logical blocks and makes it durable. Does
    /// nothing if there is no such range.
    ///
    /// # Errors
    /// Fails as [`layout::write`], with EINTR when stopped. Files created by this run are then removed.
    pub fn lay_out(&mut self, filling: Filling<'_>) -> Result<()> {
        let Some(range) = self.needs_layout.clone() else { return Ok(()) };
        let path = match (&self.making, &self.origin) {
            // Open by descriptor: the name may lead to another file by now.
            (Some(making), _) => PathBuf::from(format!("/proc/self/fd/{}", making.as_fd().as_raw_fd())),
            (None, Origin::TestFile(made)) => made.path.clone(),
            (None, _) => return Ok(()),
        };
        let block = self.device.info().logical_block;
        match layout::write(&path, Bytes(range.start), Bytes(range.end), block, filling) {
            Ok(()) => {
                self.laid_out();
                Ok(())
            }
            Err(error) => {
                let error = plumb_block::Error { place: self.shown.clone(), ..error };
                Err(Error::device(&self.shown, &error).after_clearing_up(self.remove_if_made()))
            }
        }
    }

    /// Sets the length of the file without writing its blocks: reserved with fallocate(2) if `reserves` is
    /// true and the file system supports it, else as holes. Discards the previous contents. Does nothing
    /// if there is nothing to lay out.
    ///
    /// # Errors
    /// Fails as ftruncate(2) and fallocate(2), after undoing the creation or extension.
    pub fn size_unwritten(&mut self, reserves: bool) -> Result<()> {
        use rustix::io::Errno;
        let (Some(_), Some(making)) = (&self.needs_layout, &self.making) else { return Ok(()) };
        let (file, size) = (making.as_fd(), making.size().0);
        let sized = rustix::fs::ftruncate(file, 0).and_then(|()| rustix::fs::ftruncate(file, size));
        let reserved = sized.and_then(|()| match reserves {
            true => plumb_linux::space::reserve(file, Bytes(0)..Bytes(size)),
            false => Ok(()),
        });
        match reserved {
            // fio also continues if space cannot be reserved.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                self.laid_out();
                Ok(())
            }
            Err(errno) => {
                let error = Error::os(&self.shown, "reserve", errno);
                Err(error.after_clearing_up(self.remove_if_made()))
            }
        }
    }

    /// Keeps the file: it is laid out, or its holes do not matter.
    pub fn laid_out(&mut self) {
        self.needs_layout = None;
        if let Some(making) = self.making.take().filter(|_| self.ours && self.has_own_length()) {
            try_mark_as_left(making.as_fd());
        }
    }

    /// Marks a file of plumb's own as left by this run, so that the next run may overwrite it without
    /// permission. Call at the end of a run that may have written to it. Ignores other targets, and a file
    /// whose length somebody else changed. If the mark cannot be set, the old one stays, and the next run
    /// examines the contents.
    pub fn mark_as_left(&self) {
        let Some(node) = self.origin.node() else { return };
        let is_written = self.kind == TargetKind::RegularFile && node.options.access != Access::ReadOnly;
        if !self.ours || !is_written || !self.has_own_length() {
            return;
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        if let Ok(file) = open_same(&node.path, &self.shown, flags, node.key) {
            try_mark_as_left(file.as_fd());
        }
    }

    /// Returns true if the file has the length that this run gave it, or if the run appends and so changes
    /// it; false if the file was removed or replaced.
    pub fn has_own_length(&self) -> bool {
        self.origin.node().is_some_and(|node| match rustix::fs::lstat(&node.path) {
            Ok(there) => {
                let is_as_made =
                    there.st_size.cast_unsigned() == node.length || node.options.append.is_some();
                Key::from_stat(&there) == node.key && is_as_made
            }
            Err(_) => false,
        })
    }

    /// Undoes the changes of opening after a failed or interrupted layout: removes a new file, cuts an
    /// extended one to its former length. Does nothing to other targets, or after
    /// [`laid_out`](Self::laid_out). The device must not be used afterwards.
    ///
    /// # Errors
    /// Fails as unlink(2) and ftruncate(2).
    pub fn remove_if_made(&mut self) -> Result<()> {
        self.needs_layout = None;
        self.making.take().map_or(Ok(()), Making::undo)
    }

    /// Removes a file that plumb created for its own use; returns true if it did. Leaves a file alone if the
    /// name belongs to another file by now, or if somebody else changed its length.
    ///
    /// # Errors
    /// Fails as unlink(2).
    pub fn remove_if_ours(&self) -> Result<bool> {
        let failed = |errno| Error::os(&self.shown, "remove", errno);
        let Some(node) = self.origin.node() else { return Ok(false) };
        if !self.ours || !node.is_at_its_path().map_err(failed)? || !self.has_own_length() {
            return Ok(false);
        }
        rustix::fs::unlink(&node.path).map_err(failed)?;
        Ok(true)
    }

    /// Opens the target again with other options, for instance with the page cache beside O_DIRECT. The
    /// access is that of this target. The claim on a block device is shared, as the kernel grants only one.
    ///
    /// Jobs with equal options share [`device`](Self::device) instead. A failed flush latches all users of
    /// one device; each device opened here latches on its own.
    ///
    /// A device unknown to the kernel has no options: the same device is returned.
    ///
    /// # Errors
    /// Fails as open(2), and if the file system does not support the options.
    pub fn open_again(&self, options: FileOptions, clock: Arc<dyn Clock>) -> Result<Arc<dyn Device>> {
        let node = match &self.origin {
            Origin::Node(node) => node,
            Origin::TestFile(made) => {
                let device =
                    made.file.open(options, clock).map_err(|error| Error::device(&self.shown, &error))?;
                return Ok(Arc::new(device));
            }
            Origin::Elsewhere => return Ok(Arc::clone(&self.device)),
        };
        let options = FileOptions { access: node.options.access, ..options };
        let located = LocatedName {
            shown: self.shown.clone(),
            path: node.path.clone(),
            missing: None,
            by_number: false,
            part: None,
        };
        let (device, _) = device(&located, node.key, options, node.claim.clone(), clock)?;
        Ok(device)
    }
}

impl std::fmt::Debug for OpenedTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened")
            .field("shown", &self.shown)
            .field("kind", &self.kind)
            .field("made", &self.made)
            .field("size", &self.size)
            .field("path", &self.path())
            .field("options", &self.origin.node().map(|node| node.options))
            .finish_non_exhaustive()
    }
}

/// Marks a file written by plumb with its present state.
fn try_mark_as_left(file: BorrowedFd<'_>) {
    // If this fails the old mark stays, and the next run examines the contents.
    drop(mark_as_left(file));
}

/// Opens the file or device `key` with these options, sharing the claim on it.
///
/// # Errors
/// Fails as open(2), and if the file system does not support the options.
pub fn device(
    located: &LocatedName,
    key: Key,
    options: FileOptions,
    claim: Option<Claim>,
    clock: Arc<dyn Clock>,
) -> Result<(Arc<dyn Device>, Engine)> {
    let file = open_same(&located.path, &located.shown, flags(options), key)?;
    let device = FileDevice::over(file, located.path.display().to_string(), options, clock)
        .map_err(|error| Error::device(&located.shown, &error))?;
    let engine = device.engine().clone();
    Ok((Arc::new(KeepingDevice { device, _kept: claim }), engine))
}

/// Returns the flags of open(2) for a [`FileDevice`] with these options.
fn flags(options: FileOptions) -> OFlags {
    let access = match options.access {
        Access::ReadOnly => OFlags::RDONLY,
        Access::ReadWrite => OFlags::RDWR,
    };
    if options.opening.caching == Caching::Direct { access | OFlags::DIRECT } else { access }
}
