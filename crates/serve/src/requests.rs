//! The serving core: the requests that one front end (an NBD connection, a FUSE thread, a ublk queue) has at
//! the device. A front end decodes what it is asked, submits it here, and encodes the answer from what
//! [ends](Requests::next_ended).
//!
//! # Invariants
//! - Every request that is submitted ends exactly once.
//! - Every request at the device has a slot of its own, whose number is its tag; a slot is free again when
//!   the device has answered.
//! - A request that the device leaves unanswered for too long ([`ServedDevice::request_timeout`]) is given
//!   up: it ends as unanswered, as a driver of the kernel does it. Its slot and its memory stay the device's,
//!   which may still act on it. Once all slots are so, the device is off line: what comes fails at once.
//! - Once the device has lost its power nothing that was asked before succeeds, nor anything that comes later
//!   from those who used it then ([`KnownLosses`]): it ends as unanswered, also when the power is on again.
//! - What promises durability (a flush, a write with FUA) never succeeds after one that failed, on whichever
//!   queue, nor beside it: nobody knows which writes the failed one has cost. Whatever fails of them latches,
//!   unless the device refused it without doing anything.

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

/// Time that requests may wait unseen while a queue without a descriptor has something in flight.
pub(crate) const BLIND_WAIT: Duration = Duration::from_millis(1);
/// How often what is in flight is looked through for what has been there for too long.
const PATROL_EVERY: Nanos = Nanos::millis(250);
/// While requests complete, the clock is only looked at in one of so many polls.
const PATROL_POLLS: u32 = 16;

/// Reason why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The device has failed it.
    Errno(Errno),
    /// Nobody knows what became of it: no answer in time, or a loss of power.
    Unanswered,
}

impl Failure {
    /// Returns the failure as an error number.
    pub(crate) const fn errno(self) -> Errno {
        match self {
            Self::Errno(errno) => errno,
            Self::Unanswered => Errno::EIO,
        }
    }
}

/// A request that has ended.
#[derive(Debug)]
pub(crate) struct FinishedRequest<T> {
    /// Value by which the front end knows the request.
    pub(crate) asked: T,
    pub(crate) result: std::result::Result<(), Failure>,
    /// The memory that it was submitted with, unless the device keeps it.
    pub(crate) payload: Payload,
}

/// Holder of a slot.
#[derive(Debug)]
enum Slot<T> {
    Free,
    /// A request that the device, or the backlog, has had since then.
    Taken {
        asked: T,
        op: Op,
        since: Nanos,
    },
    /// The device, with a request that was given up.
    GivenUp,
}

/// The requests of one front end at the device, with the queue that they go through.
pub(crate) struct Requests<T> {
    served: Arc<ServedDevice>,
    known: Arc<KnownLosses>,
    queue: Box<dyn Queue>,
    /// The queue failed: nothing more can be asked.
    is_broken: bool,
    slots: Vec<Slot<T>>,
    free: Vec<usize>,
    given_up: usize,
    /// Requests that the queue had no room for.
    backlog: VecDeque<Request>,
    /// Requests were handed to the queue since the last poll: the device may not have seen them.
    has_unpolled: bool,
    completions: Vec<Completion>,
    ended: VecDeque<FinishedRequest<T>>,
    polls: u32,
    /// When to look next for what has been in flight for too long.
    next_patrol: Nanos,
}

impl<T> Requests<T> {
    /// Opens it without requests, with a queue of `depth`, of users who know of the losses of power in
    /// `known`.
    ///
    /// # Errors
    /// If the device gives no queue.
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

    /// Returns the number of slots that the device has, those of requests that were given up included.
    pub(crate) fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns the number of requests that are to be answered by the device.
    pub(crate) fn awaited(&self) -> usize {
        self.in_flight() - self.given_up
    }

    /// Returns true if another request can be taken, if only to fail because the device is off line.
    pub(crate) fn has_room(&self) -> bool {
        self.backlog.is_empty() && (!self.free.is_empty() || self.given_up == self.slots.len())
    }

    /// Returns true if the device may not have seen all that was submitted, or something ended at once: poll
    /// before waiting.
    pub(crate) fn needs_poll(&self) -> bool {
        self.has_unpolled || !self.ended.is_empty()
    }

    /// Returns the device's queue, to wait for.
    pub(crate) fn queue(&self) -> &dyn Queue {
        &*self.queue
    }

    /// Returns the descriptor that becomes readable when there is something to poll for, if there is one.
    pub(crate) fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.queue.wake_fd()
    }

    /// Returns how long whoever waits for requests and for the device together may wait.
    pub(crate) fn patience(&self) -> Patience {
        match self.in_flight() {
            _ if self.needs_poll() => Patience::None,
            0 => Patience::Endless,
            _ if self.wake_fd().is_none() => Patience::AtMost(BLIND_WAIT),
            _ if self.awaited() == 0 => Patience::Endless,
            _ => Patience::AtMost(self.wait_max().into()),
        }
    }

    /// Returns how long whoever waits for the device may wait before it polls again.
    pub(crate) fn wait_max(&self) -> Nanos {
        patrol_every(self.served.request_timeout())
    }

    /// Submits a request. What cannot succeed ends at once.
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

    /// Returns true if the power went since those who ask here were last told.
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

    /// Hands what was submitted to the device, and collects what has ended.
    pub(crate) fn poll(&mut self, wait: Wait) {
        if self.in_flight() == 0 {
            return;
        }
        self.has_unpolled = false;
        let mut completions = std::mem::take(&mut self.completions);
        let is_broken = self.queue.poll(wait, &mut completions).is_err();
        self.polls = self.polls.wrapping_add(1);
        let is_quiet = completions.is_empty();
        // Looked at after the device has answered: an answer from after a loss is as worthless as one that
        // the loss made so.
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

    /// Returns a request that has ended and was not told of yet.
    pub(crate) fn next_ended(&mut self) -> Option<FinishedRequest<T>> {
        self.ended.pop_front()
    }

    fn complete(&mut self, completion: Completion) {
        let number = completion.tag.0 as usize;
        let Some(slot) = self.slots.get_mut(number) else { return };
        match std::mem::replace(slot, Slot::Free) {
            // A tag that the device made up.
            Slot::Free => return,
            Slot::GivenUp => self.given_up -= 1,
            Slot::Taken { asked, op, .. } => {
                let result = self.result(op, completion.outcome);
                self.ended.push_back(FinishedRequest { asked, result, payload: completion.payload });
            }
        }
        self.free.push(number);
    }

    /// Returns the result for the requester, after noting what the outcome means for the device.
    fn result(&self, op: Op, outcome: Outcome) -> std::result::Result<(), Failure> {
        let is_promise = promises_durability(op);
        if is_promise && !outcome.is_done() && !is_refusal(op, outcome) {
            self.served.note_failed_flush(outcome);
        }
        match outcome {
            // One beside it may have failed in the meantime.
            Outcome::Done if is_promise && self.served.has_failed_flush() => Err(Failure::Errno(Errno::EIO)),
            Outcome::Done => Ok(()),
            Outcome::Failed(errno) => Err(Failure::Errno(reported_errno(op, errno))),
            Outcome::Unknown | Outcome::PowerLost => Err(Failure::Unanswered),
        }
    }

    /// Gives up what the device has not answered for too long.
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
                // The device never had it.
                self.end_unanswered(number, Slot::Free, Outcome::Unknown);
            } else {
                self.end_unanswered(number, Slot::GivenUp, Outcome::Unknown);
            }
        }
    }

    /// Notes that the queue is broken: whatever is in flight is unanswered.
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

/// Returns true if success promises that something is durable.
const fn promises_durability(op: Op) -> bool {
    matches!(op, Op::Flush | Op::Write { fua: true } | Op::WriteZeroes { fua: true, .. })
}

/// Returns true if a write with FUA was refused, so that nothing was written and nothing can have failed to
/// become durable.
const fn is_refusal(op: Op, outcome: Outcome) -> bool {
    !matches!(op, Op::Flush)
        && matches!(outcome, Outcome::Failed(Errno::EPERM | Errno::EINVAL | Errno::EOPNOTSUPP))
}

/// Returns the error that the requester gets. Only what it acts upon differs from EIO: no space, and what the
/// device cannot do.
const fn reported_errno(op: Op, errno: Errno) -> Errno {
    match (op, errno) {
        (Op::Write { .. } | Op::WriteZeroes { .. } | Op::Discard, Errno::ENOSPC) => Errno::ENOSPC,
        (Op::WriteZeroes { .. } | Op::Discard, Errno::EOPNOTSUPP) => Errno::EOPNOTSUPP,
        _ => Errno::EIO,
    }
}

/// The memory of the requests of one front end.
pub(crate) struct Memory {
    pool: Pool,
    shape: PoolShape,
}

impl Memory {
    /// # Errors
    /// If there is no memory.
    pub(crate) fn new(shape: PoolShape) -> Result<Self> {
        Ok(Self { pool: Pool::new(shape)?, shape })
    }

    /// Returns the pool that buffers are taken from; for the device's queue, which may register it.
    pub(crate) fn pool(&self) -> Pool {
        self.pool.clone()
    }

    /// Returns a buffer of `length`; `None` while all are in use.
    pub(crate) fn take(&self, length: Bytes) -> Option<BufferMut> {
        self.pool.take(length)
    }

    /// Returns a buffer of `length`, where none can come back soon: requests without an answer keep all that
    /// there was. That memory is left to the device, which may still write into it, and new memory takes its
    /// place. `None` if there is no more.
    pub(crate) fn take_or_renew(&mut self, length: Bytes) -> Option<BufferMut> {
        if let Some(buffer) = self.pool.take(length) {
            return Some(buffer);
        }
        self.pool = Pool::new(self.shape).ok()?;
        self.pool.take(length)
    }
}

/// Lets the memory that this thread needs not wait for writes to the very device that it serves (prctl(2),
/// `PR_SET_IO_FLUSHER`). Without the privilege (`CAP_SYS_RESOURCE`) it serves none the less.
pub(crate) fn become_io_flusher() {
    rustix::process::configure_io_flusher_behavior(true).unwrap_or_default();
}

#[cfg(test)]
mod tests;
