//! Mark on the backing device: what it says of the log that it needs, and when it is changed.
//!
//! The backing device is marked outside of the state machine: an attribute of a file and the last block of a
//! device are no blocks of the cached device. [`Cache::to_mark`](crate::Cache::to_mark) gives the next mark,
//! [`Cache::marked`](crate::Cache::marked) takes the answer.
//!
//! ```text
//!   backing flush ──► mark: session, tail, durable, witnesses     at the opening, when all is drained, every 30 s while the tail advances
//!   at once       ──► mark: session, fewer witnesses              when a leg is lost, or the tail is to pass a witness
//! ```
//!
//! - A log of which the session or the tail is older than the mark is an old copy. So a mark names a tail
//!   once the superblocks with that tail are durable ([`Wait::MarkedTailDurable`]): before, a power cut could
//!   leave the log with the tail before it.
//! - A *witness* is a block of the backing device whose contents the mark states. While it does, nothing is
//!   written there: no write goes past the log, and none is written back before the mark is silent on the
//!   block ([`Wait::WitnessReleased`]). So a witness that has other contents was written by somebody else.
//! - What a mark states of a witness has to be durable there: a mark that states more than the one before
//!   comes after a flush of the backing device ([`Purpose::BackingFlushBeforeMark`]).
//!
//! Between two marks the tail may advance: an old copy of the log that was made in between is not told from
//! the log.

use plumb_block::{LbaRange, Nanos, Op};

use crate::action::{Purpose, Wait};
use crate::core::{Condition, Core};
use crate::format::record::Kind;
use crate::index::Entry;
use crate::seal::Seal;
use crate::settings::{Mark, WITNESSES_MAX};

/// How long after a mark the next one follows if the tail has advanced.
const MARK_EVERY: Nanos = Nanos::secs(30);

/// Marks of the backing device: the one that is there, and the next one.
#[derive(Debug)]
pub(crate) struct Marks {
    /// The mark that is durable.
    pub(crate) durable: Mark,
    /// The mark that is to be written and has not been answered.
    pub(crate) request: Option<Mark>,
    /// Flushes before the next mark that are not completed.
    pub(crate) left: usize,
    /// True if the next mark comes after a flush that was submitted for it.
    is_flushing: bool,
    /// True if no mark was written since the cache was opened.
    is_first: bool,
    /// Witnesses that the tail waits for.
    release: u32,
    /// Witnesses that were written back to since a mark stated them.
    changed: u32,
    /// Discarded witnesses as they are to be marked: see [`Mark::discarded`].
    discarded: u32,
    /// Witnesses that a write past the log may have changed since the last flush for a mark was submitted.
    unflushed: u32,
    /// Time of the last mark that came after a flush.
    written_at: Nanos,
}

impl Marks {
    /// Returns those of a cache that was opened, whose backing device has this mark.
    pub(crate) fn opened(durable: Mark, now: Nanos) -> Self {
        Self {
            durable,
            request: None,
            left: 0,
            is_flushing: false,
            is_first: true,
            release: 0,
            changed: 0,
            discarded: durable.discarded,
            unflushed: u32::MAX,
            written_at: now,
        }
    }

    /// Has the next mark not wait for a flush.
    pub(crate) fn abandon_flush(&mut self) {
        self.is_flushing = false;
    }

    /// Returns the witnesses whose contents the mark on the device may state.
    fn stated(&self) -> u32 {
        self.durable.witnesses | self.request.map_or(0, |request| request.witnesses)
    }
}

impl Core {
    /// Returns whether the backing device names the session that is served, or nobody has it name any.
    pub(crate) fn is_marked(&self) -> bool {
        let Some(seal) = &self.seal else {
            return self.marks.durable.session >= self.superblock.session || self.options.identity.is_none();
        };
        let is_sealed = self.marks.durable.is_sealed || !self.options.waits.hold(Wait::SealMarked);
        is_sealed && seal.is_ready()
    }

    /// Returns whether everything that the tail has passed is named by the mark.
    pub(crate) fn is_tail_marked(&self) -> bool {
        self.options.identity.is_none() || self.marks.durable.tail >= self.tail_to_mark()
    }

    fn tail_to_mark(&self) -> u64 {
        let is_durable = self.seal.is_none() && self.options.waits.hold(Wait::MarkedTailDurable);
        let superblock = if is_durable { &self.superblocks.durable } else { &self.superblock };
        // Records that a sealed log has been marked to have passed never count again.
        superblock.tail.sequence.max(if self.seal.is_some() { self.marks.durable.tail } else { 0 })
    }

    /// Returns the time from which on the tail is to be marked; `None` if it is.
    pub(crate) fn mark_due(&self) -> Option<Nanos> {
        let is_idle = self.marks.request.is_none() && !self.marks.is_flushing && self.seal.is_none();
        (is_idle && !self.is_tail_marked()).then(|| self.marks.written_at.saturating_add(MARK_EVERY))
    }

    /// Asks for the next mark, if there is something new to say; before one that states more than the last,
    /// flushes the backing device.
    pub(crate) fn advance_marks(&mut self) {
        let is_open = self.options.identity.is_some() && self.is_serving();
        if !is_open || self.marks.request.is_some() || self.marks.left > 0 {
            return;
        }
        if self.seal.is_some() {
            return self.advance_sealed_marks();
        }
        let was_flushed = std::mem::take(&mut self.marks.is_flushing);
        let is_urgent = self.superblocks.durable.session > self.marks.durable.session
            || self.marks.durable.witnesses & self.marks.release != 0
            || self.marks.discarded & !self.marks.durable.discarded != 0;
        let is_drained = self.destage.is_draining && self.log.used() == 0 && !self.is_tail_marked();
        let is_due = self.mark_due().is_some_and(|due| is_drained || due <= self.io.now());
        if was_flushed || (is_urgent && !self.marks.is_first) {
            let witnesses = match was_flushed {
                true => self.unchanged() & !self.marks.unflushed,
                false => self.marks.durable.witnesses & !self.marks.release,
            };
            self.marks.changed &= !(witnesses & !self.marks.durable.witnesses);
            self.marks.written_at = if was_flushed { self.io.now() } else { self.marks.written_at };
            self.marks.request = Some(self.mark(witnesses));
            self.io.step();
        } else if is_due || self.marks.is_first {
            self.marks.is_flushing = true;
            self.marks.unflushed = self.witnesses(|core, range| core.writes.is_bypassing(range));
            self.flush(None, Purpose::BackingFlushBeforeMark);
        }
    }

    /// Asks for the next mark of a sealed log, if there is something new to say, which is urgent: it states
    /// no witness, so that everything can be written back and past the log. The mark that names the new log
    /// ends the seal.
    fn advance_sealed_marks(&mut self) {
        let Some(seal) = self.seal.as_ref().filter(|seal| seal.is_ready()) else { return };
        let durable = &self.marks.durable;
        let is_new = match seal.is_moving() {
            true => self.superblocks.durable.session == self.superblock.session,
            false => {
                let is_told = self.marks.discarded & !durable.discarded == 0;
                !durable.is_sealed || durable.witnesses != 0 || !self.is_tail_marked() || !is_told
            }
        };
        if is_new {
            self.marks.request = Some(self.mark(0));
            self.io.step();
        }
    }

    fn mark(&self, witnesses: u32) -> Mark {
        let durable = &self.superblocks.durable;
        let (session, discarded) = (durable.session, self.marks.discarded);
        let mark = Mark {
            session,
            tail: self.tail_to_mark(),
            durable: durable.durable,
            witnesses,
            discarded,
            is_sealed: false,
        };
        let sealed = self.seal.as_ref().filter(|seal| !seal.is_moving());
        sealed.map_or(mark, |seal| seal.seal(Mark { durable: self.log.complete, ..mark }))
    }

    /// Returns the witnesses that keep what they hold until the mark is silent on them: nothing is being
    /// written back to them, and what was is behind the tail.
    fn unchanged(&self) -> u32 {
        let held = self.witnesses(Self::holds);
        let changing = if self.destage.is_writing() { held } else { held & self.marks.changed };
        self.witnesses(|_, _| true) & !changing & !self.marks.discarded
    }

    /// Returns the mark of a cache that has stopped: everything that went past the log is durable.
    pub(crate) fn mark_at_stop(&self) -> Option<Mark> {
        let has_stopped = matches!(self.condition, Condition::Stopped(_)) && !self.options.dry_run;
        has_stopped.then(|| self.mark(self.unchanged()))
    }

    /// Takes note that the backing device has this mark durably, or why it does not take it.
    pub(crate) fn marked(&mut self, mark: Mark, result: Result<(), String>) {
        self.io.step();
        match result {
            Ok(()) => {
                self.marks.request = None;
                self.marks.is_first = false;
                self.marks.durable = mark;
                self.marks.release &= mark.witnesses;
                if self.seal.as_ref().is_some_and(Seal::is_moving) && !mark.is_sealed {
                    self.end_move();
                }
            }
            Err(because) => self.latch_unmarked(&because),
        }
    }

    /// Returns whether the log holds a block of `range`, whether it was destaged or not.
    pub(crate) fn holds(&self, range: LbaRange) -> bool {
        self.index.over(range).next().is_some()
    }

    /// Returns whether `op` on `range` does not go past the log because of a witness: the mark states what
    /// that holds, or cannot state it afterwards.
    pub(crate) fn is_witness(&self, op: Op, range: LbaRange) -> bool {
        let changes = if op == Op::Discard && !self.devices.backing().discard_zeroes {
            u32::MAX
        } else {
            self.marks.stated()
        };
        changes & self.witnesses(|_, witness| witness.overlaps(range)) != 0
    }

    /// Notes that a write goes past the log.
    pub(crate) fn note_bypass(&mut self, range: LbaRange) {
        self.marks.unflushed |= self.witnesses(|_, witness| witness.overlaps(range));
    }

    /// Notes that `range` of the backing device is written back to.
    pub(crate) fn note_destage(&mut self, op: Op, range: LbaRange) {
        self.marks.changed |= self.witnesses(|_, witness| witness.overlaps(range));
        if op == Op::Discard && !self.devices.backing().discard_zeroes {
            self.marks.discarded |= self.witnesses(|_, witness| witness.overlaps(range));
        } else {
            let is_within = |witness: LbaRange| range.lba <= witness.lba && witness.end() <= range.end();
            self.marks.discarded &= !self.witnesses(|_, witness| is_within(witness));
        }
    }

    /// Returns whether the mark is silent on every witness that was written back to, or is to be in a batch
    /// of the segments before `end`; if not, has it be silent.
    pub(crate) fn are_witnesses_released(&mut self, end: u64) -> bool {
        let is_in_batch = |core: &Self, range: LbaRange, is_such: fn(Entry) -> bool| {
            let mut entries = core.index.over(range).filter(|(_, entry)| is_such(**entry));
            entries.any(|(part, entry)| entry.segment(&core.log.geometry, part.lba) < end)
        };
        let written = self.witnesses(|core, range| is_in_batch(core, range, |_| true));
        if !self.devices.backing().discard_zeroes {
            let is_discard = |entry: Entry| entry.kind() == Kind::Discard;
            self.marks.discarded |= self.witnesses(|core, range| is_in_batch(core, range, is_discard));
        }
        let is_silent = self.marks.stated() & (self.marks.changed | written) == 0;
        let is_told = self.marks.discarded & !self.marks.durable.discarded == 0;
        if (is_silent && is_told) || !self.options.waits.hold(Wait::WitnessReleased) {
            return true;
        }
        let release = self.marks.release | self.marks.changed | written;
        if release != self.marks.release {
            self.marks.release = release;
            self.io.step();
        }
        false
    }

    /// Returns the witnesses that are such, one bit for each.
    fn witnesses(&self, is_such: impl Fn(&Self, LbaRange) -> bool) -> u32 {
        let all = self.options.witnesses.iter().take(WITNESSES_MAX).enumerate();
        all.filter(|(_, range)| is_such(self, **range)).fold(0, |bits, (index, _)| bits | 1 << index)
    }
}
