//! Drives the queues of a device and judges every completion and every block that comes back.
//!
//! A session writes only patterns of its own seed, each write with a generation of its own, so that every
//! block read tells which version it is. Its moments are those of the submitter: submission before the device
//! can have seen the request, completion after the device has answered. That makes its judgement weaker than
//! the truth, never wrong.

mod after_cut;
mod seen;

use std::collections::BTreeMap;
use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::crash_rules::{Content, History, Moment, Version};
use super::rig::{CannotStage, Rig};
use crate::buffer::Pool;
use crate::device::{Device, Queue, QueueFull, Wait};
use crate::error::Errno;
use crate::info::{DeviceInfo, VolatileCache};
use crate::pattern::Pattern;
use crate::request::{Completion, LbaRange, Op, Outcome, Payload, Request, Tag};
use crate::units::{Lba, Nanos};
pub use seen::BlockContent;
use seen::{Shape, check_payload};

/// Number of polls without a completion after which a request counts as lost.
const PATIENCE: u32 = 400;
/// Time that one poll may wait, in real time.
const POLL_WAIT: Nanos = Nanos::millis(100);

/// Reason why a check ended early.
#[derive(Debug)]
pub(super) enum Stop {
    Failed(String),
    Skipped(String),
}

impl From<CannotStage> for Stop {
    fn from(cannot: CannotStage) -> Self {
        Self::Skipped(cannot.0)
    }
}

pub(super) type CheckResult<T = ()> = Result<T, Stop>;

/// Ends a check as failed.
pub(super) fn fail<T>(why: impl Into<String>) -> CheckResult<T> {
    Err(Stop::Failed(why.into()))
}

/// Form of a request's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carrier {
    None,
    Buffer,
    Pattern,
}

/// A request under way.
struct Pending {
    queue: usize,
    op: Op,
    range: LbaRange,
    submitted: Moment,
    generation: u64,
    payload: Shape,
    clock: Nanos,
}

pub(super) struct Session<'r> {
    pub(super) rig: &'r mut dyn Rig,
    pub(super) device: Arc<dyn Device>,
    pub(super) info: DeviceInfo,
    pub(super) pool: Pool,
    pub(super) queues: Vec<Box<dyn Queue>>,
    pub(super) random: Xoshiro256PlusPlus,
    pub(super) range: LbaRange,
    seed: u64,
    moment: Moment,
    next: u64,
    pending: BTreeMap<Tag, Pending>,
    ended: BTreeMap<Tag, Outcome>,
    blocks: BTreeMap<Lba, History<Content>>,
}

/// A queue that is dropped waits for its requests, so none may stay held.
impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.rig.release_held();
    }
}

impl<'r> Session<'r> {
    /// Returns a renewed device with `queues` queues, every block written once and flushed.
    pub(super) fn start(rig: &'r mut dyn Rig, seed: u64, queues: usize) -> CheckResult<Self> {
        let mut session = Self::bare(rig, seed, queues)?;
        session.baseline()?;
        Ok(session)
    }

    /// Starts a session on a renewed device with `queues` queues, without writing anything.
    pub(super) fn bare(rig: &'r mut dyn Rig, seed: u64, queues: usize) -> CheckResult<Self> {
        let device = rig.renew().or_else(|error| fail(format!("no device: {error}")))?;
        let mut session = Self {
            info: device.info(),
            pool: rig.queue_options().pool,
            range: rig.range(),
            queues: Vec::new(),
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            seed,
            moment: 1,
            next: 1,
            pending: BTreeMap::new(),
            ended: BTreeMap::new(),
            blocks: BTreeMap::new(),
            device,
            rig,
        };
        session.open_queues(queues)?;
        Ok(session)
    }

    fn open_queues(&mut self, count: usize) -> CheckResult {
        for _ in 0..count {
            let queue = self.device.open_queue(self.rig.queue_options());
            self.queues.push(queue.or_else(|error| fail(format!("no queue: {error}")))?);
        }
        Ok(())
    }

    fn baseline(&mut self) -> CheckResult {
        for part in self.parts(8) {
            let generation = self.next;
            let tag = self.submit(0, Op::Write { fua: false }, part, Carrier::Pattern)?;
            self.must_be_done(tag)?;
            for lba in part.lba.0..part.end().0 {
                self.blocks.insert(Lba(lba), History::starting_with(Content::Generation(generation)));
            }
        }
        let flush = self.submit(0, Op::Flush, LbaRange::EMPTY, Carrier::None)?;
        self.must_be_done(flush)
    }

    /// Returns the seed of the session's patterns.
    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the range in parts of `nlb` blocks.
    pub(super) fn parts(&self, nlb: u64) -> Vec<LbaRange> {
        let end = self.range.end().0;
        let starts = (self.range.lba.0..end).step_by(nlb as usize);
        starts.map(|lba| LbaRange::new(Lba(lba), nlb.min(end - lba))).collect()
    }

    /// Returns a number below `bound`.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound.max(1)
    }

    /// Returns a part of the range of 1 to 4 blocks.
    pub(super) fn some_part(&mut self) -> LbaRange {
        let nlb = 1 + self.below(4);
        let lba = self.range.lba.0 + self.below(self.range.nlb - nlb + 1);
        LbaRange::new(Lba(lba), nlb)
    }

    fn tick(&mut self) -> Moment {
        self.moment += 1;
        self.moment
    }

    /// Submits a request; polls while the queue is full.
    pub(super) fn submit(
        &mut self,
        queue: usize,
        op: Op,
        range: LbaRange,
        carrier: Carrier,
    ) -> CheckResult<Tag> {
        let (tag, mut request) = self.prepare(queue, op, range, carrier, None)?;
        for _ in 0..PATIENCE {
            match self.queues[queue].submit(request) {
                Ok(()) => return Ok(tag),
                Err(QueueFull(back)) if back.tag == tag => request = back,
                Err(QueueFull(back)) => {
                    return fail(format!("a full queue gave back tag {} instead of {}", back.tag.0, tag.0));
                }
            }
            self.poll_all()?;
        }
        fail(format!("queue {queue} stays full"))
    }

    /// Returns a request, entered in the books as submitted; the caller submits it.
    pub(super) fn prepare(
        &mut self,
        queue: usize,
        op: Op,
        range: LbaRange,
        carrier: Carrier,
        deadline: Option<Nanos>,
    ) -> CheckResult<(Tag, Request)> {
        let tag = Tag(self.next);
        let generation = self.next;
        self.next += 1;
        let submitted = self.tick();
        let payload = self.payload(op, range, carrier, generation)?;
        let shape = Shape::from_payload(&payload);
        let content = match op {
            Op::Write { .. } => Some((Content::Generation(generation), true)),
            Op::Discard => Some((Content::Zeroes, self.info.discard_zeroes)),
            Op::WriteZeroes { .. } => Some((Content::Zeroes, true)),
            Op::Read | Op::Flush => None,
        };
        if let Some((content, displaces)) = content {
            for lba in range.lba.0..range.end().0 {
                let history = self.blocks.entry(Lba(lba));
                let history = history.or_insert_with(|| History { versions: Vec::new() });
                history.versions.push(Version::submitted(content, submitted, displaces));
            }
        }
        let clock = self.rig.clock().now();
        let pending = Pending { queue, op, range, submitted, generation, payload: shape, clock };
        self.pending.insert(tag, pending);
        Ok((tag, Request { tag, op, range, payload, deadline }))
    }

    fn payload(
        &mut self,
        op: Op,
        range: LbaRange,
        carrier: Carrier,
        generation: u64,
    ) -> CheckResult<Payload> {
        let pattern = Pattern { seed: self.seed, lba: range.lba, generation };
        let length = self.info.length_of(range);
        let no_buffer = || Stop::Failed(format!("the rig's pool has no buffer of {length} left"));
        Ok(match (op, carrier) {
            (Op::Write { .. }, Carrier::Pattern) => Payload::Pattern(pattern),
            (Op::Write { .. }, _) => {
                let mut buffer = self.pool.take(length).ok_or_else(no_buffer)?;
                pattern.fill(self.info.logical_block.0 as usize, &mut buffer);
                Payload::Bytes(buffer.freeze())
            }
            (Op::Read, Carrier::Buffer) => Payload::Into(self.pool.take(length).ok_or_else(no_buffer)?),
            _ => Payload::None,
        })
    }

    /// Polls every queue once, lets time pass, and judges what came.
    pub(super) fn poll_all(&mut self) -> CheckResult {
        for queue in 0..self.queues.len() {
            // Wait only if a completion can come.
            let waiting = self.pending.values().any(|pending| pending.queue == queue);
            let deadline = self.rig.clock().now().saturating_add(POLL_WAIT);
            let wait = if waiting { Wait::one_until(deadline) } else { Wait::NONE };
            self.poll_one(queue, wait)?;
        }
        self.rig.let_time_pass();
        Ok(())
    }

    /// Polls one queue and judges what came.
    pub(super) fn poll_one(&mut self, queue: usize, wait: Wait) -> CheckResult {
        let mut completions = Vec::new();
        let count = self.queues[queue]
            .poll(wait, &mut completions)
            .or_else(|error| fail(format!("polling queue {queue}: {error}")))?;
        if count != completions.len() {
            return fail(format!("poll said {count} completions and appended {}", completions.len()));
        }
        completions.iter().try_for_each(|completion| self.accept(queue, completion))
    }

    fn accept(&mut self, queue: usize, completion: &Completion) -> CheckResult {
        let tag = completion.tag;
        let Some(pending) = self.pending.remove(&tag) else {
            return match self.ended.get(&tag) {
                Some(outcome) => fail(format!("tag {} came twice, first as {outcome:?}", tag.0)),
                None => fail(format!("tag {} was never submitted", tag.0)),
            };
        };
        if pending.queue != queue {
            return fail(format!("tag {} went into queue {} and came out of {queue}", tag.0, pending.queue));
        }
        self.ended.insert(tag, completion.outcome);
        let now = self.rig.clock().now();
        let (begin, end) = (completion.submitted_at, completion.completed_at);
        if !(pending.clock <= begin && begin <= end && end <= now) {
            return fail(format!(
                "tag {}: submitted at {} by the submitter, at {} and completed at {} by the queue, seen at {}",
                tag.0, pending.clock.0, begin.0, end.0, now.0
            ));
        }
        check_payload(&pending, completion)?;
        let completed = self.tick();
        match pending.op {
            Op::Read => self.judge_read(&pending, completion, completed),
            Op::Flush if completion.outcome.is_done() => {
                self.blocks.values_mut().for_each(|history| history.flushed(pending.submitted));
                Ok(())
            }
            Op::Flush => Ok(()),
            Op::Write { fua } | Op::WriteZeroes { fua, .. } => {
                self.written(&pending, completion.outcome, completed, fua);
                Ok(())
            }
            Op::Discard => {
                self.written(&pending, completion.outcome, completed, false);
                Ok(())
            }
        }
    }

    fn written(&mut self, pending: &Pending, outcome: Outcome, completed: Moment, fua: bool) {
        let is_durable = fua || self.info.volatile_cache == VolatileCache::None;
        for lba in pending.range.lba.0..pending.range.end().0 {
            let Some(history) = self.blocks.get_mut(&Lba(lba)) else { continue };
            let version =
                history.versions.iter_mut().rev().find(|version| version.submitted == pending.submitted);
            let Some(version) = version else { continue };
            match outcome {
                Outcome::Done => {
                    version.completed = Some(completed);
                    version.is_durable |= is_durable;
                }
                Outcome::Failed(_) | Outcome::Unknown => version.is_lost_track_of = true,
                Outcome::PowerLost => {}
            }
        }
    }

    fn judge_read(&mut self, pending: &Pending, completion: &Completion, completed: Moment) -> CheckResult {
        let block = self.info.logical_block.0 as usize;
        for (index, lba) in (pending.range.lba.0..pending.range.end().0).enumerate() {
            let Some(history) = self.blocks.get(&Lba(lba)) else { continue };
            let allowed = history.readable(pending.submitted, completed);
            match (completion.outcome, &completion.payload) {
                (Outcome::Done, Payload::Into(buffer)) => {
                    let bytes = &buffer[index * block..(index + 1) * block];
                    let seen = BlockContent::from_bytes(bytes, self.seed, Lba(lba));
                    let contents: Vec<_> =
                        allowed.versions.iter().map(|version| history.versions[*version].content).collect();
                    let at = Pattern { seed: self.seed, lba: Lba(lba), generation: 0 };
                    let may_be_mixed = allowed.may_be_mixed && self.rig.is_page_cached();
                    let is_mixture = || may_be_mixed && BlockContent::is_mixture(bytes, at, &contents);
                    if !seen.is_one_of(&contents) && !is_mixture() {
                        return fail(format!("LBA {lba} reads as {seen:?}, allowed is {contents:?}"));
                    }
                }
                (Outcome::Failed(Errno::EIO), _) if !allowed.may_be_unreadable && pending.range.nlb == 1 => {
                    return fail(format!("LBA {lba} is unreadable without a reason"));
                }
                (Outcome::Failed(errno), _) if errno != Errno::EIO => {
                    return fail(format!("reading LBA {lba} failed with {errno:?}"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Polls until nothing is under way.
    pub(super) fn finish_all(&mut self) -> CheckResult {
        for _ in 0..PATIENCE {
            if self.pending.is_empty() {
                return Ok(());
            }
            self.poll_all()?;
        }
        let lost: Vec<_> = self.pending.iter().map(|(tag, pending)| (tag.0, pending.op)).collect();
        fail(format!("never completed: {lost:?}"))
    }

    /// Polls until `tag` has ended, and returns its outcome.
    pub(super) fn outcome_of(&mut self, tag: Tag) -> CheckResult<Outcome> {
        for _ in 0..PATIENCE {
            if let Some(outcome) = self.ended.get(&tag) {
                return Ok(*outcome);
            }
            self.poll_all()?;
        }
        fail(format!("tag {} never completed", tag.0))
    }

    /// Polls until `tag` has ended, which must be as done.
    pub(super) fn must_be_done(&mut self, tag: Tag) -> CheckResult {
        match self.outcome_of(tag)? {
            Outcome::Done => Ok(()),
            other => fail(format!("tag {} ended as {other:?}", tag.0)),
        }
    }

    /// Returns the number of requests under way.
    pub(super) fn under_way(&self) -> usize {
        self.pending.len()
    }

    /// Reads the whole range block by block and judges it.
    pub(super) fn read_all(&mut self, queue: usize) -> CheckResult {
        for part in self.parts(1) {
            self.submit(queue, Op::Read, part, Carrier::Buffer)?;
            if self.under_way() >= 4 {
                self.finish_all()?;
            }
        }
        self.finish_all()
    }
}
