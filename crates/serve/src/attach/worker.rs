//! A thread that serves the file: it takes requests from the kernel, submits them to the device, and answers
//! when they have ended ([`Requests`]), so that as many are in flight as the kernel sends, and a flush
//! overlaps writes.
//!
//! While nothing is in flight the thread waits in a blocking read: two system calls a request. Where requests
//! come one soon after the other it first polls for a moment ([`BusyPoll`]). While something is in flight it
//! reads without waiting, from a second file of the same connection, and waits for requests and completions
//! together. Where requests come several at a time some are taken before the device is asked for completions,
//! and nothing is polled for: those who send them have work enough for every processor.
//!
//! Invariant: every request of the kernel that wants an answer gets one, or its file is closed, which makes
//! the kernel fail it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use plumb_block::{BufferMut, Bytes, Errno, LbaRange, Op, Payload, Wait};
use rustix::event::epoll;
use rustix::event::{PollFd, PollFlags, Timespec, epoll::EventFlags};
use rustix::io::Errno as Os;

use super::files::{Files, RequestId, Side};
use super::plan::{Plan, Zeroing};
use super::served::ServedLoop;
use super::wire::{self, Answer, HEAD_BYTES};
use crate::busy_poll::BusyPoll;
use crate::requests::{FinishedRequest, Memory, Requests, become_io_flusher};

/// How long requests may wait unseen while a queue without a descriptor has something in flight.
const BLIND_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
/// While requests come one by one, only every so many turns look for a second one: the call would find
/// nothing.
const LOOK_EVERY: u32 = 16;
/// Number of checks after a second request was found during which several are expected at a time.
const SEVERAL_FOR: u32 = 64;
/// Number of requests that are taken at once: the other threads get some, too, and answers are not held up.
const TOGETHER_MAX: u32 = 4;

/// A request of the kernel that is at the device.
#[derive(Debug)]
struct Job {
    id: RequestId,
    kind: JobKind,
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
}

/// Result of looking for a request: whether to go on.
enum Next {
    Request,
    Nothing,
    /// The connection is gone.
    End,
}

/// One of the threads, with its queue.
pub(super) struct Worker {
    served: Arc<ServedLoop>,
    files: Files,
    wakeups: OwnedFd,
    requests: Requests<Job>,
    memory: Memory,
    /// How much a request may bring along.
    payload_max: Bytes,
    /// Where the next request's payload goes.
    next: Option<BufferMut>,
    head: Box<[u8; HEAD_BYTES]>,
    turns: u32,
    busy_poll: BusyPoll,
    /// Number of further checks during which several requests are expected at a time.
    several_for: u32,
}

impl Worker {
    /// Returns a worker with a queue of its own.
    ///
    /// # Errors
    /// If the device gives no queue, or there is no memory.
    pub(super) fn new(served: Arc<ServedLoop>, files: Files, depth: u32) -> crate::error::Result<Self> {
        let shape = served.pool_shape(depth);
        let memory = Memory::new(shape)?;
        let requests =
            Requests::open(Arc::clone(&served.device), Arc::clone(&served.known), depth, memory.pool())?;
        let wakeups = watch(&files, &requests)
            .map_err(crate::error::at::<Os>("wait for requests through", "/dev/fuse".as_ref()))?;
        Ok(Self {
            served,
            files,
            wakeups,
            requests,
            memory,
            payload_max: shape.buffer,
            next: None,
            head: Box::new([0; HEAD_BYTES]),
            turns: 0,
            busy_poll: BusyPoll::default(),
            several_for: 0,
        })
    }

    /// Serves until the connection is gone; what is in flight then is waited for by the queue.
    pub(super) fn run(mut self) {
        become_io_flusher();
        while self.turn().is_ok() {}
    }

    /// Takes requests, collects completions, and waits if there was neither. The error says that the
    /// connection is gone.
    fn turn(&mut self) -> Result<(), Os> {
        let was_idle = self.requests.in_flight() == 0;
        if was_idle
            && !self.receive_soon()?
            && let Next::End = self.receive(Side::Waiting)?
        {
            return Err(Os::NODEV);
        }
        self.turns = self.turns.wrapping_add(1);
        let looks = !was_idle || self.several_for > 0 || self.turns.is_multiple_of(LOOK_EVERY);
        let is_drained = looks && self.take_waiting()?;
        let is_stuck = self.requests.in_flight() > 0 && !self.has_room();
        let wait = if is_stuck && self.requests.wake_fd().is_none() { Wait::ONE } else { Wait::NONE };
        self.requests.poll(wait);
        let has_answered = self.answer_ended()?;
        if has_answered || self.requests.needs_poll() || self.requests.in_flight() == 0 {
            return Ok(());
        }
        if is_stuck {
            self.wait_for_room()
        } else if is_drained {
            self.wait()
        } else {
            Ok(())
        }
    }

    /// Takes the request that comes within a moment, while they come one by one; whether one did.
    fn receive_soon(&mut self) -> Result<bool, Os> {
        if self.several_for > 0 {
            return Ok(false);
        }
        let mut busy_poll = std::mem::take(&mut self.busy_poll);
        let clock = Arc::clone(&self.served.device.clock);
        let received = busy_poll.poll(&*clock, || match self.receive(Side::Returning) {
            Ok(Next::Nothing) => None,
            Ok(Next::Request) => Some(Ok(true)),
            Ok(Next::End) => Some(Err(Os::NODEV)),
            Err(error) => Some(Err(error)),
        });
        self.busy_poll = busy_poll;
        received.unwrap_or(Ok(false))
    }

    /// Takes some of the requests that wait, so that they go to the device together; whether none is left.
    fn take_waiting(&mut self) -> Result<bool, Os> {
        self.several_for = self.several_for.saturating_sub(1);
        for _ in 0..TOGETHER_MAX {
            if !self.has_room() {
                break;
            }
            match self.receive(Side::Returning)? {
                Next::Request => self.several_for = SEVERAL_FOR,
                Next::Nothing => return Ok(true),
                Next::End => return Err(Os::NODEV),
            }
        }
        Ok(false)
    }

    /// Returns true if another request can be taken, with its payload.
    fn has_room(&mut self) -> bool {
        self.requests.has_room() && self.has_buffer()
    }

    fn has_buffer(&mut self) -> bool {
        if self.next.is_none() {
            self.next = self.memory.take(self.payload_max);
        }
        self.next.is_some()
    }

    /// Reads one request and begins it.
    fn receive(&mut self, side: Side) -> Result<Next, Os> {
        let next = self.next.take().or_else(|| self.memory.take_or_renew(self.payload_max));
        let mut payload = next.ok_or(Os::NOMEM)?;
        let received = match self.files.receive(side, &mut self.head, &mut payload) {
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
        let id = RequestId { unique: frame.unique, side };
        let plan = self.served.plan(&frame);
        self.begin(id, plan, payload)?;
        Ok(Next::Request)
    }

    fn begin(&mut self, id: RequestId, plan: Plan, payload: BufferMut) -> Result<(), Os> {
        if let Plan::Write(range) = plan {
            let bytes = (range.nlb * u64::from(self.served.geometry.block)) as usize;
            let kind = JobKind::Write { bytes: bytes as u32 };
            let payload = Payload::Bytes(payload.freeze().slice(0..bytes));
            self.requests.submit(Job { id, kind }, Op::Write { fua: false }, range, payload);
            return Ok(());
        }
        if let Plan::Control { length } = plan {
            let outcome = self.served.control(&payload, length);
            self.next = Some(payload);
            return self.files.answer(id, outcome.as_ref().map(Answer::bytes).map_err(|errno| *errno));
        }
        self.next = Some(payload);
        match plan {
            Plan::Silence | Plan::Write(_) | Plan::Control { .. } => Ok(()),
            Plan::Answer(answer) => self.files.answer(id, Ok(answer.bytes())),
            Plan::Refuse(errno) => self.files.answer(id, Err(errno)),
            Plan::Init { major, minor, flags } => {
                let agreed = self.served.agree(major, minor, flags);
                self.files.answer(id, agreed.as_ref().map(Answer::bytes).map_err(|errno| *errno))
            }
            Plan::Seek { offset, whence } => {
                let found = self.served.seek(offset, whence);
                self.files.answer(id, found.as_ref().map(Answer::bytes).map_err(|errno| *errno))
            }
            Plan::Flush => {
                let job = Job { id, kind: JobKind::Flush };
                self.requests.submit(job, Op::Flush, LbaRange::EMPTY, Payload::None);
                Ok(())
            }
            Plan::Zero(zeroing) => self.zero(id, zeroing),
            Plan::Read(range) => self.read(id, range),
        }
    }

    fn read(&mut self, id: RequestId, range: LbaRange) -> Result<(), Os> {
        let length = Bytes(range.nlb * u64::from(self.served.geometry.block));
        // The kernel was told the largest read; the memory was had for the request, and is had again for the
        // next.
        self.next = None;
        let Some(buffer) = self.memory.take(length) else {
            return self.files.answer(id, Err(Errno::EINVAL));
        };
        let job = Job { id, kind: JobKind::Read };
        self.requests.submit(job, Op::Read, range, Payload::Into(buffer));
        Ok(())
    }

    fn zero(&mut self, id: RequestId, mut zeroing: Zeroing) -> Result<(), Os> {
        let op = zeroing.op;
        let Some(piece) = zeroing.next() else { return self.files.answer(id, Ok(&[])) };
        let job = Job { id, kind: JobKind::Zero(zeroing) };
        self.requests.submit(job, op, piece, Payload::None);
        Ok(())
    }

    /// Answers what has ended; whether anything had.
    fn answer_ended(&mut self) -> Result<bool, Os> {
        let mut has_answered = false;
        while let Some(FinishedRequest { asked: Job { id, kind }, result, payload }) =
            self.requests.next_ended()
        {
            has_answered = true;
            if let Err(failure) = result {
                self.files.answer(id, Err(failure.errno()))?;
                continue;
            }
            match (kind, payload) {
                (JobKind::Flush, _) => self.files.answer(id, Ok(&[]))?,
                (JobKind::Zero(rest), _) => self.zero(id, rest)?,
                (JobKind::Write { bytes }, _) => {
                    self.files.answer(id, Ok(Answer::written(bytes).bytes()))?;
                }
                (JobKind::Read, Payload::Into(bytes)) => self.files.answer(id, Ok(&bytes))?,
                (JobKind::Read, _) => self.files.answer(id, Err(Errno::EIO))?,
            }
        }
        Ok(has_answered)
    }

    /// Waits for a request or a completion, but no longer than until it is time to look for what is late.
    fn wait(&mut self) -> Result<(), Os> {
        let timeout = if self.requests.wake_fd().is_none() { BLIND_WAIT } else { self.wait_max() };
        let event = epoll::Event { flags: EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        match epoll::wait(&self.wakeups, &mut [event; 2], Some(&timeout)) {
            Ok(_) | Err(Os::INTR) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// Waits for a completion where no request could be taken, but no longer than until it is time to look
    /// for what is late. The error says that the connection is gone.
    fn wait_for_room(&mut self) -> Result<(), Os> {
        let timeout = self.wait_max();
        let Some(completions) = self.requests.wake_fd() else { return Ok(()) };
        let mut files = [
            PollFd::from_borrowed_fd(completions, PollFlags::IN),
            PollFd::new(&self.files.returning, PollFlags::empty()),
        ];
        match rustix::event::poll(&mut files, Some(&timeout)) {
            Ok(_) if files[1].revents().contains(PollFlags::ERR) => Err(Os::NODEV),
            Ok(_) | Err(Os::INTR) => Ok(()),
            Err(other) => Err(other),
        }
    }

    fn wait_max(&self) -> Timespec {
        Timespec { tv_sec: 0, tv_nsec: self.requests.wait_max().0.min(999_999_999) as i64 }
    }
}

/// Returns a descriptor that becomes readable with a request or a completion. A request wakes one worker
/// only.
fn watch(files: &Files, requests: &Requests<Job>) -> Result<OwnedFd, Os> {
    let wakeups = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let data = epoll::EventData::new_u64(0);
    epoll::add(&wakeups, &files.returning, data, EventFlags::IN | EventFlags::EXCLUSIVE)?;
    if let Some(completions) = requests.wake_fd() {
        epoll::add(&wakeups, completions, data, EventFlags::IN)?;
    }
    Ok(wakeups)
}
