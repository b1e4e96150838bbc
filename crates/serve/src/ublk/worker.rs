//! A thread that serves one queue: it takes requests from the kernel, hands them to a queue of the device, and commits what
//! has completed, so that as many are in flight as the kernel sends, and a flush overlaps writes.
//!
//! It waits in one place, for requests of the kernel and for completions of the device together.
//!
//! Invariants: a tag is with the kernel, or in a job at the device, or has ended; a job has exactly one request at the device,
//! with the same tag; what the kernel asked is committed exactly once, after the device has answered.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use plumb_block::{
    BufferMut, Bytes, Completion, Errno, LbaRange, Op, Outcome, Payload, Pool, PoolShape, Queue,
    QueueOptions, Request, Tag, Wait,
};
use plumb_linux::ublk::{Event, Patience, UblkQueue};

use super::plan::Plan;
use super::risk::Acknowledged;
use super::served::Served;
use super::wire::Descriptor;

/// How long requests may wait unseen while a queue without a descriptor has something in flight.
const BLIND_WAIT: std::time::Duration = std::time::Duration::from_millis(1);
/// No such device: how the kernel ends a tag when the device is stopped.
const ENODEV: i32 = 19;

/// The kernel's side of a queue, so that tests can take its place.
pub(super) trait Kernel {
    /// See [`UblkQueue::fetch`].
    fn fetch(&mut self, tag: u16, memory: BufferMut) -> io::Result<()>;
    /// See [`UblkQueue::commit`].
    fn commit(&mut self, tag: u16, result: i32, memory: BufferMut) -> io::Result<()>;
    /// See [`UblkQueue::watch`].
    fn watch(&mut self) -> io::Result<()>;
    /// See [`UblkQueue::wait`].
    fn wait(&mut self, patience: Patience, events: &mut Vec<Event>) -> io::Result<()>;
}

impl Kernel for UblkQueue {
    fn fetch(&mut self, tag: u16, memory: BufferMut) -> io::Result<()> {
        self.fetch(tag, memory)
    }

    fn commit(&mut self, tag: u16, result: i32, memory: BufferMut) -> io::Result<()> {
        self.commit(tag, result, memory)
    }

    fn watch(&mut self) -> io::Result<()> {
        self.watch()
    }

    fn wait(&mut self, patience: Patience, events: &mut Vec<Event>) -> io::Result<()> {
        self.wait(patience, events)
    }
}

/// A request of the kernel that is at the device.
#[derive(Debug)]
struct Job {
    kind: JobKind,
    /// What was lent, if the device has no use for it.
    memory: Option<BufferMut>,
}

#[derive(Debug, Clone, Copy)]
enum JobKind {
    Read { bytes: i32 },
    Write { bytes: i32, fua: bool },
    Flush { covers: Acknowledged },
    Clear { fua: bool },
}

impl JobKind {
    /// Whether its success is a promise that something is durable.
    const fn promises(self) -> bool {
        match self {
            Self::Flush { .. } => true,
            Self::Write { fua, .. } | Self::Clear { fua } => fua,
            Self::Read { .. } => false,
        }
    }
}

/// A queue of the device that a worker is to serve with.
pub(super) struct DeviceQueue {
    queue: Box<dyn Queue>,
    pool: Pool,
    shape: PoolShape,
}

impl DeviceQueue {
    /// One for `depth` requests.
    ///
    /// # Errors
    /// If the device gives none, or there is no memory.
    pub(super) fn open(served: &Served, depth: u16) -> super::Result<Self> {
        let shape = served.pool_shape(depth);
        let pool = Pool::new(shape)?;
        let options = QueueOptions { depth: depth.into(), pool: pool.clone() };
        Ok(Self { queue: served.device.open_queue(options)?, pool, shape })
    }

    /// What becomes readable when it has completions, if there is such a descriptor.
    ///
    /// # Errors
    /// As dup(2).
    pub(super) fn wakeups(&self) -> io::Result<Option<std::os::fd::OwnedFd>> {
        self.queue.wake_fd().map(|wakeups| wakeups.try_clone_to_owned()).transpose()
    }

    /// Memory of which `length` bytes are wanted now. If requests without an answer keep all that there was, it is left to
    /// the device that may still write into it, and new memory takes its place.
    fn memory(&mut self, length: Bytes) -> io::Result<BufferMut> {
        if let Some(memory) = self.pool.take(length) {
            return Ok(memory);
        }
        self.pool = Pool::new(self.shape).map_err(io::Error::other)?;
        self.pool.take(length).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }
}

/// A worker; see the module.
pub(super) struct Worker<K> {
    served: Arc<Served>,
    kernel: K,
    device: DeviceQueue,
    /// The device's queue can no longer be asked.
    is_broken: bool,
    /// By tag.
    jobs: Vec<Option<Job>>,
    at_device: usize,
    /// How many tags have not ended.
    open: usize,
    /// How the first tag ended that was not ended by stopping the device.
    refused: Option<i32>,
    /// What the device's queue had no room for.
    backlog: VecDeque<Request>,
    events: Vec<Event>,
    completions: Vec<Completion>,
}

impl<K: Kernel> Worker<K> {
    /// Offers all tags of the kernel's queue.
    ///
    /// # Errors
    /// If the kernel refuses one.
    pub(super) fn start(served: Arc<Served>, kernel: K, device: DeviceQueue, depth: u16) -> io::Result<Self> {
        let mut worker = Self {
            served,
            kernel,
            device,
            is_broken: false,
            jobs: std::iter::repeat_with(|| None).take(depth.into()).collect(),
            at_device: 0,
            open: depth.into(),
            refused: None,
            backlog: VecDeque::new(),
            events: Vec::with_capacity(depth.into()),
            completions: Vec::with_capacity(depth.into()),
        };
        for tag in 0..depth {
            let memory = worker.whole()?;
            worker.kernel.fetch(tag, memory)?;
        }
        worker.listen(Patience::None)?;
        match worker.refused {
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
            None => Ok(worker),
        }
    }

    /// Serves until the device is stopped.
    ///
    /// # Errors
    /// If the kernel can no longer be talked to. The kernel then takes the server for dead.
    pub(super) fn run(mut self) -> io::Result<()> {
        // Memory that this thread needs must not wait for writes to the very device that it serves. Without the
        // privilege (CAP_SYS_RESOURCE) it serves none the less.
        rustix::process::configure_io_flusher_behavior(true).unwrap_or_default();
        let mut has_more = true;
        while self.open > 0 {
            has_more = self.turn(has_more)?;
        }
        self.refused.map_or(Ok(()), |errno| Err(io::Error::from_raw_os_error(errno)))
    }

    /// Waits, unless there is more to do at once, takes requests, and answers what has completed; whether there is more.
    fn turn(&mut self, has_more: bool) -> io::Result<bool> {
        let is_watched = self.device.queue.wake_fd().is_some();
        if is_watched && self.at_device > 0 {
            // It is looked at once more now, so nothing that came since the last poll is missed.
            self.kernel.watch()?;
        }
        let patience = match self.at_device {
            _ if has_more => Patience::None,
            0 => Patience::Endless,
            _ if is_watched => Patience::Endless,
            _ => Patience::AtMost(BLIND_WAIT),
        };
        self.listen(patience)?;
        self.collect()
    }

    /// Waits for events and begins what the kernel asks.
    fn listen(&mut self, patience: Patience) -> io::Result<()> {
        let mut events = std::mem::take(&mut self.events);
        self.kernel.wait(patience, &mut events)?;
        for event in events.drain(..) {
            match event {
                Event::Request { tag, descriptor, memory } => {
                    self.begin(tag, &Descriptor::parse(&descriptor), memory)?;
                }
                Event::Ended { errno, .. } => {
                    self.open = self.open.saturating_sub(1);
                    if errno != ENODEV {
                        self.refused.get_or_insert(errno);
                    }
                }
                Event::Watched => {}
            }
        }
        self.events = events;
        Ok(())
    }

    fn begin(&mut self, tag: u16, asked: &Descriptor, memory: BufferMut) -> io::Result<()> {
        let plan = self.served.geometry.plan(asked);
        let promises = match plan {
            Plan::Flush => true,
            Plan::Write { fua, .. } => fua,
            Plan::Clear { op, .. } => matches!(op, Op::WriteZeroes { fua: true, .. }),
            Plan::Read(_) | Plan::Refuse(_) => false,
        };
        if self.is_broken || (promises && self.served.has_failed_flush()) {
            return self.kernel.commit(tag, -Errno::EIO.0, memory);
        }
        let bytes = |range: LbaRange| range.nlb * self.served.geometry.block;
        let (kind, op, range, payload, kept) = match plan {
            Plan::Refuse(errno) => return self.kernel.commit(tag, -errno.0, memory),
            Plan::Read(range) => {
                let bytes = bytes(range);
                // The device takes memory of the very length, and what is lent to the kernel must be longer.
                let payload = Payload::Into(self.device.memory(Bytes(bytes))?);
                (JobKind::Read { bytes: bytes as i32 }, Op::Read, range, payload, Some(memory))
            }
            Plan::Write { range, fua } => {
                let bytes = bytes(range);
                let payload = Payload::Bytes(memory.freeze().slice(0..bytes as usize));
                (JobKind::Write { bytes: bytes as i32, fua }, Op::Write { fua }, range, payload, None)
            }
            Plan::Flush => {
                let covers = self.served.before_flushing();
                (JobKind::Flush { covers }, Op::Flush, LbaRange::EMPTY, Payload::None, Some(memory))
            }
            Plan::Clear { op, range } => {
                (JobKind::Clear { fua: promises }, op, range, Payload::None, Some(memory))
            }
        };
        let Some(slot) = self.jobs.get_mut(usize::from(tag)) else { return Ok(()) };
        *slot = Some(Job { kind, memory: kept });
        self.at_device += 1;
        let request = Request { tag: Tag(tag.into()), op, range, payload, deadline: None };
        if let Err(full) = self.device.queue.submit(request) {
            self.backlog.push_back(full.0);
        }
        Ok(())
    }

    /// Answers what is complete; whether the device has been given something that it sees only at the next poll.
    fn collect(&mut self) -> io::Result<bool> {
        if self.at_device == 0 {
            return Ok(false);
        }
        let mut completions = std::mem::take(&mut self.completions);
        if self.device.queue.poll(Wait::NONE, &mut completions).is_err() {
            self.give_up()?;
        }
        for completion in completions.drain(..) {
            self.complete(completion)?;
        }
        self.completions = completions;
        let mut has_more = false;
        while let Some(request) = self.backlog.pop_front() {
            if let Err(full) = self.device.queue.submit(request) {
                self.backlog.push_front(full.0);
                break;
            }
            has_more = true;
        }
        Ok(has_more)
    }

    fn complete(&mut self, completion: Completion) -> io::Result<()> {
        let slot = completion.tag.0 as usize;
        let Some(job) = self.jobs.get_mut(slot).and_then(Option::take) else { return Ok(()) };
        self.at_device -= 1;
        let mut result = self.result(job.kind, completion.outcome);
        let mut memory = job.memory.map_or_else(|| self.whole(), Ok)?;
        if let (JobKind::Read { .. }, true) = (job.kind, completion.outcome.is_done()) {
            match (completion.payload, &mut memory) {
                (Payload::Into(read), memory) if read.len() <= memory.len() => {
                    memory[..read.len()].copy_from_slice(&read);
                }
                _ => result = -Errno::EIO.0,
            }
        }
        // A slot is a tag, which has 16 bits.
        self.kernel.commit(slot as u16, result, memory)
    }

    /// What the kernel is told, after what it means for the device has been noted.
    fn result(&self, kind: JobKind, outcome: Outcome) -> i32 {
        if !outcome.is_done() {
            if kind.promises() {
                self.served.note_failed_flush(outcome);
            }
            return -errno_of(kind, outcome).0;
        }
        // A flush beside this one may have failed in the meantime, and nobody knows which writes that has cost.
        if kind.promises() && self.served.has_failed_flush() {
            return -Errno::EIO.0;
        }
        match kind {
            JobKind::Read { bytes } | JobKind::Write { bytes, fua: true } => bytes,
            JobKind::Flush { covers } => {
                self.served.flushed(covers);
                0
            }
            JobKind::Clear { fua: true } => 0,
            JobKind::Write { .. } | JobKind::Clear { .. } if !self.served.may_acknowledge() => -Errno::EIO.0,
            JobKind::Write { bytes, .. } => bytes,
            JobKind::Clear { .. } => 0,
        }
    }

    /// The queue is broken: whatever is in flight is unanswered, and nothing more can be asked.
    fn give_up(&mut self) -> io::Result<()> {
        self.is_broken = true;
        self.backlog.clear();
        for slot in 0..self.jobs.len() {
            if let Some(job) = self.jobs[slot].take() {
                self.at_device -= 1;
                let result = self.result(job.kind, Outcome::Unknown);
                let memory = job.memory.map_or_else(|| self.whole(), Ok)?;
                self.kernel.commit(slot as u16, result, memory)?;
            }
        }
        Ok(())
    }

    /// Memory that may be lent: with room for the largest request.
    fn whole(&mut self) -> io::Result<BufferMut> {
        self.device.memory(self.served.geometry.request_max)
    }
}

/// What the kernel is told. Only what it acts upon differs from EIO: no space, and clearing that the device cannot do.
fn errno_of(kind: JobKind, outcome: Outcome) -> Errno {
    match (kind, outcome) {
        (JobKind::Clear { .. }, Outcome::Failed(Errno::EOPNOTSUPP)) => Errno::EOPNOTSUPP,
        (JobKind::Write { .. } | JobKind::Clear { .. }, Outcome::Failed(Errno::ENOSPC)) => Errno::ENOSPC,
        _ => Errno::EIO,
    }
}

#[cfg(test)]
mod tests;
