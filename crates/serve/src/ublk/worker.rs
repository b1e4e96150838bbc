//! A thread that serves one queue: it receives requests from the kernel, submits them to the device, and
//! commits ended ones ([`Requests`]), so that as many are in flight as the kernel sends, and a flush may
//! overlap writes.
//!
//! A single wait covers both kernel requests and device completions.
//!
//! Invariants: a tag is with the kernel, in a job at the device, or ended; every kernel request is committed
//! exactly once, after the device has answered or was given up.

use std::io;
use std::sync::Arc;

use plumb_block::{BufferMut, Bytes, Errno, LbaRange, Op, Payload, Wait};
use plumb_linux::Patience;
use plumb_linux::ublk::{Event, UblkQueue};

use super::plan::Plan;
use super::risk::AcknowledgedWrites;
use super::served::ServedDisk;
use super::wire::Descriptor;
use crate::requests::{FinishedRequest, Memory, Requests, become_io_flusher};

/// No such device: the kernel's result for a tag when the device is stopped.
const ENODEV: i32 = 19;

/// Kernel side of a queue, replaceable in tests.
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

/// A kernel request at the device.
#[derive(Debug)]
pub(super) struct Job {
    tag: u16,
    kind: JobKind,
    /// Lent memory, if the device does not use it.
    memory: Option<BufferMut>,
}

#[derive(Debug, Clone, Copy)]
enum JobKind {
    Read { bytes: i32 },
    Write { bytes: i32, fua: bool },
    Flush { covers: AcknowledgedWrites },
    Clear { fua: bool },
}

impl JobKind {
    /// Returns true if success promises durability.
    const fn promises(self) -> bool {
        match self {
            Self::Flush { .. } => true,
            Self::Write { fua, .. } | Self::Clear { fua } => fua,
            Self::Read { .. } => false,
        }
    }
}

/// Device queue of a worker.
pub(super) struct DeviceQueue {
    requests: Requests<Job>,
    memory: Memory,
}

impl DeviceQueue {
    /// Opens a queue for `depth` requests.
    ///
    /// # Errors
    /// If the device cannot open a queue, or there is no memory.
    pub(super) fn open(served: &ServedDisk, depth: u16) -> crate::error::Result<Self> {
        let memory = Memory::new(served.pool_shape(depth))?;
        let requests = Requests::open(
            Arc::clone(&served.device),
            Arc::clone(&served.known),
            depth.into(),
            memory.pool(),
        )?;
        Ok(Self { requests, memory })
    }

    /// Returns the descriptor that becomes readable when the device has completions, if there is one.
    ///
    /// # Errors
    /// Fails as dup(2) does.
    pub(super) fn wakeups(&self) -> io::Result<Option<std::os::fd::OwnedFd>> {
        self.requests.wake_fd().map(|wakeups| wakeups.try_clone_to_owned()).transpose()
    }

    fn memory(&mut self, length: Bytes) -> io::Result<BufferMut> {
        self.memory.take_or_renew(length).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }
}

/// A worker; see the module.
pub(super) struct Worker<K> {
    served: Arc<ServedDisk>,
    kernel: K,
    device: DeviceQueue,
    /// Number of tags that have not ended.
    open: usize,
    /// Result of the first tag that ended for another reason than a stop of the device.
    refused: Option<i32>,
    events: Vec<Event>,
}

impl<K: Kernel> Worker<K> {
    /// Offers all tags of the kernel's queue.
    ///
    /// # Errors
    /// If the kernel refuses one.
    pub(super) fn start(
        served: Arc<ServedDisk>,
        kernel: K,
        device: DeviceQueue,
        depth: u16,
    ) -> io::Result<Self> {
        let events = Vec::with_capacity(depth.into());
        let mut worker = Self { served, kernel, device, open: depth.into(), refused: None, events };
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
    /// If communication with the kernel fails. The kernel then considers the server dead.
    pub(super) fn run(mut self) -> io::Result<()> {
        become_io_flusher();
        while self.open > 0 {
            self.turn(self.device.requests.patience())?;
        }
        self.refused.map_or(Ok(()), |errno| Err(io::Error::from_raw_os_error(errno)))
    }

    /// Waits, receives requests, and answers ended ones.
    fn turn(&mut self, patience: Patience) -> io::Result<()> {
        if self.device.requests.in_flight() > 0 {
            // The watch also reports a descriptor that is already readable, so no earlier event is missed.
            self.kernel.watch()?;
        }
        self.listen(patience)?;
        self.device.requests.poll(Wait::NONE);
        while let Some(ended) = self.device.requests.next_ended() {
            self.commit(ended)?;
        }
        Ok(())
    }

    /// Waits for events and starts the kernel's requests.
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
            }
        }
        self.events = events;
        Ok(())
    }

    fn begin(&mut self, tag: u16, asked: &Descriptor, memory: BufferMut) -> io::Result<()> {
        let bytes = |range: LbaRange| range.nlb * self.served.geometry.grid.block;
        let (kind, op, range, payload, memory) = match self.served.plan(asked) {
            Plan::Refuse(errno) => return self.kernel.commit(tag, -errno.0, memory),
            Plan::Read(range) => {
                let bytes = bytes(range);
                // The device needs memory of the exact length, but memory lent to the kernel must be longer.
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
                (JobKind::Clear { fua: op.is_fua() }, op, range, Payload::None, Some(memory))
            }
        };
        self.device.requests.submit(Job { tag, kind, memory }, op, range, payload);
        Ok(())
    }

    /// Reports the end of a request to the kernel.
    fn commit(&mut self, ended: FinishedRequest<Job>) -> io::Result<()> {
        let FinishedRequest { asked: Job { tag, kind, memory }, result, payload } = ended;
        let is_done = result.is_ok();
        let mut result = match result {
            Ok(()) => self.acknowledge(kind),
            Err(failure) => {
                if kind.promises() {
                    self.served.note_failed_flush();
                }
                -failure.errno().0
            }
        };
        let mut memory = memory.map_or_else(|| self.whole(), Ok)?;
        if let (JobKind::Read { .. }, true) = (kind, is_done) {
            match payload {
                Payload::Into(read) if read.len() <= memory.len() => {
                    memory[..read.len()].copy_from_slice(&read);
                }
                _ => result = -Errno::EIO.0,
            }
        }
        self.kernel.commit(tag, result, memory)
    }

    /// Returns the result code for a completed request, after recording the completion.
    fn acknowledge(&self, kind: JobKind) -> i32 {
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

    /// Returns memory to lend, large enough for any request.
    fn whole(&mut self) -> io::Result<BufferMut> {
        self.device.memory(self.served.geometry.grid.transfer_max)
    }
}

#[cfg(test)]
mod tests;
