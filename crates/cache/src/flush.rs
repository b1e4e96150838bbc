//! Flushes of clients, and what makes their FUA writes durable: rounds of one flush of each member that needs
//! one.
//!
//! At most one round is in flight; what comes meanwhile waits for the next one, since only a flush that was
//! submitted later covers it (order (d)).

use plumb_block::Payload;

use crate::action::{Wait, Waits};
use crate::io::ClientRequest;
use crate::log::Log;
use crate::settings::Mode;

/// Rounds of flushes, and the clients that wait for them.
#[derive(Debug)]
pub(crate) struct Flushes {
    /// Clients, each with what it gets back.
    waiting: Vec<(ClientRequest, Payload)>,
    round: Option<Round>,
    /// True if a write past the log completed since the last flush of the backing device was submitted.
    bypassed: bool,
    /// True if the cache itself wants all that is complete now to be durable.
    is_wanted: bool,
    /// True if the next round flushes the legs, though all is said to be durable.
    legs_due: bool,
}

/// Members that a round flushes.
#[derive(Debug)]
pub(crate) struct Needs {
    /// Every leg that is written.
    pub(crate) legs: bool,
    pub(crate) backing: bool,
}

/// Round of flushes: everything that was complete when it began is durable once it ends.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) waiters: Vec<(ClientRequest, Payload)>,
    /// Number of flushes not completed.
    left: usize,
    /// The last record that they cover.
    pub(crate) covered: u64,
    /// True if the legs were due.
    was_due: bool,
}

impl Flushes {
    /// Returns the flushes of a cache that was opened: nobody knows whether a write went past the log before,
    /// and was not flushed.
    pub(crate) fn opened() -> Self {
        Self { waiting: Vec::new(), round: None, bypassed: true, is_wanted: false, legs_due: false }
    }

    /// Returns true if the legs were flushed since nobody vouches for them any more.
    pub(crate) fn is_settled(&self) -> bool {
        !self.legs_due && !self.round.as_ref().is_some_and(|round| round.was_due)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.round.is_none() && self.waiting.is_empty() && !self.is_wanted
    }

    /// Returns true if a write past the log completed that no flush covers yet.
    pub(crate) fn has_bypassed(&self) -> bool {
        self.bypassed
    }

    /// Notes that a write past the log completed, and may be volatile.
    pub(crate) fn note_bypass(&mut self) {
        self.bypassed = true;
    }

    /// Begins a round soon, though no client waits for one.
    pub(crate) fn want(&mut self) {
        self.is_wanted = true;
    }

    /// Has the next round flush the legs, though all is said to be durable: nobody vouches for them any more.
    pub(crate) fn distrust_legs(&mut self) {
        (self.legs_due, self.is_wanted) = (true, true);
    }

    /// Returns true if all that is complete in the log is durable.
    pub(crate) fn are_legs_durable(&self, log: &Log) -> bool {
        log.durable >= log.complete && !self.legs_due
    }

    /// Answers a client once what is complete now is durable: with the next round. Without
    /// [`Wait::FlushCovers`] it joins the one that is in flight, which may not cover its writes.
    pub(crate) fn add(&mut self, waits: Waits, request: ClientRequest, payload: Payload) {
        let round = self.round.as_mut().filter(|_| !waits.hold(Wait::FlushCovers));
        round.map_or(&mut self.waiting, |round| &mut round.waiters).push((request, payload));
    }

    /// Begins the next round, if none is in flight and somebody wants one. Returns the flushes that it needs.
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

    /// Returns the number of pending flushes of the round in flight.
    pub(crate) fn pending(&mut self) -> Option<&mut usize> {
        self.round.as_mut().map(|round| &mut round.left)
    }

    /// Ends the round in flight, if all of its flushes are completed.
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
