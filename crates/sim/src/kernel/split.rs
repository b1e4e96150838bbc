//! A device that accepts requests of any length, on top of one with a maximum: what the kernel's block layer
//! does for a disk, for devices without a kernel above them.
//!
//! A read or write beyond the maximum is split into pieces, which may be in flight at the same time. It is
//! answered with its last piece, and lasts from the first to the last. If pieces fail, the first failure is
//! its outcome, so a partially executed write counts as failed: each of its blocks is old, new or unreadable.
//!
//! Invariants:
//! - a queue whose buffers fit the maximum is the device's own, without extra cost;
//! - every request in flight has a slot in the table; the tag of a piece combines the slot and the number of
//!   the piece;
//! - an invalid request is passed on unsplit and fails there.

use std::collections::VecDeque;
use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use plumb_block::{
    Bytes, Completion, Device, DeviceLayer, LbaRange, Nanos, Op, Outcome, Pattern, Payload, Pool, PoolShape,
    Queue, QueueFull, QueueOptions, Request, Result, Tag, Time, Wait, waiting_poll,
};

/// A device with split requests.
pub(super) struct Split {
    device: Arc<dyn Device>,
    time: Time,
    /// Maximum length of a piece: a multiple of the logical block.
    limit: Bytes,
}

impl Split {
    /// Wraps `device`, whose queues use `time`, so that requests are split at its maximum transfer.
    pub(super) fn at_largest_transfer(device: Arc<dyn Device>, time: Time) -> Self {
        let info = device.info();
        let limit = info.transfer_max.round_down(info.logical_block).max(info.logical_block);
        Self { device, time, limit }
    }
}

impl DeviceLayer for Split {
    type Inner = dyn Device;

    fn inner(&self) -> impl Deref<Target = Self::Inner> {
        &*self.device
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        let largest = options.pool.buffer_size();
        if largest <= self.limit {
            return self.device.open_queue(options);
        }
        let depth = options.depth.max(1);
        let pieces = u32::try_from(largest.0.div_ceil(self.limit.0)).unwrap_or(u32::MAX);
        let depth_of_pieces = depth.saturating_mul(pieces).min(PIECES_MAX).max(depth);
        let info = self.device.info();
        let alignment = Bytes(info.dma_alignment.0.max(4096));
        let pool = Pool::new(PoolShape { buffer: self.limit, count: depth_of_pieces, alignment })?;
        let queue = self.device.open_queue(QueueOptions { depth: depth_of_pieces, pool: pool.clone() })?;
        Ok(Box::new(SplitQueue {
            queue,
            pool,
            time: self.time.clone(),
            block: info.logical_block,
            blocks: info.blocks(),
            limit: self.limit,
            table: (0..depth).map(|_| None).collect(),
            free: (0..depth as usize).rev().collect(),
            waiting: VecDeque::new(),
            held: None,
            answers: Vec::new(),
        }))
    }
}

/// Maximum number of pieces in flight, unless there are more requests; further pieces wait.
const PIECES_MAX: u32 = 4096;

struct SplitQueue {
    queue: Box<dyn Queue>,
    /// Buffers for reading pieces.
    pool: Pool,
    time: Time,
    block: Bytes,
    blocks: u64,
    limit: Bytes,
    table: Vec<Option<Whole>>,
    free: Vec<usize>,
    /// Requests with pieces not yet submitted, each with its next piece.
    waiting: VecDeque<Piece>,
    /// Request that did not fit into the device's queue; submitted first.
    held: Option<Request>,
    /// Buffer for the device's answers, kept to reuse its memory.
    answers: Vec<Completion>,
}

/// Next piece of a request.
struct Piece {
    place: usize,
    /// Number of the piece, from 0.
    index: u64,
    /// Number of pieces.
    count: u64,
    op: Op,
    /// Blocks of the whole request.
    range: LbaRange,
    deadline: Option<Nanos>,
}

/// A request in flight.
struct Whole {
    tag: Tag,
    /// Payload of a split request.
    payload: Option<Payload>,
    /// Number of unanswered pieces.
    left: u64,
    /// First failure of a piece.
    outcome: Outcome,
    submitted_at: Nanos,
    completed_at: Nanos,
}

/// Position in a tag where the request's slot starts, after the number of the piece.
const PLACE_SHIFT: u32 = 32;

impl SplitQueue {
    /// Returns the number of pieces for a request.
    fn pieces(&self, request: &Request) -> u64 {
        let length = self.block * request.range.nlb;
        let end = request.range.lba.0.checked_add(request.range.nlb);
        let makes_sense = matches!(request.op, Op::Read | Op::Write { .. }) && request.carries(length);
        let is_within = end.is_some_and(|end| end <= self.blocks);
        if makes_sense && is_within { length.0.div_ceil(self.limit.0).max(1) } else { 1 }
    }

    /// Creates a piece of a request with this `payload`; `None` if no buffer is free now.
    fn piece(&self, of: &Piece, payload: &Payload) -> Option<Request> {
        let step = self.limit.0 / self.block.0;
        let skip = of.index * step;
        let range = LbaRange::new(of.range.lba + skip, step.min(of.range.nlb - skip));
        let length = self.block * range.nlb;
        let payload = match payload {
            Payload::None => Payload::None,
            Payload::Into(_) => Payload::Into(self.pool.take(length)?),
            Payload::Bytes(buffer) => {
                let start = (of.index * self.limit.0) as usize;
                Payload::Bytes(buffer.slice(start..start + length.0 as usize))
            }
            Payload::Pattern(pattern) => Payload::Pattern(Pattern { lba: pattern.lba + skip, ..*pattern }),
        };
        let tag = Tag((of.place as u64) << PLACE_SHIFT | of.index);
        Some(Request { tag, op: of.op, range, payload, deadline: of.deadline })
    }

    /// Submits waiting pieces as far as there is room.
    fn hand_down(&mut self) {
        if let Some(request) = self.held.take()
            && !self.give(request)
        {
            return;
        }
        while let Some(mut next) = self.waiting.pop_front() {
            let payload = self.table[next.place].as_ref().and_then(|whole| whole.payload.as_ref());
            let request = payload.and_then(|payload| self.piece(&next, payload));
            let Some(request) = request else {
                self.waiting.push_front(next);
                return;
            };
            next.index += 1;
            if next.index < next.count {
                self.waiting.push_front(next);
            }
            if !self.give(request) {
                return;
            }
        }
    }

    /// Submits a request to the device, or holds it if there is no room. Returns true if it was submitted.
    fn give(&mut self, request: Request) -> bool {
        match self.queue.submit(request) {
            Ok(()) => true,
            Err(full) => {
                self.held = Some(full.0);
                false
            }
        }
    }

    /// Collects the device's answers, and completes requests whose last piece was answered. Returns the
    /// number of pieces.
    fn take_answers(&mut self, completions: &mut Vec<Completion>) -> Result<usize> {
        let mut answers = std::mem::take(&mut self.answers);
        let polled = self.queue.poll(Wait::NONE, &mut answers);
        for answer in answers.drain(..) {
            completions.extend(self.answered(answer));
        }
        self.answers = answers;
        polled
    }

    /// Processes the answer to a piece. Returns the completion of its request if it was the last one.
    fn answered(&mut self, answer: Completion) -> Option<Completion> {
        let place = (answer.tag.0 >> PLACE_SHIFT) as usize;
        let entry = self.table.get_mut(place)?;
        let whole = entry.as_mut()?;
        let Some(payload) = &mut whole.payload else {
            let tag = whole.tag;
            *entry = None;
            self.free.push(place);
            return Some(Completion { tag, ..answer });
        };
        if let (Payload::Into(all), Payload::Into(part)) = (payload, &answer.payload) {
            let start = (answer.tag.0 & u64::from(u32::MAX)) as usize * self.limit.0 as usize;
            all[start..start + part.len()].copy_from_slice(part);
        }
        if whole.outcome.is_done() {
            whole.outcome = answer.outcome;
        }
        whole.submitted_at = whole.submitted_at.min(answer.submitted_at);
        whole.completed_at = whole.completed_at.max(answer.completed_at);
        whole.left -= 1;
        if whole.left > 0 {
            return None;
        }
        let Whole { tag, payload, outcome, submitted_at, completed_at, .. } = entry.take()?;
        self.free.push(place);
        Some(Completion { tag, outcome, submitted_at, completed_at, payload: payload.unwrap_or_default() })
    }

    /// Returns the number of requests in flight.
    fn in_flight(&self) -> usize {
        self.table.len() - self.free.len()
    }
}

impl Queue for SplitQueue {
    fn submit(&mut self, mut request: Request) -> std::result::Result<(), QueueFull> {
        let Some(place) = self.free.pop() else { return Err(QueueFull(request)) };
        let count = self.pieces(&request);
        let mut whole = Whole {
            tag: request.tag,
            payload: None,
            left: count,
            outcome: Outcome::Done,
            submitted_at: Nanos(u64::MAX),
            completed_at: Nanos::ZERO,
        };
        if count > 1 {
            whole.payload = Some(std::mem::take(&mut request.payload));
        }
        self.table[place] = Some(whole);
        let Request { op, range, deadline, .. } = request;
        if count > 1 {
            self.waiting.push_back(Piece { place, index: 0, count, op, range, deadline });
            self.hand_down();
            return Ok(());
        }
        request.tag = Tag((place as u64) << PLACE_SHIFT);
        match self.held {
            // At most one request is held; it goes first.
            None => {
                self.give(request);
                Ok(())
            }
            Some(_) => {
                let tag = self.table[place].take().map_or(request.tag, |whole| whole.tag);
                self.free.push(place);
                Err(QueueFull(Request { tag, ..request }))
            }
        }
    }

    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        if wait.completions > 0 {
            let (in_flight, time) = (self.in_flight(), self.time.clone());
            return waiting_poll(self, in_flight, wait, completions, &mut &time);
        }
        let before = completions.len();
        loop {
            self.hand_down();
            // Answered requests make room for more, which the device sees at its next poll.
            if self.take_answers(completions)? == 0 {
                return Ok(completions.len() - before);
            }
        }
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.queue.wake_fd()
    }
}
