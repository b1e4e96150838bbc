//! The waist itself: [`Device`] and [`Queue`].
//!
//! The complete contract:
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
//! The `conformance` kit tests implementations against this contract.

use std::os::fd::BorrowedFd;

use crate::buffer::Pool;
use crate::error::{Errno, Result};
use crate::info::{DeviceInfo, Extent};
use crate::request::{Completion, LbaRange, Request};
use crate::units::Nanos;

/// A block device: numbered blocks that can be read, written and flushed.
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

    /// Opens a new queue to the device.
    ///
    /// # Errors
    /// If the device is gone, or the kernel has no room for another queue.
    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>>;

    /// Returns the state of the blocks of `range` as extents in order, which cover all of it.
    ///
    /// # Errors
    /// If the query fails. A device without this information reports [`Unknown`](crate::ExtentState::Unknown)
    /// instead.
    fn extents(&self, range: LbaRange) -> Result<Vec<Extent>>;

    /// Turns the volatile write cache on or off, and verifies the change by reading the state back.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if the device has no cache that it can switch.
    fn set_wce(&self, enabled: bool) -> Result<()>;

    /// Returns the failed flush that latched the device, if any. Data written since the last successful flush
    /// may then be lost, although it was acknowledged and may be visible.
    fn latched(&self) -> Option<Latch>;

    /// Returns whether the device has power, and how often it lost it. A device that cannot lose power
    /// without this process losing it too (a file, a disk of this machine) always has power.
    fn power(&self) -> Power {
        Power::ALWAYS
    }
}

/// Power state of a device. Data acknowledged before the latest loss survives only if it was durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Power {
    /// True if the power is on.
    pub is_on: bool,
    /// Number of power losses since the device was opened.
    pub losses: u64,
}

impl Power {
    /// Power that is on and was never lost.
    pub const ALWAYS: Self = Self { is_on: true, losses: 0 };
}

/// A path of requests to a device, owned by one worker, like an NVMe queue pair.
///
/// Dropping a queue blocks until the device no longer touches any buffer of its requests.
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
    /// Accepts a request; never blocks. An invalid request (out of range, off the block grid) is accepted too
    /// and completes with EINVAL, as a controller would answer. The device may not see the request before the
    /// next [`poll`](Queue::poll).
    ///
    /// # Errors
    /// [`QueueFull`] returns the request: poll first, then submit it again.
    fn submit(&mut self, request: Request) -> std::result::Result<(), QueueFull>;

    /// Hands submitted requests to the device, waits as `wait` says, and appends completions to
    /// `completions`. Returns the number appended.
    ///
    /// Only the owner of a single queue may wait here, since in virtual time a wait moves the clock of all
    /// devices. With several queues, poll each without waiting and then call [`wait_any`](crate::wait_any).
    ///
    /// # Errors
    /// If the queue itself failed; requests in flight then get no completion.
    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> Result<usize>;

    /// Returns a descriptor that becomes readable when the queue needs a poll, for completions or other work.
    /// `None` in virtual time, and for a queue whose poll does the work itself.
    fn wake_fd(&self) -> Option<BorrowedFd<'_>>;
}

/// Options for opening a queue.
#[derive(Debug, Clone)]
pub struct QueueOptions {
    /// Number of requests that the queue must hold in flight; at least 1.
    pub depth: u32,
    /// Pool for buffers. The device may register it. The queue expands patterns into it, and uses it for
    /// reads whose data the caller does not want.
    pub pool: Pool,
}

/// Limits of a poll's wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Return when this many requests have completed, or nothing is in flight; 0 does not wait at all.
    pub completions: u32,
    /// Time after which one completion is enough, so that slow requests do not delay the report of a fast
    /// one. `None`: wait for all of `completions`.
    pub patience: Option<Nanos>,
    /// Return at this time at the latest.
    pub deadline: Option<Nanos>,
}

impl Wait {
    /// Do not wait.
    pub const NONE: Self = Self { completions: 0, patience: None, deadline: None };
    /// Wait for one completion, however long it takes.
    pub const ONE: Self = Self { completions: 1, patience: None, deadline: None };

    /// Waits for one completion, at most until `deadline`.
    pub const fn one_until(deadline: Nanos) -> Self {
        Self { completions: 1, patience: None, deadline: Some(deadline) }
    }
}

/// Error of a full queue, with the request that did not fit.
#[derive(Debug)]
pub struct QueueFull(pub Request);

/// Record of the failed flush that latched the device, kept while the device is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latch {
    /// Error of the flush.
    pub errno: Errno,
    /// Time of the failure.
    pub at: Nanos,
}
