//! A thread that serves the file through a ring ([`FuseRing`]). It works like `worker`, but a single call
//! sends answers, fetches requests, and waits for both requests and device completions.
//!
//! The device never gets memory of the ring, because it may still use the memory of an unanswered request,
//! while the kernel reuses an entry's memory once the request was answered, even with EIO.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use plumb_block::{Bytes, Errno, Pool, PoolShape, Wait};
use plumb_linux::Patience;
use plumb_linux::fuse_ring::{FuseRing, RingShape, TAIL_BYTES};
use rustix::io::Errno as Os;

use super::jobs::{Jobs, Transport};
use super::options::entries_of_a_queue;
use super::served::ServedLoop;
use super::wire::{self, Call, HEAD_BYTES};
use crate::block_layer::PAGE;
use crate::busy_poll::BusyPoll;
use crate::error::{Result, at};
use crate::requests::become_io_flusher;

/// An entry with the number of its request.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryId {
    entry: usize,
    unique: u64,
}

impl Transport for FuseRing {
    type Id = EntryId;

    fn answer(
        &mut self,
        id: EntryId,
        answer: std::result::Result<&[u8], Errno>,
    ) -> std::result::Result<(), Os> {
        let (header, body) = wire::reply(id.unique, answer);
        self.commit(id.entry, &header, body).map_err(|error| os(&error))
    }
}

/// One of the threads, with its ring.
pub(super) struct RingWorker {
    jobs: Jobs<FuseRing>,
    /// Entries with requests that have not been started.
    ready: VecDeque<usize>,
    busy_poll: BusyPoll,
}

impl RingWorker {
    /// Registers entries for `queues` with `connection`. Must be called by the serving thread.
    ///
    /// # Errors
    /// If the device cannot open a queue, there is no memory, or the kernel refuses.
    pub(super) fn register(
        served: Arc<ServedLoop>,
        connection: OwnedFd,
        queues: Vec<u16>,
        depth: u32,
    ) -> Result<Self> {
        let entries = entries_of_a_queue().map_or(1, u32::from).min(depth) as u16;
        let shape = RingShape { queues, depth: entries, payload: served.payload_max() };
        let count = shape.queues.len() as u32 * u32::from(shape.depth);
        let pool = PoolShape { buffer: shape.payload + PAGE.max(TAIL_BYTES), count, alignment: PAGE };
        let jobs = Jobs::open(served, depth, |requests| {
            let fuse = "/dev/fuse".as_ref();
            let wakeups = requests.wake_fd().map(|wakeups| wakeups.try_clone_to_owned()).transpose();
            let wakeups = wakeups.map_err(at("wait for requests through", fuse))?;
            FuseRing::register(connection, &shape, &Pool::new(pool)?, wakeups)
                .map_err(at("register with", fuse))
        })?;
        Ok(Self { jobs, ready: VecDeque::new(), busy_poll: BusyPoll::default() })
    }

    /// Serves until the connection is gone. The queue then waits for requests in flight.
    pub(super) fn run(mut self) {
        become_io_flusher();
        while self.turn().is_ok() {}
    }

    /// Waits if there is nothing to do, accepts requests, and answers ended ones. Fails when the connection
    /// is gone.
    fn turn(&mut self) -> std::result::Result<(), Os> {
        let patience = self.jobs.requests.patience();
        if self.jobs.requests.in_flight() > 0 {
            // The watch also reports a descriptor that is already readable, so no earlier event is missed.
            self.jobs.transport.watch().map_err(|error| os(&error))?;
        }
        self.listen(patience)?;
        while self.jobs.requests.has_room()
            && let Some(entry) = self.ready.pop_front()
        {
            self.begin(entry)?;
        }
        self.jobs.requests.poll(Wait::NONE);
        self.jobs.answer_ended()?;
        Ok(())
    }

    /// Waits for requests, after a short busy poll if nothing else is awaited.
    fn listen(&mut self, patience: Patience) -> std::result::Result<(), Os> {
        let Self { jobs: Jobs { served, transport, .. }, ready, busy_poll } = self;
        let mut wait =
            |patience| transport.wait(patience, ready).map_err(|error| os(&error)).map(|()| ready.len());
        if patience == Patience::Endless {
            let found = busy_poll.poll(&*served.device.clock, || match wait(Patience::None) {
                Ok(0) => None,
                found => Some(found),
            });
            if let Some(found) = found {
                return found.map(|_| ());
            }
        }
        wait(patience).map(|_| ())
    }

    fn begin(&mut self, entry: usize) -> std::result::Result<(), Os> {
        let Jobs { served, transport, memory, .. } = &mut self.jobs;
        let request = transport.request(entry).ok_or(Os::PROTO)?;
        let mut head = [0; HEAD_BYTES];
        let received = wire::gather(&request, &mut head);
        let frame = wire::parse(&head, received).ok_or(Os::PROTO)?;
        let payload = match frame.call {
            Some(Call::Write(_)) if !request.payload.is_empty() => {
                let length = Bytes(request.payload.len() as u64);
                let mut payload = memory.take_or_renew(length).ok_or(Os::NOMEM)?;
                payload.copy_from_slice(request.payload);
                Some(payload)
            }
            _ => None,
        };
        let id = EntryId { entry, unique: frame.unique };
        let plan = served.plan(&frame);
        self.jobs.begin(id, plan, payload)?;
        Ok(())
    }
}

fn os(error: &std::io::Error) -> Os {
    Os::from_io_error(error).unwrap_or(Os::IO)
}
