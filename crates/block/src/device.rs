//! The waist itself: [`Device`] and [`Queue`].
//!
//! The contract, and all of it:
//!
//! > No order holds between requests in flight. A read submitted after a write completed, on any queue,
//! > returns it or something newer; through a page cache a read in flight with a write of the same block may
//! > return a mixture of both. A completed FUA request is durable itself. A completed flush makes durable
//! > every write, discard and write-zeroes that completed on ANY queue before the flush was submitted. The
//! > rest survives a power cut in any subset, but never an older version over a durable newer one; requests
//! > in flight may tear between logical blocks or leave them unreadable. A failed or unanswered write leaves
//! > each block old, new or unreadable, and may land later. A failed flush latches the device: every later
//! > flush fails, on every queue.
//!
//! Implementations are held to it by the `conformance` kit.

use std::os::fd::BorrowedFd;

use crate::buffer::Pool;
use crate::error::{Errno, Result};
use crate::info::{DeviceInfo, Extent};
use crate::request::{Completion, LbaRange, Request};
use crate::units::Nanos;

/// A place of numbered blocks that can be read, written and flushed.
///
/// ```
/// use plumb_block::{Device, VolatileCache};
///
/// /// Returns true if an acknowledged write may be lost in a power cut until a flush.
/// fn needs_flush(device: &dyn Device) -> bool {
///     device.info().volatile_cache != VolatileCache::None
/// }
/// ```
pub trait Device: Send + Sync {
    /// Returns the device's current description of itself.
    fn info(&self) -> DeviceInfo;

    /// Returns a new queue to the device.
    ///
    /// # Errors
    /// If the device is gone, or the kernel has no room for another queue.
    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>>;

    /// Returns the state of the blocks of `range` as extents, in order and covering all of it.
    ///
    /// # Errors
    /// If the device cannot be asked; one that does not know answers
    /// [`Unknown`](crate::ExtentState::Unknown).
    fn extents(&self, range: LbaRange) -> Result<Vec<Extent>>;

    /// Turns the volatile write cache on or off. The answer is from reading back, not from having asked.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where the cache is not the device's to switch.
    fn set_wce(&self, enabled: bool) -> Result<()>;

    /// Returns the failed flush that latched the device, if one did. Visible, not acknowledged, not durable:
    /// that is all that can be said of what was written since the last good flush.
    fn latched(&self) -> Option<Latch>;

    /// Returns whether the device has power, and how often it lost it. A device whose power this process
    /// cannot lose before itself (a file, a disk of this machine) always has it.
    fn power(&self) -> Power {
        Power::ALWAYS
    }
}

/// The power of a device. Of what was acknowledged under another number of losses only what was durable is
/// there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Power {
    /// True if it is on.
    pub is_on: bool,
    /// How often it was lost since the device was opened.
    pub losses: u64,
}

impl Power {
    /// Power that is on and was never lost.
    pub const ALWAYS: Self = Self { is_on: true, losses: 0 };
}

/// A path of requests to a device, owned by one worker, like an NVMe queue pair.
///
/// Dropping a queue waits until the device no longer touches any buffer of its requests.
///
/// ```
/// use plumb_block::{Device, Lba, LbaRange, Payload, Queue, QueueOptions, Request, Result, Tag, Wait};
///
/// /// Writes one block, and returns true if it is durable: acknowledged, and then flushed.
/// fn write_durably(device: &dyn Device, options: QueueOptions, payload: Payload) -> Result<bool> {
///     let mut queue = device.open_queue(options)?;
///     let write = Request::write(Tag(1), LbaRange::new(Lba(0), 1), payload);
///     for request in [write, Request::flush(Tag(2))] {
///         // A flush covers writes that were acknowledged before it was submitted: one after the other.
///         let mut completions = Vec::new();
///         if queue.submit(request).is_err() {
///             return Ok(false);
///         }
///         queue.poll(Wait::ONE, &mut completions)?;
///         if !completions.iter().all(|completion| completion.outcome.is_done()) {
///             return Ok(false);
///         }
///     }
///     Ok(true)
/// }
/// ```
pub trait Queue: Send {
    /// Takes a request; never blocks. What cannot be done (out of range, off the block grid) is taken too and
    /// completes as failed with EINVAL, as a controller would answer. The device may see the request only at
    /// the next [`poll`](Queue::poll).
    ///
    /// # Errors
    /// [`QueueFull`] gives the request back; poll first.
    fn submit(&mut self, request: Request) -> std::result::Result<(), QueueFull>;

    /// Hands submitted requests to the device, waits as told, and appends what has completed to
    /// `completions`. Returns how many were appended.
    ///
    /// Only the owner of a single queue waits here, since in virtual time that moves the clock of all
    /// devices: whoever has several queues polls them without waiting and then calls
    /// [`wait_any`](crate::wait_any).
    ///
    /// # Errors
    /// If the queue itself is broken; requests in flight are then unanswered.
    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> Result<usize>;

    /// Returns a descriptor that becomes readable when completions can be polled, or something else is to be
    /// done by a poll. `None` in virtual time, and where the poll itself does the work.
    fn wake_fd(&self) -> Option<BorrowedFd<'_>>;
}

/// How a queue should be made.
#[derive(Debug, Clone)]
pub struct QueueOptions {
    /// Number of requests that it must hold in flight; at least 1.
    pub depth: u32,
    /// Where buffers come from. The device may register it; patterns are turned into bytes in it, and reads
    /// whose bytes nobody wants land in it.
    pub pool: Pool,
}

/// Time that a poll may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Return when this many have completed, or nothing is in flight; 0 does not wait at all.
    pub completions: u32,
    /// Time after which a single completion is enough, so that an early completion is not reported late
    /// because others are slow. `None`: wait for all of them.
    pub patience: Option<Nanos>,
    /// Return at this time at the latest.
    pub deadline: Option<Nanos>,
}

impl Wait {
    /// Do not wait.
    pub const NONE: Self = Self { completions: 0, patience: None, deadline: None };
    /// Wait for one completion, however long it takes.
    pub const ONE: Self = Self { completions: 1, patience: None, deadline: None };

    /// Wait for one completion, at most until `deadline`.
    pub const fn one_until(deadline: Nanos) -> Self {
        Self { completions: 1, patience: None, deadline: Some(deadline) }
    }
}

/// The queue holds as many requests as it can; here is the one that did not fit.
#[derive(Debug)]
pub struct QueueFull(pub Request);

/// Record of the flush that failed and latched the device: kept for as long as the device is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latch {
    /// Error that the flush failed with.
    pub errno: Errno,
    /// When.
    pub at: Nanos,
}
