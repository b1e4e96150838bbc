//! A disk in memory that counts its requests, fails on demand, and can hold requests back at a gate.
//!
//! A request is executed when it is submitted, or if it is held, when the gate opens; then its queue is
//! woken.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use plumb_block::{
    Bytes, Completion, Device, DeviceInfo, Errno, Error, ErrorKind, Extent, ExtentState, Latch, LbaRange,
    Nanos, Op, Outcome, Payload, Queue, QueueFull, QueueOptions, Request, Result, VolatileCache, Wait,
};
use rustix::event::{EventfdFlags, PollFd, PollFlags};

use super::LIMIT;

/// Number of executed and failed operations of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) flushes: u64,
    pub(crate) discards: u64,
    pub(crate) zeroes: u64,
}

/// The disk.
pub(crate) struct Disk {
    info: DeviceInfo,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    counts: Counts,
    largest: u64,
    holds_writes: bool,
    held: Vec<(Arc<Inbox>, Request)>,
    holds_flushes: bool,
    /// Maximum number of writes held while a flush arrived.
    writes_held_at_flush: usize,
    fails: Option<(FailingKind, Outcome)>,
    is_blind: bool,
    is_broken: bool,
}

/// Kind of requests that fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailingKind {
    Reads,
    Writes,
    Flushes,
}

/// Completed requests, and the descriptor that signals them.
struct Inbox {
    completions: Mutex<Vec<Completion>>,
    wake: OwnedFd,
}

impl Disk {
    /// Creates a disk of `size` in blocks of 512 bytes, with discards that read as zeroes.
    pub(crate) fn new(size: Bytes) -> Arc<Self> {
        Self::with(DeviceInfo {
            discard_max: Bytes::mib(64),
            discard_zeroes: true,
            volatile_cache: VolatileCache::Enabled,
            ..DeviceInfo::plain("a test disk", size, Bytes(512))
        })
    }

    pub(crate) fn with(info: DeviceInfo) -> Arc<Self> {
        let bytes = vec![0; info.size.0 as usize];
        let state = Mutex::new(State { bytes, ..State::default() });
        Arc::new(Self { info, state, changed: Condvar::new() })
    }

    pub(crate) fn counts(&self) -> Counts {
        self.state().counts
    }

    /// Returns the largest read or write so far, in bytes.
    pub(crate) fn largest(&self) -> u64 {
        self.state().largest
    }

    /// Lets requests of this kind fail, or none.
    pub(crate) fn fail(&self, what: Option<(FailingKind, Outcome)>) {
        self.state().fails = what;
    }

    /// Opens queues without a descriptor from now on. Call before any queue is opened.
    pub(crate) fn go_blind(&self) {
        self.state().is_blind = true;
    }

    /// Lets queues fail from now on, and leaves requests in flight unanswered.
    pub(crate) fn break_queues(&self) {
        self.state().is_broken = true;
    }

    /// Holds all writes back from now on.
    pub(crate) fn close_gate(&self) {
        self.state().holds_writes = true;
    }

    /// Holds all flushes back from now on.
    pub(crate) fn hold_flushes(&self) {
        self.state().holds_flushes = true;
    }

    /// Executes the held requests, in any order.
    pub(crate) fn open_gate(&self) {
        let held = {
            let mut state = self.state();
            state.holds_writes = false;
            state.holds_flushes = false;
            std::mem::take(&mut state.held)
        };
        for (inbox, request) in held {
            let completion = self.carry_out(request);
            inbox.put(completion);
        }
    }

    /// Waits until `count` requests are held at once.
    pub(crate) fn wait_for_held(&self, count: usize) {
        self.wait_for(
            |state| state.held.len() >= count,
            |state| format!("{} of {count} writes", state.held.len()),
        );
    }

    /// Waits for a flush that arrives while writes are held. Returns the number of held writes.
    pub(crate) fn wait_for_flush_beside_writes(&self) -> usize {
        self.wait_for(|state| state.writes_held_at_flush > 0, |_| "no flush beside writes".to_owned());
        self.state().writes_held_at_flush
    }

    fn wait_for(&self, mut holds: impl FnMut(&State) -> bool, found: impl FnOnce(&State) -> String) {
        let (state, timeout) = self
            .changed
            .wait_timeout_while(self.state(), LIMIT, |state| !holds(state))
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "only {} arrived", found(&state));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(&self, inbox: &Arc<Inbox>, request: Request) {
        let mut state = self.state();
        if request.op == Op::Flush {
            state.writes_held_at_flush = state.writes_held_at_flush.max(state.held.len());
        }
        let is_held = match request.op {
            Op::Flush => state.holds_flushes,
            Op::Write { .. } => state.holds_writes,
            _ => false,
        };
        if is_held {
            state.held.push((Arc::clone(inbox), request));
            self.changed.notify_all();
            return;
        }
        drop(state);
        self.changed.notify_all();
        let completion = self.carry_out(request);
        inbox.put(completion);
    }

    fn carry_out(&self, mut request: Request) -> Completion {
        let outcome = self.outcome_of(&mut request);
        request.completed(outcome, Nanos(0))
    }

    fn outcome_of(&self, request: &mut Request) -> Outcome {
        let mut state = self.state();
        let state = &mut *state;
        let counter = match request.op {
            Op::Read => &mut state.counts.reads,
            Op::Write { .. } => &mut state.counts.writes,
            Op::Flush => &mut state.counts.flushes,
            Op::Discard => &mut state.counts.discards,
            Op::WriteZeroes { .. } => &mut state.counts.zeroes,
        };
        *counter += 1;
        match (state.fails, request.op) {
            (Some((FailingKind::Reads, outcome)), Op::Read)
            | (Some((FailingKind::Writes, outcome)), Op::Write { .. })
            | (Some((FailingKind::Flushes, outcome)), Op::Flush) => return outcome,
            _ => {}
        }
        if request.op == Op::Flush {
            return Outcome::Done;
        }
        if !self.info.holds(request.range) {
            return Outcome::Failed(Errno::EINVAL);
        }
        let start = (request.range.lba.0 * self.info.logical_block.0) as usize;
        let length = self.info.length_of(request.range).0;
        let bytes = &mut state.bytes[start..start + length as usize];
        match (request.op, &mut request.payload) {
            (Op::Read, Payload::Into(buffer)) if buffer.len() == bytes.len() => buffer.copy_from_slice(bytes),
            (Op::Write { .. }, Payload::Bytes(buffer)) if buffer.len() == bytes.len() => {
                bytes.copy_from_slice(buffer)
            }
            (Op::Discard, _) if length > self.info.discard_max.0 => return Outcome::Failed(Errno::EINVAL),
            (Op::Discard | Op::WriteZeroes { .. }, _) => bytes.fill(0),
            _ => return Outcome::Failed(Errno::EINVAL),
        }
        if matches!(request.op, Op::Read | Op::Write { .. }) {
            if length > self.info.transfer_max.0 {
                return Outcome::Failed(Errno::EINVAL);
            }
            state.largest = state.largest.max(length);
        }
        Outcome::Done
    }
}

impl Inbox {
    fn put(&self, completion: Completion) {
        self.completions.lock().unwrap_or_else(PoisonError::into_inner).push(completion);
        rustix::io::write(&self.wake, &1_u64.to_ne_bytes()).expect("an eventfd takes a count");
    }
}

/// A disk that queues can share.
pub(crate) struct SharedDisk(pub(crate) Arc<Disk>);

impl Device for SharedDisk {
    fn info(&self) -> DeviceInfo {
        self.0.info.clone()
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        let wake = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| Error::io(&errno.into(), "open a queue to", "a test disk"))?;
        let inbox = Arc::new(Inbox { completions: Mutex::default(), wake });
        Ok(Box::new(DiskQueue {
            disk: Arc::clone(&self.0),
            inbox,
            in_flight: 0,
            depth: options.depth as usize,
        }))
    }

    fn extents(&self, range: LbaRange) -> Result<Vec<Extent>> {
        Ok(vec![Extent { range, state: ExtentState::Unknown }])
    }

    fn set_wce(&self, _enabled: bool) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, "switch the write cache of", "a test disk"))
    }

    fn latched(&self) -> Option<Latch> {
        None
    }
}

struct DiskQueue {
    disk: Arc<Disk>,
    inbox: Arc<Inbox>,
    in_flight: usize,
    depth: usize,
}

impl Queue for DiskQueue {
    fn submit(&mut self, request: Request) -> std::result::Result<(), QueueFull> {
        if self.in_flight == self.depth {
            return Err(QueueFull(request));
        }
        self.in_flight += 1;
        self.disk.accept(&self.inbox, request);
        Ok(())
    }

    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        if self.disk.state().is_broken {
            return Err(Error::new(ErrorKind::PowerLost, "poll", "a test disk"));
        }
        let wanted = (wait.completions as usize).min(self.in_flight);
        let mut count = 0;
        loop {
            // Read first, so that later completions wake again.
            rustix::io::read(&self.inbox.wake, &mut [0_u8; 8]).unwrap_or_default();
            let mut inbox = self.inbox.completions.lock().unwrap_or_else(PoisonError::into_inner);
            count += inbox.len();
            self.in_flight -= inbox.len();
            completions.append(&mut inbox);
            drop(inbox);
            if count >= wanted {
                return Ok(count);
            }
            let mut readable = [PollFd::new(&self.inbox.wake, PollFlags::IN)];
            rustix::event::poll(&mut readable, None).expect("a descriptor to wait for");
        }
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.disk.state().is_blind).then(|| self.inbox.wake.as_fd())
    }
}
