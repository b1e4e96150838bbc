//! Superblocks, written one version at a time: two copies on every leg that counts, then a flush of each.

use std::collections::BTreeSet;

use plumb_block::{Bytes, Outcome};

use crate::action::{Purpose, Wait};
use crate::core::{Condition, Core, LegFailure, Then};
use crate::format::superblock::Superblock;
use crate::recovery::Recovered;
use crate::settings::LOG_BLOCK;

/// Why a version is written, the most urgent first. Each version has everything that has changed until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// A leg no longer counts, or is to count (orders (e) and (g)); or the log is to become larger.
    Epoch,
    /// The log was opened.
    Session,
    /// Segments are to become free.
    Tail,
    /// The cache stops.
    Stop,
}

impl Reason {
    /// Returns the purposes of the write and of the flush.
    const fn purposes(self) -> (Purpose, Purpose) {
        match self {
            Self::Epoch => (Purpose::EpochOnSurvivors, Purpose::EpochFlush),
            Self::Session => (Purpose::Session, Purpose::SessionFlush),
            Self::Tail => (Purpose::TailAdvance, Purpose::TailFlush),
            Self::Stop => (Purpose::Stop, Purpose::StopFlush),
        }
    }
}

/// Versions of the superblock: to be written, being written, and durable.
#[derive(Debug)]
pub(crate) struct Superblocks {
    wanted: BTreeSet<Reason>,
    round: Option<Round>,
    /// The last version that is durable; of epoch 0 until this opening has written one.
    pub(crate) durable: Superblock,
    /// Slot of each leg that the next version goes to. A power cut may leave the last version on one leg and
    /// not on another, so that the legs have their last whole one in different slots.
    slots: Vec<usize>,
}

#[derive(Debug)]
struct Round {
    reason: Reason,
    content: Superblock,
    /// True if the writes are done.
    is_flushing: bool,
    /// Number of actions not completed.
    left: usize,
}

impl Superblocks {
    pub(crate) fn new(found: &Recovered) -> Self {
        Self {
            wanted: BTreeSet::new(),
            round: None,
            durable: Superblock { epoch: 0, session: found.session, ..found.superblock.clone() },
            slots: found.slots.clone(),
        }
    }

    /// Returns those of a log that has none yet, of which `next` is the first.
    pub(crate) fn blank(next: &Superblock) -> Self {
        let durable = Superblock { epoch: 0, session: 0, ..next.clone() };
        Self { wanted: BTreeSet::new(), round: None, durable, slots: vec![0; next.legs.len()] }
    }

    /// Takes no note any more of the version that is being written, and writes no other.
    pub(crate) fn abandon(&mut self) {
        (self.round, self.wanted) = (None, BTreeSet::new());
    }

    /// How many actions of the version that is being written are not completed.
    pub(crate) fn left(&mut self) -> Option<&mut usize> {
        self.round.as_mut().map(|round| &mut round.left)
    }

    /// A version is to be written for this reason.
    pub(crate) fn want(&mut self, reason: Reason) {
        self.wanted.insert(reason);
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.round.is_some() || !self.wanted.is_empty()
    }
}

impl Core {
    /// Order (e): whether the epoch that excludes the last leg that was lost is durable.
    pub(crate) fn is_epoch_durable(&self) -> bool {
        self.superblocks.durable.epoch == self.superblock.epoch
            || !self.options.waits.hold(Wait::EpochDurable)
    }

    /// Returns true if anything may be acknowledged: order (e), and the backing device names the session,
    /// where it names any.
    pub(crate) fn may_acknowledge(&self) -> bool {
        (self.seal.is_some() || self.is_epoch_durable()) && self.is_marked()
    }

    /// Writes the next version, if one is wanted; flushes after it; takes note that it is durable.
    pub(crate) fn write_superblocks(&mut self) {
        if self.latched().is_some() || self.seal.as_ref().is_some_and(|seal| !seal.is_moving()) {
            return;
        }
        match &mut self.superblocks.round {
            None => self.begin_superblocks(),
            Some(round) if round.left > 0 => {}
            Some(round) if !round.is_flushing => {
                round.is_flushing = true;
                let (_, purpose) = round.reason.purposes();
                self.flush_legs(purpose);
            }
            Some(_) => self.superblocks_durable(),
        }
    }

    fn begin_superblocks(&mut self) {
        let legs = self.superblock.written();
        let Some(reason) = self.superblocks.wanted.first().copied() else { return };
        let memory = &self.options.memory;
        let buffers: Option<Vec<_>> = legs.iter().map(|_| memory.take(Bytes(LOG_BLOCK))).collect();
        let Some(buffers) = buffers else { return };
        self.superblocks.wanted.remove(&reason);
        self.superblock.generation += 1;
        self.superblock.durable = self.log.durable;
        let (purpose, _) = reason.purposes();
        for (leg, mut buffer) in legs.iter().zip(buffers) {
            let slot = self.superblocks.slots[leg];
            self.superblocks.slots[leg] = 1 - slot;
            let places = self.devices.leg(leg).map_or([0, 1, 0, 1], Superblock::places);
            self.superblock.leg = leg as u8;
            self.superblock.encode(&mut buffer);
            let bytes = buffer.freeze();
            for place in [places[slot], places[slot + 2]] {
                let command = self.devices.write_leg(leg, place, purpose, bytes.clone());
                self.io.issue(command, Then::Superblock { leg });
            }
            self.figures.leg_written += Bytes(2 * LOG_BLOCK);
        }
        let content = self.superblock.clone();
        let left = 2 * legs.len();
        self.superblocks.round = Some(Round { reason, content, is_flushing: false, left });
    }

    pub(crate) fn superblock_completed(&mut self, leg: usize, outcome: Outcome) {
        if !outcome.is_done() {
            self.lose_leg(leg, LegFailure::Superblock, outcome);
        }
        self.superblocks.left().into_iter().for_each(|left| *left -= 1);
    }

    fn superblocks_durable(&mut self) {
        let Some(Round { reason, content, .. }) = self.superblocks.round.take() else { return };
        self.io.step();
        let before = std::mem::replace(&mut self.superblocks.durable, content.clone());
        // A version that a leg has failed to take says of that leg that it counts: the next one, which is
        // wanted by now, does not.
        if !self.is_epoch_durable() && reason != Reason::Epoch {
            self.superblocks.want(reason);
            return;
        }
        if content.geometry != self.log.geometry {
            if before.geometry == content.geometry {
                self.take_shape();
            } else {
                // The other slot has the old shape still.
                self.superblocks.want(Reason::Epoch);
            }
        }
        match reason {
            Reason::Epoch => {}
            Reason::Session if self.condition == Condition::Opening => self.condition = Condition::Serving,
            Reason::Session => {}
            Reason::Tail => self.free_until(content.tail.segment),
            Reason::Stop => {
                let is_clean = self.condition == Condition::Stopping(true) && self.index.is_empty();
                self.condition = Condition::Stopped(is_clean);
            }
        }
    }
}
