//! A regular file or a block device of this machine as a [`Device`].
//!
//! [`FileDevice::open`] determines the type of the path and chooses an engine, which it reports: io_uring, or
//! pread and pwrite where the kernel or a seccomp filter forbids io_uring, or a mapping on request. System
//! calls for each request, except reads, writes and flushes of the [mapped](Engine::Mapped) engine:
//!
//! | request | regular file | block device |
//! |---|---|---|
//! | read, write | read, write, with `RWF_DONTCACHE` if uncached | the same |
//! | write with FUA | write with `RWF_DSYNC` or `RWF_SYNC` | the same: one FUA write where the device has FUA and I/O is direct |
//! | flush | fdatasync, or as [`FlushCall`](plumb_block::FlushCall) says | fdatasync: write back what is cached, then a flush of the device |
//! | discard | fallocate, punch hole | `BLKDISCARD` |
//! | write zeroes | fallocate, punch hole or zero range | fallocate, the same two modes |
//!
//! The submitter chooses durability for each request, so there is no "open with O_DSYNC": a policy of durable
//! writes submits every write with FUA.
//!
//! Invariants: a failed flush latches the device for all queues. So does a failed FUA write, which for the
//! kernel is a write *and* a sync: the kernel reports a failed sync once and then marks the pages clean, so
//! the next fdatasync would succeed although data was lost.

mod engine;
mod grid;
mod limits;
mod open;
pub(crate) mod scratch;
mod target;
mod uncached;
pub(crate) mod work;
pub(crate) mod zeroes;

pub use engine::Engine;
pub use open::{Access, FileOptions, remedy_if_denied};

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use plumb_block::{
    Clock, Device, DeviceInfo, Error, ErrorKind, Extent, ExtentState, Latch, LbaRange, Queue, QueueOptions,
    Result,
};

pub(crate) use grid::{Grid, TargetKind};
pub(crate) use open::{direct_refused, open as open_existing};
pub(crate) use target::Target;

use crate::{extents, mapped, psync, uring};

/// An open file or block device. Cheap to share: every queue holds its own references.
pub struct FileDevice {
    target: Arc<Target>,
    engine: Engine,
}

impl FileDevice {
    /// Opens `path`, which must exist.
    ///
    /// A block device opened for writing is claimed exclusively (O_EXCL): the kernel refuses with EBUSY if it
    /// is mounted, part of a RAID or a volume group, or claimed by another opener.
    ///
    /// # Errors
    /// Fails as open(2) does; [`Unsupported`](ErrorKind::Unsupported) if the path is neither file nor block
    /// device, or its file system refuses O_DIRECT; [`Invalid`](ErrorKind::Invalid) if it is smaller than one
    /// logical block.
    pub fn open(path: &Path, options: FileOptions, clock: Arc<dyn Clock>) -> Result<Self> {
        engine::check(&options, &path.display().to_string())?;
        let file = open::open(path, options)?;
        Self::over(file, path.display().to_string(), options, clock)
    }

    /// Creates a device from an open descriptor. Its flags are not changed, so it must have been opened as
    /// `options` say. `name` is for messages.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does.
    pub fn over(file: OwnedFd, name: String, options: FileOptions, clock: Arc<dyn Clock>) -> Result<Self> {
        engine::check(&options, &name)?;
        let target = Target::new(file, name, options, clock)?;
        let engine = engine::choose(&target)?;
        Ok(Self { target: Arc::new(target), engine })
    }

    /// Returns the engine in use, and the reason if it is not io_uring. Show it to the user and store it with
    /// results.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns true if this is a block device rather than a regular file.
    pub fn is_block_device(&self) -> bool {
        self.target.kind == TargetKind::BlockDevice
    }
}

impl Device for FileDevice {
    fn info(&self) -> DeviceInfo {
        self.target.info()
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        if options.depth == 0 {
            return Err(Error::new(ErrorKind::Invalid, "open a queue to", self.target.name.as_str())
                .because("a queue holds at least one request"));
        }
        // Each queue has its own open file description: the kernel reports a failed write-back once per
        // description, so of two queues that flush a shared one at the same time, one could see the failure
        // and the other a false success.
        let file = self.target.reopen()?;
        match self.engine {
            Engine::IoUring => Ok(Box::new(uring::UringQueue::new(Arc::clone(&self.target), file, options)?)),
            Engine::Positioned { .. } => {
                let way = psync::Way::Positioned(file);
                Ok(Box::new(psync::SerialQueue::new(Arc::clone(&self.target), way, options)))
            }
            Engine::Mapped => {
                let way = psync::Way::Mapped(mapped::Mapping::new(&self.target, file)?);
                Ok(Box::new(psync::SerialQueue::new(Arc::clone(&self.target), way, options)))
            }
        }
    }

    /// Queries the file system of a file. The state of a block device's blocks is unknown.
    fn extents(&self, range: LbaRange) -> Result<Vec<Extent>> {
        match self.target.kind {
            TargetKind::BlockDevice => Ok(vec![Extent { range, state: ExtentState::Unknown }]),
            TargetKind::RegularFile => {
                extents::of_blocks(self.target.file(), range, self.target.logical_block(), &self.target.name)
            }
        }
    }

    /// Always fails: a file has no cache of its own to switch, and policy switches the cache of a disk, with
    /// verification and restore.
    fn set_wce(&self, _enabled: bool) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, "switch the write cache of", self.target.name.as_str())
            .because("the write cache of a disk is not switched through an open file, and a file has none"))
    }

    fn latched(&self) -> Option<Latch> {
        self.target.latched()
    }
}
