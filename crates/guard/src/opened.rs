//! [`OpenedTarget`]: a device that is open under a name, with what a run must know of it.

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
    /// Returns the kind of the device for a survey; `None` for what the kernel knows.
    pub const fn device_kind(self) -> Option<DeviceKind> {
        match self {
            Self::RegularFile | Self::BlockDevice => None,
            Self::Simulated => Some(DeviceKind::Simulated),
            Self::Network => Some(DeviceKind::Nbd),
            Self::Cache => Some(DeviceKind::Cache),
        }
    }
}

/// How requests reach a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// I/O through the kernel.
    Kernel(Engine),
    /// Straight to the simulation.
    Simulated,
    /// I/O over NBD.
    Network,
    /// I/O through a write-back cache in this process.
    Cache,
}

impl Route {
    /// Returns the name for people and recordings: `io_uring`, `pread/pwrite`, `simulation`.
    pub fn name(&self) -> &str {
        match self {
            Self::Kernel(engine) => engine.name(),
            Self::Simulated => "simulation",
            Self::Network => "nbd",
            Self::Cache => "cache",
        }
    }

    /// Returns why it is not another one, if that needs a reason.
    pub fn because(&self) -> Option<&str> {
        match self {
            Self::Kernel(engine) => engine.because(),
            Self::Simulated | Self::Network | Self::Cache => None,
        }
    }

    /// Returns the number of requests that it can have in flight, if there is a limit.
    pub fn depth_max(&self) -> Option<u32> {
        match self {
            Self::Kernel(engine) => engine.depth_max(),
            Self::Simulated | Self::Network | Self::Cache => None,
        }
    }

    /// Returns true if one reading of the clock serves several completions.
    pub fn batches(&self) -> bool {
        match self {
            Self::Kernel(engine) => engine.depth_max().is_none(),
            Self::Network | Self::Cache => true,
            Self::Simulated => false,
        }
    }
}

/// Target that passed all safety checks for its use.
pub struct OpenedTarget {
    /// The target. It can be shared by any number of jobs, and keeps a block device claimed for as long as it
    /// lives.
    pub device: Arc<dyn Device>,
    /// Way in which requests reach the target.
    pub route: Route,
    /// The target for people: what was typed, and what that stands for.
    pub shown: String,
    /// Kind of the target.
    pub kind: TargetKind,
    /// True if this run has made the file.
    pub made: bool,
    /// True if this run or an earlier one has made the file, and nobody has used it since.
    pub ours: bool,
    /// Capacity of the target.
    pub size: Bytes,
    /// Permanent identity of a block device: its serial, WWN or the like.
    pub identity: Option<String>,
    /// Notes for the user: what `#N` became, what is destroyed, which option was changed.
    pub notes: Vec<String>,
    /// The bytes of the file that are holes and have to be laid out before it is measured, from block to
    /// block of the device: all of a file that was made, the end of one that was made longer.
    /// [`lay_out`](Self::lay_out) does it; where it is done in another way and fails, call
    /// [`remove_if_made`](Self::remove_if_made).
    pub needs_layout: Option<Range<u64>>,
    /// Counters of what reaches the target; only for targets that the kernel does not know.
    pub counters: Option<Arc<dyn StorageCounters>>,
    /// Object by which the kernel knows the target.
    pub(crate) origin: Origin,
    pub(crate) making: Option<Making>,
}

/// Object that a target was opened from.
pub(crate) enum Origin {
    /// A path.
    Node(Node),
    /// A directory, in which a file was made.
    TestFile(MadeFile),
    /// Something that the kernel does not know.
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

/// A file or a block device, as it was opened.
pub(crate) struct Node {
    /// Absolute, without links.
    pub(crate) path: PathBuf,
    pub(crate) options: FileOptions,
    pub(crate) key: Key,
    pub(crate) claim: Option<Claim>,
    /// Length in bytes once it was made; the device has whole blocks of it.
    pub(crate) length: u64,
    /// First change of the file by others that was seen since it was opened.
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
    /// Returns the path by which this process can look at it: absolute and without links, of a test file
    /// below /proc. `None` for what the kernel does not know.
    pub fn path(&self) -> Option<&Path> {
        match &self.origin {
            Origin::Node(node) => Some(&node.path),
            Origin::TestFile(made) => Some(&made.path),
            Origin::Elsewhere => None,
        }
    }

    /// Returns the way to what the kernel does not know, as far as the device says itself. `None` for a file
    /// or a block device.
    pub fn survey(&self) -> Option<Survey> {
        let kind = self.kind.device_kind()?;
        Some(survey_device(&self.shown, &self.device.info(), kind))
    }

    /// Returns true if it is a file or a device that others find by its name.
    pub fn has_name(&self) -> bool {
        self.origin.node().is_some()
    }

    /// Returns true if its name may still lead to it: false once others have removed, renamed or replaced it.
    pub fn is_at_its_name(&self) -> bool {
        self.origin.node().is_some_and(|node| node.is_at_its_path().unwrap_or(true))
    }

    /// Returns true if this run has claimed it: a block device that nobody else can mount or claim meanwhile.
    pub fn is_claimed(&self) -> bool {
        self.kind == TargetKind::BlockDevice && self.origin.node().is_some_and(|node| node.claim.is_some())
    }

    /// Returns the path from which a survey of what is beneath it begins: of a test file that of its
    /// directory.
    pub fn surveyed_from(&self) -> Option<&Path> {
        self.origin.test_file().map_or_else(|| self.path(), |made| Some(&made.directory))
    }

    /// Lays out what [`needs_layout`](Self::needs_layout), in blocks of the device's logical block, and makes
    /// it durable. Does nothing if there is nothing to lay out.
    ///
    /// # Errors
    /// Fails as [`layout::write`]; EINTR when stopped, and the files made until then are removed.
    pub fn lay_out(&mut self, filling: Filling<'_>) -> Result<()> {
        let Some(range) = self.needs_layout.clone() else { return Ok(()) };
        let path = match (&self.making, &self.origin) {
            // By its descriptor, so that it is this very file, whatever its name leads to by now.
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

    /// Makes the file as long as it is to be without writing its blocks: reserved with fallocate(2) if
    /// `reserves` and the file system can, otherwise holes. What a file that is to be longer held is dropped.
    /// Does nothing if there is nothing to lay out.
    ///
    /// # Errors
    /// As ftruncate(2) and fallocate(2); what was made is then undone.
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
            // fio goes on where nothing can be reserved, too.
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

    /// Says that the file is laid out, or that holes in it do not matter, so that it stays.
    pub fn laid_out(&mut self) {
        self.needs_layout = None;
        if let Some(making) = self.making.take().filter(|_| self.ours && self.has_own_length()) {
            vouch(making.as_fd());
        }
    }

    /// Marks a file of plumb's own as left by this run, so that the next one may write over it without being
    /// asked: to be called when a run that may have written to it has ended. Does nothing to other targets,
    /// nor to a file to which somebody else gave another length. A mark that cannot be set stays as it was,
    /// and the contents then say whose they are.
    pub fn mark_as_left(&self) {
        let Some(node) = self.origin.node() else { return };
        let is_written = self.kind == TargetKind::RegularFile && node.options.access != Access::ReadOnly;
        if !self.ours || !is_written || !self.has_own_length() {
            return;
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        if let Ok(file) = open_same(&node.path, &self.shown, flags, node.key) {
            vouch(file.as_fd());
        }
    }

    /// Returns true if its file is as long as this run has made it, or the run appends to it and so gives it
    /// other lengths; false if it was removed or replaced.
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

    /// Undoes what opening has made, when laying out failed or was interrupted: a new file is removed, one
    /// that was made longer is cut to its former length. Does nothing to other targets, nor after
    /// [`laid_out`](Self::laid_out). The device is of no use then.
    ///
    /// # Errors
    /// As unlink(2) and ftruncate(2).
    pub fn remove_if_made(&mut self) -> Result<()> {
        self.needs_layout = None;
        self.making.take().map_or(Ok(()), Making::undo)
    }

    /// Removes the file if plumb has made it for itself, and says whether it did: for a run that leaves
    /// nothing behind. A name that belongs to another file by now is left alone, as is a file to which
    /// somebody else gave another length.
    ///
    /// # Errors
    /// As unlink(2).
    pub fn remove_if_ours(&self) -> Result<bool> {
        let failed = |errno| Error::os(&self.shown, "remove", errno);
        let Some(node) = self.origin.node() else { return Ok(false) };
        if !self.ours || !node.is_at_its_path().map_err(failed)? || !self.has_own_length() {
            return Ok(false);
        }
        rustix::fs::unlink(&node.path).map_err(failed)?;
        Ok(true)
    }

    /// Opens the target once more in another way, for a job that wants, say, the page cache where others go
    /// past it. It may be written if this one may. The claim on a block device is shared, for the kernel
    /// grants only one.
    ///
    /// Jobs that want the same options share [`device`](Self::device) instead: a failed flush then latches
    /// them all, while each device that is opened here latches alone.
    ///
    /// What the kernel does not know has no other way: the same device is given again.
    ///
    /// # Errors
    /// As open(2), and where the file system does not support the options.
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

/// Marks a file that plumb wrote as it is now.
fn vouch(file: BorrowedFd<'_>) {
    // Where that fails the old mark stands, and the next run reads the contents before it trusts them.
    drop(mark_as_left(file));
}

/// Returns the file or device of `key` with these options, beside the claim on it.
///
/// # Errors
/// As open(2), and where the file system does not support the options.
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

/// Returns the flags of open(2) that a [`FileDevice`] with these options is used with.
fn flags(options: FileOptions) -> OFlags {
    let access = match options.access {
        Access::ReadOnly => OFlags::RDONLY,
        Access::ReadWrite => OFlags::RDWR,
    };
    if options.opening.caching == Caching::Direct { access | OFlags::DIRECT } else { access }
}
