//! Boundary of the state machine: outgoing commands with their continuations, and answers to clients.

use std::collections::BTreeMap;

use plumb_block::{Completion, Errno, Nanos, Outcome, Payload, Request, Tag};

use crate::action::{Action, ActionId, Command, Member};

/// Commands in flight, each with its continuation `T`, and answers not yet collected.
#[derive(Debug)]
pub(crate) struct Io<T> {
    /// Time of the last event.
    now: Nanos,
    next: u64,
    actions: Vec<Action>,
    answers: Vec<Completion>,
    in_flight: BTreeMap<ActionId, T>,
    /// Grows with every change, so that the core can detect that a pass over its parts changed nothing.
    steps: u64,
    pub(crate) spindle: Spindle,
}

/// Use of the backing device over time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spindle {
    /// Time without a request after which the device is assumed to have spun down; zero disables counting.
    pub(crate) down_after: Nanos,
    /// Time of the last request.
    last_at: Nanos,
    /// Number of requests after a pause of at least `down_after`.
    pub(crate) spin_ups: u64,
}

/// Request of a client, to be answered exactly once.
#[derive(Debug)]
pub(crate) struct ClientRequest {
    pub(crate) tag: Tag,
    pub(crate) at: Nanos,
}

impl<T> Default for Io<T> {
    fn default() -> Self {
        let (actions, answers, in_flight) = (Vec::new(), Vec::new(), BTreeMap::new());
        let spindle = Spindle::default();
        Self { now: Nanos::ZERO, next: 0, actions, answers, in_flight, steps: 0, spindle }
    }
}

impl<T> Io<T> {
    /// Converts to continuations of another type. Nothing is in flight, and identifiers are not reused.
    pub(crate) fn continued<U>(&mut self) -> Io<U> {
        let Self { now, next, actions, answers, steps, spindle, .. } = std::mem::take(self);
        Io { now, next, actions, answers, in_flight: BTreeMap::new(), steps, spindle }
    }

    pub(crate) const fn now(&self) -> Nanos {
        self.now
    }

    /// Sets the time of an event. It never goes back.
    pub(crate) fn advance(&mut self, now: Nanos) {
        self.now = self.now.max(now);
    }

    pub(crate) const fn steps(&self) -> u64 {
        self.steps
    }

    /// Records a change that others may wait for.
    pub(crate) const fn step(&mut self) {
        self.steps += 1;
    }

    /// Sends a command to its member. Its completion returns `then`.
    pub(crate) fn issue(&mut self, command: Command, then: T) {
        let Command { member, purpose, op, range, payload } = command;
        if member == Member::Backing {
            self.spindle.used(self.now);
        }
        let id = ActionId(self.next);
        self.next += 1;
        self.steps += 1;
        let request = Request { tag: Tag(id.0), op, range, payload, deadline: None };
        self.in_flight.insert(id, then);
        self.actions.push(Action { id, member, purpose, request });
    }

    /// Ends an action and returns its continuation; `None` if it is not in flight.
    pub(crate) fn complete(&mut self, id: ActionId) -> Option<T> {
        self.steps += 1;
        self.in_flight.remove(&id)
    }

    /// Returns true if an action in flight has a continuation that satisfies `is_such`.
    pub(crate) fn any(&self, is_such: impl Fn(&T) -> bool) -> bool {
        self.in_flight.values().any(is_such)
    }

    /// Returns true if nothing is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    pub(crate) fn answer(&mut self, request: &ClientRequest, outcome: Outcome, payload: Payload) {
        self.steps += 1;
        let (tag, submitted_at, completed_at) = (request.tag, request.at, self.now);
        self.answers.push(Completion { tag, outcome, submitted_at, completed_at, payload });
    }

    /// Answers a client's request with an error.
    pub(crate) fn refuse(&mut self, request: &ClientRequest, errno: Errno, payload: Payload) {
        self.answer(request, Outcome::Failed(errno), payload);
    }

    /// Appends the actions since the last call.
    pub(crate) fn take_actions(&mut self, into: &mut Vec<Action>) {
        into.append(&mut self.actions);
    }

    /// Appends the answers since the last call.
    pub(crate) fn take_answers(&mut self, into: &mut Vec<Completion>) {
        into.append(&mut self.answers);
    }
}

impl Spindle {
    fn used(&mut self, now: Nanos) {
        let pause = now.since(self.last_at);
        self.spin_ups += u64::from(self.down_after > Nanos::ZERO && pause >= self.down_after);
        self.last_at = now;
    }
}

/// Returns the error number for an outcome.
pub(crate) fn errno_of(outcome: Outcome) -> Errno {
    match outcome {
        Outcome::Failed(errno) => errno,
        Outcome::Done | Outcome::Unknown | Outcome::PowerLost => Errno::EIO,
    }
}
