//! Versions of the superblock, written one at a time: two copies on every counting leg, then a flush of each.

use std::collections::BTreeSet;

use crate::action::Purpose;
use crate::format::superblock::Superblock;
use crate::recovery::RecoveryResult;

/// Reason to write a version, the most urgent first. Each version includes all changes so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// The set of counting legs changes (orders (e) and (g)), or the log grows.
    Epoch,
    /// The log was opened.
    Session,
    /// Segments are to become free.
    Tail,
    /// The cache stops.
    Stop,
}

impl Reason {
    /// Returns the purpose of the write.
    pub(crate) const fn write(self) -> Purpose {
        match self {
            Self::Epoch => Purpose::EpochOnSurvivors,
            Self::Session => Purpose::Session,
            Self::Tail => Purpose::TailAdvance,
            Self::Stop => Purpose::Stop,
        }
    }

    /// Returns the purpose of the flush after the write.
    const fn flush(self) -> Purpose {
        match self {
            Self::Epoch => Purpose::EpochFlush,
            Self::Session => Purpose::SessionFlush,
            Self::Tail => Purpose::TailFlush,
            Self::Stop => Purpose::StopFlush,
        }
    }
}

/// Versions of the superblock: requested, being written, and durable.
#[derive(Debug)]
pub(crate) struct Superblocks {
    wanted: BTreeSet<Reason>,
    round: Option<Round>,
    /// Last durable version; of epoch 0 until this session has written one.
    pub(crate) durable: Superblock,
    /// Slot of each leg for the next version. A power cut may leave the last version on one leg and not on
    /// another, so the last intact one may be in different slots.
    slots: Vec<usize>,
}

/// Version of the superblock, with the reason to write it.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) reason: Reason,
    pub(crate) content: Superblock,
}

#[derive(Debug)]
struct Round {
    version: Version,
    /// True if the writes are complete.
    is_flushing: bool,
    /// Number of incomplete actions.
    left: usize,
}

impl Superblocks {
    pub(crate) fn new(found: &RecoveryResult) -> Self {
        Self {
            wanted: BTreeSet::new(),
            round: None,
            durable: Superblock { epoch: 0, session: found.session, ..found.superblock.clone() },
            slots: found.slots.clone(),
        }
    }

    /// Creates the state for a new log whose first version is `next`.
    pub(crate) fn blank(next: &Superblock) -> Self {
        let durable = Superblock { epoch: 0, session: 0, ..next.clone() };
        Self { wanted: BTreeSet::new(), round: None, durable, slots: vec![0; next.legs.len()] }
    }

    /// Abandons the version being written, and all later ones.
    pub(crate) fn abandon(&mut self) {
        (self.round, self.wanted) = (None, BTreeSet::new());
    }

    /// Returns the counter of pending actions of the version being written.
    pub(crate) fn pending(&mut self) -> Option<&mut usize> {
        self.round.as_mut().map(|round| &mut round.left)
    }

    /// Requests a version for this reason.
    pub(crate) fn want(&mut self, reason: Reason) {
        self.wanted.insert(reason);
    }

    /// Returns the most urgent reason for the next version; `None` if none is requested, or one is being
    /// written.
    pub(crate) fn next(&self) -> Option<Reason> {
        self.wanted.first().copied().filter(|_| self.round.is_none())
    }

    /// Returns a leg's slot for the version, and switches to the other one.
    pub(crate) fn take_slot(&mut self, leg: usize) -> usize {
        let slot = self.slots[leg];
        self.slots[leg] = 1 - slot;
        slot
    }

    /// Records that a version is being written, by `left` actions.
    pub(crate) fn begin(&mut self, reason: Reason, content: Superblock, left: usize) {
        self.wanted.remove(&reason);
        self.round = Some(Round { version: Version { reason, content }, is_flushing: false, left });
    }

    /// Returns the purpose of the flushes after the writes, once these are complete.
    pub(crate) fn begin_flush(&mut self) -> Option<Purpose> {
        let round = self.round.as_mut().filter(|round| round.left == 0 && !round.is_flushing)?;
        round.is_flushing = true;
        Some(round.version.reason.flush())
    }

    /// Returns the version once it was written and flushed.
    pub(crate) fn end(&mut self) -> Option<Version> {
        let round = self.round.take_if(|round| round.left == 0 && round.is_flushing)?;
        Some(round.version)
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.round.is_some() || !self.wanted.is_empty()
    }
}
