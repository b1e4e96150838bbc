//! The way in: from a request to a command in flight, or to an answer at once.

use std::cmp::Reverse;

use plumb_block::{Bytes, Completion, Errno, LbaRange, Nanos, Op, Outcome, Payload, Request};

use super::in_flight::{NEVER, Pending, Stage};
use super::{Drive, PortNumber};
use crate::command::{Command, CommandId, Sectors};
use crate::contents::Data;
use crate::cut::Edge;
use crate::fault::Effect;
use crate::model::IgnoresFlush;

impl Drive {
    /// Takes a request from `port` at `now`. It completes at the port, at once if it cannot be done.
    pub fn submit(&mut self, now: Nanos, port: PortNumber, request: Request) {
        if let Some(outcome) = self.refusal(&request) {
            let Request { tag, payload, .. } = request;
            self.complete(port, Completion { tag, outcome, submitted_at: now, completed_at: now, payload });
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

    /// Returns why a request is answered at once, if it is.
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
        let fits = length <= self.largest(request.op);
        let carries = match (&request.payload, request.op) {
            (Payload::None, op) => !matches!(op, Op::Write { .. }),
            (Payload::Into(buffer), Op::Read) => buffer.len() as u64 == length.0,
            (Payload::Bytes(buffer), Op::Write { .. }) => buffer.len() as u64 == length.0,
            (Payload::Pattern(_), Op::Write { .. }) => true,
            _ => false,
        };
        if !fits || !carries {
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

    /// Draws the effect of a fault on the next command, if one strikes. Every fault counts every command,
    /// whichever strikes.
    #[inline]
    pub(super) fn draw_fault(&mut self, op: Op, range: LbaRange) -> Option<Effect> {
        let chance = &mut self.chance;
        self.faults.iter_mut().filter_map(|fault| fault.strike(op, range, chance)).last()
    }

    /// Hands a command to contents and timing, but keeps a flush from the timing that is not to be done.
    #[inline]
    pub(super) fn start(&mut self, now: Nanos, id: CommandId, op: Op, range: LbaRange, payload: &Payload) {
        if op != Op::Read {
            let bytes = match payload {
                Payload::Bytes(buffer) => Data::Bytes(buffer),
                Payload::Pattern(pattern) => Data::Pattern(*pattern),
                Payload::None | Payload::Into(_) => Data::None,
            };
            // A flush or FUA that the drive ignores is known there, too: the drive reports it as done.
            self.contents.submit(id, with_fua(op, self.info.fua_native), range, bytes);
        }
        if op == Op::Flush && self.skips_flush() {
            self.later.push(Reverse((now.saturating_add(self.behaviour.ignored_flush()), id)));
            return;
        }
        let inner = with_fua(op, self.info.fua_native && !self.behaviour.ignores_fua);
        let sectors = Sectors::from_range(range, self.info.logical_block);
        self.timing.submit(now, Command { id, op: inner, sectors });
    }

    /// Returns true if flushes are answered and not done at all.
    pub(super) fn skips_flush(&self) -> bool {
        self.behaviour.driver_drops_flush || self.behaviour.ignores_flush == IgnoresFlush::Always
    }
}

/// Returns the command as one who keeps FUA gets it, or one who does not: FUA is ignored, or made of a write
/// and a flush.
const fn with_fua(op: Op, keeps: bool) -> Op {
    match op {
        Op::Write { fua } => Op::Write { fua: fua && keeps },
        Op::WriteZeroes { fua, no_hole, fast_only } => {
            Op::WriteZeroes { fua: fua && keeps, no_hole, fast_only }
        }
        other => other,
    }
}
