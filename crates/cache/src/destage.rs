//! Destaging: the oldest segments in order of addresses, merged with neighbours of any age; then the tail
//! advances.
//!
//! ```text
//!   leg flush ──► sweep ──► backing flush ┐
//!                           leg flush     ┴──► superblocks with the new tail, flushed ──► segments free
//! ```
//!
//! Only data that is durable in the log is destaged: a power cut may leave a block of the backing device
//! unreadable if it is being written.
//!
//! The second flush of the legs makes the successors of overwritten records durable (order (b)). Until the
//! new tail is durable, replay may restore any record, so the index keeps destaged entries (order (c)).

mod sweep;

use std::collections::VecDeque;

use plumb_block::{Bytes, ExtentMap, Lba, LbaRange, Nanos, Outcome};

use crate::action::{Purpose, Wait, Waits};
use crate::base::{Base, Condition, EVERYWHERE};
use crate::continuation::Run;
use crate::flush::Flushes;
use crate::format::superblock::UNREADABLE_MAX;
use crate::gather::Gathers;
use crate::index::{Entry, Index};
use crate::io::errno_of;
use crate::mark::{DestageState, Marks};
use crate::pace::Progress;
use crate::settings::Mode;
use crate::superblocks::Reason;

/// Pause after a failed read or write of destaging.
const RETRY: Nanos = Nanos::secs(1);
/// Time without progress after which an unreadable block is given up; a transient fault must not lose it.
const UNREADABLE_AFTER: Nanos = Nanos::secs(5);
/// Time without progress after which writes to a full log fail instead of waiting.
const STUCK_AFTER: Nanos = Nanos::secs(10);

/// State of destaging.
#[derive(Debug, Default)]
pub(crate) struct Destage {
    batch: Option<Batch>,
    /// True while destaging until the log is empty.
    pub(crate) is_draining: bool,
    /// Segment up to which destaging continues, for a backing device that rests between batches.
    empties_to: u64,
    /// Earliest time of the next attempt after a failure.
    not_before: Nanos,
    /// True if the backing device was flushed since it was opened, and since the last failed write.
    is_settled: bool,
    /// Start of the current series of failures, and the latest failure.
    pub(crate) failing: Option<(Nanos, String)>,
    /// End of the last run.
    reached: Lba,
    /// End of the last batch.
    ended_at: Nanos,
    /// Blocks given up because no leg had them intact; some may have been overwritten since.
    unreadable: ExtentMap<()>,
}

/// State of writes that matters to destaging.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteState {
    /// True if a write is unanswered.
    pub(crate) is_any: bool,
    /// True if the log received data above a bypassing write that is still in flight. Nothing is destaged
    /// meanwhile, because it would be undefined which of the two remains.
    pub(crate) is_beneath: bool,
}

/// Segments being destaged.
#[derive(Debug)]
struct Batch {
    /// First segment after the batch.
    end: u64,
    /// First segment from which nothing is destaged, since it may not be durable yet.
    young: u64,
    /// Changes by flush epoch, in order. If empty, the index is swept.
    epochs: VecDeque<ExtentMap<Entry>>,
    cursor: Lba,
    /// Expected range of the sweep: from the first live block to the end of the previous run, if that is
    /// beyond it.
    swath: (Lba, Lba),
    /// Block below which a run counts as near the previous one, and the number of such runs still allowed.
    near: (Lba, u32),
    stage: Stage,
    in_flight: usize,
    has_failed: bool,
    /// Last record covered by the flush of the legs.
    covered: u64,
    /// Runs that are on the backing device when the batch ends.
    swept: Vec<LbaRange>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Flush of the legs to make the data durable that will be destaged, and of the backing device after a
    /// failure.
    Begin,
    Sweep,
    /// Flush of the backing device between two flush epochs.
    Between,
    Flush,
    Tail,
}

impl Destage {
    /// Creates the state for an opened log in which the blocks of `unreadable` are given up.
    pub(crate) fn new(unreadable: &[LbaRange]) -> Self {
        let mut destage = Self::default();
        unreadable.iter().for_each(|range| destage.unreadable.insert(*range, ()));
        destage
    }

    /// Returns the blocks that are given up and have not been overwritten.
    pub(crate) fn unreadable_now(&self, index: &Index) -> Vec<LbaRange> {
        let left_out = self.unreadable.iter().flat_map(|(range, ())| index.over(range));
        left_out.filter(|(_, entry)| entry.is_unreadable()).map(|(range, _)| range).collect()
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.batch.is_some()
    }

    /// Returns the state for marks: a batch in its first stage does not write to the backing device yet.
    pub(crate) fn state(&self) -> DestageState {
        let is_writing = self.batch.as_ref().is_some_and(|batch| batch.stage != Stage::Begin);
        DestageState { is_draining: self.is_draining, is_writing }
    }

    /// Returns the counter of the batch's pending actions.
    fn pending(&mut self) -> Option<&mut usize> {
        self.batch.as_mut().map(|batch| &mut batch.in_flight)
    }

    /// Returns true if there have been only failures for this long.
    fn is_failing_for(&self, time: Nanos, now: Nanos) -> bool {
        self.failing.as_ref().is_some_and(|(since, _)| now.since(*since) >= time)
    }

    fn failed(&mut self, now: Nanos, because: String) {
        let since = self.failing.as_ref().map_or(now, |(since, _)| *since);
        self.failing = Some((since, because));
    }

    /// Returns the amount of the log, in segments, that is about to become free: the part of the batch behind
    /// the sweep.
    fn passed(&self, tail: u64) -> f64 {
        let Some(batch) = self.batch.as_ref().filter(|batch| batch.epochs.len() <= 1) else { return 0.0 };
        let (from, to) = batch.swath;
        let share = batch.cursor.0.saturating_sub(from.0) as f64 / (to.0 - from.0).max(1) as f64;
        (batch.end - tail) as f64 * share.min(1.0)
    }

    /// Returns the fill level of the log, 0 to 1, used to pace writes. It falls gradually while a batch is
    /// destaged, rather than at its end, so that writes are admitted evenly.
    pub(crate) fn pressure(&self, base: &Base) -> f64 {
        (base.log.used() as f64 - self.passed(base.log.tail)) / base.log.geometry.count() as f64
    }

    /// Returns the progress of destaging; the part of the batch behind the sweep counts as free.
    fn progress(&self, base: &Base) -> Progress {
        let segments = base.log.tail as f64 + self.passed(base.log.tail);
        let freed = segments * base.log.geometry.segment_bytes() as f64;
        Progress { freed, destaged: base.figures.destaged.0 as f64 }
    }

    /// Starts to destage until the log is empty.
    pub(crate) fn begin_drain(&mut self, base: &mut Base) {
        // The rate measured while destaging yielded to clients does not apply now.
        if !std::mem::replace(&mut self.is_draining, true) {
            base.pace.destage_rate = 0.0;
        }
    }

    /// Ends the destaging of a replaced log.
    pub(crate) fn end_drain(&mut self) {
        (self.is_draining, self.empties_to) = (false, 0);
    }

    /// Returns the time to destage everything at the present rate; `None` if the rate is unknown.
    pub(crate) fn drain_eta(base: &Base) -> Option<Nanos> {
        let geometry = &base.log.geometry;
        let (left, rate) = match base.options.mode {
            // All versions are written.
            Mode::Ordered => (base.log.used() * geometry.segment_bytes(), base.pace.rate),
            _ => (base.index.dirty().data * geometry.logical_block, base.pace.destage_rate),
        };
        (rate > 0.0).then(|| Nanos::from_secs_f64(left as f64 / rate))
    }

    /// Returns the time at which destaging would start by itself.
    pub(crate) fn due(&self, base: &Base) -> Option<Nanos> {
        if self.batch.is_some() {
            return Some(base.pace.runs_from);
        }
        if base.log.used() == 0 {
            return None;
        }
        if self.not_before > base.io.now() {
            return Some(self.not_before);
        }
        let options = &base.options.destage;
        let oldest = base.log.segments.get(&base.log.tail).map(|segment| segment.opened_at);
        let aged = oldest.map_or(Nanos::ZERO, |at| at.saturating_add(options.age));
        Some(aged.min(base.pace.last_request_at.saturating_add(options.idle)))
    }

    /// Starts a batch or its next runs, and ends a completed stage.
    pub(crate) fn advance(
        &mut self,
        base: &mut Base,
        marks: &mut Marks,
        gathers: &mut Gathers,
        flushes: &Flushes,
        waiting: WriteState,
    ) {
        if !base.condition.is_serving() {
            return;
        }
        // A server that stops leaves the rest in the log, unless writes wait for space.
        let is_giving_up = base.condition == Condition::Stopping(false) && !waiting.is_any;
        if self.batch.is_none() && !is_giving_up {
            self.begin_batch(base, marks, flushes, waiting);
        }
        if !is_giving_up && !waiting.is_beneath {
            while self.begin_run(base, marks, gathers) {}
        }
        self.end_stage(base, marks, is_giving_up);
    }

    fn begin_batch(&mut self, base: &mut Base, marks: &Marks, flushes: &Flushes, waiting: WriteState) {
        let options = base.options.destage;
        let is_due = self.due(base).is_some_and(|due| due <= base.io.now());
        let is_asked = self.is_draining || base.log.grows_to.is_some() || base.log.tail < self.empties_to;
        let is_wanted = is_asked || base.log.used_share() >= options.start || is_due;
        if !is_wanted || !marks.is_marked(base) || self.not_before > base.io.now() {
            return;
        }
        if base.log.used() == 0 {
            if base.log.in_flight.is_empty() && !waiting.is_any && marks.is_tail_marked(base) {
                self.is_draining = false;
            }
            return;
        }
        if options.rests && base.log.tail >= self.empties_to {
            base.log.close();
            self.empties_to = base.log.next_segment;
        }
        // If something cannot be destaged, everything else still is, so that only the former depends on the
        // log.
        let is_held = self.is_failing_for(UNREADABLE_AFTER, base.io.now());
        // Old data, or data of a drain, must not stay in the open segment.
        let (is_draining, tail) = (self.is_draining, base.log.tail);
        let is_left =
            |(segment, _)| if segment == tail { is_due || is_draining } else { is_held && is_draining };
        if base.log.open.is_some_and(is_left) {
            base.log.close();
        }
        let (count, segment) = (base.log.geometry.count(), base.log.geometry.segment_bytes());
        let most = if is_held { count } else { base.pace.batch(segment, count) };
        let is_ordered = base.options.mode == Mode::Ordered && base.log.tail >= base.log.ordered_from;
        // Data written before ordered mode is destaged separately from later data.
        let before = if is_ordered { u64::MAX } else { base.log.ordered_from };
        let end = base.log.closed_end().min(base.log.tail + most).min(before);
        if end <= base.log.tail {
            return;
        }
        let epochs = if is_ordered { epochs(base, end) } else { VecDeque::new() };
        base.io.step();
        if self.ended_at != base.io.now() {
            base.pace.destaging(base.io.now(), self.progress(base));
        }
        let waits = base.options.waits.hold(Wait::DurableBeforeDestage);
        let first = base.live(EVERYWHERE).next().map_or(Lba(0), |(range, _)| range.lba);
        let last = if self.reached > first { self.reached } else { Lba(base.devices.backing().blocks()) };
        let swath = (first, last);
        self.batch = Some(Batch {
            end,
            young: if waits { base.log.closed_end().min(before) } else { u64::MAX },
            epochs,
            cursor: Lba(0),
            swath,
            near: (Lba(0), 0),
            stage: Stage::Begin,
            in_flight: 0,
            has_failed: false,
            covered: if waits { base.log.complete } else { 0 },
            swept: Vec::new(),
        });
        let is_durable = flushes.are_legs_durable(&base.log);
        if waits && !is_durable && base.options.mode != Mode::Protected {
            self.flush_legs(base, Purpose::LogFlushBeforeDestage);
        }
        // A failed write, even of an earlier session, may land until a flush, and must not overwrite newly
        // destaged data.
        if !std::mem::replace(&mut self.is_settled, true) {
            self.flush_backing(base, Purpose::BackingFlushBeforeDestage);
        }
    }

    pub(crate) fn completed(&mut self, base: &mut Base, run: &Run, at: Nanos, outcome: Outcome) {
        if !outcome.is_done() {
            let (LbaRange { lba, nlb }, errno) = (run.range, errno_of(outcome));
            self.is_settled = false;
            return self.run_failed(
                base,
                format!("the backing device could not write {nlb} blocks at {lba}: {errno}"),
            );
        }
        let bytes = base.log.geometry.bytes(run.range);
        base.figures.destaged += Bytes(bytes);
        base.figures.destage_writes += 1;
        let now = base.io.now();
        let is_urgent = self.is_draining || base.pace.is_urgent(now, self.pressure(base));
        base.pace.destaged(at, now, self.progress(base), is_urgent);
        base.index.mark_clean(&run.pieces);
        self.pending().into_iter().for_each(|left| *left -= 1);
    }

    /// Records that a write of the backing device failed, and may land over destaged data until the device is
    /// flushed.
    pub(crate) fn unsettle(&mut self, base: &Base) {
        self.is_settled = false;
        if let Some(batch) = &mut self.batch
            && matches!(batch.stage, Stage::Begin | Stage::Sweep | Stage::Between)
        {
            (batch.has_failed, batch.cursor) = (true, Lba(base.devices.backing().blocks()));
        }
    }

    /// Returns true if the contents of the log cannot be destaged now.
    pub(crate) fn is_stuck(&self, base: &Base) -> bool {
        self.is_failing_for(STUCK_AFTER, base.io.now())
    }

    fn run_failed(&mut self, base: &mut Base, because: String) {
        base.figures.destage_errors += 1;
        base.io.step();
        self.failed(base.io.now(), because);
        if base.superblock.geometry == base.log.geometry {
            // Growing may depend on data that cannot be destaged now.
            base.log.grows_to = None;
        }
        if let Some(batch) = &mut self.batch {
            batch.in_flight -= 1;
            batch.has_failed = true;
        }
    }

    /// Moves to the next stage of the batch if none of its actions is in flight.
    fn end_stage(&mut self, base: &mut Base, marks: &mut Marks, is_giving_up: bool) {
        let (blocks, is_epoch_durable) = (base.devices.backing().blocks(), marks.may_acknowledge(base));
        let Some(batch) = &mut self.batch else { return };
        if batch.in_flight > 0 {
            return;
        }
        match batch.stage {
            Stage::Begin if is_epoch_durable => {
                // In ordered mode, older versions of young data are written too.
                let end = if batch.epochs.is_empty() { batch.young } else { u64::MAX };
                if !marks.are_witnesses_released(base, end) {
                    return;
                }
                let Some(batch) = &mut self.batch else { return };
                batch.stage = Stage::Sweep;
                base.log.durable = base.log.durable.max(batch.covered);
                base.io.step();
            }
            // A batch destages everything else before it tries again what failed.
            Stage::Sweep if batch.cursor.0 < blocks => {
                if is_giving_up {
                    self.batch = None;
                    base.io.step();
                }
            }
            Stage::Sweep | Stage::Between if batch.has_failed => self.try_again_later(base),
            Stage::Sweep if batch.epochs.len() > 1 => {
                batch.stage = Stage::Between;
                self.flush_backing(base, Purpose::BackingFlushBeforeTail);
            }
            Stage::Sweep => {
                // Everything that the new tail passes must be durable on the legs, too.
                (batch.stage, batch.covered) = (Stage::Flush, base.log.complete);
                self.flush_backing(base, Purpose::BackingFlushBeforeTail);
                // Everything in a sealed log is durable.
                if base.seal.is_none() {
                    self.flush_legs(base, Purpose::LogFlushBeforeTail);
                }
            }
            Stage::Between => {
                batch.epochs.pop_front();
                (batch.cursor, batch.stage) = (Lba(0), Stage::Sweep);
                base.io.step();
            }
            Stage::Flush if is_epoch_durable => {
                let end = batch.end;
                // The mark must record the discards before the log forgets them.
                if !marks.are_witnesses_released(base, 0) {
                    return;
                }
                let Some(batch) = &mut self.batch else { return };
                batch.stage = Stage::Tail;
                base.log.durable = base.log.durable.max(batch.covered);
                if !self.note_unreadable(base) {
                    return;
                }
                base.superblock.tail = base.log.tail_at(end);
                if base.seal.is_none() {
                    base.superblocks.want(Reason::Tail);
                }
                base.io.step();
                if !base.options.waits.hold(Wait::TailDurable) {
                    self.free_until(base, end);
                }
            }
            Stage::Begin | Stage::Flush | Stage::Tail => {}
        }
    }

    fn try_again_later(&mut self, base: &mut Base) {
        self.batch = None;
        self.not_before = base.io.now().saturating_add(RETRY);
        base.io.step();
    }

    /// Records in the superblock the data that the tail passes although the backing device does not have it.
    /// Unreadable blocks that were overwritten are removed only now, since the overwriting record might have
    /// been lost before. Returns true if there is room for all of it.
    fn note_unreadable(&mut self, base: &mut Base) -> bool {
        // A sealed log can neither add such blocks nor record that one was overwritten.
        let has_sealed = base.seal.is_some() && !base.superblocks.durable.unreadable.is_empty();
        let is_any = !self.unreadable.is_empty() || has_sealed;
        let Some(batch) = self.batch.as_ref().filter(|_| is_any) else {
            return true;
        };
        for range in &batch.swept {
            let readable = base.index.over(*range).filter(|(_, entry)| !entry.is_unreadable());
            readable.for_each(|(range, _)| self.unreadable.remove(range));
        }
        let end = batch.end;
        let ranges: Vec<_> = self.unreadable.iter().map(|(range, ())| range).collect();
        let most = if base.seal.is_some() { 0 } else { UNREADABLE_MAX };
        if ranges.len() > most || has_sealed {
            let count = ranges.len();
            let because = match most {
                0 => format!(
                    "{count} places of the log cannot be read from any of its devices, and the log \
                     is no longer written: everything else is written back, but the log cannot be replaced"
                ),
                _ => format!(
                    "{count} places of the log cannot be read from any of its devices, and it can give up \
                     at most {most}: overwrite some of them"
                ),
            };
            self.failed(base.io.now(), because);
            // A batch of the whole log has done everything possible.
            self.is_draining &= end < base.log.next_segment || base.index.dirty().all() > 0;
            self.try_again_later(base);
            return false;
        }
        base.superblock.unreadable = ranges;
        true
    }

    /// Frees segments after the superblocks with a tail at segment `end` have become durable.
    pub(crate) fn free_until(&mut self, base: &mut Base, end: u64) {
        if self.batch.take_if(|batch| batch.end == end).is_none() {
            return;
        }
        base.log.free_until(end, base.keeps_freed());
        base.forget_freed();
        self.failing = None;
        self.ended_at = base.io.now();
        base.io.step();
    }

    /// Flushes the legs for the batch.
    fn flush_legs(&mut self, base: &mut Base, purpose: Purpose) {
        let flushes = base.flush_legs(purpose);
        self.pending_flushes(base.options.waits, purpose).into_iter().for_each(|left| *left += flushes);
    }

    /// Flushes the backing device for the batch.
    fn flush_backing(&mut self, base: &mut Base, purpose: Purpose) {
        base.flush(None, purpose);
        self.pending_flushes(base.options.waits, purpose).into_iter().for_each(|left| *left += 1);
    }

    /// Returns the counter of the batch's pending flushes; `None` if it does not wait for flushes of this
    /// purpose.
    pub(crate) fn pending_flushes(&mut self, waits: Waits, purpose: Purpose) -> Option<&mut usize> {
        let wait = match purpose {
            Purpose::BackingFlushBeforeTail => Wait::BackingDurable,
            Purpose::LogFlushBeforeTail => Wait::SuccessorsDurable,
            _ => Wait::DurableBeforeDestage,
        };
        if waits.hold(wait) { self.pending() } else { None }
    }
}

/// Returns the changes of the segments before `end` by flush epoch; the last change of a block in an epoch
/// counts.
fn epochs(base: &Base, end: u64) -> VecDeque<ExtentMap<Entry>> {
    let mut epochs = VecDeque::new();
    let mut last = None;
    let segments = base.log.segments.range(base.log.tail..end);
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
