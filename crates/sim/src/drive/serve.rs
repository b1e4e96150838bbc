//! Output side: commands that the timing has finished become visible and are answered.

use std::cmp::Reverse;

use plumb_block::{Completion, Errno, LbaRange, Nanos, Op, Outcome, Payload};

use super::Drive;
use super::in_flight::{NEVER, Pending, Stage};
use crate::command::CommandId;
use crate::cut::Edge;
use crate::fault::Effect;
use crate::model::IgnoresFlush;
use crate::timing::Event;

/// Number of recently destaged commands that are kept volatile if the last flushes are lies: 64 MiB in
/// commands of 4 KiB. Bounds the memory of a long run.
const LIE_HOLDS: usize = 1 << 14;

impl Drive {
    /// Processes everything due at `now`, including a power cut.
    pub fn advance(&mut self, now: Nanos) {
        while let Some(at) = self.next_event().filter(|at| *at <= now) {
            self.happen(at);
        }
    }

    /// Processes everything due at `at`, the time of an event.
    fn happen(&mut self, at: Nanos) {
        self.advance_timing(at);
        if !self.later.is_empty() {
            self.answer_later(at);
        }
        if self.no_deadline_before <= at {
            self.expire(at);
        }
        if self.armed.as_ref().and_then(|armed| armed.due).is_some_and(|due| due <= at) {
            self.cut_power(at);
        }
    }

    fn advance_timing(&mut self, now: Nanos) {
        let mut events = std::mem::take(&mut self.events);
        self.timing.advance(now, &mut events);
        for event in events.drain(..) {
            match event {
                Event::Completed { id, at } => {
                    self.persist_destaged();
                    self.finish(id, at);
                }
                Event::Persisted { id, .. } => self.destaged.push_back(id),
            }
            if !self.is_powered {
                break;
            }
        }
        events.clear();
        self.events = events;
        self.persist_destaged();
    }

    /// Makes destaged commands durable, except the last ones if the last flushes are lies: otherwise the
    /// destaging that such a flush waits for would make the lie true.
    #[inline]
    fn persist_destaged(&mut self) {
        if self.destaged.is_empty() {
            return;
        }
        if !matches!(self.behaviour.ignores_flush, IgnoresFlush::Last(_)) {
            self.contents.persist_all(self.destaged.make_contiguous());
            return self.destaged.clear();
        }
        let count = self.destaged.len().saturating_sub(LIE_HOLDS);
        if count > 0 {
            self.contents.persist_all(&self.destaged.make_contiguous()[..count]);
            self.destaged.drain(..count);
        }
    }

    /// Answers ignored flushes and commands slowed by a fault.
    fn answer_later(&mut self, now: Nanos) {
        while let Some(Reverse((at, id))) = self.later.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            self.later.pop();
            self.finish(id, at);
        }
    }

    /// Expires commands past their deadline: they count as failed, and may still land.
    fn expire(&mut self, now: Nanos) {
        let (overdue, next) = self.in_flight.overdue(now);
        self.no_deadline_before = next;
        for (at, id) in overdue {
            if let Some(pending) = self.in_flight.remove(id) {
                self.contents_fail(id, pending.op);
                self.give_up_first_half(pending.stage);
                self.answer(pending, Outcome::Unknown, at);
            }
        }
    }

    /// Processes the end of a command's timing: it becomes visible and is answered, or suffers its fault.
    pub(super) fn finish(&mut self, id: CommandId, at: Nanos) {
        if !self.finish_plainly(id, at) {
            self.finish_other(id, at);
        }
    }

    /// Fast path for a command without complications, which stays in place until it is answered. Returns
    /// false, without changes, if it needs the slow path.
    #[inline]
    fn finish_plainly(&mut self, id: CommandId, at: Nanos) -> bool {
        let Some(pending) = self.in_flight.get_mut(id) else { return false };
        if self.armed.is_some() || pending.fault.is_some() {
            return false;
        }
        let is_done = match pending.op {
            Op::Read => match &mut pending.payload {
                Payload::Into(buffer) => self.contents.read(pending.range, buffer).is_ok(),
                _ => self.contents.probe(pending.range).is_ok(),
            },
            Op::Write { fua: false } | Op::WriteZeroes { fua: false, .. } | Op::Discard => {
                self.contents.complete(id).is_ok()
            }
            Op::Flush | Op::Write { fua: true } | Op::WriteZeroes { fua: true, .. } => false,
        };
        if is_done && let Some(pending) = self.in_flight.remove(id) {
            self.answer(pending, Outcome::Done, at);
        }
        is_done
    }

    /// Slow path: faults, cuts, flushes, and failures.
    fn finish_other(&mut self, id: CommandId, at: Nanos) {
        let Some(mut pending) = self.in_flight.remove(id) else { return };
        match pending.fault {
            Some(Effect::Timeout) => return self.in_flight.hold(id, pending),
            Some(Effect::Slow(time)) => {
                pending.fault = None;
                self.in_flight.hold(id, pending);
                self.later.push(Reverse((at.saturating_add(time), id)));
                return;
            }
            Some(Effect::Fail(errno)) => return self.fail(id, pending, errno, at),
            None => {}
        }
        let op = if pending.stage == Stage::Whole { pending.op } else { Op::Flush };
        if self.is_cut_due(op, Edge::Completed, at) {
            self.give_up_first_half(pending.stage);
            self.cut_power(at);
            return self.answer(pending, Outcome::PowerLost, at);
        }
        if self.needs_flush_after(&pending) {
            return self.flush_after(id, pending, at);
        }
        let outcome = self.carry_out(id, &mut pending);
        if let Outcome::Failed(errno) = outcome {
            return self.fail(id, pending, errno, at);
        }
        self.answer(pending, outcome, at);
    }

    /// Makes the command's effect visible, or reads its data.
    fn carry_out(&mut self, id: CommandId, pending: &mut Pending) -> Outcome {
        match pending.op {
            Op::Read => {
                let read = match &mut pending.payload {
                    Payload::Into(buffer) => self.contents.read(pending.range, buffer),
                    _ => self.contents.probe(pending.range),
                };
                if read.is_err() { Outcome::Failed(Errno::EIO) } else { Outcome::Done }
            }
            _ => match self.contents.complete(id) {
                Ok(()) => Outcome::Done,
                Err(error) => Outcome::Failed(error.errno().unwrap_or(Errno::EIO)),
            },
        }
    }

    fn needs_flush_after(&self, pending: &Pending) -> bool {
        pending.op.is_fua()
            && !self.info.fua_native
            && pending.stage == Stage::Whole
            && self.wce == Some(true)
    }

    /// Starts the flush that completes FUA on a drive without native FUA.
    fn flush_after(&mut self, id: CommandId, mut pending: Pending, at: Nanos) {
        if let Err(error) = self.contents.complete(id) {
            return self.fail(id, pending, error.errno().unwrap_or(Errno::EIO), at);
        }
        pending.stage = Stage::FlushAfterWrite { since: at, write: id };
        if let Some(latch) = self.latch {
            return self.fail(id, pending, latch.errno, at);
        }
        let flush = self.in_flight.next_id();
        pending.deadline = pending.deadline.max(at);
        pending.fault = self.draw_fault(Op::Flush, LbaRange::EMPTY);
        self.start(at, flush, Op::Flush, LbaRange::EMPTY, &Payload::None);
        self.in_flight.push(pending);
        self.watch_for_cut(Op::Flush, Edge::Submitted, at);
    }

    fn fail(&mut self, id: CommandId, pending: Pending, errno: Errno, at: Nanos) {
        self.contents_fail(id, pending.op);
        self.give_up_first_half(pending.stage);
        if pending.op == Op::Flush || pending.op.is_fua() {
            self.latch(errno, at);
        }
        self.answer(pending, Outcome::Failed(errno), at);
    }

    /// Revokes the completion of a FUA write whose flush failed: the write failed, too.
    pub(super) fn give_up_first_half(&mut self, stage: Stage) {
        if let Stage::FlushAfterWrite { write, .. } = stage {
            self.contents.fail(write);
        }
    }

    pub(super) fn contents_fail(&mut self, id: CommandId, op: Op) {
        if op != Op::Read {
            self.contents.fail(id);
        }
    }

    #[inline]
    pub(super) fn answer(&mut self, pending: Pending, outcome: Outcome, at: Nanos) {
        if outcome.is_done() {
            self.count(&pending, at);
        }
        if self.in_flight.count() == 0 {
            self.counters.idle(at);
            self.no_deadline_before = NEVER;
        }
        let Pending { port, tag, submitted_at, payload, .. } = pending;
        if let Some(port) = port {
            self.complete(port, Completion { tag, outcome, submitted_at, completed_at: at, payload });
        }
    }

    #[inline]
    fn count(&mut self, pending: &Pending, at: Nanos) {
        let done_at = match pending.stage {
            Stage::Whole => at,
            Stage::FlushAfterWrite { since, .. } => since,
        };
        match pending.op {
            Op::Flush if self.behaviour.driver_drops_flush => self.counters.flushes_dropped += 1,
            op => {
                let took = done_at.since(pending.submitted_at);
                self.counters.done(op, self.info.length_of(pending.range), took);
            }
        }
        if pending.stage != Stage::Whole && !self.behaviour.driver_drops_flush {
            self.counters.done(Op::Flush, plumb_block::Bytes(0), at.since(done_at));
        }
    }

    /// Answers commands held by a fault as successful.
    pub fn release_held(&mut self, now: Nanos) {
        for id in self.in_flight.held() {
            if let Some(mut pending) = self.in_flight.remove(id) {
                pending.fault = None;
                self.in_flight.hold(id, pending);
                self.finish(id, now);
            }
        }
    }
}
