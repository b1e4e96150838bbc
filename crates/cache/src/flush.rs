//! Flushes of clients, and what makes their FUA writes durable: rounds of one flush of each member that needs one.
//!
//! At most one round is in flight; what comes meanwhile waits for the next one, since only a flush that was submitted later covers it
//! (order (d)).

use plumb_block::{Errno, Outcome, Payload};

use crate::action::{Member, Purpose, Wait, Waits};
use crate::core::{Core, Then};
use crate::io::{Asked, Io, errno_of};
use crate::settings::Mode;

/// The rounds of flushes.
#[derive(Debug)]
pub(crate) struct Flushes {
    waiting: Vec<Waiter>,
    round: Option<Round>,
    /// Whether a write past the log completed since the last flush of the backing device was submitted.
    pub(crate) bypassed: bool,
    /// Whether the cache itself wants a round.
    is_wanted: bool,
    /// Whether the next round flushes the legs, though all is said to be durable.
    pub(crate) legs_due: bool,
}

#[derive(Debug)]
struct Waiter {
    asked: Asked,
    payload: Payload,
}

#[derive(Debug)]
struct Round {
    waiters: Vec<Waiter>,
    /// How many flushes are not completed.
    left: usize,
    /// The last record that they cover.
    covered: u64,
    /// Whether the legs were due.
    was_due: bool,
}

impl Flushes {
    /// Those of a cache that was opened: nobody knows whether a write went past the log before, and was not flushed.
    pub(crate) fn opened() -> Self {
        Self { waiting: Vec::new(), round: None, bypassed: true, is_wanted: false, legs_due: false }
    }

    /// A client waits for what is complete now to be durable.
    pub(crate) fn ask(&mut self, asked: Asked, payload: Payload, waits: Waits) {
        let waiter = Waiter { asked, payload };
        match &mut self.round {
            Some(round) if !waits.hold(Wait::FlushCovers) => round.waiters.push(waiter),
            _ => self.waiting.push(waiter),
        }
    }

    /// The cache itself wants all that is complete now to be durable.
    pub(crate) fn want_one(&mut self) {
        self.is_wanted = true;
    }

    /// Whether the legs were flushed since nobody vouches for them any more.
    pub(crate) fn is_settled(&self) -> bool {
        !self.legs_due && !self.round.as_ref().is_some_and(|round| round.was_due)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.round.is_none() && self.waiting.is_empty() && !self.is_wanted
    }

    /// Fails all who wait.
    pub(crate) fn fail(&mut self, io: &mut Io) {
        let round = self.round.take().map(|round| round.waiters).unwrap_or_default();
        for waiter in round.into_iter().chain(std::mem::take(&mut self.waiting)) {
            io.refuse(&waiter.asked, Errno::EIO, waiter.payload);
        }
        self.is_wanted = false;
    }
}

impl Core {
    /// Ends the round that is over, and begins the next one.
    pub(crate) fn go_on_with_flushes(&mut self) {
        if self.flushes.round.as_ref().is_some_and(|round| round.left == 0) && self.may_acknowledge() {
            self.end_round();
        }
        let is_asked = !self.flushes.waiting.is_empty() || self.flushes.is_wanted;
        if self.flushes.round.is_none() && is_asked && self.is_serving() {
            self.begin_round();
        }
    }

    fn begin_round(&mut self) {
        let covered = self.log.complete;
        let is_known = self.log.durable >= covered && !self.flushes.legs_due;
        let is_flushed = self.io.options.mode == Mode::Protected || is_known;
        let was_due = self.flushes.legs_due && !is_flushed;
        self.flushes.legs_due &= is_flushed;
        let then = |leg| Then::Flush { leg };
        let mut left = if is_flushed { 0 } else { self.flush_legs(Purpose::LogFlush, then) };
        if std::mem::take(&mut self.flushes.bypassed) {
            left += self.flush_backing(Purpose::BypassFlush, then);
        }
        let waiters = std::mem::take(&mut self.flushes.waiting);
        self.flushes.is_wanted = false;
        self.flushes.round = Some(Round { waiters, left, covered, was_due });
        // What is written from now on may only reach the backing device after what this round covers.
        self.log.flush_epoch += 1;
        self.io.steps += 1;
    }

    fn end_round(&mut self) {
        let Some(round) = self.flushes.round.take() else { return };
        self.log.durable = self.log.durable.max(round.covered);
        self.figures.flushes += round.waiters.len() as u64;
        for waiter in round.waiters {
            self.io.answer(&waiter.asked, Outcome::Done, waiter.payload);
        }
        self.io.steps += 1;
    }

    /// Flushes the legs that are written; how many those are.
    pub(crate) fn flush_legs(&mut self, purpose: Purpose, then: impl Fn(Option<usize>) -> Then) -> usize {
        let legs = self.legs_written();
        for leg in &legs {
            self.io.flush((Member::Leg(*leg), purpose), then(Some(*leg)));
        }
        self.figures.leg_flushes += legs.len() as u64;
        legs.len()
    }

    /// The same of the backing device, which is one.
    pub(crate) fn flush_backing(&mut self, purpose: Purpose, then: impl Fn(Option<usize>) -> Then) -> usize {
        self.io.flush((Member::Backing, purpose), then(None));
        self.figures.backing_flushes += 1;
        1
    }

    /// A member was flushed, a leg or the backing device, or failed it.
    pub(crate) fn flush_ended(&mut self, leg: Option<usize>, outcome: Outcome) {
        match leg {
            _ if outcome.is_done() => {}
            Some(leg) => self.lose_leg(leg, "failed a flush", outcome),
            // Nobody can tell what of all that was written since the flush before is on the device.
            None => {
                let because = "the backing device failed a flush: what went past the log since the flush before may be lost, and the log has \
                               the rest; open the cache again once the device is well";
                self.latch(because.to_owned(), errno_of(outcome));
            }
        }
    }

    pub(crate) fn flush_completed(&mut self, leg: Option<usize>, outcome: Outcome) {
        self.flush_ended(leg, outcome);
        if let Some(round) = &mut self.flushes.round {
            round.left -= 1;
        }
    }
}
