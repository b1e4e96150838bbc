//! Client flushes and FUA writes: rounds of one flush of each member that needs one.
//!
//! At most one round is in flight. Later requests wait for the next round, because only a flush submitted
//! after them covers them (order (d)).

use plumb_block::Payload;

use crate::action::{Wait, Waits};
use crate::io::ClientRequest;
use crate::log::Log;
use crate::settings::Mode;

/// Rounds of flushes, and the waiting clients.
#[derive(Debug)]
pub(crate) struct Flushes {
    /// Waiting clients, each with the payload to return.
    waiting: Vec<(ClientRequest, Payload)>,
    round: Option<Round>,
    /// True if a bypassing write completed since the last submitted flush of the backing device.
    bypassed: bool,
    /// True if the cache itself wants all complete data to be durable.
    is_wanted: bool,
    /// True if the next round flushes the legs even if everything counts as durable.
    legs_due: bool,
}

/// Members that a round must flush.
#[derive(Debug)]
pub(crate) struct Needs {
    /// Every written leg.
    pub(crate) legs: bool,
    pub(crate) backing: bool,
}

/// Round of flushes: makes everything durable that was complete at its start.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) waiters: Vec<(ClientRequest, Payload)>,
    /// Number of incomplete flushes.
    left: usize,
    /// Last record that the round covers.
    pub(crate) covered: u64,
    /// True if the round flushes the legs because they were due.
    was_due: bool,
}

impl Flushes {
    /// Creates the state for an opened cache, where bypassing writes of an earlier session may not have been
    /// flushed.
    pub(crate) fn opened() -> Self {
        Self { waiting: Vec::new(), round: None, bypassed: true, is_wanted: false, legs_due: false }
    }

    /// Returns true if the legs were flushed after a change from protected mode.
    pub(crate) fn is_settled(&self) -> bool {
        !self.legs_due && !self.round.as_ref().is_some_and(|round| round.was_due)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.round.is_none() && self.waiting.is_empty() && !self.is_wanted
    }

    /// Returns true if a bypassing write completed that no flush covers yet.
    pub(crate) fn has_bypassed(&self) -> bool {
        self.bypassed
    }

    /// Records that a bypassing write completed, and may be volatile.
    pub(crate) fn note_bypass(&mut self) {
        self.bypassed = true;
    }

    /// Requests a round even without a waiting client.
    pub(crate) fn want(&mut self) {
        self.is_wanted = true;
    }

    /// Makes the next round flush the legs even if everything counts as durable, because the user no longer
    /// states that they survive a loss of power.
    pub(crate) fn distrust_legs(&mut self) {
        (self.legs_due, self.is_wanted) = (true, true);
    }

    /// Returns true if everything complete in the log is durable.
    pub(crate) fn are_legs_durable(&self, log: &Log) -> bool {
        log.durable >= log.complete && !self.legs_due
    }

    /// Answers a client once everything complete now is durable, after the next round. Without
    /// [`Wait::FlushCovers`] it joins the round in flight, which may not cover its writes.
    pub(crate) fn add(&mut self, waits: Waits, request: ClientRequest, payload: Payload) {
        let round = self.round.as_mut().filter(|_| !waits.hold(Wait::FlushCovers));
        round.map_or(&mut self.waiting, |round| &mut round.waiters).push((request, payload));
    }

    /// Starts the next round if none is in flight and one is wanted. Returns the flushes that it needs.
    pub(crate) fn begin(&mut self, log: &Log, mode: Mode) -> Option<Needs> {
        if self.round.is_some() || (self.waiting.is_empty() && !self.is_wanted) {
            return None;
        }
        let legs = mode != Mode::Protected && !self.are_legs_durable(log);
        let was_due = self.legs_due && legs;
        self.legs_due &= !legs;
        self.is_wanted = false;
        let waiters = std::mem::take(&mut self.waiting);
        self.round = Some(Round { waiters, left: 0, covered: log.complete, was_due });
        Some(Needs { legs, backing: std::mem::take(&mut self.bypassed) })
    }

    /// Returns the counter of pending flushes of the round in flight.
    pub(crate) fn pending(&mut self) -> Option<&mut usize> {
        self.round.as_mut().map(|round| &mut round.left)
    }

    /// Ends the round in flight if all of its flushes are complete.
    pub(crate) fn end(&mut self) -> Option<Round> {
        self.round.take_if(|round| round.left == 0)
    }

    /// Removes and returns the request of every waiting client.
    pub(crate) fn fail(&mut self) -> impl Iterator<Item = (ClientRequest, Payload)> {
        self.is_wanted = false;
        let round = self.round.take().map(|round| round.waiters).unwrap_or_default();
        round.into_iter().chain(std::mem::take(&mut self.waiting))
    }
}
