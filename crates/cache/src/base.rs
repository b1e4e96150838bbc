//! [`Base`]: state shared by all parts of an open cache, and operations used by several parts: flushes of
//! members, copies to a leg, changes of the counting legs, and writes of superblocks.

use plumb_block::{Bytes, Latch, Lba, LbaRange};

use crate::action::{Command, Member, Purpose, Wait};
use crate::continuation::{Copy, Then};
use crate::devices::Devices;
use crate::format::superblock::{LegState, Superblock};
use crate::index::{Entry, Index};
use crate::io::Io;
use crate::legs::LegSet;
use crate::log::Log;
use crate::pace::Pace;
use crate::recovery::RecoveryResult;
use crate::seal::Seal;
use crate::settings::{LOG_BLOCK, Layout, Options};
use crate::status::Figures;
use crate::superblocks::{Reason, Superblocks, Version};

/// Number of buffers reserved for records and superblocks, which reads leave free.
pub(crate) const BUFFERS_LEFT: usize = 6;

/// All blocks of a device.
pub(crate) const EVERYWHERE: LbaRange = LbaRange::new(Lba(0), u64::MAX);

/// State that all parts of an open cache share.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) options: Options,
    pub(crate) devices: Devices,
    pub(crate) io: Io<Then>,
    pub(crate) condition: Condition,
    /// Superblock as the next version would be written.
    pub(crate) superblock: Superblock,
    pub(crate) superblocks: Superblocks,
    pub(crate) index: Index,
    pub(crate) log: Log,
    /// Seal, if the log is no longer written.
    pub(crate) seal: Option<Seal>,
    pub(crate) pace: Pace,
    pub(crate) figures: Figures,
}

/// Condition of an open cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    /// The session is not durable yet.
    Opening,
    Serving,
    /// Serving the requests that arrived before the stop; true for a clean stop.
    Stopping(bool),
    Stopped(bool),
    /// Writes and flushes are no longer possible; with the reason.
    Latched(String, Latch),
}

impl Condition {
    /// Returns true if requests are executed.
    pub(crate) const fn is_serving(&self) -> bool {
        matches!(self, Self::Serving | Self::Stopping(_))
    }

    /// Returns the latch that stopped everything except reads, if any.
    pub(crate) const fn latch(&self) -> Option<Latch> {
        if let Self::Latched(_, latch) = self { Some(*latch) } else { None }
    }
}

impl Base {
    /// Creates the state from the result of recovery, and requests the superblock of a new session unless it
    /// was a dry run.
    pub(crate) fn opened(found: RecoveryResult) -> Self {
        let mut superblocks = Superblocks::new(&found);
        let condition = if found.options.dry_run {
            Condition::Stopped(found.index.is_empty())
        } else {
            superblocks.want(Reason::Session);
            Condition::Opening
        };
        let RecoveryResult { options, devices, mut io, superblock, index, log, .. } = found;
        let mut io = io.continued();
        io.spindle.down_after = options.destage.spin_down;
        Self {
            pace: Pace::new(io.now()),
            options,
            devices,
            io,
            condition,
            superblock,
            superblocks,
            index,
            log,
            seal: None,
            figures: Figures::default(),
        }
    }

    /// Flushes a leg, or the backing device if `leg` is `None`.
    pub(crate) fn flush(&mut self, leg: Option<usize>, purpose: Purpose) {
        let (member, count) = match leg {
            Some(leg) => (Member::Leg(leg), &mut self.figures.leg_flushes),
            None => (Member::Backing, &mut self.figures.backing_flushes),
        };
        *count += 1;
        self.io.issue(Command::flush(member, purpose), Then::Flush { leg, purpose });
    }

    /// Flushes all written legs. Returns their number.
    pub(crate) fn flush_legs(&mut self, purpose: Purpose) -> usize {
        let legs = self.superblock.written();
        legs.iter().for_each(|leg| self.flush(Some(leg), purpose));
        legs.len()
    }

    /// Returns the legs that hold segment `segment`.
    pub(crate) fn legs_of(&self, segment: u64) -> LegSet {
        self.superblock.written().iter().filter(|leg| self.log.geometry.is_on(*leg, segment)).collect()
    }

    /// Returns a leg from which segment `segment` can be read and that is not in `tried`. Different values of
    /// `turn` give different legs.
    pub(crate) fn source(&self, segment: u64, tried: &[usize], turn: u64) -> Option<usize> {
        let is_source = |leg: &usize| self.superblock.legs[*leg] == LegState::Live && !tried.contains(leg);
        let legs: LegSet = self.legs_of(segment).iter().filter(is_source).collect();
        let turn = turn.checked_rem(legs.len() as u64)?;
        legs.iter().nth(turn as usize)
    }

    /// Returns true if this is the last leg with complete data.
    pub(crate) fn is_last(&self, leg: usize) -> bool {
        self.log.geometry.layout == Layout::Stripe || self.superblock.live().eq([leg])
    }

    /// Sends `command`, which copies blocks from another leg. Their segment is pinned until it completes.
    pub(crate) fn copy_to(&mut self, copy: Copy, command: Command) {
        self.log.pin(copy.segment);
        self.io.issue(command, Then::Copy(copy));
    }

    /// Returns true if enough buffers are free to destage or copy another run.
    pub(crate) fn has_memory_for_run(&self) -> bool {
        self.options.memory.available() > BUFFERS_LEFT + 2
    }

    /// Returns the entries over `range` whose records recovery could replay, whether destaged or not.
    pub(crate) fn live(&self, range: LbaRange) -> impl Iterator<Item = (LbaRange, Entry)> {
        let found = self.index.over(range).map(|(range, entry)| (range, *entry));
        found.filter(|(range, entry)| self.log.is_live(*entry, range.lba))
    }

    /// Returns true if recovery could replay a record for a block of `range`.
    pub(crate) fn holds(&self, range: LbaRange) -> bool {
        self.live(range).next().is_some()
    }

    /// Returns true if a freed segment stays readable: its position in the ring does not change, and every
    /// readable leg has it.
    pub(crate) fn keeps_freed(&self) -> bool {
        let is_copying = self.superblock.legs.contains(&LegState::Resilvering);
        self.seal.is_none() && self.log.grows_to.is_none() && !is_copying
    }

    /// Removes from the index the entries that reads can no longer find. As this scans every entry, it runs
    /// only after an eighth of the log has been reused since the last time.
    pub(crate) fn forget_freed(&mut self) {
        let log = &mut self.log;
        let step = (log.geometry.count() / 8).max(1);
        if log.kept_from >= log.indexed_from + step {
            log.indexed_from = log.kept_from;
            self.index.forget(&log.geometry, EVERYWHERE, log.kept_from);
        }
    }

    /// Changes the state of a leg in a new epoch, which must be durable before anything is acknowledged. If a
    /// counting leg is excluded, also starts a new session, which the mark names: the leg alone cannot know
    /// that it is stale, but the mark then reveals it.
    pub(crate) fn set_leg(&mut self, leg: usize, state: LegState) {
        let before = std::mem::replace(&mut self.superblock.legs[leg], state);
        if (before, state) == (LegState::Live, LegState::Lost) {
            self.begin_session();
        }
        self.begin_epoch();
    }

    /// Starts a session, whose records can be distinguished from those of others.
    pub(crate) fn begin_session(&mut self) {
        self.superblock.session += 1;
        self.superblock.first = self.log.next_sequence;
        self.log.close();
    }

    /// Starts an epoch, after a change of the counting legs or of the log's shape.
    pub(crate) fn begin_epoch(&mut self) {
        self.superblock.epoch += 1;
        self.superblocks.want(Reason::Epoch);
        self.io.step();
    }

    /// Returns true if the epoch that excludes the last lost leg is durable: order (e).
    pub(crate) fn is_epoch_durable(&self) -> bool {
        self.superblocks.durable.epoch == self.superblock.epoch
            || !self.options.waits.hold(Wait::EpochDurable)
    }

    /// Writes the next version of the superblock if one is wanted, and flushes it. Returns the version if one
    /// has just become durable.
    pub(crate) fn advance_superblocks(&mut self) -> Option<Version> {
        if self.condition.latch().is_some() || self.seal.as_ref().is_some_and(|seal| !seal.is_moving()) {
            return None;
        }
        if let Some(purpose) = self.superblocks.begin_flush() {
            let flushes = self.flush_legs(purpose);
            self.superblocks.pending().into_iter().for_each(|left| *left += flushes);
            return None;
        }
        if let Some(durable) = self.superblocks.end() {
            return self.superblock_durable(durable);
        }
        self.begin_superblock();
        None
    }

    fn begin_superblock(&mut self) {
        let legs = self.superblock.written();
        let Some(reason) = self.superblocks.next() else { return };
        let memory = &self.options.memory;
        let buffers: Option<Vec<_>> = legs.iter().map(|_| memory.take(Bytes(LOG_BLOCK))).collect();
        let Some(buffers) = buffers else { return };
        self.superblock.generation += 1;
        self.superblock.durable = self.log.durable;
        for (leg, mut buffer) in legs.iter().zip(buffers) {
            let slot = self.superblocks.take_slot(leg);
            let places = self.devices.leg(leg).map_or([0, 1, 0, 1], Superblock::places);
            self.superblock.leg = leg as u8;
            self.superblock.encode(&mut buffer);
            let bytes = buffer.freeze();
            for place in [places[slot], places[slot + 2]] {
                let command = self.devices.write_leg(leg, place, reason.write(), bytes.clone());
                self.io.issue(command, Then::Superblock { leg });
            }
            self.figures.leg_written += Bytes(2 * LOG_BLOCK);
        }
        self.superblocks.begin(reason, self.superblock.clone(), 2 * legs.len());
    }

    /// Records that a version of the superblock is durable.
    fn superblock_durable(&mut self, durable: Version) -> Option<Version> {
        self.io.step();
        let before = std::mem::replace(&mut self.superblocks.durable, durable.content.clone());
        // A version whose write failed on a leg still lists that leg as counting. The next one, already
        // requested, does not.
        if !self.is_epoch_durable() && durable.reason != Reason::Epoch {
            self.superblocks.want(durable.reason);
            return None;
        }
        let geometry = durable.content.geometry;
        if geometry != self.log.geometry {
            if before.geometry == geometry {
                self.take_shape();
            } else {
                // The other slot still has the old shape.
                self.superblocks.want(Reason::Epoch);
            }
        }
        Some(durable)
    }

    /// Adopts the log shape of the durable superblocks.
    pub(crate) fn take_shape(&mut self) {
        self.log.geometry = self.superblock.geometry;
        self.log.grows_to = None;
    }
}
