//! Flushes of clients, and what makes their FUA writes durable: rounds of one flush of each member that needs
//! one.
//!
//! At most one round is in flight; what comes meanwhile waits for the next one, since only a flush that was
//! submitted later covers it (order (d)).

use plumb_block::{Errno, Outcome, Payload};

use crate::action::{Command, Member, Purpose, Wait};
use crate::core::{Core, Then};
use crate::io::{ClientRequest, Io, errno_of};
use crate::settings::Mode;

/// The rounds of flushes.
#[derive(Debug)]
pub(crate) struct Flushes {
    /// Clients, each with what it gets back.
    waiting: Vec<(ClientRequest, Payload)>,
    round: Option<Round>,
    /// True if a write past the log completed since the last flush of the backing device was submitted.
    pub(crate) bypassed: bool,
    /// True if the cache itself wants all that is complete now to be durable.
    pub(crate) is_wanted: bool,
    /// True if the next round flushes the legs, though all is said to be durable.
    pub(crate) legs_due: bool,
}

#[derive(Debug)]
struct Round {
    waiters: Vec<(ClientRequest, Payload)>,
    /// How many flushes are not completed.
    left: usize,
    /// The last record that they cover.
    covered: u64,
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

    /// Fails all who wait.
    pub(crate) fn fail(&mut self, io: &mut Io<Then>) {
        let round = self.round.take().map(|round| round.waiters).unwrap_or_default();
        for (asked, payload) in round.into_iter().chain(std::mem::take(&mut self.waiting)) {
            io.refuse(&asked, Errno::EIO, payload);
        }
        self.is_wanted = false;
    }
}

impl Core {
    /// A client waits for what is complete now to be durable.
    pub(crate) fn ask_flush(&mut self, asked: ClientRequest, payload: Payload) {
        let waits = self.options.waits.hold(Wait::FlushCovers);
        let joined = self.flushes.round.as_mut().filter(|_| !waits).map(|round| &mut round.waiters);
        joined.unwrap_or(&mut self.flushes.waiting).push((asked, payload));
    }

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
        let is_flushed = self.options.mode == Mode::Protected || is_known;
        let was_due = self.flushes.legs_due && !is_flushed;
        self.flushes.legs_due &= is_flushed;
        let waiters = std::mem::take(&mut self.flushes.waiting);
        self.flushes.is_wanted = false;
        self.flushes.round = Some(Round { waiters, left: 0, covered, was_due });
        if !is_flushed {
            self.flush_legs(Purpose::LogFlush);
        }
        if std::mem::take(&mut self.flushes.bypassed) {
            self.flush(None, Purpose::BypassFlush);
        }
        // What is written from now on may only reach the backing device after what this round covers.
        self.log.flush_epoch += 1;
        self.io.step();
    }

    fn end_round(&mut self) {
        let Some(round) = self.flushes.round.take() else { return };
        self.log.durable = self.log.durable.max(round.covered);
        self.figures.flushes += round.waiters.len() as u64;
        for (asked, payload) in round.waiters {
            self.io.answer(&asked, Outcome::Done, payload);
        }
        self.io.step();
    }

    /// How many actions are not completed that are waited for with a flush of this purpose; `None` if nothing
    /// waits for it.
    fn left(&mut self, purpose: Purpose) -> Option<&mut usize> {
        let wait = match purpose {
            Purpose::LogFlush | Purpose::BypassFlush => {
                return self.flushes.round.as_mut().map(|round| &mut round.left);
            }
            Purpose::BackingFlushBeforeMark => return Some(&mut self.marks.left),
            Purpose::ResilverFlush => return self.resilver.as_mut().map(|resilver| &mut resilver.in_flight),
            Purpose::LogFlushBeforeDestage | Purpose::BackingFlushBeforeDestage => Wait::DurableBeforeDestage,
            Purpose::BackingFlushBeforeTail => Wait::BackingDurable,
            Purpose::LogFlushBeforeTail => Wait::SuccessorsDurable,
            _ => return self.superblocks.left(),
        };
        if self.options.waits.hold(wait) { self.destage.left() } else { None }
    }

    /// Flushes a leg or, without one, the backing device.
    pub(crate) fn flush(&mut self, leg: Option<usize>, purpose: Purpose) {
        let (member, count) = match leg {
            Some(leg) => (Member::Leg(leg), &mut self.figures.leg_flushes),
            None => (Member::Backing, &mut self.figures.backing_flushes),
        };
        *count += 1;
        self.io.issue(Command::flush(member, purpose), Then::Flush { leg, purpose });
        self.left(purpose).into_iter().for_each(|left| *left += 1);
    }

    /// Flushes the legs that are written.
    pub(crate) fn flush_legs(&mut self, purpose: Purpose) {
        self.superblock.written().iter().for_each(|leg| self.flush(Some(leg), purpose));
    }

    /// A leg or, without one, the backing device was flushed, or failed it.
    pub(crate) fn flush_completed(&mut self, leg: Option<usize>, purpose: Purpose, outcome: Outcome) {
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
        self.left(purpose).into_iter().for_each(|left| *left -= 1);
    }
}
