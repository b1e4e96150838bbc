//! A thread that serves the file: it reads requests from the kernel, submits them to the device, and answers
//! them when they have ended ([`Requests`]), so that as many are in flight as the kernel sends, and a flush
//! may overlap writes.
//!
//! While nothing is in flight the thread waits in a blocking read: two system calls for each request. If
//! requests follow each other quickly, it first polls briefly ([`BusyPoll`]). While something is in flight it
//! reads without blocking, from a second file of the same connection, and waits for requests and completions
//! together. If requests arrive several at a time, some are accepted before the device is polled for
//! completions, and there is no busy polling, since the senders keep every processor busy.
//!
//! Invariant: every kernel request that needs an answer gets one, or its file is closed, which makes the
//! kernel fail it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use plumb_block::{BufferMut, Bytes, Wait};
use rustix::event::epoll;
use rustix::event::{PollFd, PollFlags, Timespec, epoll::EventFlags};
use rustix::io::Errno as Os;

use super::files::{Files, RequestId, Side};
use super::jobs::{Job, Jobs};
use super::served::ServedLoop;
use super::wire::{self, HEAD_BYTES};
use crate::busy_poll::BusyPoll;
use crate::requests::{BLIND_WAIT, Requests, become_io_flusher};

/// Number of turns between attempts to read a second request while requests come one by one, since an attempt
/// would usually fail.
const SECOND_LOOK_TURNS: u32 = 16;
/// Number of attempts after a second request was found during which several are expected at a time.
const SEVERAL_FOR: u32 = 64;
/// Maximum number of requests accepted at once, so that other threads get some and answers are not delayed.
const TOGETHER_MAX: u32 = 4;

/// Result of an attempt to read a request.
enum Next {
    Request,
    Nothing,
    /// The connection is gone.
    End,
}

/// One of the threads, with its queue.
pub(super) struct Worker {
    jobs: Jobs<Files>,
    wakeups: OwnedFd,
    /// Maximum payload of a request.
    payload_max: Bytes,
    /// Buffer for the next request's payload.
    next: Option<BufferMut>,
    head: Box<[u8; HEAD_BYTES]>,
    turns: u32,
    busy_poll: BusyPoll,
    /// Remaining attempts during which several requests are expected at a time.
    several_for: u32,
}

impl Worker {
    /// Creates a worker with its own queue.
    ///
    /// # Errors
    /// If the device cannot open a queue, or there is no memory.
    pub(super) fn new(served: Arc<ServedLoop>, files: Files, depth: u32) -> crate::error::Result<Self> {
        let payload_max = served.pool_shape(depth).buffer;
        let jobs = Jobs::open(served, depth, |_| Ok(files))?;
        let wakeups = watch(&jobs.transport, &jobs.requests)
            .map_err(crate::error::at::<Os>("wait for requests through", "/dev/fuse".as_ref()))?;
        Ok(Self {
            jobs,
            wakeups,
            payload_max,
            next: None,
            head: Box::new([0; HEAD_BYTES]),
            turns: 0,
            busy_poll: BusyPoll::default(),
            several_for: 0,
        })
    }

    /// Answers FUSE_INIT, which comes with the mount.
    ///
    /// # Errors
    /// If the connection is gone.
    pub(super) fn greet(&mut self) -> Result<(), Os> {
        self.receive(Side::Waiting).map(|_| ())
    }

    /// Serves until the connection is gone. The queue then waits for requests in flight.
    pub(super) fn run(mut self) {
        become_io_flusher();
        while self.turn().is_ok() {}
    }

    /// Accepts requests, collects completions, and waits if there were none. Fails when the connection is
    /// gone.
    fn turn(&mut self) -> Result<(), Os> {
        let was_idle = self.jobs.requests.in_flight() == 0;
        if was_idle
            && !self.receive_soon()?
            && let Next::End = self.receive(Side::Waiting)?
        {
            return Err(Os::NODEV);
        }
        self.turns = self.turns.wrapping_add(1);
        let looks = !was_idle || self.several_for > 0 || self.turns.is_multiple_of(SECOND_LOOK_TURNS);
        let is_drained = looks && self.take_waiting()?;
        let is_stuck = self.jobs.requests.in_flight() > 0 && !self.has_room();
        let wait = if is_stuck && self.jobs.requests.wake_fd().is_none() { Wait::ONE } else { Wait::NONE };
        self.jobs.requests.poll(wait);
        let has_answered = self.jobs.answer_ended()?;
        if has_answered || self.jobs.requests.needs_poll() || self.jobs.requests.in_flight() == 0 {
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

    /// Polls briefly for a request while they come one by one. Returns true if one arrived.
    fn receive_soon(&mut self) -> Result<bool, Os> {
        if self.several_for > 0 {
            return Ok(false);
        }
        let mut busy_poll = std::mem::take(&mut self.busy_poll);
        let clock = Arc::clone(&self.jobs.served.device.clock);
        let received = busy_poll.poll(&*clock, || match self.receive(Side::Returning) {
            Ok(Next::Nothing) => None,
            Ok(Next::Request) => Some(Ok(true)),
            Ok(Next::End) => Some(Err(Os::NODEV)),
            Err(error) => Some(Err(error)),
        });
        self.busy_poll = busy_poll;
        received.unwrap_or(Ok(false))
    }

    /// Accepts some waiting requests, so that they go to the device together. Returns true if none is left.
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

    /// Returns true if another request with its payload can be accepted.
    fn has_room(&mut self) -> bool {
        self.jobs.requests.has_room() && self.has_buffer()
    }

    fn has_buffer(&mut self) -> bool {
        if self.next.is_none() {
            self.next = self.jobs.memory.take(self.payload_max);
        }
        self.next.is_some()
    }

    /// Reads one request and starts it.
    fn receive(&mut self, side: Side) -> Result<Next, Os> {
        let next = self.next.take().or_else(|| self.jobs.memory.take_or_renew(self.payload_max));
        let mut payload = next.ok_or(Os::NOMEM)?;
        let received = match self.jobs.transport.receive(side, &mut self.head, &mut payload) {
            Ok(received) => received,
            Err(error) => {
                self.next = Some(payload);
                return match error {
                    Os::AGAIN => Ok(Next::Nothing),
                    // Interrupted, or the kernel withdrew the request during the read.
                    Os::INTR | Os::NOENT => Ok(Next::Request),
                    Os::NODEV => Ok(Next::End),
                    other => Err(other),
                };
            }
        };
        let Some(frame) = wire::parse(&self.head, received) else { return Err(Os::PROTO) };
        let id = RequestId { unique: frame.unique, side };
        let plan = self.jobs.served.plan(&frame);
        self.next = self.jobs.begin(id, plan, Some(payload))?;
        Ok(Next::Request)
    }

    /// Waits for a request or a completion, at most until the next check for overdue requests.
    fn wait(&mut self) -> Result<(), Os> {
        let timeout = self.wait_max();
        let event = epoll::Event { flags: EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        match epoll::wait(&self.wakeups, &mut [event; 2], Some(&timeout)) {
            Ok(_) | Err(Os::INTR) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// Waits for a completion when no request can be accepted, at most until the next check for overdue
    /// requests. Fails when the connection is gone.
    fn wait_for_room(&mut self) -> Result<(), Os> {
        let timeout = self.wait_max();
        let Some(completions) = self.jobs.requests.wake_fd() else { return Ok(()) };
        let mut files = [
            PollFd::from_borrowed_fd(completions, PollFlags::IN),
            PollFd::new(&self.jobs.transport.returning, PollFlags::empty()),
        ];
        match rustix::event::poll(&mut files, Some(&timeout)) {
            Ok(_) if files[1].revents().contains(PollFlags::ERR) => Err(Os::NODEV),
            Ok(_) | Err(Os::INTR) => Ok(()),
            Err(other) => Err(other),
        }
    }

    fn wait_max(&self) -> Timespec {
        let is_blind = self.jobs.requests.wake_fd().is_none();
        let longest = if is_blind { BLIND_WAIT.into() } else { self.jobs.requests.wait_max() };
        Timespec { tv_sec: 0, tv_nsec: longest.0.min(999_999_999) as i64 }
    }
}

/// Creates a descriptor that becomes readable with a request or a completion. A request wakes only one
/// worker.
fn watch(files: &Files, requests: &Requests<Job<RequestId>>) -> Result<OwnedFd, Os> {
    let wakeups = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let data = epoll::EventData::new_u64(0);
    epoll::add(&wakeups, &files.returning, data, EventFlags::IN | EventFlags::EXCLUSIVE)?;
    if let Some(completions) = requests.wake_fd() {
        epoll::add(&wakeups, completions, data, EventFlags::IN)?;
    }
    Ok(wakeups)
}
