//! The open cache: its parts, the dispatch of events to them, and the order in which they advance.

use plumb_block::{BufferMut, Bytes, DeviceInfo, Errno, Latch, Nanos, Op, Outcome, Payload, Request};

use crate::action::{ActionId, Purpose};
use crate::base::{Base, Condition, EVERYWHERE};
use crate::continuation::{Copy, Then};
use crate::destage::{Destage, WriteState};
use crate::flush::Flushes;
use crate::format::superblock::{LegState, Superblock};
use crate::gather::{Gather, Gathers, Goal};
use crate::geometry::Geometry;
use crate::grow;
use crate::io::{ClientRequest, errno_of};
use crate::legs::{LegFailure, LegSet};
use crate::log::Log;
use crate::mark::Marks;
use crate::recovery::{Findings, LegFindings, RecoveryResult};
use crate::resilver::{self, Resilver};
use crate::seal::Seal;
use crate::settings::{DestageOptions, Mark, Mode};
use crate::status::{State, Status};
use crate::superblocks::{Reason, Superblocks};
use crate::write::Writes;

/// An open cache.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) base: Base,
    pub(crate) marks: Marks,
    pub(crate) flushes: Flushes,
    writes: Writes,
    gathers: Gathers,
    destage: Destage,
    resilver: Option<Resilver>,
    /// Time at which recovery ended.
    opened_at: Nanos,
    /// Contents of the log when it was opened.
    findings: Findings,
}

impl Core {
    /// Creates an open cache from the result of recovery. It serves once its session is durable.
    pub(crate) fn new(mut found: RecoveryResult) -> Self {
        let (sealed, findings) = (found.sealed.take(), std::mem::take(&mut found.findings));
        let marked = found.options.identity.map_or_else(Mark::default, |identity| identity.marked);
        let base = Base::opened(found);
        let mut core = Self {
            marks: Marks::opened(marked, base.io.now()),
            destage: Destage::new(&base.superblock.unreadable),
            opened_at: base.io.now(),
            base,
            flushes: Flushes::opened(),
            writes: Writes::default(),
            gathers: Gathers::default(),
            resilver: None,
            findings,
        };
        // Copying to a leg that was interrupted by the end of the last session starts again.
        let half = core.base.superblock.legs.iter().position(|state| *state == LegState::Resilvering);
        core.resilver = half.map(|leg| Resilver::begin(&mut core.base, leg));
        if let Some(because) = sealed.filter(|_| core.base.condition == Condition::Opening) {
            core.seal(because);
        }
        core
    }

    pub(crate) fn submit(&mut self, request: Request) {
        let now = self.base.io.now();
        let client = ClientRequest { tag: request.tag, at: now };
        if let Err(errno) = self.admissible(&request) {
            self.base.io.refuse(&client, errno, request.payload);
            return;
        }
        self.base.pace.last_request_at = now;
        match request.op {
            Op::Read => self.gathers.read(&mut self.base, client, request.range, request.payload),
            Op::Flush => self.flushes.add(self.base.options.waits, client, Payload::None),
            Op::Write { .. } | Op::Discard | Op::WriteZeroes { .. } => {
                self.writes.accept(&mut self.base, &mut self.marks, client, request);
            }
        }
    }

    /// Checks that the request can be executed at all.
    fn admissible(&self, request: &Request) -> Result<(), Errno> {
        let stopped = matches!(self.base.condition, Condition::Stopping(_) | Condition::Stopped(_));
        let latched = self.base.condition.latch().is_some() && request.op != Op::Read;
        if stopped || latched {
            return Err(Errno::EIO);
        }
        if request.op == Op::Flush {
            return Ok(());
        }
        let backing = self.base.devices.backing();
        if !backing.holds(request.range) {
            return Err(Errno::EINVAL);
        }
        match request.op {
            _ if !request.carries(backing.length_of(request.range)) => Err(Errno::EINVAL),
            Op::Discard if backing.discard_max == Bytes(0) => Err(Errno::EOPNOTSUPP),
            _ => Ok(()),
        }
    }

    /// Dispatches the completion of an action to the part that waits for it.
    pub(crate) fn completed(&mut self, id: ActionId, outcome: Outcome, payload: Payload) {
        match self.base.io.complete(id) {
            None => {}
            Some(Then::Superblock { leg }) => {
                self.leg_ended(leg, LegFailure::Superblock, outcome);
                self.base.superblocks.pending().into_iter().for_each(|left| *left -= 1);
            }
            Some(Then::Record { sequence, leg }) => self.record_completed(sequence, leg, outcome),
            Some(Then::Flush { leg, purpose }) => self.flush_completed(leg, purpose, outcome),
            Some(Then::Part(part)) => self.gathers.part_completed(&mut self.base, *part, outcome, payload),
            Some(Then::Copy(copy)) => self.copy_completed(copy, outcome),
            Some(Then::Bypass { client }) => {
                let (base, flushes) = (&mut self.base, &mut self.flushes);
                if self.writes.bypass_completed(base, flushes, client, outcome, payload) {
                    self.destage.unsettle(&self.base);
                }
            }
            Some(Then::Destage { run, at }) => self.destage.completed(&mut self.base, &run, at, outcome),
        }
    }

    /// Advances all parts until none makes progress.
    pub(crate) fn advance(&mut self) {
        loop {
            let before = self.base.io.steps();
            self.advance_failed_records();
            self.advance_seal();
            self.advance_superblocks();
            grow::advance(&mut self.base);
            self.writes.apply_records(&mut self.base, &self.marks, &mut self.flushes);
            self.advance_flushes();
            let is_bypassing = |range| self.writes.is_bypassing(range);
            self.marks.advance(&mut self.base, self.destage.state(), is_bypassing);
            self.writes.fill_records(&mut self.base, &mut self.marks, &mut self.flushes, &self.destage);
            self.advance_destaging();
            self.advance_resilver();
            self.advance_gathers();
            self.advance_stop();
            if self.base.io.steps() == before {
                return;
            }
        }
    }

    fn advance_superblocks(&mut self) {
        let Some(version) = self.base.advance_superblocks() else { return };
        let base = &mut self.base;
        match version.reason {
            Reason::Session if base.condition == Condition::Opening => base.condition = Condition::Serving,
            Reason::Epoch | Reason::Session => {}
            Reason::Tail => self.destage.free_until(base, version.content.tail.segment),
            Reason::Stop => {
                let is_clean = base.condition == Condition::Stopping(true) && !base.holds(EVERYWHERE);
                base.condition = Condition::Stopped(is_clean);
            }
        }
    }

    fn advance_destaging(&mut self) {
        let Self { base, marks, flushes, gathers, .. } = self;
        // With an empty log there is nothing above a bypassing write, and write-through mode has many of
        // those.
        let is_beneath = base.log.used() > 0 && self.writes.is_beneath(base);
        let waiting = WriteState { is_any: !self.writes.is_empty(), is_beneath };
        self.destage.advance(base, marks, gathers, flushes, waiting);
    }

    fn advance_resilver(&mut self) {
        let Self { base, gathers, .. } = self;
        self.resilver.take_if(|resilver| resilver.advance(base, gathers));
    }

    /// Starts possible reads, and delivers finished gathers.
    fn advance_gathers(&mut self) {
        for id in self.gathers.ids() {
            if let Some(gather) = self.gathers.advance(&mut self.base, id) {
                self.deliver(gather);
            }
        }
    }

    fn deliver(&mut self, gather: Gather) {
        let Gather { goal, target, error, unreadable, .. } = gather;
        match goal {
            Goal::Client(client) => {
                let payload = target.map_or(Payload::None, Payload::Into);
                let error = error.or((!unreadable.is_empty()).then_some(Errno::EIO));
                self.base.io.answer(&client, error.map_or(Outcome::Done, Outcome::Failed), payload);
            }
            Goal::Destage(run) => {
                let bytes = target.filter(|_| error.is_none()).map(BufferMut::freeze);
                self.destage.write_run(&mut self.base, &mut self.marks, &run, bytes, &unreadable);
            }
            Goal::Copy(leg) => {
                if let Some(resilver) = &mut self.resilver {
                    resilver.in_flight -= 1;
                }
                self.base.io.step();
                // Without an answer from the only leg that has the data, its contents are unknown.
                if let Some(errno) = error {
                    self.lose_leg(leg, LegFailure::CopyRead, Outcome::Failed(errno));
                }
            }
        }
    }

    /// Returns the time of the next event.
    pub(crate) fn next_event(&self) -> Option<Nanos> {
        if !self.base.condition.is_serving() {
            return None;
        }
        let base = &self.base;
        let due = [self.writes.due(), self.destage.due(base), self.marks.due(base)];
        due.into_iter().flatten().filter(|due| *due > self.base.io.now()).min()
    }

    /// Permanently stops everything except reads.
    pub(crate) fn latch(&mut self, because: String, errno: Errno) {
        if self.base.condition.latch().is_some() {
            return;
        }
        self.base.condition = Condition::Latched(because, Latch { errno, at: self.base.io.now() });
        self.base.io.step();
        self.writes.fail(&mut self.base);
        for (client, payload) in self.flushes.fail() {
            self.base.io.refuse(&client, Errno::EIO, payload);
        }
    }

    /// Records that the backing device has this mark durably, or why it could not be written.
    pub(crate) fn marked(&mut self, mark: Mark, result: Result<(), String>) {
        self.base.io.step();
        match result {
            Ok(()) => {
                self.marks.written(mark);
                if self.base.seal.as_ref().is_some_and(Seal::is_moving) && !mark.is_sealed {
                    self.end_move();
                }
            }
            Err(because) => {
                self.latch(
                    format!("cannot write the cache marker to the backing device: {because}"),
                    Errno::EIO,
                );
            }
        }
    }

    /// Returns the mark of a stopped cache, for which all bypassing writes are durable.
    pub(crate) fn mark_at_stop(&self) -> Option<Mark> {
        self.marks.at_stop(&self.base, self.destage.state())
    }

    /// Starts to copy to a replacement leg: see [`Cache::replace_leg`](crate::Cache::replace_leg).
    pub(crate) fn replace_leg(&mut self, leg: usize, info: DeviceInfo) -> Result<(), String> {
        if self.resilver.is_some() {
            return Err(resilver::BUSY.to_owned());
        }
        self.resilver = Some(Resilver::replace_leg(&mut self.base, leg, info)?);
        // Findings about the previous device do not apply to this one.
        if let Some(found) = self.findings.legs.get_mut(leg) {
            *found = LegFindings::default();
        }
        Ok(())
    }

    /// Changes the mode.
    pub(crate) fn set_mode(&mut self, mode: Mode) {
        if mode == self.base.options.mode {
            return;
        }
        // Data that counted as durable must be flushed once the user no longer states that the legs survive a
        // loss of power. The legs of a sealed log were flushed when it was sealed.
        if self.base.options.mode == Mode::Protected && self.base.seal.is_none() {
            self.flushes.distrust_legs();
        }
        if mode == Mode::Protected && self.flushes.has_bypassed() {
            // Earlier bypassing writes may not be durable.
            self.flushes.want();
        }
        self.base.options.mode = mode;
        self.base.log.set_ordered(mode == Mode::Ordered);
    }

    /// Changes the thresholds of destaging.
    pub(crate) fn set_destage(&mut self, options: DestageOptions) {
        self.base.options.destage = options;
        self.base.io.spindle.down_after = options.spin_down;
        self.base.io.step();
    }

    /// Starts to destage everything.
    pub(crate) fn drain(&mut self) {
        self.destage.begin_drain(&mut self.base);
    }

    /// Stops accepting new requests.
    pub(crate) fn stop(&mut self, is_clean: bool) {
        if matches!(self.base.condition, Condition::Opening | Condition::Serving | Condition::Stopping(_)) {
            self.base.condition = Condition::Stopping(is_clean);
            if is_clean {
                self.drain();
            }
        }
    }

    fn advance_stop(&mut self) {
        let Condition::Stopping(is_clean) = self.base.condition else { return };
        let is_draining = is_clean && self.destage.is_draining;
        let is_busy = !self.writes.is_empty() || !self.gathers.is_empty() || self.destage.is_busy();
        if is_busy || is_draining || !self.flushes.is_idle() || !self.base.io.is_idle() {
            return;
        }
        if self.flushes.has_bypassed() || self.base.log.durable < self.base.log.complete {
            // Every write has completed by now, so the flush covers all of them.
            self.flushes.want();
            self.base.io.step();
        } else if let Some(seal) = &self.base.seal {
            if seal.is_ready() && !seal.is_moving() && self.marks.is_marked(&self.base) {
                let is_empty = self.base.index.dirty().all() == 0
                    && self.destage.unreadable_now(&self.base.index).is_empty();
                self.base.condition = Condition::Stopped(is_clean && is_empty);
                self.base.io.step();
            }
        } else if !self.base.superblocks.is_busy() {
            self.base.superblocks.want(Reason::Stop);
            self.base.io.step();
        }
    }

    /// Ends a finished round of flushes, and starts the next one.
    fn advance_flushes(&mut self) {
        if self.marks.may_acknowledge(&self.base)
            && let Some(round) = self.flushes.end()
        {
            self.base.log.durable = self.base.log.durable.max(round.covered);
            self.base.figures.flushes += round.waiters.len() as u64;
            for (client, payload) in round.waiters {
                self.base.io.answer(&client, Outcome::Done, payload);
            }
            self.base.io.step();
        }
        if !self.base.condition.is_serving() {
            return;
        }
        let Some(needs) = self.flushes.begin(&self.base.log, self.base.options.mode) else { return };
        let mut flushes = 0;
        if needs.legs {
            flushes += self.base.flush_legs(Purpose::LogFlush);
        }
        if needs.backing {
            self.base.flush(None, Purpose::BypassFlush);
            flushes += 1;
        }
        self.flushes.pending().into_iter().for_each(|left| *left += flushes);
        // Later writes may reach the backing device only after the data that this round covers.
        self.base.log.flush_epoch += 1;
        self.base.io.step();
    }

    /// Returns the counter of pending actions that a flush of this purpose belongs to; `None` if nothing
    /// waits for it.
    fn pending(&mut self, purpose: Purpose) -> Option<&mut usize> {
        match purpose {
            Purpose::LogFlush | Purpose::BypassFlush => self.flushes.pending(),
            Purpose::BackingFlushBeforeMark => Some(&mut self.marks.left),
            Purpose::SealFlush => self.base.seal.as_mut().and_then(Seal::pending),
            Purpose::ResilverFlush => self.resilver.as_mut().map(|resilver| &mut resilver.in_flight),
            Purpose::LogFlushBeforeDestage
            | Purpose::BackingFlushBeforeDestage
            | Purpose::BackingFlushBeforeTail
            | Purpose::LogFlushBeforeTail => self.destage.pending_flushes(self.base.options.waits, purpose),
            _ => self.base.superblocks.pending(),
        }
    }

    /// Processes the completed or failed flush of a leg, or of the backing device if `leg` is `None`.
    fn flush_completed(&mut self, leg: Option<usize>, purpose: Purpose, outcome: Outcome) {
        match leg {
            _ if outcome.is_done() => {}
            Some(leg) => self.lose_leg(leg, LegFailure::Flush, outcome),
            // The writes since the previous flush may be on the device or not.
            None => {
                let because = "the backing device failed a flush: writes that bypassed the log since the \
                               previous flush may be lost, and the log has the rest; open the cache again \
                               once the device works";
                self.latch(because.to_owned(), errno_of(outcome));
            }
        }
        self.pending(purpose).into_iter().for_each(|left| *left -= 1);
    }

    /// Processes a leg's completion of a record.
    fn record_completed(&mut self, sequence: u64, leg: usize, outcome: Outcome) {
        let base = &mut self.base;
        let has_failed =
            !outcome.is_done() && base.superblock.legs[leg] != LegState::Lost && base.is_last(leg);
        if let Some(record) = base.log.in_flight.get_mut(&sequence) {
            record.legs = record.legs.without(LegSet::one(leg));
            record.has_failed |= has_failed;
        }
        self.leg_ended(leg, LegFailure::Record, outcome);
    }

    /// Processes the end of an action on a leg, which is lost if the action failed.
    fn leg_ended(&mut self, leg: usize, failure: LegFailure, outcome: Outcome) {
        if !outcome.is_done() {
            self.lose_leg(leg, failure, outcome);
        }
    }

    /// Continues without a failed leg: nothing is acknowledged until the superblocks of the others exclude it
    /// (order (e)). If no other leg has complete data, the log is no longer written.
    pub(crate) fn lose_leg(&mut self, leg: usize, failure: LegFailure, outcome: Outcome) {
        if self.base.superblock.legs[leg] == LegState::Lost {
            return;
        }
        if self.base.seal.as_ref().is_some_and(Seal::is_moving) {
            return self.fail_move(leg, failure, outcome);
        }
        if self.base.is_last(leg) {
            return self.fail_log(leg, failure, outcome);
        }
        self.base.figures.legs_lost += 1;
        if self.base.seal.is_some() {
            // A sealed log cannot record the loss. The other leg has complete data.
            self.base.superblock.legs[leg] = LegState::Lost;
        } else {
            self.base.set_leg(leg, LegState::Lost);
        }
    }

    /// Handles the failure of a leg that no other can replace. After a failed flush the leg's contents are
    /// unknown, so everything stops, except during opening, when the flush covered nothing that was
    /// acknowledged. A failed record is written a second time. Otherwise the log is sealed, if the mark can
    /// record that.
    fn fail_log(&mut self, leg: usize, failure: LegFailure, outcome: Outcome) {
        let because =
            format!("device {leg} of the log {}, and no other device has its data", failure.words());
        let is_open = matches!(self.base.condition, Condition::Serving | Condition::Stopping(_));
        let has_unknown = failure == LegFailure::Flush && self.base.condition != Condition::Opening;
        match failure {
            LegFailure::Record
                if is_open
                    && (self.base.seal.is_some()
                        || self
                            .base
                            .log
                            .first_failed()
                            .is_some_and(|it| self.base.log.may_retry(it.place))) => {}
            _ if has_unknown || self.base.options.identity.is_none() => {
                self.latch(format!("{because}: data that was not flushed may be lost"), errno_of(outcome));
            }
            _ => self.seal(format!("{because} ({})", errno_of(outcome))),
        }
    }

    /// Seals the log: its contents are written back, and writes bypass it. See [`seal`](crate::seal).
    fn seal(&mut self, because: String) {
        if self.base.seal.is_some()
            || !matches!(
                self.base.condition,
                Condition::Opening | Condition::Serving | Condition::Stopping(_)
            )
        {
            return;
        }
        // The last marked session counts, since a failed write may have left a later one on a leg, which a
        // power cut can remove.
        self.base.seal = Some(Seal::new(because, self.marks.durable.session));
        self.base.superblocks.abandon();
        self.marks.abandon_flush();
        // A leg being copied to is incomplete, and can no longer be completed.
        self.base
            .superblock
            .legs
            .iter_mut()
            .filter(|state| **state == LegState::Resilvering)
            .for_each(|state| *state = LegState::Lost);
        self.base.superblock.geometry = self.base.log.geometry;
        self.base.log.grows_to = None;
        self.base.log.end_reads_before(self.base.log.tail);
        self.base.figures.is_full = false;
        self.drain();
        if self.base.condition == Condition::Opening {
            self.base.condition = Condition::Serving;
        }
        self.base.io.step();
    }

    /// Writes failed records again in the next segment, once all others have completed. Starts a new session
    /// with that, so that the failed ones are not replayed if they landed after all.
    fn advance_failed_records(&mut self) {
        if self.base.seal.is_some() || !self.base.condition.is_serving() || !self.base.log.is_answered() {
            return;
        }
        let Some(sequence) = self.base.log.first_failed().map(|header| header.place.sequence) else { return };
        let withdrawn = self.base.log.withdraw(sequence);
        self.base.figures.records_retried += withdrawn.len() as u64;
        self.writes.requeue(withdrawn, self.base.log.geometry.logical_block);
        self.base.log.retried = Some(sequence);
        self.base.begin_session();
        self.base.begin_epoch();
    }

    /// Advances the sealing of a log.
    fn advance_seal(&mut self) {
        let Some(seal) = &mut self.base.seal else { return };
        if seal.is_answering() && self.base.log.is_answered() {
            // Records that are not in the index are written again, bypassing the log.
            let withdrawn = self.base.log.withdraw(0);
            self.writes.requeue(withdrawn, self.base.log.geometry.logical_block);
            seal.begin_flush();
            self.base.io.step();
            // Records read by recovery may not be durable.
            if !self.marks.durable.is_sealed {
                let flushes = self.base.flush_legs(Purpose::SealFlush);
                self.pending(Purpose::SealFlush).into_iter().for_each(|left| *left += flushes);
            }
        } else if seal.end_flush() {
            self.base.log.durable = self.base.log.complete;
            self.base.io.step();
        } else if self.marks.durable.is_sealed
            && self.marks.durable.tail >= self.base.superblock.tail.sequence
        {
            let tail = self.base.superblock.tail.segment;
            self.destage.free_until(&mut self.base, tail);
        }
    }

    /// Seals the log because another is to replace it: see [`Cache::retire_log`](crate::Cache::retire_log).
    pub(crate) fn retire_log(&mut self) -> Result<(), String> {
        if self.base.condition != Condition::Serving || self.base.options.identity.is_none() {
            return Err("the cache does not serve".to_owned());
        }
        self.seal("its log is being replaced: `plumb cache replace-log` continues that".to_owned());
        Ok(())
    }

    /// Returns true if everything in a sealed log is on the backing device, whose mark says so, and nothing
    /// reads the log any more.
    pub(crate) fn is_log_spent(&self) -> bool {
        let is_sealed = self.base.seal.as_ref().is_some_and(|seal| seal.is_ready() && !seal.is_moving())
            && self.marks.is_marked(&self.base);
        is_sealed
            && !self.base.io.any(Then::is_of_log)
            && self.base.log.used() == 0
            && self.base.log.segments.is_empty()
            && self.marks.is_tail_marked(&self.base)
            && self.marks.request.is_none()
    }

    /// Replaces a sealed log: see [`Cache::move_log`](crate::Cache::move_log).
    pub(crate) fn move_log(&mut self, geometry: Geometry, legs: Vec<DeviceInfo>) -> Result<(), String> {
        let is_spent = self.is_log_spent() && self.base.condition == Condition::Serving;
        let Some(seal) = self.base.seal.as_mut().filter(|_| is_spent) else {
            return Err("not everything in its log is on the backing device yet".to_owned());
        };
        seal.begin_move();
        // The segments of the new log reuse the numbers of the old one.
        self.base.index.forget(&self.base.log.geometry, EVERYWHERE, self.base.log.tail);
        let log = Log::empty(geometry, self.base.log.next_sequence, self.base.log.flush_epoch + 1);
        self.base.superblock = Superblock {
            geometry,
            legs: vec![LegState::Live; legs.len()],
            epoch: self.base.superblock.epoch + 1,
            session: self.base.superblock.session + 1,
            tail: log.tail_at(0),
            durable: log.durable,
            first: log.next_sequence,
            ..self.base.superblock.clone()
        };
        self.base.superblocks = Superblocks::blank(&self.base.superblock);
        self.base.superblocks.want(Reason::Session);
        self.base.devices.set_legs(legs.into_iter().map(Some).collect());
        self.base.log = log;
        self.base.log.set_ordered(self.base.options.mode == Mode::Ordered);
        self.base.io.step();
        Ok(())
    }

    /// Handles the failure of a device of the new log before anything depends on it.
    fn fail_move(&mut self, leg: usize, failure: LegFailure, outcome: Outcome) {
        let (words, errno) = (failure.words(), errno_of(outcome));
        self.base.superblocks.abandon();
        if let Some(seal) = &mut self.base.seal {
            seal.fail_move(format!("device {leg} of the log that was to take its place {words} ({errno})"));
        }
        self.base.io.step();
    }

    /// Completes the replacement once the mark names the session of the new log.
    fn end_move(&mut self) {
        self.base.seal = None;
        self.destage.end_drain();
        self.base.io.step();
    }

    fn copy_completed(&mut self, copy: Copy, outcome: Outcome) {
        let Copy { leg, segment, part } = copy;
        self.base.log.unpin(segment);
        if !outcome.is_done() {
            self.lose_leg(leg, LegFailure::Copy, outcome);
        } else if part.is_none() {
            self.base.figures.repaired += 1;
        }
        part.into_iter().for_each(|part| self.gathers.part_ended(&mut self.base, &part, Ok(()), None));
    }

    pub(crate) fn state(&self) -> State {
        match &self.base.condition {
            Condition::Opening => State::Recovering,
            Condition::Serving | Condition::Stopping(_) => State::Serving,
            Condition::Stopped(is_clean) => State::Stopped { is_clean: *is_clean },
            Condition::Latched(because, _) => State::Latched { because: because.clone() },
        }
    }

    /// Returns the legs as in the durable superblocks, except that a leg being copied to shows at once.
    fn legs_shown(&self) -> Vec<LegState> {
        let legs = self.base.superblocks.durable.legs.iter().zip(&self.base.superblock.legs);
        let shown = legs.map(|legs| match legs {
            (LegState::Lost, LegState::Resilvering) => LegState::Resilvering,
            (durable, _) => *durable,
        });
        shown.collect()
    }

    pub(crate) fn status(&self) -> Status {
        let geometry = &self.base.log.geometry;
        let segment = geometry.segment_bytes();
        let (dirty, block) = (self.base.index.dirty(), geometry.logical_block);
        let oldest = self.base.log.segments.get(&self.base.log.tail);
        // A latched cache neither bypasses the log nor writes anything back.
        let is_latched = self.base.condition.latch().is_some();
        let seal = self.base.seal.as_ref().filter(|_| !is_latched);
        Status {
            state: self.state(),
            mode: self.base.options.mode,
            layout: geometry.layout,
            legs: self.legs_shown(),
            log: Bytes(geometry.count() * segment),
            log_used: Bytes(self.base.log.used() * segment),
            dirty: Bytes(dirty.data * block),
            zeroed: Bytes(dirty.zeroes * block),
            unreadable: self.destage.unreadable_now(&self.base.index),
            is_ordered: self.base.log.tail >= self.base.log.ordered_at,
            oldest: oldest.map(|segment| self.base.io.now().since(segment.opened_at)),
            drain_rate: self.base.pace.rate,
            drain_eta: Destage::drain_eta(&self.base),
            is_growing: self.base.log.grows_to.is_some() && !is_latched,
            log_error: seal.map(|seal| seal.because().to_owned()),
            is_draining: self.destage.is_draining && !is_latched,
            open_for: self.base.io.now().since(self.opened_at),
            spin_ups: self.base.io.spindle.spin_ups,
            destage_error: self.destage.failing.as_ref().map(|(_, because)| because.clone()),
            figures: self.base.figures,
            findings: self.findings.clone(),
        }
    }
}
