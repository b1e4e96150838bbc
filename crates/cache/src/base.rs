//! [`Base`]: the state that every part of an open cache reads, and the few ways in which several parts change
//! it: flushes of members, copies to a leg, the legs that count, and the superblocks that say so.

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

/// Number of buffers that reads leave to records and superblocks.
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
    /// Superblock as it would be written next.
    pub(crate) superblock: Superblock,
    pub(crate) superblocks: Superblocks,
    pub(crate) index: Index,
    pub(crate) log: Log,
    /// Seal of a log that is no longer written.
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
    /// Serving the requests that came before the end; true if the end is to be clean.
    Stopping(bool),
    Stopped(bool),
    /// Nothing can be written or flushed any more; with the reason.
    Latched(String, Latch),
}

impl Condition {
    /// Returns true if requests are carried out.
    pub(crate) const fn is_serving(&self) -> bool {
        matches!(self, Self::Serving | Self::Stopping(_))
    }

    /// Returns the latch that stopped everything but reads, if there is one.
    pub(crate) const fn latch(&self) -> Option<Latch> {
        if let Self::Latched(_, latch) = self { Some(*latch) } else { None }
    }
}

impl Base {
    /// Returns the state that recovery found. Unless the recovery was only to look, a session is to begin.
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

    /// Flushes a leg or, without one, the backing device.
    pub(crate) fn flush(&mut self, leg: Option<usize>, purpose: Purpose) {
        let (member, count) = match leg {
            Some(leg) => (Member::Leg(leg), &mut self.figures.leg_flushes),
            None => (Member::Backing, &mut self.figures.backing_flushes),
        };
        *count += 1;
        self.io.issue(Command::flush(member, purpose), Then::Flush { leg, purpose });
    }

    /// Flushes the legs that are written. Returns their number.
    pub(crate) fn flush_legs(&mut self, purpose: Purpose) -> usize {
        let legs = self.superblock.written();
        legs.iter().for_each(|leg| self.flush(Some(leg), purpose));
        legs.len()
    }

    /// Returns the legs that segment `segment` is written to.
    pub(crate) fn legs_of(&self, segment: u64) -> LegSet {
        self.superblock.written().iter().filter(|leg| self.log.geometry.is_on(*leg, segment)).collect()
    }

    /// Returns a leg from which segment `segment` can be read, none of `tried`. Another `turn` gives another
    /// leg.
    pub(crate) fn source(&self, segment: u64, tried: &[usize], turn: u64) -> Option<usize> {
        let is_source = |leg: &usize| self.superblock.legs[*leg] == LegState::Live && !tried.contains(leg);
        let legs: LegSet = self.legs_of(segment).iter().filter(is_source).collect();
        let turn = turn.checked_rem(legs.len() as u64)?;
        legs.iter().nth(turn as usize)
    }

    /// Returns true if no other leg has what this one has.
    pub(crate) fn is_last(&self, leg: usize) -> bool {
        self.log.geometry.layout == Layout::Stripe || self.superblock.live().eq([leg])
    }

    /// Sends `command`, which writes to a leg blocks that another has. Their segment is pinned until it
    /// completes.
    pub(crate) fn copy_to(&mut self, copy: Copy, command: Command) {
        self.log.pin(copy.segment);
        self.io.issue(command, Then::Copy(copy));
    }

    /// Returns true if reads leave enough buffers for one more run to be destaged or copied.
    pub(crate) fn has_memory_for_run(&self) -> bool {
        self.options.memory.available() > BUFFERS_LEFT + 2
    }

    /// Returns the entries over `range` whose records recovery could replay, whether they were destaged or
    /// not.
    pub(crate) fn live(&self, range: LbaRange) -> impl Iterator<Item = (LbaRange, Entry)> {
        let found = self.index.over(range).map(|(range, entry)| (range, *entry));
        found.filter(|(range, entry)| self.log.is_live(*entry, range.lba))
    }

    /// Returns true if recovery could replay a record that changes a block of `range`.
    pub(crate) fn holds(&self, range: LbaRange) -> bool {
        self.live(range).next().is_some()
    }

    /// Returns true if a segment that becomes free can still be read: its place in the ring stays the same,
    /// and every leg that is read has it.
    pub(crate) fn keeps_freed(&self) -> bool {
        let is_copying = self.superblock.legs.contains(&LegState::Resilvering);
        self.seal.is_none() && self.log.grows_to.is_none() && !is_copying
    }

    /// Takes entries that no read finds any more out of the index. Since that is a look at every entry, an
    /// eighth of the log has to have been used again since the last time.
    pub(crate) fn forget_freed(&mut self) {
        let log = &mut self.log;
        let step = (log.geometry.count() / 8).max(1);
        if log.kept_from >= log.indexed_from + step {
            log.indexed_from = log.kept_from;
            self.index.forget(&log.geometry, EVERYWHERE, log.kept_from);
        }
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
        self.io.step();
    }

    /// Returns true if the epoch that excludes the last leg that was lost is durable: order (e).
    pub(crate) fn is_epoch_durable(&self) -> bool {
        self.superblocks.durable.epoch == self.superblock.epoch
            || !self.options.waits.hold(Wait::EpochDurable)
    }

    /// Writes the next version of the superblock, if one is wanted; flushes after it. Returns the version
    /// that has become durable, if that is now.
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

    /// Takes note that a version of the superblock is durable.
    fn superblock_durable(&mut self, durable: Version) -> Option<Version> {
        self.io.step();
        let before = std::mem::replace(&mut self.superblocks.durable, durable.content.clone());
        // A version that a leg has failed to take says of that leg that it counts: the next one, which is
        // wanted by now, does not.
        if !self.is_epoch_durable() && durable.reason != Reason::Epoch {
            self.superblocks.want(durable.reason);
            return None;
        }
        let geometry = durable.content.geometry;
        if geometry != self.log.geometry {
            if before.geometry == geometry {
                self.take_shape();
            } else {
                // The other slot has the old shape still.
                self.superblocks.want(Reason::Epoch);
            }
        }
        Some(durable)
    }

    /// Uses the shape of the log that the superblocks have.
    pub(crate) fn take_shape(&mut self) {
        self.log.geometry = self.superblock.geometry;
        self.log.grows_to = None;
    }
}
