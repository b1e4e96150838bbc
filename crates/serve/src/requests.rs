//! The serving core: requests of one front end (an NBD connection, a FUSE thread, a ublk queue) at the
//! device. A front end decodes a request, submits it here, and encodes the answer when it
//! [ends](Requests::next_ended).
//!
//! # Invariants
//! - Every submitted request ends exactly once.
//! - Every request at the device has a slot, whose number is its tag; the slot is freed when the device has
//!   answered.
//! - A request that the device leaves unanswered for too long ([`ServedDevice::request_timeout`]) is given up
//!   and ends as unanswered, as in a kernel driver. The device, which may still execute it, keeps its slot
//!   and memory. Once all slots are in this state, the device is offline: new requests fail immediately.
//! - Once the device has lost power, no earlier request succeeds, nor any later one from users of that time
//!   ([`KnownLosses`]): they end as unanswered, even after the power is on again.
//! - A promise of durability (a flush, a write with FUA) never succeeds after or concurrently with a failed
//!   one on any queue: it is unknown which writes the failed one has lost. Any such failure latches, unless
//!   the device refused the request without executing it.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use plumb_block::{
    BufferMut, Bytes, Completion, Errno, LbaRange, Nanos, Op, Outcome, Payload, Pool, PoolShape, Queue,
    QueueOptions, Request, Result, Tag, Wait,
};
use plumb_linux::Patience;

use crate::served_device::{KnownLosses, ServedDevice};

/// Interval of polls for a queue without a descriptor that has requests in flight.
pub(crate) const BLIND_WAIT: Duration = Duration::from_millis(1);
/// Interval of checks for overdue requests.
const PATROL_EVERY: Nanos = Nanos::millis(250);
/// Number of polls between readings of the clock, while requests complete.
const PATROL_POLLS: u32 = 16;

/// Failure of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The device reported this error.
    Errno(Errno),
    /// Unknown: no answer in time, or a power loss.
    Unanswered,
}

impl Failure {
    /// Returns the error number for the failure.
    pub(crate) const fn errno(self) -> Errno {
        match self {
            Self::Errno(errno) => errno,
            Self::Unanswered => Errno::EIO,
        }
    }
}

/// A completed request.
#[derive(Debug)]
pub(crate) struct FinishedRequest<T> {
    /// Front end's data for the request.
    pub(crate) asked: T,
    pub(crate) result: std::result::Result<(), Failure>,
    /// Memory of the request, unless the device keeps it.
    pub(crate) payload: Payload,
}

/// State of a slot.
#[derive(Debug)]
enum Slot<T> {
    Free,
    /// In use by a request, at the device or in the backlog, since this time.
    Taken {
        asked: T,
        op: Op,
        since: Nanos,
    },
    /// Still in use by the device for a request that was given up.
    GivenUp,
}

/// Requests of one front end at the device, with their queue.
pub(crate) struct Requests<T> {
    served: Arc<ServedDevice>,
    known: Arc<KnownLosses>,
    queue: Box<dyn Queue>,
    /// True if the queue failed; then no more requests are possible.
    is_broken: bool,
    slots: Vec<Slot<T>>,
    free: Vec<usize>,
    given_up: usize,
    /// Requests that did not fit into the queue.
    backlog: VecDeque<Request>,
    /// True if requests were submitted since the last poll, which the device may not have seen.
    has_unpolled: bool,
    completions: Vec<Completion>,
    ended: VecDeque<FinishedRequest<T>>,
    polls: u32,
    /// Time of the next check for overdue requests.
    next_patrol: Nanos,
}

impl<T> Requests<T> {
    /// Opens a queue of `depth` for users who know the power losses in `known`.
    ///
    /// # Errors
    /// If the device cannot open a queue.
    pub(crate) fn open(
        served: Arc<ServedDevice>,
        known: Arc<KnownLosses>,
        depth: u32,
        pool: Pool,
    ) -> Result<Self> {
        let queue = served.device.open_queue(QueueOptions { depth, pool })?;
        let slots = depth as usize;
        Ok(Self {
            next_patrol: served.clock.now(),
            served,
            known,
            queue,
            is_broken: false,
            slots: std::iter::repeat_with(|| Slot::Free).take(slots).collect(),
            free: (0..slots).rev().collect(),
            given_up: 0,
            backlog: VecDeque::new(),
            has_unpolled: false,
            completions: Vec::with_capacity(slots),
            ended: VecDeque::with_capacity(slots),
            polls: 0,
        })
    }

    /// Returns the number of slots in use at the device, including requests that were given up.
    pub(crate) fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns the number of requests that await an answer.
    pub(crate) fn awaited(&self) -> usize {
        self.in_flight() - self.given_up
    }

    /// Returns true if another request can be accepted, even if only to fail because the device is offline.
    pub(crate) fn has_room(&self) -> bool {
        self.backlog.is_empty() && (!self.free.is_empty() || self.given_up == self.slots.len())
    }

    /// Returns true if a poll is needed before waiting: the device may not have seen all requests, or one
    /// ended immediately.
    pub(crate) fn needs_poll(&self) -> bool {
        self.has_unpolled || !self.ended.is_empty()
    }

    /// Returns the device's queue for waiting.
    pub(crate) fn queue(&self) -> &dyn Queue {
        &*self.queue
    }

    /// Returns the descriptor that becomes readable when a poll is needed, if there is one.
    pub(crate) fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.queue.wake_fd()
    }

    /// Returns the maximum wait for requests and the device together.
    pub(crate) fn patience(&self) -> Patience {
        match self.in_flight() {
            _ if self.needs_poll() => Patience::None,
            0 => Patience::Endless,
            _ if self.wake_fd().is_none() => Patience::AtMost(BLIND_WAIT),
            _ if self.awaited() == 0 => Patience::Endless,
            _ => Patience::AtMost(self.wait_max().into()),
        }
    }

    /// Returns the maximum wait for the device before the next poll.
    pub(crate) fn wait_max(&self) -> Nanos {
        patrol_every(self.served.request_timeout())
    }

    /// Submits a request. One that cannot succeed ends immediately.
    pub(crate) fn submit(&mut self, asked: T, op: Op, range: LbaRange, payload: Payload) {
        if self.has_lost_power() {
            let result = Err(Failure::Unanswered);
            return self.ended.push_back(FinishedRequest { asked, result, payload });
        }
        if promises_durability(op) && self.served.has_failed_flush() {
            let result = Err(Failure::Errno(Errno::EIO));
            return self.ended.push_back(FinishedRequest { asked, result, payload });
        }
        let free = if self.is_broken { None } else { self.free.pop() };
        let Some(slot) = free else {
            let result = self.result(op, Outcome::Unknown);
            return self.ended.push_back(FinishedRequest { asked, result, payload });
        };
        self.slots[slot] = Slot::Taken { asked, op, since: self.served.clock.now() };
        let request = Request { tag: Tag(slot as u64), op, range, payload, deadline: None };
        self.backlog.push_back(request);
        self.submit_backlog();
    }

    /// Returns true if power was lost since the users were last informed.
    fn has_lost_power(&self) -> bool {
        !self.known.is_all(&*self.served.device)
    }

    fn submit_backlog(&mut self) {
        while let Some(request) = self.backlog.pop_front() {
            if let Err(full) = self.queue.submit(request) {
                return self.backlog.push_front(full.0);
            }
            self.has_unpolled = true;
        }
    }

    /// Passes submitted requests to the device, and collects ended ones.
    pub(crate) fn poll(&mut self, wait: Wait) {
        if self.in_flight() == 0 {
            return;
        }
        self.has_unpolled = false;
        let mut completions = std::mem::take(&mut self.completions);
        let is_broken = self.queue.poll(wait, &mut completions).is_err();
        self.polls = self.polls.wrapping_add(1);
        let is_quiet = completions.is_empty();
        // Check for a loss after the device has answered, since an answer from after a loss is worthless,
        // too.
        let has_lost_power = !(is_quiet && self.backlog.is_empty()) && self.has_lost_power();
        for mut completion in completions.drain(..) {
            if has_lost_power {
                completion.outcome = Outcome::PowerLost;
            }
            self.complete(completion);
        }
        self.completions = completions;
        if is_broken {
            return self.break_off();
        }
        if has_lost_power {
            while let Some(Request { tag, .. }) = self.backlog.pop_front() {
                self.end_unanswered(tag.0 as usize, Slot::Free, Outcome::PowerLost);
            }
        }
        self.submit_backlog();
        if is_quiet || self.polls.is_multiple_of(PATROL_POLLS) {
            self.give_up_late(self.served.clock.now());
        }
    }

    /// Returns the next ended request.
    pub(crate) fn next_ended(&mut self) -> Option<FinishedRequest<T>> {
        self.ended.pop_front()
    }

    fn complete(&mut self, completion: Completion) {
        let number = completion.tag.0 as usize;
        let Some(slot) = self.slots.get_mut(number) else { return };
        match std::mem::replace(slot, Slot::Free) {
            // Invalid tag from the device.
            Slot::Free => return,
            Slot::GivenUp => self.given_up -= 1,
            Slot::Taken { asked, op, .. } => {
                let result = self.result(op, completion.outcome);
                self.ended.push_back(FinishedRequest { asked, result, payload: completion.payload });
            }
        }
        self.free.push(number);
    }

    /// Records the effect of an outcome on the device, and returns the result for the requester.
    fn result(&self, op: Op, outcome: Outcome) -> std::result::Result<(), Failure> {
        let is_promise = promises_durability(op);
        if is_promise && !outcome.is_done() && !is_refusal(op, outcome) {
            self.served.note_failed_flush(outcome);
        }
        match outcome {
            // A concurrent flush may have failed meanwhile.
            Outcome::Done if is_promise && self.served.has_failed_flush() => Err(Failure::Errno(Errno::EIO)),
            Outcome::Done => Ok(()),
            Outcome::Failed(errno) => Err(Failure::Errno(reported_errno(op, errno))),
            Outcome::Unknown | Outcome::PowerLost => Err(Failure::Unanswered),
        }
    }

    /// Gives up overdue requests.
    fn give_up_late(&mut self, now: Nanos) {
        if now < self.next_patrol || self.awaited() == 0 {
            return;
        }
        let timeout = self.served.request_timeout();
        self.next_patrol = now.saturating_add(patrol_every(timeout));
        for number in 0..self.slots.len() {
            let is_late = |since: &Nanos| now.since(*since) >= timeout;
            if !matches!(&self.slots[number], Slot::Taken { since, .. } if is_late(since)) {
                continue;
            }
            let before = self.backlog.len();
            self.backlog.retain(|request| request.tag.0 != number as u64);
            if self.backlog.len() < before {
                // The device never received the request.
                self.end_unanswered(number, Slot::Free, Outcome::Unknown);
            } else {
                self.end_unanswered(number, Slot::GivenUp, Outcome::Unknown);
            }
        }
    }

    /// Marks the queue as broken: all requests in flight are unanswered.
    fn break_off(&mut self) {
        self.is_broken = true;
        self.backlog.clear();
        for number in 0..self.slots.len() {
            self.end_unanswered(number, Slot::Free, Outcome::Unknown);
        }
        self.given_up = 0;
        self.free = (0..self.slots.len()).rev().collect();
    }

    fn end_unanswered(&mut self, number: usize, slot: Slot<T>, outcome: Outcome) {
        let is_given_up = matches!(slot, Slot::GivenUp);
        if let Slot::Taken { asked, op, .. } = std::mem::replace(&mut self.slots[number], slot) {
            let result = self.result(op, outcome);
            self.ended.push_back(FinishedRequest { asked, result, payload: Payload::None });
            if is_given_up {
                self.given_up += 1;
            } else if !self.is_broken {
                self.free.push(number);
            }
        }
    }
}

fn patrol_every(timeout: Nanos) -> Nanos {
    Nanos(timeout.0 / 4).clamp(Nanos::millis(1), PATROL_EVERY)
}

/// Returns true if success of the operation promises durability.
const fn promises_durability(op: Op) -> bool {
    matches!(op, Op::Flush) || op.is_fua()
}

/// Returns true if a write with FUA was refused, so that nothing was written and no durability was lost.
const fn is_refusal(op: Op, outcome: Outcome) -> bool {
    !matches!(op, Op::Flush)
        && matches!(outcome, Outcome::Failed(Errno::EPERM | Errno::EINVAL | Errno::EOPNOTSUPP))
}

/// Returns the error for the requester: EIO, except for errors that it reacts to: no space, and unsupported
/// operations.
const fn reported_errno(op: Op, errno: Errno) -> Errno {
    match (op, errno) {
        (Op::Write { .. } | Op::WriteZeroes { .. } | Op::Discard, Errno::ENOSPC) => Errno::ENOSPC,
        (Op::WriteZeroes { .. } | Op::Discard, Errno::EOPNOTSUPP) => Errno::EOPNOTSUPP,
        _ => Errno::EIO,
    }
}

/// Memory for the requests of one front end.
pub(crate) struct Memory {
    pool: Pool,
    shape: PoolShape,
}

impl Memory {
    /// Allocates memory of `shape`.
    ///
    /// # Errors
    /// If there is no memory.
    pub(crate) fn new(shape: PoolShape) -> Result<Self> {
        Ok(Self { pool: Pool::new(shape)?, shape })
    }

    /// Returns the pool, which the device's queue may register.
    pub(crate) fn pool(&self) -> Pool {
        self.pool.clone()
    }

    /// Returns a buffer of `length`; `None` if all are in use.
    pub(crate) fn take(&self, length: Bytes) -> Option<BufferMut> {
        self.pool.take(length)
    }

    /// Returns a buffer of `length`, even if unanswered requests hold all memory and none will be returned
    /// soon: that memory is left to the device, which may still write to it, and replaced. `None` if there is
    /// no more.
    pub(crate) fn take_or_renew(&mut self, length: Bytes) -> Option<BufferMut> {
        if let Some(buffer) = self.pool.take(length) {
            return Some(buffer);
        }
        self.pool = Pool::new(self.shape).ok()?;
        self.pool.take(length)
    }
}

/// Marks this thread so that its memory allocations do not wait for writes to the device that it serves
/// (prctl(2), `PR_SET_IO_FLUSHER`). Without the privilege (`CAP_SYS_RESOURCE`) it serves unmarked.
pub(crate) fn become_io_flusher() {
    rustix::process::configure_io_flusher_behavior(true).unwrap_or_default();
}

#[cfg(test)]
mod tests;
