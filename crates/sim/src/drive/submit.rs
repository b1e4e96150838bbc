//! Input side: a request becomes a command in flight, or is answered at once.

use std::cmp::Reverse;

use plumb_block::{Bytes, Errno, LbaRange, Nanos, Op, Outcome, Payload, Request};

use super::in_flight::{NEVER, Pending, Stage};
use super::{Drive, PortNumber};
use crate::command::{Command, CommandId, Sectors};
use crate::contents::Data;
use crate::cut::Edge;
use crate::fault::Effect;
use crate::model::IgnoresFlush;

impl Drive {
    /// Accepts a request from `port` at `now`. It completes at the port, immediately if it is invalid.
    pub fn submit(&mut self, now: Nanos, port: PortNumber, request: Request) {
        if let Some(outcome) = self.refusal(&request) {
            self.complete(port, request.completed(outcome, now));
            return;
        }
        let fault = self.draw_fault(request.op, request.range);
        let id = self.in_flight.next_id();
        if self.in_flight.count() == 0 {
            self.counters.busy(now);
        }
        let deadline = request.deadline.map_or(NEVER, |deadline| deadline.max(now));
        self.no_deadline_before = self.no_deadline_before.min(deadline);
        let op = request.op;
        self.start(now, id, op, request.range, &request.payload);
        self.in_flight.push(Pending {
            port: Some(port),
            tag: request.tag,
            op,
            range: request.range,
            payload: request.payload,
            submitted_at: now,
            deadline,
            fault,
            stage: Stage::Whole,
        });
        self.watch_for_cut(op, Edge::Submitted, now);
    }

    /// Returns the outcome of a request that is answered immediately.
    #[inline]
    fn refusal(&self, request: &Request) -> Option<Outcome> {
        if !self.is_powered {
            return Some(Outcome::PowerLost);
        }
        if let Some(latch) = self.latch
            && request.op == Op::Flush
        {
            return Some(Outcome::Failed(latch.errno));
        }
        if request.op == Op::Flush {
            return None;
        }
        if !self.info.holds(request.range) {
            return Some(Outcome::Failed(Errno::EINVAL));
        }
        let length = self.info.length_of(request.range);
        if length > self.largest(request.op) || !request.carries(length) {
            return Some(Outcome::Failed(Errno::EINVAL));
        }
        let unsupported = match request.op {
            Op::Discard => self.info.discard_max == Bytes(0),
            Op::WriteZeroes { fast_only, .. } => fast_only && !self.info.discard_zeroes,
            _ => false,
        };
        unsupported.then_some(Outcome::Failed(Errno::EOPNOTSUPP))
    }

    fn largest(&self, op: Op) -> Bytes {
        match op {
            Op::Read | Op::Write { .. } => self.info.transfer_max,
            Op::Flush | Op::Discard | Op::WriteZeroes { .. } => self.info.size,
        }
    }

    /// Draws the effect of a fault on the next command, if any. Every fault counts every command, even if
    /// another fault strikes.
    #[inline]
    pub(super) fn draw_fault(&mut self, op: Op, range: LbaRange) -> Option<Effect> {
        let chance = &mut self.chance;
        self.faults.iter_mut().filter_map(|fault| fault.strike(op, range, chance)).last()
    }

    /// Starts a command in contents and timing; the timing does not see a flush that is ignored.
    #[inline]
    pub(super) fn start(&mut self, now: Nanos, id: CommandId, op: Op, range: LbaRange, payload: &Payload) {
        if op != Op::Read {
            let bytes = match payload {
                Payload::Bytes(buffer) => Data::Bytes(buffer),
                Payload::Pattern(pattern) => Data::Pattern(*pattern),
                Payload::None | Payload::Into(_) => Data::None,
            };
            // The contents also see an ignored flush or FUA, which the drive reports as done.
            let op = if self.info.fua_native { op } else { op.without_fua() };
            self.contents.submit(id, op, range, bytes);
        }
        if op == Op::Flush && self.skips_flush() {
            self.later.push(Reverse((now.saturating_add(self.behaviour.ignored_flush()), id)));
            return;
        }
        // FUA is removed if it is ignored, or implemented as a write and a flush.
        let keeps_fua = self.info.fua_native && !self.behaviour.ignores_fua;
        let inner = if keeps_fua { op } else { op.without_fua() };
        let sectors = Sectors::from_range(range, self.info.logical_block);
        self.timing.submit(now, Command { id, op: inner, sectors });
    }

    /// Returns true if flushes are answered without being executed.
    pub(super) fn skips_flush(&self) -> bool {
        self.behaviour.driver_drops_flush || self.behaviour.ignores_flush == IgnoresFlush::Always
    }
}
