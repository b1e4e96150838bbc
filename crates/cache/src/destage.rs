//! Destaging: the oldest segments, in the order of addresses, merged with their neighbours of any age; then the tail.
//!
//! ```text
//!   leg flush ──► sweep ──► backing flush ┐
//!                           leg flush     ┴──► superblocks with the new tail, flushed ──► segments free
//! ```
//!
//! Only what is durable in the log is destaged: a power cut may leave a block of the backing device that is being written unreadable.
//!
//! The second leg flush makes the successors of overwritten records durable (order (b)). Until the new tail is durable, replay may bring
//! every record back: the index keeps what was destaged (order (c)).

mod sweep;

use std::collections::VecDeque;

use plumb_block::{Bytes, ExtentMap, Lba, LbaRange, Nanos, Outcome};

use crate::action::{Member, Purpose, Wait};
use crate::core::{Condition, Core, Then};
use crate::index::{self, Entry};
use crate::io::errno_of;
use crate::settings::Mode;
use crate::superblocks::Reason;

/// How long to wait after a read or write of destaging has failed.
const RETRY: Nanos = Nanos::secs(1);
/// How much of the log is destaged at a time: one segment in so many.
const BATCHES: u64 = 32;

/// Where destaging is.
#[derive(Debug, Default)]
pub(crate) struct Destage {
    batch: Option<Batch>,
    /// Whether to go on until nothing is left.
    pub(crate) is_draining: bool,
    /// After a failure: not before this.
    not_before: Nanos,
    /// Whether the backing device was flushed since it was opened, and since a write of it failed.
    is_settled: bool,
    /// What failed last.
    pub(crate) error: Option<String>,
    /// Where the last run ended.
    reached: Lba,
}

/// Segments that are being destaged.
#[derive(Debug)]
struct Batch {
    /// The first segment that is not.
    end: u64,
    /// The first segment of which nothing is destaged, since it may not be durable yet.
    young: u64,
    /// In the order of flushes: what each flush epoch changed, one after another. Otherwise the index is swept.
    epochs: VecDeque<ExtentMap<Entry>>,
    cursor: Lba,
    /// From where to where the sweep goes: to where the sweep before has come, for all that is known.
    swath: (Lba, Lba),
    /// Before which block a run is near the one before, and how many more may follow that.
    near: (Lba, u32),
    stage: Stage,
    in_flight: u32,
    has_failed: bool,
    /// The last record that the flush of the legs covers.
    covered: u64,
    /// What to take out of the index in the end.
    swept: Vec<LbaRange>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The flush of the legs that makes durable what is to be destaged, and that of the backing device after a failure.
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

    /// How much of the log is as good as free, in segments: the part of the batch that the sweep has passed.
    fn passed(&self, tail: u64) -> f64 {
        let Some(batch) = self.batch.as_ref().filter(|batch| batch.epochs.len() <= 1) else { return 0.0 };
        let (from, to) = batch.swath;
        let share = batch.cursor.0.saturating_sub(from.0) as f64 / (to.0 - from.0).max(1) as f64;
        (batch.end - tail) as f64 * share.min(1.0)
    }
}

impl Core {
    /// The share of the log in use, 0 to 1, as writes are to see it: it falls while a batch is being destaged, and not at its end. So
    /// writes come in evenly.
    pub(crate) fn pressure(&self) -> f64 {
        (self.log.used() as f64 - self.destage.passed(self.log.tail)) / self.log.geometry.count() as f64
    }

    /// When destaging would begin by itself.
    pub(crate) fn destage_due(&self) -> Option<Nanos> {
        if self.destage.batch.is_some() {
            return Some(self.pace.runs_from());
        }
        if self.log.used() == 0 {
            return None;
        }
        if self.destage.not_before > self.io.now {
            return Some(self.destage.not_before);
        }
        let options = &self.io.options.destage;
        let oldest = self.log.segments.get(&self.log.tail).map(|segment| segment.opened_at);
        let aged = oldest.map_or(Nanos::ZERO, |at| at.saturating_add(options.age));
        Some(aged.min(self.pace.last_asked().saturating_add(options.idle)))
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

    /// Whether nothing more is to be destaged: the server stops, and what is in the log stays there. Writes that wait for room have to
    /// get it.
    fn is_giving_up(&self) -> bool {
        self.condition == Condition::Stopping(false) && self.writes.is_empty()
    }

    fn begin_batch(&mut self) {
        let options = self.io.options.destage;
        let is_due = self.destage_due().is_some_and(|due| due <= self.io.now);
        let is_asked = self.destage.is_draining || self.log.grows_to.is_some();
        let is_wanted = is_asked || self.log.used_share() >= options.start || is_due;
        if !is_wanted || self.is_giving_up() || self.destage.not_before > self.io.now {
            return;
        }
        if self.log.used() == 0 {
            if self.log.in_flight.is_empty() && self.writes.is_empty() {
                self.destage.is_draining = false;
            }
            return;
        }
        // What is old or has to be drained is not left in the open segment.
        if (is_due || self.destage.is_draining) && self.log.closed_end() == self.log.tail {
            self.log.close();
        }
        let most = (self.log.geometry.count() / BATCHES).max(1);
        let is_ordered = self.io.options.mode == Mode::Ordered && self.log.tail >= self.log.ordered_from;
        // What was written before the order counted is destaged apart from what came after.
        let before = if is_ordered { u64::MAX } else { self.log.ordered_from };
        let end = self.log.closed_end().min(self.log.tail + most).min(before);
        if end <= self.log.tail {
            return;
        }
        let epochs = if is_ordered { self.epochs(end) } else { VecDeque::new() };
        self.io.steps += 1;
        self.pace.destaging(self.io.now);
        let waits = self.io.options.waits.hold(Wait::DurableBeforeDestage);
        let first = self.index.iter().next().map_or(Lba(0), |(range, _)| range.lba);
        let last =
            if self.destage.reached > first { self.destage.reached } else { Lba(self.io.backing.blocks()) };
        let swath = (first, last);
        self.destage.batch = Some(Batch {
            end,
            young: if waits { self.log.closed_end() } else { u64::MAX },
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
        let is_durable = self.log.durable >= self.log.complete && !self.flushes.legs_due;
        let mut awaited = 0;
        if waits && !is_durable && self.io.options.mode != Mode::Protected {
            awaited += self.flush_legs(Purpose::LogFlushBeforeDestage, true);
        }
        // A write that failed, in an earlier session too, may land until a flush, and must not land over what is destaged now.
        if !std::mem::replace(&mut self.destage.is_settled, true) {
            awaited += self.flush_backing(Purpose::BackingFlushBeforeDestage, waits);
        }
        if let Some(batch) = &mut self.destage.batch {
            batch.in_flight = awaited;
        }
    }

    /// What the segments before `end` changed, by flush epoch; in each the last change counts.
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

    pub(crate) fn destage_completed(
        &mut self,
        range: LbaRange,
        pieces: &[(LbaRange, Entry)],
        (at, outcome): (Nanos, Outcome),
    ) {
        if !outcome.is_done() {
            let (lba, errno) = (range.lba, errno_of(outcome));
            self.destage.is_settled = false;
            self.run_failed(format!(
                "the backing device could not write {} blocks at {lba}: {errno}",
                range.nlb
            ));
            return;
        }
        let bytes = self.log.geometry.bytes(range);
        self.figures.destaged += Bytes(bytes);
        self.figures.destage_writes += 1;
        let now = self.io.now;
        let is_urgent = self.destage.is_draining || self.pace.is_urgent(now, self.log.used_share());
        self.pace.destaged(bytes, (at, now), is_urgent);
        index::mark_clean(&mut self.index, pieces);
        if let Some(batch) = &mut self.destage.batch {
            batch.in_flight -= 1;
        }
    }

    /// Whether what is in the log cannot be destaged now.
    pub(crate) fn is_destaging_stuck(&self) -> bool {
        self.destage.error.is_some() && self.destage.batch.is_none()
    }

    fn run_failed(&mut self, because: String) {
        self.figures.destage_errors += 1;
        self.io.steps += 1;
        self.destage.error = Some(because);
        if self.superblock.geometry == self.log.geometry {
            // It may wait for what cannot be destaged now.
            self.log.grows_to = None;
        }
        if let Some(batch) = &mut self.destage.batch {
            batch.in_flight -= 1;
            batch.has_failed = true;
        }
    }

    /// Goes from one stage of the batch to the next, if nothing of it is in flight.
    fn end_stage(&mut self) {
        let (blocks, is_epoch_durable) = (self.io.backing.blocks(), self.is_epoch_durable());
        let is_giving_up = self.is_giving_up();
        let Some(batch) = &mut self.destage.batch else { return };
        if batch.in_flight > 0 {
            return;
        }
        match batch.stage {
            Stage::Begin if is_epoch_durable => {
                batch.stage = Stage::Sweep;
                self.log.durable = self.log.durable.max(batch.covered);
                self.io.steps += 1;
            }
            Stage::Sweep if batch.has_failed => {
                self.destage.batch = None;
                self.destage.not_before = self.io.now.saturating_add(RETRY);
                self.io.steps += 1;
            }
            Stage::Sweep if batch.cursor.0 < blocks => {
                if is_giving_up {
                    self.destage.batch = None;
                    self.io.steps += 1;
                }
            }
            Stage::Sweep if batch.epochs.len() > 1 => {
                batch.stage = Stage::Between;
                self.flush_batch(Purpose::BackingFlushBeforeTail, false);
            }
            Stage::Sweep => {
                batch.stage = Stage::Flush;
                self.flush_batch(Purpose::BackingFlushBeforeTail, true);
            }
            Stage::Between => {
                batch.epochs.pop_front();
                (batch.cursor, batch.stage) = (Lba(0), Stage::Sweep);
                self.io.steps += 1;
            }
            Stage::Flush if is_epoch_durable => {
                let end = batch.end;
                batch.stage = Stage::Tail;
                self.log.durable = self.log.durable.max(batch.covered);
                self.superblock.tail = self.log.tail_at(end);
                self.superblocks.want(Reason::Tail);
                self.io.steps += 1;
                if !self.io.options.waits.hold(Wait::TailDurable) {
                    self.free_until(end);
                }
            }
            Stage::Begin | Stage::Flush | Stage::Tail => {}
        }
    }

    /// Flushes what the tail is to pass: the backing device and, with the tail to come, the legs.
    fn flush_batch(&mut self, purpose: Purpose, is_last: bool) {
        let waits = self.io.options.waits;
        let mut awaited = self.flush_backing(purpose, waits.hold(Wait::BackingDurable));
        if is_last {
            let is_awaited = waits.hold(Wait::SuccessorsDurable);
            awaited += self.flush_legs(Purpose::LogFlushBeforeTail, is_awaited);
        }
        if let Some(batch) = &mut self.destage.batch {
            batch.in_flight = awaited;
            batch.covered = self.log.complete;
        }
    }

    /// Flushes the backing device for the batch; how many flushes it waits for.
    fn flush_backing(&mut self, purpose: Purpose, is_awaited: bool) -> u32 {
        self.io.flush((Member::Backing, purpose), Then::BatchFlush { leg: None, is_awaited });
        self.figures.backing_flushes += 1;
        u32::from(is_awaited)
    }

    /// Flushes the legs for the batch; how many flushes it waits for.
    fn flush_legs(&mut self, purpose: Purpose, is_awaited: bool) -> u32 {
        let legs = self.legs_written();
        self.figures.leg_flushes += legs.len() as u64;
        for leg in &legs {
            let then = Then::BatchFlush { leg: Some(*leg), is_awaited };
            self.io.flush((Member::Leg(*leg), purpose), then);
        }
        if is_awaited { legs.len() as u32 } else { 0 }
    }

    pub(crate) fn batch_flush_completed(&mut self, leg: Option<usize>, is_awaited: bool, outcome: Outcome) {
        match leg {
            _ if outcome.is_done() => {}
            Some(leg) => self.lose_leg(leg, "failed a flush", outcome),
            None => {
                // Nobody can tell what of all that was destaged since the flush before is on the device. The log has it still.
                self.latch(
                    "the backing device failed a flush: open the cache again once it is well, the log has what was destaged".to_owned(),
                    errno_of(outcome),
                );
            }
        }
        if let Some(batch) = self.destage.batch.as_mut().filter(|_| is_awaited) {
            batch.in_flight -= 1;
        }
    }

    /// The superblocks with this tail are durable.
    pub(crate) fn tail_durable(&mut self, tail: crate::format::superblock::Tail) {
        self.free_until(tail.segment);
    }

    fn free_until(&mut self, end: u64) {
        let Some(batch) = self.destage.batch.take_if(|batch| batch.end == end) else { return };
        index::forget(&mut self.index, &self.log.geometry, &batch.swept, end);
        self.log.free_until(end);
        self.destage.error = None;
        self.io.steps += 1;
    }
}
