//! Requests of a queue, each in a slot from submission until the kernel's answer.
//!
//! ```text
//!            submit            hand over             answer
//!   free ──────────► waiting ──────────► in kernel ──────────► free, completion appended
//!     ▲                 ▲                 │      │ deadline: completion Unknown appended
//!     │                 └── another call ─┘      ▼
//!     └───────────────────── answer ───────── abandoned
//! ```
//!
//! Invariant: each slot is in exactly one of these states. Payload and scratch of a slot in the kernel or
//! abandoned are neither accessed nor freed.

use plumb_block::{Completion, Errno, Nanos, Op, Outcome, Payload, Pool, Request, Tag};

use crate::file::Target;
use crate::file::scratch::Scratch;
use crate::file::work::{Call, Work};

/// Index of a request in the table; also the user data of its submission entry.
pub(super) type SlotIndex = u32;

const NEVER: Nanos = Nanos(u64::MAX);

struct Slot {
    state: State,
    tag: Tag,
    op: Op,
    work: Option<Work>,
    payload: Payload,
    scratch: Scratch,
    submitted_at: Option<Nanos>,
    deadline: Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Waiting,
    InKernel,
    Abandoned,
}

/// All requests of a queue.
pub(super) struct InFlight {
    slots: Box<[Slot]>,
    free: Vec<SlotIndex>,
    pool: Pool,
    /// Slots whose next call must be handed to the kernel, oldest first.
    waiting: Vec<SlotIndex>,
    /// Requests that ended without the kernel, with their outcome.
    ended: Vec<(SlotIndex, Outcome)>,
    /// Number of requests in the kernel, including abandoned ones.
    pub(super) in_kernel: usize,
    abandoned: usize,
    /// Lower bound of the deadlines of requests in flight.
    deadline_earliest: Nanos,
}

impl InFlight {
    pub(super) fn new(depth: u32, pool: Pool) -> Self {
        let empty = || Slot {
            state: State::Free,
            tag: Tag(0),
            op: Op::Flush,
            work: None,
            payload: Payload::None,
            scratch: Scratch::default(),
            submitted_at: None,
            deadline: NEVER,
        };
        let room = depth as usize;
        Self {
            slots: (0..depth).map(|_| empty()).collect(),
            free: (0..depth).rev().collect(),
            pool,
            waiting: Vec::with_capacity(room),
            ended: Vec::with_capacity(room),
            in_kernel: 0,
            abandoned: 0,
            deadline_earliest: NEVER,
        }
    }

    /// Accepts a request, or returns it if every slot is in use.
    #[inline]
    pub(super) fn admit(&mut self, request: Request, target: &Target) -> Result<(), Request> {
        let Some(index) = self.free.pop() else { return Err(request) };
        let admitted = Work::admit(&request, &target.grid, target.blocks(), target.latched_errno());
        let Request { tag, op, range, payload, deadline } = request;
        let deadline = deadline.unwrap_or(NEVER);
        let slot = &mut self.slots[index as usize];
        slot.tag = tag;
        slot.op = op;
        slot.payload = payload;
        slot.deadline = deadline;
        slot.submitted_at = None;
        slot.state = State::Waiting;
        self.deadline_earliest = self.deadline_earliest.min(deadline);
        let ready = admitted.and_then(|work| {
            slot.work = Some(work);
            let block = target.logical_block();
            slot.scratch.lend(op, &slot.payload, block * range.nlb, block, &self.pool)
        });
        match ready {
            Ok(()) => self.waiting.push(index),
            Err(errno) => self.ended.push((index, Outcome::Failed(errno))),
        }
        Ok(())
    }

    /// Returns the slots to hand to the kernel, oldest first.
    pub(super) fn waiting(&self) -> &[SlotIndex] {
        &self.waiting
    }

    /// Returns the next call of a slot, and the address of its memory (null if it needs none). Sets the
    /// submission time to `now` at the first call.
    #[inline]
    pub(super) fn prepare(&mut self, index: SlotIndex, now: Nanos) -> Option<(Call, *mut u8)> {
        let slot = &mut self.slots[index as usize];
        slot.submitted_at.get_or_insert(now);
        let memory = match &mut slot.payload {
            Payload::Into(buffer) => buffer.as_mut_ptr(),
            // The kernel only reads the buffer.
            Payload::Bytes(buffer) => buffer.as_ptr().cast_mut(),
            Payload::None | Payload::Pattern(_) => {
                slot.scratch.bytes().map_or(std::ptr::null_mut(), <[u8]>::as_mut_ptr)
            }
        };
        slot.work.as_ref().map(|work| (work.call(), memory))
    }

    /// Marks the `count` oldest waiting slots as taken by the kernel.
    #[inline]
    pub(super) fn handed_over(&mut self, count: usize) {
        for index in self.waiting.drain(..count) {
            self.slots[index as usize].state = State::InKernel;
        }
        self.in_kernel += count;
    }

    /// Removes the waiting slot at `position` for a call that bypasses the ring; report the result with
    /// [`answered_aside`](Self::answered_aside).
    pub(super) fn take_aside(&mut self, position: usize) -> SlotIndex {
        self.waiting.remove(position)
    }

    /// Processes the result of a call that bypassed the ring.
    pub(super) fn answered_aside(&mut self, index: SlotIndex, answer: Result<u64, Errno>, target: &Target) {
        match self.progress(index, answer, target) {
            Some(outcome) => self.ended.push((index, outcome)),
            None => self.waiting.push(index),
        }
    }

    /// Processes the kernel's result for a slot: appends its completion, or queues its next call.
    #[inline]
    pub(super) fn answered(
        &mut self,
        index: SlotIndex,
        answer: Result<u64, Errno>,
        target: &Target,
        now: Nanos,
        completions: &mut Vec<Completion>,
    ) {
        self.in_kernel -= 1;
        let outcome = self.progress(index, answer, target);
        if self.slots[index as usize].state == State::Abandoned {
            // An abandoned request does not continue with further calls.
            self.abandoned -= 1;
            self.slots[index as usize].payload = Payload::None;
            self.release(index);
            return;
        }
        match outcome {
            Some(outcome) => self.complete(index, outcome, now, completions),
            None => {
                self.slots[index as usize].state = State::Waiting;
                self.waiting.push(index);
            }
        }
    }

    #[inline]
    fn progress(&mut self, index: SlotIndex, answer: Result<u64, Errno>, target: &Target) -> Option<Outcome> {
        let slot = &mut self.slots[index as usize];
        let progress = slot.work.as_mut()?.answered(answer);
        target.ended(slot.op, progress)
    }

    /// Appends the completions of requests that ended without the kernel.
    pub(super) fn complete_ended(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        while let Some((index, outcome)) = self.ended.pop() {
            self.complete(index, outcome, now, completions);
        }
    }

    /// Returns true if there are uncompleted requests that ended without the kernel.
    pub(super) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    #[inline]
    fn complete(
        &mut self,
        index: SlotIndex,
        outcome: Outcome,
        now: Nanos,
        completions: &mut Vec<Completion>,
    ) {
        let slot = &mut self.slots[index as usize];
        // Constructed in place: a copy through the stack would read wider than it was written, which stalls
        // the processor.
        completions.extend(std::iter::once_with(|| Completion {
            tag: slot.tag,
            outcome,
            submitted_at: slot.submitted_at.unwrap_or(now),
            completed_at: now,
            // Most requests have no payload, and taking it out would copy unused bytes.
            payload: match slot.payload {
                Payload::None => Payload::None,
                _ => std::mem::take(&mut slot.payload),
            },
        }));
        self.release(index);
    }

    /// Frees a slot after its payload was taken out.
    #[inline]
    fn release(&mut self, index: SlotIndex) {
        self.slots[index as usize].state = State::Free;
        self.free.push(index);
    }

    /// Abandons requests in the kernel whose deadline is at or before `now`: their outcome is unknown, and
    /// their memory stays here until the kernel answers.
    pub(super) fn abandon_late(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        if self.deadline_earliest > now {
            return;
        }
        self.deadline_earliest = NEVER;
        for slot in &mut self.slots {
            match slot.state {
                State::InKernel if slot.deadline <= now => {
                    slot.state = State::Abandoned;
                    self.abandoned += 1;
                    completions.push(Completion {
                        tag: slot.tag,
                        outcome: Outcome::Unknown,
                        submitted_at: slot.submitted_at.unwrap_or(now),
                        completed_at: now,
                        payload: Payload::None,
                    });
                }
                State::InKernel | State::Waiting => {
                    self.deadline_earliest = self.deadline_earliest.min(slot.deadline);
                }
                State::Free | State::Abandoned => {}
            }
        }
    }

    /// Returns the earliest time at which a request may have to be abandoned, if any has a deadline.
    pub(super) fn deadline_earliest(&self) -> Option<Nanos> {
        (self.deadline_earliest != NEVER).then_some(self.deadline_earliest)
    }

    /// Returns the number of requests that are not abandoned.
    pub(super) fn awaited(&self) -> usize {
        self.in_kernel - self.abandoned + self.waiting.len()
    }

    /// Leaks all memory, for when the kernel may still access it and cannot be waited for.
    pub(super) fn leak(&mut self) {
        std::mem::forget(std::mem::take(&mut self.slots));
    }
}
