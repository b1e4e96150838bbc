//! The open cache: its parts, and the order in which they go on after each event.

use std::collections::BTreeMap;

use plumb_block::{
    Bytes, DeviceInfo, Errno, ExtentMap, Latch, LbaRange, Nanos, Op, Outcome, Payload, Request,
};

use crate::action::{ActionId, Command, Member, Purpose, Wait};
use crate::destage::{Destage, Run};
use crate::devices::Devices;
use crate::flush::Flushes;
use crate::format::superblock::{LegState, Superblock};
use crate::gather::{Gather, PartRead};
use crate::geometry::Geometry;
use crate::index::Index;
use crate::io::{ClientRequest, Io, errno_of};
use crate::legs::LegSet;
use crate::log::Log;
use crate::mark::Marks;
use crate::pace::Pace;
use crate::recovery::{Findings, Recovered};
use crate::resilver::Resilver;
use crate::seal::Seal;
use crate::settings::{Layout, Mark, Mode, Options};
use crate::status::{Figures, State, Status};
use crate::superblocks::{Reason, Superblocks};
use crate::write::Writes;

/// Continuation of an action: what is done when it is completed.
#[derive(Debug)]
pub(crate) enum Then {
    /// A write of a superblock.
    Superblock {
        leg: usize,
    },
    Record {
        sequence: u64,
        leg: usize,
    },
    /// A flush of a leg or, without one, of the backing device.
    Flush {
        leg: Option<usize>,
        purpose: Purpose,
    },
    Part(Box<PartRead>),
    Copy(Copy),
    /// A client's write past the log.
    Bypass {
        client: u64,
    },
    Destage {
        run: Run,
        at: Nanos,
    },
}

/// Write to a leg of what another leg has, in a segment that is pinned for it.
#[derive(Debug)]
pub(crate) struct Copy {
    pub(crate) leg: usize,
    pub(crate) segment: u64,
    /// Part that waits for it.
    pub(crate) part: Option<Box<PartRead>>,
}

/// Condition of an open cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    /// The session is not durable yet.
    Opening,
    Serving,
    /// Serving what was asked before; and whether it is to be clean.
    Stopping(bool),
    Stopped(bool),
    /// Nothing can be written or flushed any more, and why.
    Latched(String, Latch),
}

/// Failure of a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LegFailure {
    Flush,
    Record,
    Superblock,
    /// The write of what another leg has.
    Copy,
    /// The read of what is to be copied to it.
    CopyRead,
}

impl LegFailure {
    /// Returns what the leg did, in words that follow its name.
    const fn words(self) -> &'static str {
        match self {
            Self::Flush => "failed a flush",
            Self::Record => "could not write a record",
            Self::Superblock => "could not write its superblock",
            Self::Copy => "could not be given what another one has",
            Self::CopyRead => "could not be copied to",
        }
    }
}

/// An open cache.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) options: Options,
    pub(crate) devices: Devices,
    pub(crate) io: Io<Then>,
    pub(crate) condition: Condition,
    /// Superblock as it would be written next.
    pub(crate) superblock: Superblock,
    pub(crate) superblocks: Superblocks,
    pub(crate) marks: Marks,
    pub(crate) index: Index,
    /// Blocks that were left out of the log because no leg had them whole; some of them may have been
    /// overwritten since.
    pub(crate) unreadable: ExtentMap<()>,
    pub(crate) log: Log,
    pub(crate) writes: Writes,
    pub(crate) flushes: Flushes,
    pub(crate) gathers: BTreeMap<u64, Gather>,
    pub(crate) gathers_next: u64,
    pub(crate) destage: Destage,
    pub(crate) resilver: Option<Resilver>,
    /// Seal of a log that is not written any more.
    pub(crate) seal: Option<Seal>,
    pub(crate) pace: Pace,
    pub(crate) figures: Figures,
    /// Contents of the log when it was opened.
    pub(crate) findings: Findings,
}

impl Core {
    /// Goes on from what recovery found. It serves when its session is durable.
    pub(crate) fn new(found: Recovered) -> Self {
        let mut superblocks = Superblocks::new(&found);
        let condition = if found.options.dry_run {
            Condition::Stopped(found.index.is_empty())
        } else {
            superblocks.want(Reason::Session);
            Condition::Opening
        };
        let Recovered { options, devices, mut io, superblock, sealed, index, log, findings, .. } = found;
        let now = io.now();
        let marked = options.identity.map_or_else(Mark::default, |identity| identity.marked);
        let mut unreadable = ExtentMap::default();
        superblock.unreadable.iter().for_each(|range| unreadable.insert(*range, ()));
        let mut core = Self {
            options,
            devices,
            io: io.continued(),
            condition,
            superblock,
            superblocks,
            marks: Marks::opened(marked, now),
            index,
            unreadable,
            log,
            writes: Writes::default(),
            flushes: Flushes::opened(),
            gathers: BTreeMap::new(),
            gathers_next: 0,
            destage: Destage::default(),
            resilver: None,
            seal: None,
            pace: Pace::new(now),
            figures: Figures::default(),
            findings,
        };
        // A leg that was being copied to when the cache ended is copied to again.
        let half = core.superblock.legs.iter().position(|state| *state == LegState::Resilvering);
        half.into_iter().for_each(|leg| core.begin_resilver(leg));
        if let Some(because) = sealed.filter(|_| core.condition == Condition::Opening) {
            core.seal(because);
        }
        core
    }

    /// Takes a request.
    pub(crate) fn submit(&mut self, request: Request) {
        let now = self.io.now();
        let asked = ClientRequest { tag: request.tag, at: now };
        if let Err(errno) = self.admissible(&request) {
            self.io.refuse(&asked, errno, request.payload);
            return;
        }
        self.pace.last_asked = now;
        match request.op {
            Op::Read => self.read(asked, request.range, request.payload),
            Op::Flush => self.ask_flush(asked, Payload::None),
            Op::Write { .. } | Op::Discard | Op::WriteZeroes { .. } => self.write(asked, request),
        }
    }

    /// Checks that the request can be done at all.
    fn admissible(&self, request: &Request) -> Result<(), Errno> {
        let stopped = matches!(self.condition, Condition::Stopping(_) | Condition::Stopped(_));
        let latched = self.latched().is_some() && request.op != Op::Read;
        if stopped || latched {
            return Err(Errno::EIO);
        }
        if request.op == Op::Flush {
            return Ok(());
        }
        let backing = self.devices.backing();
        if !backing.holds(request.range) {
            return Err(Errno::EINVAL);
        }
        let length = backing.length_of(request.range).0;
        let fits = match (&request.op, &request.payload) {
            (Op::Read, Payload::Into(buffer)) => buffer.len() as u64 == length,
            (Op::Write { .. }, Payload::Bytes(buffer)) => buffer.len() as u64 == length,
            (Op::Write { .. }, Payload::Pattern(_)) => true,
            (Op::Write { .. }, _) => false,
            (_, payload) => matches!(payload, Payload::None),
        };
        match request.op {
            _ if !fits => Err(Errno::EINVAL),
            Op::Discard if backing.discard_max == Bytes(0) => Err(Errno::EOPNOTSUPP),
            _ => Ok(()),
        }
    }

    /// Takes the end of an action.
    pub(crate) fn completed(&mut self, id: ActionId, outcome: Outcome, payload: Payload) {
        match self.io.take(id) {
            None => {}
            Some(Then::Superblock { leg }) => self.superblock_completed(leg, outcome),
            Some(Then::Record { sequence, leg }) => self.record_completed(sequence, leg, outcome),
            Some(Then::Flush { leg, purpose }) => self.flush_completed(leg, purpose, outcome),
            Some(Then::Part(part)) => self.part_completed(*part, outcome, payload),
            Some(Then::Copy(copy)) => self.copy_completed(copy, outcome),
            Some(Then::Bypass { client }) => self.bypass_completed(client, outcome, payload),
            Some(Then::Destage { run, at }) => self.destage_completed(&run, at, outcome),
        }
    }

    /// Lets every part go on until none can.
    pub(crate) fn pump(&mut self) {
        loop {
            let before = self.io.steps();
            self.advance_failed_records();
            self.advance_seal();
            self.write_superblocks();
            self.go_on_growing();
            self.apply_records();
            self.advance_flushes();
            self.advance_marks();
            self.fill_records();
            self.go_on_with_destaging();
            self.go_on_with_resilver();
            self.go_on_with_gathers();
            self.go_on_stopping();
            if self.io.steps() == before {
                return;
            }
        }
    }

    /// Returns the next time at which something is due.
    pub(crate) fn next_event(&self) -> Option<Nanos> {
        if !self.is_serving() {
            return None;
        }
        let due = [self.writes.due(), self.destage_due(), self.mark_due()];
        due.into_iter().flatten().filter(|due| *due > self.io.now()).min()
    }

    /// Returns true if requests are carried out.
    pub(crate) fn is_serving(&self) -> bool {
        matches!(self.condition, Condition::Serving | Condition::Stopping(_))
    }

    /// Returns the latch that stopped everything but reads, if there is one.
    pub(crate) fn latched(&self) -> Option<Latch> {
        match self.condition {
            Condition::Latched(_, latch) => Some(latch),
            _ => None,
        }
    }

    /// Stops everything but reads, for good.
    pub(crate) fn latch(&mut self, because: String, errno: Errno) {
        if self.latched().is_some() {
            return;
        }
        self.condition = Condition::Latched(because, Latch { errno, at: self.io.now() });
        self.io.step();
        self.fail_writes();
        for (asked, payload) in self.flushes.fail() {
            self.io.refuse(&asked, Errno::EIO, payload);
        }
    }

    /// Stops everything but reads, because the backing device cannot be marked.
    pub(crate) fn latch_unmarked(&mut self, because: &str) {
        self.latch(format!("the backing device does not take its mark: {because}"), Errno::EIO);
    }

    /// Acknowledges writes by another rule from now on.
    pub(crate) fn set_mode(&mut self, mode: Mode) {
        if mode == self.options.mode {
            return;
        }
        // Data that was taken to be durable has to be flushed once nobody vouches for the legs any more. A
        // sealed log was flushed.
        if self.options.mode == Mode::Protected && self.seal.is_none() {
            self.flushes.distrust_legs();
        }
        if mode == Mode::Protected && self.flushes.has_bypassed() {
            // Writes that bypassed the log before need not be durable.
            self.flushes.want();
        }
        self.options.mode = mode;
        self.log.set_ordered(mode == Mode::Ordered);
    }

    /// Ends the service of new requests.
    pub(crate) fn stop(&mut self, is_clean: bool) {
        if matches!(self.condition, Condition::Opening | Condition::Serving | Condition::Stopping(_)) {
            self.condition = Condition::Stopping(is_clean);
            if is_clean {
                self.begin_drain();
            }
        }
    }

    fn go_on_stopping(&mut self) {
        let Condition::Stopping(is_clean) = self.condition else { return };
        let is_draining = is_clean && self.destage.is_draining;
        let is_busy = !self.writes.is_empty() || !self.gathers.is_empty() || self.destage.is_busy();
        if is_busy || is_draining || !self.flushes.is_idle() || !self.io.is_idle() {
            return;
        }
        if self.flushes.has_bypassed() || self.log.durable < self.log.complete {
            // Only now nothing can complete that the flush would not cover.
            self.flushes.want();
            self.io.step();
        } else if let Some(seal) = &self.seal {
            if seal.is_ready() && !seal.is_moving() && self.is_marked() {
                let is_empty = self.index.dirty().all() == 0 && self.unreadable_now().is_empty();
                self.condition = Condition::Stopped(is_clean && is_empty);
                self.io.step();
            }
        } else if !self.superblocks.is_busy() {
            self.superblocks.want(Reason::Stop);
            self.io.step();
        }
    }

    /// Answers a client once what is complete now is durable.
    pub(crate) fn ask_flush(&mut self, asked: ClientRequest, payload: Payload) {
        let joins = !self.options.waits.hold(Wait::FlushCovers);
        self.flushes.add(asked, payload, joins);
    }

    /// Ends the round of flushes that is over, and begins the next one.
    fn advance_flushes(&mut self) {
        if self.may_acknowledge()
            && let Some(round) = self.flushes.end()
        {
            self.log.durable = self.log.durable.max(round.covered);
            self.figures.flushes += round.waiters.len() as u64;
            for (asked, payload) in round.waiters {
                self.io.answer(&asked, Outcome::Done, payload);
            }
            self.io.step();
        }
        if !self.is_serving() {
            return;
        }
        let Some(needs) = self.flushes.begin(&self.log, self.options.mode) else { return };
        if needs.legs {
            self.flush_legs(Purpose::LogFlush);
        }
        if needs.backing {
            self.flush(None, Purpose::BypassFlush);
        }
        // Data written from now on may reach the backing device only after the data that this round covers.
        self.log.flush_epoch += 1;
        self.io.step();
    }

    /// Returns the counter of the actions that are waited for with a flush of this purpose; `None` if nothing
    /// waits for it.
    fn left(&mut self, purpose: Purpose) -> Option<&mut usize> {
        let wait = match purpose {
            Purpose::LogFlush | Purpose::BypassFlush => {
                return self.flushes.left();
            }
            Purpose::BackingFlushBeforeMark => return Some(&mut self.marks.left),
            Purpose::SealFlush => return self.seal.as_mut().and_then(Seal::left),
            Purpose::ResilverFlush => return self.resilver.as_mut().map(|resilver| &mut resilver.in_flight),
            Purpose::LogFlushBeforeDestage | Purpose::BackingFlushBeforeDestage => Wait::DurableBeforeDestage,
            Purpose::BackingFlushBeforeTail => Wait::BackingDurable,
            Purpose::LogFlushBeforeTail => Wait::SuccessorsDurable,
            _ => return self.superblocks.left(),
        };
        if self.options.waits.hold(wait) { self.destage.left() } else { None }
    }

    /// Flushes a leg or, without one, the backing device.
    pub(crate) fn flush(&mut self, leg: Option<usize>, purpose: Purpose) {
        let (member, count) = match leg {
            Some(leg) => (Member::Leg(leg), &mut self.figures.leg_flushes),
            None => (Member::Backing, &mut self.figures.backing_flushes),
        };
        *count += 1;
        self.io.issue(Command::flush(member, purpose), Then::Flush { leg, purpose });
        self.left(purpose).into_iter().for_each(|left| *left += 1);
    }

    /// Flushes the legs that are written.
    pub(crate) fn flush_legs(&mut self, purpose: Purpose) {
        self.superblock.written().iter().for_each(|leg| self.flush(Some(leg), purpose));
    }

    /// A leg or, without one, the backing device was flushed, or failed it.
    fn flush_completed(&mut self, leg: Option<usize>, purpose: Purpose, outcome: Outcome) {
        match leg {
            _ if outcome.is_done() => {}
            Some(leg) => self.lose_leg(leg, LegFailure::Flush, outcome),
            // Nobody can tell what of all that was written since the flush before is on the device.
            None => {
                let because = "the backing device failed a flush: what went past the log since the flush before may be lost, and the log has \
                               the rest; open the cache again once the device is well";
                self.latch(because.to_owned(), errno_of(outcome));
            }
        }
        self.left(purpose).into_iter().for_each(|left| *left -= 1);
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

    /// Goes on without a leg that failed: nothing is acknowledged until the superblocks of the others say so
    /// (order (e)). Without another one that has all, the log is not written any more.
    pub(crate) fn lose_leg(&mut self, leg: usize, failure: LegFailure, outcome: Outcome) {
        if self.superblock.legs[leg] == LegState::Lost {
            return;
        }
        if self.seal.as_ref().is_some_and(Seal::is_moving) {
            return self.fail_move(leg, failure, outcome);
        }
        if self.is_last(leg) {
            return self.fail_log(leg, failure, outcome);
        }
        self.figures.legs_lost += 1;
        if self.seal.is_some() {
            // A sealed log cannot say so. The other has everything.
            self.superblock.legs[leg] = LegState::Lost;
        } else {
            self.set_leg(leg, LegState::Lost);
        }
    }

    /// Returns true if no other leg has what this one has.
    pub(crate) fn is_last(&self, leg: usize) -> bool {
        self.log.geometry.layout == Layout::Stripe || self.superblock.live().eq([leg])
    }

    /// A leg failed for which no other can stand in. After a failed flush nobody can tell what the leg has,
    /// so everything stops; that of an opening flushed nothing that was acknowledged. A record is written
    /// once more. Otherwise the log is sealed, where the mark can say so.
    fn fail_log(&mut self, leg: usize, failure: LegFailure, outcome: Outcome) {
        let because = format!("device {leg} of the log {}, and no other has what it has", failure.words());
        let is_open = matches!(self.condition, Condition::Serving | Condition::Stopping(_));
        let has_unknown = failure == LegFailure::Flush && self.condition != Condition::Opening;
        match failure {
            LegFailure::Record
                if is_open
                    && (self.seal.is_some()
                        || self.log.first_failed().is_some_and(|it| self.log.may_retry(it.place))) => {}
            _ if has_unknown || self.options.identity.is_none() => {
                self.latch(format!("{because}: what was not flushed may be lost"), errno_of(outcome));
            }
            _ => self.seal(format!("{because} ({})", errno_of(outcome))),
        }
    }

    /// Ends the writing of the log: what it holds is written back, and writes go past it. See
    /// [`seal`](crate::seal).
    fn seal(&mut self, because: String) {
        if self.seal.is_some()
            || !matches!(self.condition, Condition::Opening | Condition::Serving | Condition::Stopping(_))
        {
            return;
        }
        // A later one that a leg shows may be what a failed write has left there until a power cut.
        self.seal = Some(Seal::new(because, self.marks.durable.session));
        self.superblocks.abandon();
        self.marks.abandon_flush();
        // A leg that is being copied to has not everything, and nothing can have it count.
        self.superblock
            .legs
            .iter_mut()
            .filter(|state| **state == LegState::Resilvering)
            .for_each(|state| *state = LegState::Lost);
        self.superblock.geometry = self.log.geometry;
        self.log.grows_to = None;
        self.figures.is_full = false;
        self.begin_drain();
        if self.condition == Condition::Opening {
            self.condition = Condition::Serving;
        }
        self.io.step();
    }

    /// Writes records that failed once more, in the next segment, once all others are answered. A session
    /// begins with that, so that what landed of them all the same is not replayed.
    fn advance_failed_records(&mut self) {
        if self.seal.is_some() || !self.is_serving() || !self.log.is_answered() {
            return;
        }
        let Some(sequence) = self.log.first_failed().map(|header| header.place.sequence) else { return };
        let withdrawn = self.log.withdraw(sequence);
        self.figures.records_retried += withdrawn.len() as u64;
        self.writes.requeue(withdrawn, self.log.geometry.logical_block);
        self.log.retried = Some(sequence);
        self.begin_session();
        self.begin_epoch();
    }

    /// Goes on with the sealing of a log.
    fn advance_seal(&mut self) {
        let Some(seal) = &mut self.seal else { return };
        if seal.is_answering() && self.log.is_answered() {
            // Records that are not in the index are written again past the log.
            let withdrawn = self.log.withdraw(0);
            self.writes.requeue(withdrawn, self.log.geometry.logical_block);
            seal.begin_flush();
            self.io.step();
            // Records that recovery has read may not be durable.
            if !self.marks.durable.is_sealed {
                self.flush_legs(Purpose::SealFlush);
            }
        } else if seal.end_flush() {
            self.log.durable = self.log.complete;
            self.io.step();
        } else if self.marks.durable.is_sealed && self.marks.durable.tail >= self.superblock.tail.sequence {
            self.free_until(self.superblock.tail.segment);
        }
    }

    /// Ends the writing of the log because another is to take its place: see
    /// [`Cache::retire_log`](crate::Cache::retire_log).
    pub(crate) fn retire_log(&mut self) -> Result<(), String> {
        if self.condition != Condition::Serving || self.options.identity.is_none() {
            return Err("the cache does not serve".to_owned());
        }
        self.seal("another log is to take its place: `plumb cache replace-log` goes on with that".to_owned());
        Ok(())
    }

    /// Returns true if everything in a sealed log is on the backing device, which says so, and nothing reads
    /// the log any more.
    pub(crate) fn is_log_spent(&self) -> bool {
        let is_sealed =
            self.seal.as_ref().is_some_and(|seal| seal.is_ready() && !seal.is_moving()) && self.is_marked();
        let is_of_leg = |then: &Then| match then {
            Then::Superblock { .. }
            | Then::Record { .. }
            | Then::Copy(_)
            | Then::Flush { leg: Some(_), .. } => true,
            Then::Flush { leg: None, .. } | Then::Part(_) | Then::Bypass { .. } | Then::Destage { .. } => {
                false
            }
        };
        is_sealed
            && !self.io.any(is_of_leg)
            && self.log.used() == 0
            && self.log.segments.is_empty()
            && self.is_tail_marked()
            && self.marks.request.is_none()
    }

    /// Has another log take the place of a sealed one: see [`Cache::move_log`](crate::Cache::move_log).
    pub(crate) fn move_log(&mut self, geometry: Geometry, legs: Vec<DeviceInfo>) -> Result<(), String> {
        let is_spent = self.is_log_spent() && self.condition == Condition::Serving;
        let Some(seal) = self.seal.as_mut().filter(|_| is_spent) else {
            return Err("not everything in its log is on the backing device yet".to_owned());
        };
        seal.begin_move();
        let log = Log::empty(geometry, self.log.next_sequence, self.log.flush_epoch + 1);
        self.superblock = Superblock {
            geometry,
            legs: vec![LegState::Live; legs.len()],
            epoch: self.superblock.epoch + 1,
            session: self.superblock.session + 1,
            tail: log.tail_at(0),
            durable: log.durable,
            first: log.next_sequence,
            ..self.superblock.clone()
        };
        self.superblocks = Superblocks::blank(&self.superblock);
        self.superblocks.want(Reason::Session);
        self.devices.set_legs(legs.into_iter().map(Some).collect());
        self.log = log;
        self.log.set_ordered(self.options.mode == Mode::Ordered);
        self.io.step();
        Ok(())
    }

    /// A device of the new log failed before anything needs it.
    fn fail_move(&mut self, leg: usize, failure: LegFailure, outcome: Outcome) {
        let (words, errno) = (failure.words(), errno_of(outcome));
        self.superblocks.abandon();
        if let Some(seal) = &mut self.seal {
            seal.fail_move(format!("device {leg} of the log that was to take its place {words} ({errno})"));
        }
        self.io.step();
    }

    /// The backing device names the session of the new log.
    pub(crate) fn end_move(&mut self) {
        self.seal = None;
        self.destage.is_draining = false;
        self.io.step();
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

    /// Sends `command`, which writes to a leg blocks that another has. Their segment is pinned until it
    /// completes.
    pub(crate) fn copy_to(&mut self, copy: Copy, command: Command) {
        self.log.pin(copy.segment);
        self.io.issue(command, Then::Copy(copy));
    }

    fn copy_completed(&mut self, copy: Copy, outcome: Outcome) {
        let Copy { leg, segment, part } = copy;
        self.log.unpin(segment);
        if !outcome.is_done() {
            self.lose_leg(leg, LegFailure::Copy, outcome);
        } else if part.is_none() {
            self.figures.repaired += 1;
        }
        part.into_iter().for_each(|part| self.part_ended(&part, Ok(()), None));
    }

    pub(crate) fn state(&self) -> State {
        match &self.condition {
            Condition::Opening => State::Recovering,
            Condition::Serving | Condition::Stopping(_) => State::Serving,
            Condition::Stopped(is_clean) => State::Stopped { is_clean: *is_clean },
            Condition::Latched(because, _) => State::Latched { because: because.clone() },
        }
    }

    /// Returns the legs as the durable superblocks have them, but for one that has begun to be copied to.
    fn legs_shown(&self) -> Vec<LegState> {
        let legs = self.superblocks.durable.legs.iter().zip(&self.superblock.legs);
        let shown = legs.map(|legs| match legs {
            (LegState::Lost, LegState::Resilvering) => LegState::Resilvering,
            (durable, _) => *durable,
        });
        shown.collect()
    }

    /// Returns the blocks that were left out, and have not been overwritten.
    fn unreadable_now(&self) -> Vec<LbaRange> {
        let left = self.unreadable.iter().flat_map(|(range, ())| self.index.over(range));
        left.filter(|(_, entry)| entry.is_unreadable()).map(|(range, _)| range).collect()
    }

    pub(crate) fn status(&self) -> Status {
        let geometry = &self.log.geometry;
        let segment = geometry.segment_bytes();
        let (dirty, block) = (self.index.dirty(), geometry.logical_block);
        let oldest = self.log.segments.get(&self.log.tail);
        Status {
            state: self.state(),
            mode: self.options.mode,
            layout: geometry.layout,
            legs: self.legs_shown(),
            log: Bytes(geometry.count() * segment),
            log_used: Bytes(self.log.used() * segment),
            dirty: Bytes(dirty.data * block),
            zeroed: Bytes(dirty.zeroes * block),
            unreadable: self.unreadable_now(),
            is_ordered: self.log.tail >= self.log.ordered_at,
            oldest: oldest.map(|segment| self.io.now().since(segment.opened_at)),
            drain_rate: self.pace.rate,
            drain_eta: self.drain_eta(),
            is_growing: self.log.grows_to.is_some(),
            log_error: self.seal.as_ref().map(|seal| seal.because().to_owned()),
            is_draining: self.destage.is_draining,
            destage_error: self.destage.failing.as_ref().map(|(_, because)| because.clone()),
            figures: self.figures,
            findings: self.findings.clone(),
        }
    }
}
