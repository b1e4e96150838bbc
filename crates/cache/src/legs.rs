//! Which legs count, and what happens when one fails.

use plumb_block::{Op, Outcome, Payload};

use crate::action::Purpose;
use crate::core::{Core, Then};
use crate::format::superblock::LegState;
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

    /// A leg from which segment `segment` can be read, none of `tried`; reads of different `turn`s are spread.
    pub(crate) fn source(&self, segment: u64, tried: &[usize], turn: u64) -> Option<usize> {
        let mut legs = self.legs_of(segment);
        legs.retain(|leg| self.superblock.legs[*leg] == LegState::Live && !tried.contains(leg));
        let count = legs.len() as u64;
        (count > 0).then(|| legs[(turn % count) as usize])
    }

    /// Goes on without a leg that failed: nothing is acknowledged until the superblocks of the others say so (order (e)). Without
    /// another one that has all, nothing can be written any more.
    pub(crate) fn lose_leg(&mut self, leg: usize, what: &str, outcome: Outcome) {
        let state = self.superblock.legs[leg];
        if state == LegState::Lost {
            return;
        }
        if self.log.geometry.layout == Layout::Stripe || self.superblock.live().eq([leg]) {
            let because = format!(
                "leg {leg} {what}, and no other leg has what it has: what was not flushed may be lost"
            );
            self.latch(because, errno_of(outcome));
            return;
        }
        self.set_leg(leg, LegState::Lost);
        self.figures.legs_lost += 1;
    }

    /// Has a leg count or not, with a new epoch: nothing is acknowledged until that is durable.
    pub(crate) fn set_leg(&mut self, leg: usize, state: LegState) {
        self.superblock.legs[leg] = state;
        self.begin_epoch();
    }

    /// Begins an epoch: which legs count, or the shape of the log, has changed.
    pub(crate) fn begin_epoch(&mut self) {
        self.superblock.epoch += 1;
        self.superblocks.want(Reason::Epoch);
        self.io.steps += 1;
    }

    /// Replaces blocks of `leg` that were read damaged, at `block` of `segment`, by what another leg has.
    pub(crate) fn repair(&mut self, leg: usize, (segment, block): (u64, u32), good: &[u8]) {
        if self.superblock.legs[leg] == LegState::Lost {
            return;
        }
        // Without memory now, the next read repairs.
        let Some(mut buffer) = self.io.options.memory.take(plumb_block::Bytes(good.len() as u64)) else {
            return;
        };
        buffer.copy_from_slice(good);
        self.log.pin(segment);
        let at = self.log.geometry.leg_block(segment, block);
        let blocks = good.len() as u64 / crate::settings::LOG_BLOCK;
        let (op, payload) = (Op::Write { fua: false }, Payload::Bytes(buffer.freeze()));
        let then = Then::Repair { leg, segment };
        self.io.act_on_leg((leg, Purpose::ReadRepair), op, (at, blocks), payload, then);
    }

    pub(crate) fn repair_completed(&mut self, leg: usize, segment: u64, outcome: Outcome) {
        self.log.unpin(segment);
        if outcome.is_done() {
            self.figures.repaired += 1;
        } else {
            self.lose_leg(leg, "could not be repaired", outcome);
        }
    }
}
