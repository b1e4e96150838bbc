//! The edge of the state machine: actions that go out, what each was for when it comes back, and answers to
//! clients.

use std::collections::BTreeMap;

use plumb_block::{
    Buffer, Bytes, Completion, DeviceInfo, Errno, Lba, LbaRange, Nanos, Op, Outcome, Payload, Request, Tag,
};

use crate::action::{Action, ActionId, Member, Purpose};
use crate::core::Then;
use crate::settings::{BUFFER, LOG_BLOCK, Options};

/// The members, and what is on its way to and from them.
#[derive(Debug)]
pub(crate) struct Io {
    pub(crate) options: Options,
    /// The legs that are there.
    pub(crate) legs: Vec<Option<DeviceInfo>>,
    pub(crate) backing: DeviceInfo,
    /// The time of the last event.
    pub(crate) now: Nanos,
    next: u64,
    /// Actions for the members since they were last taken; `answers` has those for the clients.
    pub(crate) out: Vec<Action>,
    pub(crate) answers: Vec<Completion>,
    in_flight: BTreeMap<ActionId, Then>,
    /// Grows with everything that goes out, so that who waits for nothing more to happen can tell.
    pub(crate) steps: u64,
}

/// Request of a client, to be answered once.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) tag: Tag,
    pub(crate) at: Nanos,
}

impl Io {
    pub(crate) fn new(options: Options, legs: Vec<Option<DeviceInfo>>, backing: DeviceInfo) -> Self {
        let (out, answers, in_flight) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self { options, legs, backing, now: Nanos::ZERO, next: 0, out, in_flight, answers, steps: 0 }
    }

    /// Asks `member` for something.
    pub(crate) fn act(
        &mut self,
        (member, purpose): (Member, Purpose),
        op: Op,
        range: LbaRange,
        payload: Payload,
        then: Then,
    ) {
        let id = ActionId(self.next);
        self.next += 1;
        self.steps += 1;
        let request = Request { tag: Tag(id.0), op, range, payload, deadline: None };
        self.in_flight.insert(id, then);
        self.out.push(Action { id, member, purpose, request });
    }

    /// Asks leg `leg` for something at `blocks` log blocks from log block `at` on.
    pub(crate) fn act_on_leg(
        &mut self,
        (leg, purpose): (usize, Purpose),
        op: Op,
        (at, blocks): (u64, u64),
        payload: Payload,
        then: Then,
    ) {
        let block = self.legs[leg].as_ref().map_or(LOG_BLOCK, |info| info.logical_block.0);
        let scale = LOG_BLOCK / block;
        let range = LbaRange::new(Lba(at * scale), blocks * scale);
        self.act((Member::Leg(leg), purpose), op, range, payload, then);
    }

    /// Writes to a leg.
    pub(crate) fn write_leg(&mut self, to: (usize, Purpose), at: u64, bytes: Buffer, then: Then) {
        let blocks = bytes.len() as u64 / LOG_BLOCK;
        self.act_on_leg(to, Op::Write { fua: false }, (at, blocks), Payload::Bytes(bytes), then);
    }

    /// Flushes a member.
    pub(crate) fn flush(&mut self, to: (Member, Purpose), then: Then) {
        self.act(to, Op::Flush, LbaRange::EMPTY, Payload::None, then);
    }

    /// Takes the continuation of an action. `None` for one that is not in flight.
    pub(crate) fn take(&mut self, id: ActionId) -> Option<Then> {
        self.steps += 1;
        self.in_flight.remove(&id)
    }

    /// Returns true if nothing is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Answers a client.
    pub(crate) fn answer(&mut self, asked: &Asked, outcome: Outcome, payload: Payload) {
        self.steps += 1;
        let (tag, submitted_at, completed_at) = (asked.tag, asked.at, self.now);
        self.answers.push(Completion { tag, outcome, submitted_at, completed_at, payload });
    }

    /// Answers a client that it failed.
    pub(crate) fn refuse(&mut self, asked: &Asked, errno: Errno, payload: Payload) {
        self.answer(asked, Outcome::Failed(errno), payload);
    }

    /// The largest transfer to a leg, in whole log blocks.
    pub(crate) fn leg_transfer_max(&self) -> u64 {
        let legs = self.legs.iter().flatten().map(|info| info.transfer_max);
        let smallest = legs.min().unwrap_or(BUFFER).min(BUFFER);
        smallest.round_down(Bytes(LOG_BLOCK)).0.max(LOG_BLOCK)
    }

    /// The largest transfer to the backing device that the cache makes, in bytes.
    pub(crate) fn backing_transfer_max(&self) -> u64 {
        let block = self.backing.logical_block;
        self.backing.transfer_max.min(BUFFER).round_down(block).0.max(block.0)
    }
}

/// The error number that an outcome stands for.
pub(crate) fn errno_of(outcome: Outcome) -> Errno {
    match outcome {
        Outcome::Failed(errno) => errno,
        Outcome::Done | Outcome::Unknown | Outcome::PowerLost => Errno::EIO,
    }
}
