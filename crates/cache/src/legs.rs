//! Legs that count, and what happens when one fails.

use plumb_block::{Buffer, Outcome};

use crate::action::Purpose;
use crate::core::{Core, Then};
use crate::format::superblock::LegState;
use crate::gather::PartRead;
use crate::io::errno_of;
use crate::settings::Layout;
use crate::superblocks::Reason;

impl Core {
    /// The legs that records, superblocks and flushes go to.
    pub(crate) fn legs_written(&self) -> Vec<usize> {
        let states = self.superblock.legs.iter().enumerate();
        states.filter(|(_, state)| **state != LegState::Lost).map(|(leg, _)| leg).collect()
    }

    /// The legs that segment `segment` is written to.
    pub(crate) fn legs_of(&self, segment: u64) -> Vec<usize> {
        let mut legs = self.legs_written();
        legs.retain(|leg| self.log.geometry.is_on(*leg, segment));
        legs
    }

    /// A leg from which segment `segment` can be read, none of `tried`; reads of different `turn`s are
    /// spread.
    pub(crate) fn source(&self, segment: u64, tried: &[usize], turn: u64) -> Option<usize> {
        let mut legs = self.legs_of(segment);
        legs.retain(|leg| self.superblock.legs[*leg] == LegState::Live && !tried.contains(leg));
        let count = legs.len() as u64;
        (count > 0).then(|| legs[(turn % count) as usize])
    }

    /// Goes on without a leg that failed: nothing is acknowledged until the superblocks of the others say so
    /// (order (e)). Without another one that has all, nothing can be written any more.
    pub(crate) fn lose_leg(&mut self, leg: usize, what: &str, outcome: Outcome) {
        let state = self.superblock.legs[leg];
        if state == LegState::Lost {
            return;
        }
        if self.log.geometry.layout == Layout::Stripe || self.superblock.live().eq([leg]) {
            let because = format!(
                "device {leg} of the log {what}, and no other has what it has: what was not flushed may be lost"
            );
            self.latch(because, errno_of(outcome));
            return;
        }
        self.set_leg(leg, LegState::Lost);
        self.figures.legs_lost += 1;
    }

    /// Has a leg count or not, with a new epoch: nothing is acknowledged until that is durable. Without one
    /// that counted a session begins, which the backing device notes: that leg alone cannot know that it is
    /// stale, and is refused by it.
    pub(crate) fn set_leg(&mut self, leg: usize, state: LegState) {
        let before = std::mem::replace(&mut self.superblock.legs[leg], state);
        if (before, state) == (LegState::Live, LegState::Lost) {
            self.begin_session();
        }
        self.begin_epoch();
    }

    /// Begins a session: its records are told from those of others.
    pub(crate) fn begin_session(&mut self) {
        self.superblock.session += 1;
        self.superblock.first = self.log.next_sequence;
        self.log.close();
    }

    /// Begins an epoch: which legs count, or the shape of the log, has changed.
    pub(crate) fn begin_epoch(&mut self) {
        self.superblock.epoch += 1;
        self.superblocks.want(Reason::Epoch);
        self.io.steps += 1;
    }

    /// Writes blocks that another leg has to `leg`, at `block` of `segment`, which is not used again
    /// meanwhile. `part` is what they were read for, if it waits for that.
    pub(crate) fn copy_to(
        &mut self,
        (leg, purpose): (usize, Purpose),
        (segment, block): (u64, u32),
        bytes: Buffer,
        part: Option<Box<PartRead>>,
    ) {
        self.log.pin(segment);
        let at = self.log.geometry.leg_block(segment, block);
        self.io.write_leg((leg, purpose), at, bytes, Then::Copy { leg, segment, part });
    }

    pub(crate) fn copy_completed(
        &mut self,
        (leg, segment): (usize, u64),
        part: Option<Box<PartRead>>,
        outcome: Outcome,
    ) {
        self.log.unpin(segment);
        if !outcome.is_done() {
            self.lose_leg(leg, "could not be given what another one has", outcome);
        } else if part.is_none() {
            self.figures.repaired += 1;
        }
        part.into_iter().for_each(|part| self.part_ended(&part, Ok(()), None));
    }
}
