//! A regular file or a block device of this machine as a [`Device`].
//!
//! [`FileDevice::open`] looks at what the path is, chooses an engine (io_uring, or pread and pwrite where the
//! kernel or a seccomp filter forbids io_uring, or a mapping if asked) and says which it chose. What each
//! request becomes, but for reads, writes and flushes of the [mapped](Engine::Mapped) engine:
//!
//! | request | regular file | block device |
//! |---|---|---|
//! | read, write | read, write, with `RWF_DONTCACHE` if uncached | the same |
//! | write with FUA | write with `RWF_DSYNC` or `RWF_SYNC` | the same: one FUA write where the device has FUA and I/O is direct |
//! | flush | fdatasync, or as [`FlushCall`](plumb_block::FlushCall) says | fdatasync: write back what is cached, then a flush of the device |
//! | discard | fallocate, punch hole | `BLKDISCARD` |
//! | write zeroes | fallocate, punch hole or zero range | fallocate, the same two modes |
//!
//! Durability is the submitter's choice request by request, so there is no "open with O_DSYNC": a policy that
//! wants every write durable submits every write with FUA.
//!
//! Invariants: a flush that failed latches the device for all queues; so does a failed FUA write, because to
//! the kernel it is a write *and* a sync, and a failed sync is reported once and then forgotten (the pages
//! are marked clean), so that the next fdatasync would succeed over lost data.

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

/// An open file or block device. Cheap to share: queues hold what they need of it themselves.
pub struct FileDevice {
    target: Arc<Target>,
    engine: Engine,
}

impl FileDevice {
    /// Opens `path`, which must exist.
    ///
    /// A block device that is to be written is claimed exclusively (O_EXCL): the kernel refuses with EBUSY if
    /// it is mounted, part of a RAID or a volume group, or claimed by another opener.
    ///
    /// # Errors
    /// As open(2); [`Unsupported`](ErrorKind::Unsupported) if it is neither file nor block device, or if its
    /// file system refuses O_DIRECT; [`Invalid`](ErrorKind::Invalid) if it is smaller than one logical block.
    pub fn open(path: &Path, options: FileOptions, clock: Arc<dyn Clock>) -> Result<Self> {
        engine::check(&options, &path.display().to_string())?;
        let file = open::open(path, options)?;
        Self::over(file, path.display().to_string(), options, clock)
    }

    /// Creates a device over what is open already, in the way that `options` say: the descriptor's own flags
    /// are not changed, so it must have been opened so. `name` is for messages.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn over(file: OwnedFd, name: String, options: FileOptions, clock: Arc<dyn Clock>) -> Result<Self> {
        engine::check(&options, &name)?;
        let target = Target::new(file, name, options, clock)?;
        let engine = engine::choose(&target)?;
        Ok(Self { target: Arc::new(target), engine })
    }

    /// Returns how requests reach the kernel, and why not in the better way if so. To be said aloud and kept
    /// with results.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns true if this is a block device, not a regular file.
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
        // A description of its own for each queue: the kernel reports a failed write-back once per
        // description, so two queues that flush at the same time over a shared one could see one failure and
        // one false success.
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

    /// A block device knows nothing of its blocks' state; a file's is asked of its file system.
    fn extents(&self, range: LbaRange) -> Result<Vec<Extent>> {
        match self.target.kind {
            TargetKind::BlockDevice => Ok(vec![Extent { range, state: ExtentState::Unknown }]),
            TargetKind::RegularFile => {
                extents::of_blocks(self.target.file(), range, self.target.logical_block(), &self.target.name)
            }
        }
    }

    /// Returns an error always: a file has no cache of its own to switch, and a disk's is switched by policy,
    /// which verifies and restores it.
    fn set_wce(&self, _enabled: bool) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, "switch the write cache of", self.target.name.as_str())
            .because("the write cache of a disk is not switched through an open file, and a file has none"))
    }

    fn latched(&self) -> Option<Latch> {
        self.target.latched()
    }
}
