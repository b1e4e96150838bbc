//! A thread that serves the file: it takes requests from the kernel, hands them to its queue, and answers when they are
//! complete, so that as many are in flight as the kernel sends, and a flush overlaps writes.
//!
//! While nothing is in flight the thread waits in a blocking read: two system calls a request. Where requests come one
//! soon after the other it first looks again for a moment ([`Eagerness`]). While something is in flight it reads without
//! waiting, from a second file of the same connection, and waits for requests and completions together. Where requests
//! come several at a time some are taken before the device is asked for completions, and nothing is looked for: those
//! who send them have work enough for every processor.
//!
//! A request that the device leaves unanswered for too long ([`Served::patience`]) is answered with EIO, as a driver of the
//! kernel does, for whoever waits for it can be interrupted by nothing else. Its slot and its memory stay the device's, which may
//! still act on it. Once all slots are so, the device is taken to be off line: what comes fails at once.
//!
//! Invariants: every job has exactly one request at the device, whose tag is the job's slot; a slot is free until a
//! job is in it; every request of the kernel that wants an answer gets one, or its file is closed, which makes the kernel
//! fail it.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_block::{
    BufferMut, Bytes, Completion, Errno, LbaRange, Op, Outcome, Payload, Pool, PoolShape, Queue,
    QueueOptions, Request, Tag, Wait,
};
use rustix::event::epoll;
use rustix::event::{PollFd, PollFlags, Timespec, epoll::EventFlags};
use rustix::io::Errno as Os;

use super::plan::{Plan, Zeroing};
use super::served::Served;
use super::wire::{self, Answer, HEAD_BYTES};
use crate::eagerness::Eagerness;

/// How long requests may wait unseen while a queue without a descriptor has something in flight.
const BLIND_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
/// How often what is in flight is looked through for what has been there for too long.
const PATROL_EVERY: Duration = Duration::from_millis(250);
/// While requests come one by one, only every so many turns look for a second one: the call would find nothing.
const LOOK_EVERY: u32 = 16;
/// For so many looks after a second request was found they are taken to come several at a time.
const CROWDED_FOR: u32 = 64;
/// How many requests are taken at once: the other threads get some, too, and answers are not held up.
const TOGETHER_MAX: u32 = 4;

/// The two files of a worker to one connection.
pub(super) struct Files {
    /// Its reads wait.
    pub(super) waiting: OwnedFd,
    /// Its reads do not.
    pub(super) returning: OwnedFd,
}

/// Which of the two a request was read from, and is to be answered through.
#[derive(Debug, Clone, Copy)]
enum Side {
    Waiting,
    Returning,
}

impl Files {
    fn of(&self, side: Side) -> BorrowedFd<'_> {
        match side {
            Side::Waiting => self.waiting.as_fd(),
            Side::Returning => self.returning.as_fd(),
        }
    }
}

/// Whom to answer.
#[derive(Debug, Clone, Copy)]
struct Asker {
    unique: u64,
    side: Side,
}

/// A request of the kernel that is at the device.
#[derive(Debug)]
struct Job {
    asker: Asker,
    kind: JobKind,
    /// Since when the device has it.
    since: Instant,
}

#[derive(Debug)]
enum JobKind {
    Read,
    Write {
        bytes: u32,
    },
    Flush,
    /// With what is left to be zeroed.
    Zero(Zeroing),
    /// Answered already, in place of the device.
    GivenUp,
}

/// Whether to go on.
enum Next {
    Request,
    Nothing,
    /// The connection is gone.
    End,
}

/// One of the threads, with its queue.
pub(super) struct Worker {
    served: Arc<Served>,
    files: Files,
    wakeups: OwnedFd,
    queue: Box<dyn Queue>,
    /// Set once the queue failed: everything is answered with EIO then.
    is_broken: bool,
    pool: Pool,
    shape: PoolShape,
    /// Where the next request's payload goes.
    next: Option<BufferMut>,
    head: Box<[u8; HEAD_BYTES]>,
    jobs: Vec<Option<Job>>,
    free: Vec<usize>,
    /// How many jobs are given up.
    given_up: usize,
    /// When to look next for what has been in flight for too long.
    next_patrol: Instant,
    /// What the queue had no room for.
    backlog: VecDeque<Request>,
    completions: Vec<Completion>,
    turns: u32,
    eagerness: Eagerness,
    /// For how many more looks requests are taken to come several at a time.
    crowded_for: u32,
}

impl Worker {
    /// A worker with a queue of its own.
    ///
    /// # Errors
    /// If the device gives no queue, or there is no memory.
    pub(super) fn new(served: Arc<Served>, files: Files, depth: u32) -> super::Result<Self> {
        let shape = served.pool_shape(depth);
        let pool = Pool::new(shape)?;
        let queue = served.device.open_queue(QueueOptions { depth, pool: pool.clone() })?;
        let wakeups = watch(&files, queue.as_ref())
            .map_err(super::error::at::<Os>("wait for requests through", "/dev/fuse".as_ref()))?;
        let slots = depth as usize;
        Ok(Self {
            served,
            files,
            wakeups,
            queue,
            is_broken: false,
            pool,
            shape,
            next: None,
            head: Box::new([0; HEAD_BYTES]),
            jobs: std::iter::repeat_with(|| None).take(slots).collect(),
            free: (0..slots).rev().collect(),
            given_up: 0,
            next_patrol: Instant::now(),
            backlog: VecDeque::new(),
            completions: Vec::with_capacity(slots),
            turns: 0,
            eagerness: Eagerness::default(),
            crowded_for: 0,
        })
    }

    /// Serves until the connection is gone; what is in flight then is waited for by the queue.
    pub(super) fn run(mut self) {
        // Memory that this thread needs must not wait for writes to the very device that it serves. Without the
        // privilege (CAP_SYS_RESOURCE) it serves none the less.
        rustix::process::configure_io_flusher_behavior(true).unwrap_or_default();
        while self.turn().is_ok() {}
    }

    /// Takes requests, collects completions, and waits if there was neither. The error says that the connection is gone.
    fn turn(&mut self) -> Result<(), Os> {
        let was_idle = self.in_flight() == 0;
        if was_idle
            && !self.receive_soon()?
            && let Next::End = self.receive(Side::Waiting)?
        {
            return Err(Os::NODEV);
        }
        self.turns = self.turns.wrapping_add(1);
        let looks = !was_idle || self.crowded_for > 0 || self.turns.is_multiple_of(LOOK_EVERY);
        let is_drained = looks && self.take_waiting()?;
        let is_stuck = self.in_flight() > 0 && !self.has_room();
        let wait = if is_stuck && self.queue.wake_fd().is_none() { Wait::ONE } else { Wait::NONE };
        let has_waited = self.collect(wait)? == 0 && (is_drained || is_stuck) && self.in_flight() > 0;
        if has_waited && is_stuck {
            self.wait_for_room()?;
        } else if has_waited {
            self.wait()?;
        }
        if has_waited || self.turns.is_multiple_of(LOOK_EVERY) {
            self.give_up_late()?;
        }
        Ok(())
    }

    /// Answers what the device has not answered for too long.
    fn give_up_late(&mut self) -> Result<(), Os> {
        let now = Instant::now();
        if now < self.next_patrol || self.in_flight() == self.given_up {
            return Ok(());
        }
        let patience = self.served.patience();
        self.next_patrol = now + patrol_every(patience);
        let is_late = |job: &Job| !matches!(job.kind, JobKind::GivenUp) && now - job.since >= patience;
        for slot in 0..self.jobs.len() {
            let Some(job) = self.jobs[slot].as_mut().filter(|job| is_late(job)) else { continue };
            if matches!(std::mem::replace(&mut job.kind, JobKind::GivenUp), JobKind::Flush) {
                self.served.note_failed_flush(Outcome::Unknown);
            }
            let asker = job.asker;
            let before = self.backlog.len();
            self.backlog.retain(|request| request.tag.0 != slot as u64);
            if self.backlog.len() < before {
                // The device never had it.
                self.jobs[slot] = None;
                self.free.push(slot);
            } else {
                self.given_up += 1;
            }
            self.answer(asker, Err(Errno::EIO))?;
        }
        Ok(())
    }

    /// Whether the device holds every slot with a request that it was given up on.
    fn is_off_line(&self) -> bool {
        self.given_up == self.jobs.len()
    }

    /// Takes the request that comes within a moment, while they come one by one; whether one did.
    fn receive_soon(&mut self) -> Result<bool, Os> {
        if self.crowded_for > 0 {
            return Ok(false);
        }
        let mut eagerness = std::mem::take(&mut self.eagerness);
        let received = eagerness.look_again(|| match self.receive(Side::Returning) {
            Ok(Next::Nothing) => None,
            Ok(Next::Request) => Some(Ok(true)),
            Ok(Next::End) => Some(Err(Os::NODEV)),
            Err(error) => Some(Err(error)),
        });
        self.eagerness = eagerness;
        received.unwrap_or(Ok(false))
    }

    /// Takes some of the requests that wait, so that they go to the device together; whether none is left.
    fn take_waiting(&mut self) -> Result<bool, Os> {
        self.crowded_for = self.crowded_for.saturating_sub(1);
        for _ in 0..TOGETHER_MAX {
            if !self.has_room() {
                break;
            }
            match self.receive(Side::Returning)? {
                Next::Request => self.crowded_for = CROWDED_FOR,
                Next::Nothing => return Ok(true),
                Next::End => return Err(Os::NODEV),
            }
        }
        Ok(false)
    }

    fn in_flight(&self) -> usize {
        self.jobs.len() - self.free.len()
    }

    /// Whether another request can be taken: a slot, nothing that waits for the queue, and memory for a payload.
    fn has_room(&mut self) -> bool {
        (!self.free.is_empty() || self.is_off_line()) && self.backlog.is_empty() && self.has_buffer()
    }

    fn has_buffer(&mut self) -> bool {
        if self.next.is_none() {
            self.next = self.pool.take(self.shape.buffer);
        }
        self.next.is_some()
    }

    /// A buffer for the next payload. If requests without an answer keep all of them although nothing is in flight, the
    /// memory is left to the device that may still write into it, and new memory takes its place.
    fn buffer(&mut self) -> Result<BufferMut, Os> {
        if !self.has_buffer() {
            self.pool = Pool::new(self.shape).map_err(|_| Os::NOMEM)?;
            self.has_buffer();
        }
        self.next.take().ok_or(Os::NOMEM)
    }

    /// Reads one request and begins it.
    fn receive(&mut self, side: Side) -> Result<Next, Os> {
        let mut payload = self.buffer()?;
        let mut into = [IoSliceMut::new(&mut self.head[..]), IoSliceMut::new(&mut payload)];
        let received = match rustix::io::readv(self.files.of(side), &mut into) {
            Ok(received) => received,
            Err(error) => {
                self.next = Some(payload);
                return match error {
                    Os::AGAIN => Ok(Next::Nothing),
                    // Interrupted, or the request was taken back while it was read.
                    Os::INTR | Os::NOENT => Ok(Next::Request),
                    Os::NODEV => Ok(Next::End),
                    other => Err(other),
                };
            }
        };
        let Some(frame) = wire::parse(&self.head, received) else { return Err(Os::PROTO) };
        let asker = Asker { unique: frame.unique, side };
        let plan = self.served.plan(&frame);
        self.begin(asker, plan, payload)?;
        Ok(Next::Request)
    }

    fn begin(&mut self, asker: Asker, plan: Plan, payload: BufferMut) -> Result<(), Os> {
        if let Plan::Write(range) = plan {
            let bytes = (range.nlb * u64::from(self.served.geometry.block)) as usize;
            let bytes_written = bytes as u32;
            let payload = Payload::Bytes(payload.freeze().slice(0..bytes));
            return self.submit(
                asker,
                JobKind::Write { bytes: bytes_written },
                Op::Write { fua: false },
                range,
                payload,
            );
        }
        self.next = Some(payload);
        match plan {
            Plan::Silence | Plan::Write(_) => Ok(()),
            Plan::Answer(answer) => self.answer(asker, Ok(answer.bytes())),
            Plan::Refuse(errno) => self.answer(asker, Err(errno)),
            Plan::Init { major, minor, flags } => {
                let agreed = self.served.agree(major, minor, flags);
                self.answer(asker, agreed.as_ref().map(Answer::bytes).map_err(|errno| *errno))
            }
            Plan::Seek { offset, whence } => {
                let found = self.served.seek(offset, whence);
                self.answer(asker, found.as_ref().map(Answer::bytes).map_err(|errno| *errno))
            }
            Plan::Flush if self.served.has_failed_flush() => self.answer(asker, Err(Errno::EIO)),
            Plan::Flush => self.submit(asker, JobKind::Flush, Op::Flush, LbaRange::EMPTY, Payload::None),
            Plan::Zero(zeroing) => self.zero(asker, zeroing),
            Plan::Read(range) => self.read(asker, range),
        }
    }

    fn read(&mut self, asker: Asker, range: LbaRange) -> Result<(), Os> {
        let length = Bytes(range.nlb * u64::from(self.served.geometry.block));
        // The kernel was told the largest read; the memory was had for the request, and is had again for the next.
        self.next = None;
        match self.pool.take(length) {
            Some(buffer) => self.submit(asker, JobKind::Read, Op::Read, range, Payload::Into(buffer)),
            None => self.answer(asker, Err(Errno::EINVAL)),
        }
    }

    fn zero(&mut self, asker: Asker, mut zeroing: Zeroing) -> Result<(), Os> {
        let op = zeroing.op;
        match zeroing.next() {
            Some(piece) => self.submit(asker, JobKind::Zero(zeroing), op, piece, Payload::None),
            None => self.answer(asker, Ok(&[])),
        }
    }

    fn submit(
        &mut self,
        asker: Asker,
        kind: JobKind,
        op: Op,
        range: LbaRange,
        payload: Payload,
    ) -> Result<(), Os> {
        let free = if self.is_broken { None } else { self.free.pop() };
        let Some(slot) = free else {
            if let JobKind::Flush = kind {
                self.served.note_failed_flush(Outcome::Unknown);
            }
            return self.answer(asker, Err(Errno::EIO));
        };
        self.jobs[slot] = Some(Job { asker, kind, since: Instant::now() });
        let request = Request { tag: Tag(slot as u64), op, range, payload, deadline: None };
        if let Err(full) = self.queue.submit(request) {
            self.backlog.push_back(full.0);
        }
        Ok(())
    }

    /// Answers what is complete; how much that was.
    fn collect(&mut self, wait: Wait) -> Result<usize, Os> {
        if self.in_flight() == 0 {
            return Ok(0);
        }
        let mut completions = std::mem::take(&mut self.completions);
        let count = match self.queue.poll(wait, &mut completions) {
            Ok(count) => count,
            Err(_) => {
                self.give_up()?;
                0
            }
        };
        for completion in completions.drain(..) {
            self.complete(completion)?;
        }
        self.completions = completions;
        while let Some(request) = self.backlog.pop_front() {
            if let Err(full) = self.queue.submit(request) {
                self.backlog.push_front(full.0);
                break;
            }
        }
        Ok(count)
    }

    fn complete(&mut self, completion: Completion) -> Result<(), Os> {
        let slot = completion.tag.0 as usize;
        let Some(job) = self.jobs.get_mut(slot).and_then(Option::take) else { return Ok(()) };
        self.free.push(slot);
        match (job.kind, completion.outcome) {
            (JobKind::GivenUp, _) => {
                self.given_up -= 1;
                Ok(())
            }
            (JobKind::Flush, outcome) if !outcome.is_done() => {
                self.served.note_failed_flush(outcome);
                self.answer(job.asker, Err(Errno::EIO))
            }
            (JobKind::Flush, _) => self.answer(job.asker, Ok(&[])),
            (JobKind::Zero(rest), Outcome::Done) => self.zero(job.asker, rest),
            (JobKind::Write { bytes }, Outcome::Done) => {
                self.answer(job.asker, Ok(Answer::written(bytes).bytes()))
            }
            (JobKind::Read, Outcome::Done) => match completion.payload {
                Payload::Into(bytes) => self.answer(job.asker, Ok(&bytes)),
                _ => self.answer(job.asker, Err(Errno::EIO)),
            },
            (kind, outcome) => self.answer(job.asker, Err(errno_of(&kind, outcome))),
        }
    }

    /// The queue is broken: whatever is in flight is unanswered, and nothing more can be asked.
    fn give_up(&mut self) -> Result<(), Os> {
        self.is_broken = true;
        self.given_up = 0;
        self.backlog.clear();
        for slot in 0..self.jobs.len() {
            if let Some(job) = self.jobs[slot].take() {
                self.free.push(slot);
                match job.kind {
                    JobKind::GivenUp => continue,
                    JobKind::Flush => self.served.note_failed_flush(Outcome::Unknown),
                    _ => {}
                }
                self.answer(job.asker, Err(Errno::EIO))?;
            }
        }
        Ok(())
    }

    fn answer(&mut self, asker: Asker, answer: Result<&[u8], Errno>) -> Result<(), Os> {
        let (error, body) = match answer {
            Ok(body) => (0, body),
            Err(errno) => (errno.0, &[][..]),
        };
        let header = wire::reply_header(asker.unique, error, body.len());
        match rustix::io::writev(self.files.of(asker.side), &[IoSlice::new(&header), IoSlice::new(body)]) {
            // The kernel no longer waits for it: interrupted, or the connection was cut.
            Ok(_) | Err(Os::NOENT) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// Waits for a request or a completion, but no longer than until it is time to look for what is late.
    fn wait(&mut self) -> Result<(), Os> {
        let patience = if self.queue.wake_fd().is_none() { BLIND_WAIT } else { self.until_patrol() };
        let event = epoll::Event { flags: EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        match epoll::wait(&self.wakeups, &mut [event; 2], Some(&patience)) {
            Ok(_) | Err(Os::INTR) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// The same, where no request could be taken. The error says that the connection is gone.
    fn wait_for_room(&mut self) -> Result<(), Os> {
        let patience = self.until_patrol();
        let Some(completions) = self.queue.wake_fd() else { return Ok(()) };
        let mut files = [
            PollFd::from_borrowed_fd(completions, PollFlags::IN),
            PollFd::new(&self.files.returning, PollFlags::empty()),
        ];
        match rustix::event::poll(&mut files, Some(&patience)) {
            Ok(_) if files[1].revents().contains(PollFlags::ERR) => Err(Os::NODEV),
            Ok(_) | Err(Os::INTR) => Ok(()),
            Err(other) => Err(other),
        }
    }

    fn until_patrol(&self) -> Timespec {
        Timespec { tv_sec: 0, tv_nsec: patrol_every(self.served.patience()).subsec_nanos().into() }
    }
}

fn patrol_every(patience: Duration) -> Duration {
    (patience / 4).clamp(Duration::from_millis(1), PATROL_EVERY)
}

/// What becomes readable with a request or a completion. A request wakes one worker only.
fn watch(files: &Files, queue: &dyn Queue) -> Result<OwnedFd, Os> {
    let wakeups = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let data = epoll::EventData::new_u64(0);
    epoll::add(&wakeups, &files.returning, data, EventFlags::IN | EventFlags::EXCLUSIVE)?;
    if let Some(completions) = queue.wake_fd() {
        epoll::add(&wakeups, completions, data, EventFlags::IN)?;
    }
    Ok(wakeups)
}

/// What the kernel is told. Only what it acts upon differs from EIO: no space, and zeroing that the device cannot do.
fn errno_of(kind: &JobKind, outcome: Outcome) -> Errno {
    match (kind, outcome) {
        (JobKind::Zero(_), Outcome::Failed(Errno::EOPNOTSUPP)) => Errno::EOPNOTSUPP,
        (JobKind::Write { .. } | JobKind::Zero(_), Outcome::Failed(Errno::ENOSPC)) => Errno::ENOSPC,
        _ => Errno::EIO,
    }
}
