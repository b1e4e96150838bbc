//! The mark on the backing device: its statement about the log that it needs, and when it changes.
//!
//! Marks are written outside of the state machine, because an attribute of a file and the last block of a
//! device are not part of the cached device. [`Cache::to_mark`](crate::Cache::to_mark) returns the next mark,
//! and [`Cache::marked`](crate::Cache::marked) reports the result.
//!
//! ```text
//!   backing flush ──► mark: session, tail, durable, witnesses     at the opening, when all is drained, every 30 s while the tail advances
//!   at once       ──► mark: session, fewer witnesses              when a leg is lost, or the tail is to pass a witness
//! ```
//!
//! - A log whose session or tail is older than the mark is an old copy. So a mark names a tail only once the
//!   superblocks with it are durable ([`Wait::MarkedTailDurable`]): otherwise a power cut could leave the log
//!   with the previous tail.
//! - A *witness* is a block of the backing device whose contents the mark states. While it does, nothing is
//!   written there: no write bypasses the log, and none is written back before a mark omits the block
//!   ([`Wait::WitnessReleased`]). So a witness with other contents was written by somebody else.
//! - The stated contents of a witness must be durable: a mark that states more than the previous one follows
//!   a flush of the backing device ([`Purpose::BackingFlushBeforeMark`]).
//!
//! Limitation: between two marks the tail may advance, so an old copy of the log made in between is not
//! detected.

use plumb_block::{LbaRange, Nanos, Op};

use crate::action::{Purpose, Wait};
use crate::base::{Base, Condition};
use crate::format::record::Kind;
use crate::index::Entry;
use crate::settings::{Mark, WITNESSES_MAX};

/// Interval between marks while the tail advances.
const MARK_EVERY: Nanos = Nanos::secs(30);

/// State of the marks: the current one, and the next one.
#[derive(Debug)]
pub(crate) struct Marks {
    pub(crate) durable: Mark,
    /// Mark to be written, until it is answered.
    pub(crate) request: Option<Mark>,
    /// Number of incomplete flushes before the next mark.
    pub(crate) left: usize,
    /// True if the next mark follows a flush submitted for it.
    is_flushing: bool,
    /// True if a mark is due unconditionally: the first one, or one with other witnesses.
    is_first: bool,
    /// True if marks must not state witnesses, because these are about to change.
    is_silent: bool,
    /// Witnesses that the tail waits for.
    release: u32,
    /// Witnesses written back to since a mark stated them.
    changed: u32,
    /// Discarded witnesses for the next mark: see [`Mark::discarded`].
    discarded: u32,
    /// Witnesses that a bypassing write may have changed since the last submitted flush for a mark.
    unflushed: u32,
    /// Time of the last mark that followed a flush.
    written_at: Nanos,
}

/// State of destaging that matters to marks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DestageState {
    /// True if everything is being destaged.
    pub(crate) is_draining: bool,
    /// True if a batch may be writing to the backing device.
    pub(crate) is_writing: bool,
}

impl Marks {
    /// Creates the state of an opened cache, whose backing device has this mark.
    pub(crate) fn opened(durable: Mark, now: Nanos) -> Self {
        Self {
            durable,
            request: None,
            left: 0,
            is_flushing: false,
            is_first: true,
            is_silent: false,
            release: 0,
            changed: 0,
            discarded: durable.discarded,
            unflushed: u32::MAX,
            written_at: now,
        }
    }

    /// Makes marks omit all witnesses until [`speak`](Self::speak).
    pub(crate) fn silence(&mut self) {
        self.is_silent = true;
    }

    /// Returns true if the mark on the device states no witness, and no mark that does is being written.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_silent && self.stated() == 0 && self.request.is_none() && self.left == 0
    }

    /// Makes marks state witnesses again, treating all of them as unknown.
    pub(crate) fn speak(&mut self) {
        (self.is_silent, self.is_flushing, self.is_first) = (false, false, true);
        (self.changed, self.unflushed) = (u32::MAX, u32::MAX);
    }

    /// Replaces the witnesses. One at a new position may have been discarded.
    pub(crate) fn take_witnesses(&mut self, base: &mut Base, witnesses: Vec<LbaRange>) {
        let before = std::mem::replace(&mut base.options.witnesses, witnesses);
        let stays = |(index, range): (usize, &LbaRange)| (before.get(index) == Some(range)).then_some(index);
        let staying = base.options.witnesses.iter().take(WITNESSES_MAX).enumerate().filter_map(stays);
        let moved = staying.fold(u32::MAX, |moved, index| moved & !(1 << index));
        let backing = base.devices.backing();
        let may_be_discarded = backing.discard_max.0 > 0 && !backing.discard_zeroes;
        self.discarded = if may_be_discarded { self.discarded | moved } else { 0 };
        self.speak();
    }

    /// Cancels the flush before the next mark.
    pub(crate) fn abandon_flush(&mut self) {
        self.is_flushing = false;
    }

    /// Returns the witnesses that the mark on the device may state.
    fn stated(&self) -> u32 {
        self.durable.witnesses | self.request.map_or(0, |request| request.witnesses)
    }

    /// Returns true if the mark names the current session, or marks are not used.
    pub(crate) fn is_marked(&self, base: &Base) -> bool {
        let Some(seal) = &base.seal else {
            return self.durable.session >= base.superblock.session || base.options.identity.is_none();
        };
        let is_sealed = self.durable.is_sealed || !base.options.waits.hold(Wait::SealMarked);
        is_sealed && seal.is_ready()
    }

    /// Returns true if requests may be acknowledged: order (e) holds, and the mark names the session if marks
    /// are used.
    pub(crate) fn may_acknowledge(&self, base: &Base) -> bool {
        (base.seal.is_some() || base.is_epoch_durable()) && self.is_marked(base)
    }

    /// Returns true if the mark covers everything that the tail has passed.
    pub(crate) fn is_tail_marked(&self, base: &Base) -> bool {
        base.options.identity.is_none() || self.durable.tail >= self.tail_to_mark(base)
    }

    fn tail_to_mark(&self, base: &Base) -> u64 {
        let is_durable = base.seal.is_none() && base.options.waits.hold(Wait::MarkedTailDurable);
        let superblock = if is_durable { &base.superblocks.durable } else { &base.superblock };
        // Records before the marked tail of a sealed log never count again.
        superblock.tail.sequence.max(if base.seal.is_some() { self.durable.tail } else { 0 })
    }

    /// Returns the time from which the tail should be marked; `None` if it is marked, or a mark is under way.
    pub(crate) fn due(&self, base: &Base) -> Option<Nanos> {
        let is_idle = self.request.is_none() && !self.is_flushing && base.seal.is_none();
        (is_idle && !self.is_tail_marked(base)).then(|| self.written_at.saturating_add(MARK_EVERY))
    }

    /// Requests the next mark if there is news; flushes the backing device first if the mark states more than
    /// the last one.
    pub(crate) fn advance(
        &mut self,
        base: &mut Base,
        destaging: DestageState,
        is_bypassing: impl Fn(LbaRange) -> bool,
    ) {
        let is_open = base.options.identity.is_some() && base.condition.is_serving();
        if !is_open || self.request.is_some() || self.left > 0 {
            return;
        }
        if base.seal.is_some() {
            return self.advance_sealed(base);
        }
        let was_flushed = std::mem::take(&mut self.is_flushing);
        let is_urgent = base.superblocks.durable.session > self.durable.session
            || self.durable.witnesses & self.release != 0
            || (self.is_silent && self.durable.witnesses != 0)
            || self.discarded & !self.durable.discarded != 0;
        let is_drained = destaging.is_draining && base.log.used() == 0 && !self.is_tail_marked(base);
        let is_due = self.due(base).is_some_and(|due| is_drained || due <= base.io.now());
        if was_flushed || (is_urgent && !self.is_first) {
            let witnesses = match was_flushed {
                _ if self.is_silent => 0,
                true => self.unchanged(base, destaging) & !self.unflushed,
                false => self.durable.witnesses & !self.release,
            };
            self.changed &= !(witnesses & !self.durable.witnesses);
            self.written_at = if was_flushed { base.io.now() } else { self.written_at };
            self.request = Some(self.next_mark(base, witnesses));
            base.io.step();
        } else if is_due || self.is_first {
            self.is_flushing = true;
            self.unflushed = witnesses(base, is_bypassing);
            base.flush(None, Purpose::BackingFlushBeforeMark);
            self.left += 1;
        }
    }

    /// Requests the next mark of a sealed log if there is news. It is urgent, and states no witness, so that
    /// everything can be written back and bypass the log. The mark that names a new log ends the seal.
    fn advance_sealed(&mut self, base: &mut Base) {
        let Some(seal) = base.seal.as_ref().filter(|seal| seal.is_ready()) else { return };
        let durable = &self.durable;
        let is_new = match seal.is_moving() {
            true => base.superblocks.durable.session == base.superblock.session,
            false => {
                let is_told = self.discarded & !durable.discarded == 0;
                !durable.is_sealed || durable.witnesses != 0 || !self.is_tail_marked(base) || !is_told
            }
        };
        if is_new {
            self.request = Some(self.next_mark(base, 0));
            base.io.step();
        }
    }

    fn next_mark(&self, base: &Base, witnesses: u32) -> Mark {
        let durable = &base.superblocks.durable;
        let (session, discarded) = (durable.session, self.discarded);
        let mark = Mark {
            session,
            tail: self.tail_to_mark(base),
            durable: durable.durable,
            witnesses,
            discarded,
            is_sealed: false,
        };
        let sealed = base.seal.as_ref().filter(|seal| !seal.is_moving());
        sealed.map_or(mark, |seal| seal.seal(Mark { durable: base.log.complete, ..mark }))
    }

    /// Returns the witnesses that stay unchanged until a mark omits them: none is being written back to, and
    /// earlier write-backs are behind the tail.
    fn unchanged(&self, base: &Base, destaging: DestageState) -> u32 {
        let held = witnesses(base, |range| base.holds(range));
        let changing = if destaging.is_writing { held } else { held & self.changed };
        witnesses(base, |_| true) & !changing & !self.discarded
    }

    /// Returns the mark of a stopped cache, for which all bypassing writes are durable.
    pub(crate) fn at_stop(&self, base: &Base, destaging: DestageState) -> Option<Mark> {
        let has_stopped = matches!(base.condition, Condition::Stopped(_)) && !base.options.dry_run;
        has_stopped.then(|| self.next_mark(base, self.unchanged(base, destaging)))
    }

    /// Records that the backing device has this mark durably.
    pub(crate) fn written(&mut self, mark: Mark) {
        self.request = None;
        self.is_first = false;
        self.durable = mark;
        self.release &= mark.witnesses;
    }

    /// Returns true if `op` on `range` must not bypass the log because of a witness whose contents the mark
    /// states, or could not state afterwards.
    pub(crate) fn is_witness(&self, base: &Base, op: Op, range: LbaRange) -> bool {
        let changes = if op == Op::Discard && !base.devices.backing().discard_zeroes {
            u32::MAX
        } else {
            self.stated()
        };
        changes & witnesses(base, |witness| witness.overlaps(range)) != 0
    }

    /// Records a bypassing write.
    pub(crate) fn note_bypass(&mut self, base: &Base, range: LbaRange) {
        self.unflushed |= witnesses(base, |witness| witness.overlaps(range));
    }

    /// Records that `range` of the backing device is written back to.
    pub(crate) fn note_destage(&mut self, base: &Base, op: Op, range: LbaRange) {
        self.changed |= witnesses(base, |witness| witness.overlaps(range));
        if op == Op::Discard && !base.devices.backing().discard_zeroes {
            self.discarded |= witnesses(base, |witness| witness.overlaps(range));
        } else {
            let is_within = |witness: LbaRange| range.lba <= witness.lba && witness.end() <= range.end();
            self.discarded &= !witnesses(base, is_within);
        }
    }

    /// Returns true if the mark omits every witness that was written back to, or will be in a batch of the
    /// segments before `end`. Otherwise requests a mark that omits them.
    pub(crate) fn are_witnesses_released(&mut self, base: &mut Base, end: u64) -> bool {
        let is_in_batch = |range: LbaRange, is_such: fn(Entry) -> bool| {
            let mut entries = base.live(range).filter(|(_, entry)| is_such(*entry));
            entries.any(|(part, entry)| entry.segment(&base.log.geometry, part.lba) < end)
        };
        let written = witnesses(base, |range| is_in_batch(range, |_| true));
        if !base.devices.backing().discard_zeroes {
            let is_discard = |entry: Entry| entry.kind() == Kind::Discard;
            self.discarded |= witnesses(base, |range| is_in_batch(range, is_discard));
        }
        let is_silent = self.stated() & (self.changed | written) == 0;
        let is_told = self.discarded & !self.durable.discarded == 0;
        if (is_silent && is_told) || !base.options.waits.hold(Wait::WitnessReleased) {
            return true;
        }
        let release = self.release | self.changed | written;
        if release != self.release {
            self.release = release;
            base.io.step();
        }
        false
    }
}

/// Returns the witnesses that satisfy `is_such`, one bit for each.
fn witnesses(base: &Base, is_such: impl Fn(LbaRange) -> bool) -> u32 {
    let all = base.options.witnesses.iter().take(WITNESSES_MAX).enumerate();
    all.filter(|(_, range)| is_such(**range)).fold(0, |bits, (index, _)| bits | 1 << index)
}
