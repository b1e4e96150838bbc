//! The inside of the model: requests from their hand-over to their answer, and what they do to the medium.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::bug::Bug;
use super::device::ModelOptions;
use super::medium::{Effect, Medium, StoredVersion};
use crate::conformance::crash_rules::{Moment, Version};
use crate::device::Latch;
use crate::error::Errno;
use crate::info::ExtentState;
use crate::pattern::Pattern;
use crate::request::{Completion, LbaRange, Op, Outcome, Payload, Request, Tag};
use crate::units::{Bytes, Nanos};

/// The longest that a request takes, in nanoseconds.
const SERVICE_MAX_NS: u64 = 200_000;

/// Inner state of the device, behind one lock.
pub(super) struct State {
    pub(super) medium: Medium,
    pub(super) random: Xoshiro256PlusPlus,
    pub(super) moment: Moment,
    pub(super) jobs: Vec<Job>,
    pub(super) queues: u64,
    pub(super) latch: Option<(Latch, u64)>,
    pub(super) fail_next_flush: bool,
    pub(super) hold_next: bool,
    pub(super) looks: u64,
}

/// A request that the device has.
pub(super) struct Job {
    pub(super) queue: u64,
    request: Request,
    submitted: Moment,
    submitted_at: Nanos,
    /// Time of the answer; `None` while the request is held.
    pub(super) due: Option<Nanos>,
    is_abandoned: bool,
    pub(super) is_cut_off: bool,
}

impl State {
    /// Creates a device that was never used.
    pub(super) fn new(options: &ModelOptions) -> Self {
        Self {
            medium: Medium::new(options.logical_block, options.bug),
            random: Xoshiro256PlusPlus::seed_from_u64(options.seed),
            moment: 1,
            jobs: Vec::new(),
            queues: 0,
            latch: None,
            fail_next_flush: false,
            hold_next: false,
            looks: 0,
        }
    }

    fn tick(&mut self) -> Moment {
        self.moment += 1;
        self.moment
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.random.next_u64().is_multiple_of(chances)
    }

    pub(super) fn hand_over(
        &mut self,
        queue: u64,
        mut request: Request,
        submitted: Moment,
        now: Nanos,
        options: &ModelOptions,
    ) {
        let service = Nanos(1 + self.random.next_u64() % SERVICE_MAX_NS);
        let is_held = std::mem::take(&mut self.hold_next);
        if options.bug == Some(Bug::RangeWraps) && request.op != Op::Flush {
            request.range.lba.0 %= options.blocks;
            request.range.nlb = request.range.nlb.clamp(1, options.blocks - request.range.lba.0);
        }
        if check(&request, options).is_ok() {
            self.begin(queue, &request, submitted, options);
        }
        let due = (!is_held).then(|| now.saturating_add(service));
        self.jobs.push(Job {
            queue,
            request,
            submitted,
            submitted_at: now,
            due,
            is_abandoned: false,
            is_cut_off: false,
        });
    }

    /// Records a write that may land from now on.
    fn begin(&mut self, queue: u64, request: &Request, submitted: Moment, options: &ModelOptions) {
        let is_discard = request.op == Op::Discard;
        if !matches!(request.op, Op::Write { .. } | Op::WriteZeroes { .. } | Op::Discard) {
            return;
        }
        let bytes = bytes_of(request, options);
        let length = options.logical_block.0 as usize;
        for (lba, bytes) in (request.range.lba.0..request.range.end().0).zip(bytes.chunks(length)) {
            let stored = StoredVersion { bytes: bytes.to_vec(), queue, is_discard };
            let displaces = !is_discard || options.discard_zeroes;
            self.medium.begin(lba, Version::submitted(stored, submitted, displaces));
        }
    }

    pub(super) fn answer(
        &mut self,
        queue: u64,
        now: Nanos,
        options: &ModelOptions,
        completions: &mut Vec<Completion>,
    ) {
        let bug = options.bug;
        let mut kept = Vec::new();
        let mut jobs = std::mem::take(&mut self.jobs);
        jobs.sort_by_key(|job| job.due);
        for mut job in jobs {
            let mine = job.queue == queue || (bug == Some(Bug::AnswerOnOtherQueue) && self.one_in(4));
            let is_due = job.due.is_some_and(|due| due <= now);
            if !mine || (!is_due && !job.is_cut_off) {
                if mine {
                    self.give_up_if_late(&mut job, now, bug, completions);
                }
                kept.push(job);
                continue;
            }
            if bug == Some(Bug::RequestForgotten) && self.one_in(16) {
                continue;
            }
            let outcome = match job.is_cut_off {
                true if bug == Some(Bug::CutReportsDone) => Outcome::Done,
                true => Outcome::PowerLost,
                false => self.carry_out(&mut job, now, options),
            };
            if job.is_abandoned && bug != Some(Bug::LateAnswerDelivered) {
                continue;
            }
            self.complete(job, outcome, now, bug, completions);
        }
        self.jobs.extend(kept);
    }

    fn give_up_if_late(
        &mut self,
        job: &mut Job,
        now: Nanos,
        bug: Option<Bug>,
        completions: &mut Vec<Completion>,
    ) {
        let late = match bug {
            Some(Bug::DeadlineIgnored) => false,
            Some(Bug::DeadlineEarly) => job.request.deadline.is_some(),
            _ => job.request.deadline.is_some_and(|deadline| deadline <= now),
        };
        if late && !job.is_abandoned {
            job.is_abandoned = true;
            let unknown = Request::flush(job.request.tag).completed(Outcome::Unknown, now);
            completions.push(Completion { submitted_at: job.submitted_at, ..unknown });
        }
    }

    fn complete(
        &mut self,
        job: Job,
        outcome: Outcome,
        now: Nanos,
        bug: Option<Bug>,
        completions: &mut Vec<Completion>,
    ) {
        let mut completion =
            Completion { submitted_at: job.submitted_at, ..job.request.completed(outcome, now) };
        match bug {
            Some(Bug::PayloadForgotten) => completion.payload = Payload::None,
            Some(Bug::PayloadOverwritten) => {
                if let Payload::Bytes(bytes) = &completion.payload
                    && let Some(other) = bytes.pool().take(Bytes(bytes.len() as u64))
                {
                    completion.payload = Payload::Bytes(other.freeze());
                }
            }
            Some(Bug::TagInvented) if self.one_in(16) => completion.tag = Tag(u64::MAX / 2),
            Some(Bug::TimeRunsBackwards) => completion.submitted_at = Nanos(now.0 + 1),
            Some(Bug::TagTwice) if self.one_in(16) => completions.push(Completion {
                tag: completion.tag,
                outcome,
                submitted_at: completion.submitted_at,
                completed_at: now,
                payload: Payload::None,
            }),
            _ => {}
        }
        completions.push(completion);
    }

    /// Carries out the request, at the moment of its completion.
    fn carry_out(&mut self, job: &mut Job, now: Nanos, options: &ModelOptions) -> Outcome {
        if let Err(errno) = check(&job.request, options) {
            return Outcome::Failed(errno);
        }
        let completed = self.tick();
        match job.request.op {
            Op::Read => self.read(job, options),
            Op::Flush => self.flush(job, now, options.bug),
            Op::Write { fua } => {
                let durable = fua && options.bug != Some(Bug::FuaIsPlainWrite);
                self.land(job, completed, durable, ExtentState::Written, options)
            }
            Op::WriteZeroes { fua, no_hole, fast_only } => {
                if fast_only && !options.fast_zeroes {
                    for lba in job.request.range.lba.0..job.request.range.end().0 {
                        self.medium.withdraw(lba, job.submitted);
                    }
                    let wrong = options.bug == Some(Bug::FastOnlyWrongErrno);
                    return Outcome::Failed(if wrong { Errno::EINVAL } else { Errno::EOPNOTSUPP });
                }
                let durable = fua && options.bug != Some(Bug::FuaZeroesArePlain);
                let unmaps = !no_hole || options.bug == Some(Bug::NoHoleUnmaps);
                let state = if unmaps { ExtentState::Hole } else { ExtentState::Unwritten };
                self.land(job, completed, durable, state, options)
            }
            Op::Discard => self.land(job, completed, false, ExtentState::Hole, options),
        }
    }

    fn land(
        &mut self,
        job: &Job,
        completed: Moment,
        is_durable: bool,
        state: ExtentState,
        options: &ModelOptions,
    ) -> Outcome {
        let misdirected = options.bug == Some(Bug::WriteMisdirected) && self.one_in(8);
        for lba in job.request.range.lba.0..job.request.range.end().0 {
            // Without a promise, a discard may leave a block unchanged.
            let is_visible = match (job.request.op, options.bug) {
                (Op::Discard, Some(Bug::DiscardPromiseBroken)) => self.one_in(2),
                (Op::Discard, _) => options.discard_zeroes || self.one_in(2),
                (Op::WriteZeroes { .. }, Some(Bug::ZeroesIgnored)) => false,
                _ => !misdirected,
            };
            let effect = Effect {
                submitted: job.submitted,
                completed: (!job.is_abandoned).then_some(completed),
                is_durable: (is_durable || !options.is_cached) && !job.is_abandoned,
                is_visible,
                state,
            };
            self.medium.land(lba, &effect);
        }
        Outcome::Done
    }

    fn read(&mut self, job: &mut Job, options: &ModelOptions) -> Outcome {
        let mut all = Vec::new();
        for lba in job.request.range.lba.0..job.request.range.end().0 {
            match self.medium.read(lba, job.queue) {
                Some(bytes) => all.extend(bytes),
                None => return Outcome::Failed(Errno::EIO),
            }
        }
        if let Payload::Into(buffer) = &mut job.request.payload {
            let length = buffer.len().min(all.len());
            assert!(options.bug.is_some() || length == buffer.len(), "checked before");
            buffer[..length].copy_from_slice(&all[..length]);
        }
        Outcome::Done
    }

    fn flush(&mut self, job: &Job, now: Nanos, bug: Option<Bug>) -> Outcome {
        if std::mem::take(&mut self.fail_next_flush) {
            self.latch = Some((Latch { errno: Errno::EIO, at: now }, job.queue));
            return Outcome::Failed(Errno::EIO);
        }
        if let Some((latch, queue)) = self.latch {
            let forgotten = match bug {
                Some(Bug::LatchForgottenOnOtherQueue) => queue != job.queue,
                Some(Bug::LatchForgottenAfterWrite) => now.since(latch.at) > Nanos(SERVICE_MAX_NS * 4),
                _ => false,
            };
            if !forgotten {
                return Outcome::Failed(latch.errno);
            }
        }
        if bug != Some(Bug::FlushDropped) {
            self.medium.flushed(job.submitted, job.queue);
        }
        Outcome::Done
    }
}

/// Checks that a request can be carried out at all.
fn check(request: &Request, options: &ModelOptions) -> std::result::Result<(), Errno> {
    if request.op == Op::Flush {
        return Ok(());
    }
    let outside = if options.bug == Some(Bug::RangeWrongErrno) { Errno::EIO } else { Errno::EINVAL };
    let LbaRange { lba, nlb } = request.range;
    if nlb == 0 || lba.0.checked_add(nlb).is_none_or(|end| end > options.blocks) {
        return Err(outside);
    }
    let ignores_length = options.bug == Some(Bug::LengthIgnored)
        && matches!(request.payload, Payload::Into(_) | Payload::Bytes(_));
    match request.op {
        _ if !request.carries(options.logical_block * nlb) && !ignores_length => Err(Errno::EINVAL),
        Op::Discard if !options.discards => Err(Errno::EOPNOTSUPP),
        _ => Ok(()),
    }
}

/// Returns the bytes that a writing request leaves in its blocks.
fn bytes_of(request: &Request, options: &ModelOptions) -> Vec<u8> {
    let block = options.logical_block.0 as usize;
    let mut bytes = vec![0; block * request.range.nlb as usize];
    match (&request.payload, request.op) {
        (Payload::Bytes(buffer), _) => {
            let length = buffer.len().min(bytes.len());
            bytes[..length].copy_from_slice(&buffer[..length]);
        }
        (Payload::Pattern(pattern), _) => fill(*pattern, block, options.bug, &mut bytes),
        (_, Op::Discard) if options.bug == Some(Bug::DiscardReadsGarbage) => bytes.fill(0xa5),
        _ => {}
    }
    bytes
}

fn fill(pattern: Pattern, block: usize, bug: Option<Bug>, bytes: &mut [u8]) {
    if bug == Some(Bug::PatternRepeats) {
        bytes.chunks_mut(block).for_each(|one| pattern.fill(block, one));
    } else {
        pattern.fill(block, bytes);
    }
}
