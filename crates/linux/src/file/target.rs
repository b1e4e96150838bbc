//! State shared by all queues of an open file or block device: the descriptor, the limits, the latch, the
//! clock.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plumb_block::{Bytes, Caching, Clock, DeviceInfo, Errno, Error, ErrorKind, Latch, Op, Outcome, Result};
use rustix::fs::{FileType, Mode};

use super::grid::{Grid, TargetKind};
use super::work::Progress;
use super::{Access, FileOptions, limits, uncached};

/// An open file or block device.
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: TargetKind,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) grid: Grid,
    file: OwnedFd,
    pub(crate) options: FileOptions,
    /// Capacity in logical blocks; read without a lock.
    blocks: AtomicU64,
    info: Mutex<DeviceInfo>,
    /// Error number of the latch, 0 without one; read for every flush.
    latched_errno: AtomicI32,
    latch: Mutex<Option<Latch>>,
}

impl Target {
    pub(crate) fn new(
        file: OwnedFd,
        name: String,
        options: FileOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        let mode = rustix::fs::fstat(&file)
            .map_err(|errno| Error::io(&errno.into(), "look at", name.as_str()))?
            .st_mode;
        let kind = match FileType::from_raw_mode(mode) {
            FileType::BlockDevice => TargetKind::BlockDevice,
            FileType::RegularFile => TargetKind::RegularFile,
            _ => {
                return Err(Error::new(ErrorKind::Unsupported, "use", name.as_str())
                    .because("it is neither a file nor a block device"));
            }
        };
        let limits = limits::look(file.as_fd(), kind, options, &name, &limits::sysfs())?;
        let info = limits.info;
        if info.blocks() == 0 {
            let detail = format!("it is smaller than one logical block of {}", info.logical_block);
            return Err(Error::new(ErrorKind::Invalid, "use", name.as_str()).because(detail));
        }
        if options.opening.caching == Caching::DropBehind {
            uncached::probe(file.as_fd(), &name)?;
        }
        let grid = Grid {
            kind,
            caching: options.opening.caching,
            flush: options.opening.flush,
            durable_write: options.opening.durable_write,
            untorn: options.opening.untorn,
            append: options.append.is_some(),
            writable: options.access == Access::ReadWrite,
            logical_block: info.logical_block,
            transfer_max: info.transfer_max,
            can_discard: info.discard_max > Bytes(0),
            fast_zeroes: limits.fast_zeroes,
        };
        Ok(Self {
            name,
            kind,
            clock,
            grid,
            file,
            options,
            blocks: AtomicU64::new(info.blocks()),
            info: Mutex::new(info),
            latched_errno: AtomicI32::new(0),
            latch: Mutex::new(None),
        })
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Returns the capacity in bytes.
    pub(crate) fn size(&self) -> Bytes {
        self.grid.logical_block * self.blocks()
    }

    pub(crate) fn logical_block(&self) -> Bytes {
        self.grid.logical_block
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.blocks.load(Ordering::Relaxed)
    }

    /// Opens the same target with its own open file description, or duplicates the descriptor where /proc is
    /// not mounted.
    pub(crate) fn reopen(&self) -> Result<OwnedFd> {
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        match rustix::fs::open(path, self.options.flags(), Mode::empty()) {
            Ok(file) => Ok(file),
            Err(_) => self
                .file
                .try_clone()
                .map_err(|error| Error::io(&error, "open a queue to", self.name.as_str())),
        }
    }

    /// Reads the properties again: size and write cache may have changed, and the generation then grows.
    /// Returns the last known ones if the device can no longer be read.
    pub(crate) fn info(&self) -> DeviceInfo {
        let mut known = lock(&self.info);
        let sys = limits::sysfs();
        if let Ok(now) = limits::look(self.file(), self.kind, self.options, &self.name, &sys) {
            let mut now = now.info;
            now.generation = known.generation;
            if now != *known {
                now.generation += 1;
                self.blocks.store(now.blocks(), Ordering::Relaxed);
                *known = now;
            }
        }
        known.clone()
    }

    pub(crate) fn latched(&self) -> Option<Latch> {
        *lock(&self.latch)
    }

    /// Returns the error number for all flushes from now on, if one failed.
    pub(crate) fn latched_errno(&self) -> Option<Errno> {
        match self.latched_errno.load(Ordering::Acquire) {
            0 => None,
            errno => Some(Errno(errno)),
        }
    }

    /// Returns the outcome of a request if it is complete. Records a failed flush.
    #[inline]
    pub(crate) fn ended(&self, op: Op, progress: Progress) -> Option<Outcome> {
        match progress {
            Progress::Again => None,
            // A flush on another queue may have failed while this one was in progress.
            Progress::Ended(Outcome::Done) if op == Op::Flush => {
                Some(self.latched_errno().map_or(Outcome::Done, Outcome::Failed))
            }
            Progress::Ended(outcome) => Some(outcome),
            Progress::Latching(errno) => {
                self.latch(errno);
                Some(Outcome::Failed(errno))
            }
        }
    }

    /// Records a failed flush; the first one is kept.
    fn latch(&self, errno: Errno) {
        let mut latch = lock(&self.latch);
        if latch.is_none() {
            *latch = Some(Latch { errno, at: self.clock.now() });
            self.latched_errno.store(errno.0, Ordering::Release);
        }
    }
}

/// Locks a mutex. A panic elsewhere cannot leave its value half-changed, since values are only replaced as a
/// whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
