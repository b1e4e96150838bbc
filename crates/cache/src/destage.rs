//! Destaging: the oldest segments, in the order of addresses, merged with their neighbours of any age; then
//! the tail.
//!
//! ```text
//!   leg flush ──► sweep ──► backing flush ┐
//!                           leg flush     ┴──► superblocks with the new tail, flushed ──► segments free
//! ```
//!
//! Only what is durable in the log is destaged: a power cut may leave a block of the backing device that is
//! being written unreadable.
//!
//! The second leg flush makes the successors of overwritten records durable (order (b)). Until the new tail
//! is durable, replay may bring every record back: the index keeps what was destaged (order (c)).

mod sweep;

use std::collections::VecDeque;

use plumb_block::{Bytes, ExtentMap, Lba, LbaRange, Nanos, Outcome};

use crate::action::{Purpose, Wait};
use crate::core::{Condition, Core};
use crate::format::superblock::UNREADABLE_MAX;
use crate::index::Entry;
use crate::io::errno_of;
use crate::pace::Progress;
use crate::settings::Mode;
use crate::superblocks::Reason;

/// How long to wait after a read or write of destaging has failed.
const RETRY: Nanos = Nanos::secs(1);
/// After so long without progress a block that no leg has whole is left out: a fault that passes is no reason
/// to.
const UNREADABLE_AFTER: Nanos = Nanos::secs(5);
/// After so long without progress writes to a full log fail, which would wait for ever.
const STUCK_AFTER: Nanos = Nanos::secs(10);

/// Where destaging is.
#[derive(Debug, Default)]
pub(crate) struct Destage {
    batch: Option<Batch>,
    /// True if to go on until nothing is left.
    pub(crate) is_draining: bool,
    /// After a failure: not before this.
    not_before: Nanos,
    /// True if the backing device was flushed since it was opened, and since a write of it failed.
    is_settled: bool,
    /// Since when nothing but failures has happened, and what failed last.
    pub(crate) failing: Option<(Nanos, String)>,
    /// Where the last run ended.
    reached: Lba,
    /// When the last batch ended.
    ended_at: Nanos,
}

/// A run of blocks that is destaged together: the entries that it had then.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) range: LbaRange,
    pub(crate) pieces: Vec<(LbaRange, Entry)>,
}

/// Segments that are being destaged.
#[derive(Debug)]
struct Batch {
    /// The first segment that is not.
    end: u64,
    /// The first segment of which nothing is destaged, since it may not be durable yet.
    young: u64,
    /// In the order of flushes: what each flush epoch changed, one after another. Otherwise the index is
    /// swept.
    epochs: VecDeque<ExtentMap<Entry>>,
    cursor: Lba,
    /// From where to where the sweep goes: to where the sweep before has come, for all that is known.
    swath: (Lba, Lba),
    /// Before which block a run is near the one before, and how many more may follow that.
    near: (Lba, u32),
    stage: Stage,
    in_flight: usize,
    has_failed: bool,
    /// The last record that the flush of the legs covers.
    covered: u64,
    /// Runs to take out of the index in the end.
    swept: Vec<LbaRange>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The flush of the legs that makes durable what is to be destaged, and that of the backing device after
    /// a failure.
    Begin,
    Sweep,
    /// The flush of the backing device between two flush epochs.
    Between,
    Flush,
    Tail,
}

impl Destage {
    pub(crate) fn is_busy(&self) -> bool {
        self.batch.is_some()
    }

    /// Returns whether a batch may write to the backing device now.
    pub(crate) fn is_writing(&self) -> bool {
        self.batch.as_ref().is_some_and(|batch| batch.stage != Stage::Begin)
    }

    /// Returns how many actions of the batch are not completed.
    pub(crate) fn left(&mut self) -> Option<&mut usize> {
        self.batch.as_mut().map(|batch| &mut batch.in_flight)
    }

    /// Returns true if nothing but failures has happened for so long.
    fn is_failing_for(&self, time: Nanos, now: Nanos) -> bool {
        self.failing.as_ref().is_some_and(|(since, _)| now.since(*since) >= time)
    }

    fn failed(&mut self, now: Nanos, because: String) {
        let since = self.failing.as_ref().map_or(now, |(since, _)| *since);
        self.failing = Some((since, because));
    }

    /// Returns how much of the log is as good as free, in segments: the part of the batch that the sweep has
    /// passed.
    fn passed(&self, tail: u64) -> f64 {
        let Some(batch) = self.batch.as_ref().filter(|batch| batch.epochs.len() <= 1) else { return 0.0 };
        let (from, to) = batch.swath;
        let share = batch.cursor.0.saturating_sub(from.0) as f64 / (to.0 - from.0).max(1) as f64;
        (batch.end - tail) as f64 * share.min(1.0)
    }
}

impl Core {
    /// Returns the share of the log in use, 0 to 1, as writes are to see it: it falls while a batch is being
    /// destaged, and not at its end. So writes come in evenly.
    pub(crate) fn pressure(&self) -> f64 {
        (self.log.used() as f64 - self.destage.passed(self.log.tail)) / self.log.geometry.count() as f64
    }

    /// Returns the progress of destaging: what of the batch the sweep has passed counts as free.
    fn destage_progress(&self) -> Progress {
        let segments = self.log.tail as f64 + self.destage.passed(self.log.tail);
        let freed = segments * self.log.geometry.segment_bytes() as f64;
        Progress { freed, destaged: self.figures.destaged.0 as f64 }
    }

    /// Begins to destage until nothing is left.
    pub(crate) fn begin_drain(&mut self) {
        // The rate measured while destaging gave way says nothing of this.
        if !std::mem::replace(&mut self.destage.is_draining, true) {
            self.pace.destage_rate = 0.0;
        }
    }

    /// Returns the time that destaging everything takes at the present rate; `None` until that is known.
    pub(crate) fn drain_eta(&self) -> Option<Nanos> {
        let geometry = &self.log.geometry;
        let (left, rate) = match self.options.mode {
            // Every version is written.
            Mode::Ordered => (self.log.used() * geometry.segment_bytes(), self.pace.rate),
            _ => (self.index.dirty().data * geometry.logical_block, self.pace.destage_rate),
        };
        (rate > 0.0).then(|| Nanos::from_secs_f64(left as f64 / rate))
    }

    /// Returns when destaging would begin by itself.
    pub(crate) fn destage_due(&self) -> Option<Nanos> {
        if self.destage.batch.is_some() {
            return Some(self.pace.runs_from);
        }
        if self.log.used() == 0 {
            return None;
        }
        if self.destage.not_before > self.io.now() {
            return Some(self.destage.not_before);
        }
        let options = &self.options.destage;
        let oldest = self.log.segments.get(&self.log.tail).map(|segment| segment.opened_at);
        let aged = oldest.map_or(Nanos::ZERO, |at| at.saturating_add(options.age));
        Some(aged.min(self.pace.last_asked.saturating_add(options.idle)))
    }

    pub(crate) fn go_on_with_destaging(&mut self) {
        if !self.is_serving() {
            return;
        }
        if self.destage.batch.is_none() {
            self.begin_batch();
        }
        while self.destage_run() {}
        self.end_stage();
    }

    /// Returns true if nothing more is to be destaged: the server stops, and what is in the log stays there.
    /// Writes that wait for room have to get it.
    fn is_giving_up(&self) -> bool {
        self.condition == Condition::Stopping(false) && self.writes.is_empty()
    }

    fn begin_batch(&mut self) {
        let options = self.options.destage;
        let is_due = self.destage_due().is_some_and(|due| due <= self.io.now());
        let is_asked = self.destage.is_draining || self.log.grows_to.is_some();
        let is_wanted = is_asked || self.log.used_share() >= options.start || is_due;
        if !is_wanted || !self.is_marked() || self.is_giving_up() || self.destage.not_before > self.io.now() {
            return;
        }
        if self.log.used() == 0 {
            if self.log.in_flight.is_empty() && self.writes.is_empty() && self.is_tail_marked() {
                self.destage.is_draining = false;
            }
            return;
        }
        // While something cannot be destaged all else is, so that only that depends on the log.
        let is_held = self.destage.is_failing_for(UNREADABLE_AFTER, self.io.now());
        // Data that is old or has to be drained is not left in the open segment.
        let (is_draining, tail) = (self.destage.is_draining, self.log.tail);
        let is_left =
            |(segment, _)| if segment == tail { is_due || is_draining } else { is_held && is_draining };
        if self.log.open.is_some_and(is_left) {
            self.log.close();
        }
        let (count, segment) = (self.log.geometry.count(), self.log.geometry.segment_bytes());
        let most = if is_held { count } else { self.pace.batch(segment, count) };
        let is_ordered = self.options.mode == Mode::Ordered && self.log.tail >= self.log.ordered_from;
        // Data written before the order counted is destaged separately from later data.
        let before = if is_ordered { u64::MAX } else { self.log.ordered_from };
        let end = self.log.closed_end().min(self.log.tail + most).min(before);
        if end <= self.log.tail {
            return;
        }
        let epochs = if is_ordered { self.epochs(end) } else { VecDeque::new() };
        self.io.step();
        if self.destage.ended_at != self.io.now() {
            self.pace.destaging(self.io.now(), self.destage_progress());
        }
        let waits = self.options.waits.hold(Wait::DurableBeforeDestage);
        let first = self.index.iter().next().map_or(Lba(0), |(range, _)| range.lba);
        let last = if self.destage.reached > first {
            self.destage.reached
        } else {
            Lba(self.devices.backing().blocks())
        };
        let swath = (first, last);
        self.destage.batch = Some(Batch {
            end,
            young: if waits { self.log.closed_end().min(before) } else { u64::MAX },
            epochs,
            cursor: Lba(0),
            swath,
            near: (Lba(0), 0),
            stage: Stage::Begin,
            in_flight: 0,
            has_failed: false,
            covered: if waits { self.log.complete } else { 0 },
            swept: Vec::new(),
        });
        let is_durable = self.flushes.are_legs_durable(&self.log);
        if waits && !is_durable && self.options.mode != Mode::Protected {
            self.flush_legs(Purpose::LogFlushBeforeDestage);
        }
        // A write that failed, in an earlier session too, may land until a flush, and must not land over what
        // is destaged now.
        if !std::mem::replace(&mut self.destage.is_settled, true) {
            self.flush(None, Purpose::BackingFlushBeforeDestage);
        }
    }

    /// Returns the changes of the segments before `end`, by flush epoch; in each the last change counts.
    fn epochs(&self, end: u64) -> VecDeque<ExtentMap<Entry>> {
        let mut epochs = VecDeque::new();
        let mut last = None;
        let segments = self.log.segments.range(self.log.tail..end);
        for (epoch, range, entry) in segments.flat_map(|(_, segment)| &segment.changes) {
            if last != Some(*epoch) {
                last = Some(*epoch);
                epochs.push_back(ExtentMap::default());
            }
            if let Some(map) = epochs.back_mut() {
                map.insert(*range, *entry);
            }
        }
        epochs
    }

    pub(crate) fn destage_completed(&mut self, run: &Run, at: Nanos, outcome: Outcome) {
        if !outcome.is_done() {
            let (LbaRange { lba, nlb }, errno) = (run.range, errno_of(outcome));
            self.destage.is_settled = false;
            return self
                .run_failed(format!("the backing device could not write {nlb} blocks at {lba}: {errno}"));
        }
        let bytes = self.log.geometry.bytes(run.range);
        self.figures.destaged += Bytes(bytes);
        self.figures.destage_writes += 1;
        let now = self.io.now();
        let is_urgent = self.destage.is_draining || self.pace.is_urgent(now, self.pressure());
        self.pace.destaged(at, now, self.destage_progress(), is_urgent);
        self.index.mark_clean(&run.pieces);
        self.destage.left().into_iter().for_each(|left| *left -= 1);
    }

    /// A write of the backing device failed, and may land until that is flushed: what is destaged now might
    /// be beneath it.
    pub(crate) fn unsettle(&mut self) {
        self.destage.is_settled = false;
        if let Some(batch) = &mut self.destage.batch
            && matches!(batch.stage, Stage::Begin | Stage::Sweep | Stage::Between)
        {
            (batch.has_failed, batch.cursor) = (true, Lba(self.devices.backing().blocks()));
        }
    }

    /// Returns true if what is in the log cannot be destaged now.
    pub(crate) fn is_destaging_stuck(&self) -> bool {
        self.destage.is_failing_for(STUCK_AFTER, self.io.now())
    }

    fn run_failed(&mut self, because: String) {
        self.figures.destage_errors += 1;
        self.io.step();
        self.destage.failed(self.io.now(), because);
        if self.superblock.geometry == self.log.geometry {
            // The growth may wait for data that cannot be destaged now.
            self.log.grows_to = None;
        }
        if let Some(batch) = &mut self.destage.batch {
            batch.in_flight -= 1;
            batch.has_failed = true;
        }
    }

    /// Goes from one stage of the batch to the next, if nothing of it is in flight.
    fn end_stage(&mut self) {
        let (blocks, is_epoch_durable) = (self.devices.backing().blocks(), self.may_acknowledge());
        let is_giving_up = self.is_giving_up();
        let Some(batch) = &mut self.destage.batch else { return };
        if batch.in_flight > 0 {
            return;
        }
        match batch.stage {
            Stage::Begin if is_epoch_durable => {
                // In order older versions are written, too, of what is young by now.
                let end = if batch.epochs.is_empty() { batch.young } else { u64::MAX };
                if !self.are_witnesses_released(end) {
                    return;
                }
                let Some(batch) = &mut self.destage.batch else { return };
                batch.stage = Stage::Sweep;
                self.log.durable = self.log.durable.max(batch.covered);
                self.io.step();
            }
            // Everything that can be destaged is destaged before the rest is tried again.
            Stage::Sweep if batch.cursor.0 < blocks => {
                if is_giving_up {
                    self.destage.batch = None;
                    self.io.step();
                }
            }
            Stage::Sweep | Stage::Between if batch.has_failed => self.try_again_later(),
            Stage::Sweep if batch.epochs.len() > 1 => {
                batch.stage = Stage::Between;
                self.flush(None, Purpose::BackingFlushBeforeTail);
            }
            Stage::Sweep => {
                // With the tail to come, what it is to pass has to be durable on the legs, too.
                (batch.stage, batch.covered) = (Stage::Flush, self.log.complete);
                self.flush(None, Purpose::BackingFlushBeforeTail);
                // Everything in a sealed log is durable.
                if self.seal.is_none() {
                    self.flush_legs(Purpose::LogFlushBeforeTail);
                }
            }
            Stage::Between => {
                batch.epochs.pop_front();
                (batch.cursor, batch.stage) = (Lba(0), Stage::Sweep);
                self.io.step();
            }
            Stage::Flush if is_epoch_durable => {
                let end = batch.end;
                // The mark records the discards before the log forgets them.
                if !self.are_witnesses_released(0) {
                    return;
                }
                let Some(batch) = &mut self.destage.batch else { return };
                batch.stage = Stage::Tail;
                self.log.durable = self.log.durable.max(batch.covered);
                if !self.note_unreadable() {
                    return;
                }
                self.superblock.tail = self.log.tail_at(end);
                if self.seal.is_none() {
                    self.superblocks.want(Reason::Tail);
                }
                self.io.step();
                if !self.options.waits.hold(Wait::TailDurable) {
                    self.free_until(end);
                }
            }
            Stage::Begin | Stage::Flush | Stage::Tail => {}
        }
    }

    fn try_again_later(&mut self) {
        self.destage.batch = None;
        self.destage.not_before = self.io.now().saturating_add(RETRY);
        self.io.step();
    }

    /// Has the superblock say what the tail passes and the backing device does not have. What was unreadable
    /// and has been overwritten leaves it only now: before, the overwriting record might have been lost.
    /// Whether there is room for all of it.
    fn note_unreadable(&mut self) -> bool {
        // A sealed log can name none, nor say that one was overwritten.
        let has_sealed = self.seal.is_some() && !self.superblocks.durable.unreadable.is_empty();
        let is_any = !self.unreadable.is_empty() || has_sealed;
        let Some(batch) = self.destage.batch.as_ref().filter(|_| is_any) else {
            return true;
        };
        for range in &batch.swept {
            let readable = self.index.over(*range).filter(|(_, entry)| !entry.is_unreadable());
            readable.for_each(|(range, _)| self.unreadable.remove(range));
        }
        let end = batch.end;
        let ranges: Vec<_> = self.unreadable.iter().map(|(range, ())| range).collect();
        let most = if self.seal.is_some() { 0 } else { UNREADABLE_MAX };
        if ranges.len() > most || has_sealed {
            let count = ranges.len();
            let because = match most {
                0 => format!(
                    "the log could not be read at {count} places on any of its devices, and is not written any more: all else is written back, \
                     and another log cannot take its place"
                ),
                _ => format!(
                    "the log cannot be read at {count} places on any of its devices, and can let go of {most}: write over some of them"
                ),
            };
            self.destage.failed(self.io.now(), because);
            // A batch of the whole log has done what can be done.
            self.destage.is_draining &= end < self.log.next_segment || self.index.dirty().all() > 0;
            self.try_again_later();
            return false;
        }
        self.superblock.unreadable = ranges;
        true
    }

    /// The superblocks with a tail at segment `end` are durable.
    pub(crate) fn free_until(&mut self, end: u64) {
        let Some(batch) = self.destage.batch.take_if(|batch| batch.end == end) else { return };
        self.index.forget(&self.log.geometry, &batch.swept, end);
        self.log.free_until(end);
        self.destage.failing = None;
        self.destage.ended_at = self.io.now();
        self.io.step();
    }
}
