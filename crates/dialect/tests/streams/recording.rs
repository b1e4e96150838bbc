//! Device that records all requests in order. Every request takes the same time on its clock.
//!
//! All devices of a run share one log, which keeps the order over several targets. Queues are numbered in the
//! order of opening; the number identifies the worker.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard};

use plumb_block::{
    Bytes, Clock, Completion, Device, DeviceInfo, Error, ErrorKind, EventSource, Extent, Latch, LbaRange,
    Nanos, Op, Outcome, Payload, Queue, QueueFull, QueueOptions, Request, Result, Wait,
};

/// Logical block of the devices in bytes.
pub(crate) const LOGICAL_BLOCK: u64 = 512;
/// Maximum number of bytes recorded of a write's content.
const KEPT: usize = 1024;

/// Content of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestContent {
    /// No content.
    Nothing,
    /// Generated content.
    Pattern {
        /// Seed of the pattern.
        seed: u64,
        /// Generation of the write.
        generation: u64,
    },
    /// First bytes of the content.
    Bytes(Vec<u8>),
}

/// A recorded request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenRequest {
    /// Name of the target.
    pub(crate) target: String,
    /// Number of the worker.
    pub(crate) worker: usize,
    /// Time of submission.
    pub(crate) at: Nanos,
    pub(crate) op: Op,
    /// Offset in bytes.
    pub(crate) offset: u64,
    /// Length in bytes.
    pub(crate) length: u64,
    /// Number of requests in flight on the queue, including this one.
    pub(crate) in_flight: usize,
    /// Number of requests in flight on all queues, including this one.
    pub(crate) in_flight_anywhere: usize,
    pub(crate) carried: RequestContent,
}

/// Requests of all devices of a run.
#[derive(Default)]
pub(crate) struct Log(Mutex<RecordedRequests>);

#[derive(Default)]
pub(crate) struct RecordedRequests {
    pub(crate) seen: Vec<SeenRequest>,
    /// Completion times of the requests in flight.
    due: Vec<Nanos>,
    queues: usize,
}

impl Log {
    pub(crate) fn lock(&self) -> MutexGuard<'_, RecordedRequests> {
        self.0.lock().unwrap()
    }
}

impl EventSource for Log {
    fn next_event(&self) -> Option<Nanos> {
        self.lock().due.iter().copied().min()
    }

    fn advance(&self, now: Nanos) -> bool {
        self.next_event().is_some_and(|due| due <= now)
    }
}

/// A device for one target.
pub(crate) struct Recording {
    pub(crate) name: String,
    pub(crate) size: Bytes,
    pub(crate) latency: Nanos,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) log: Arc<Log>,
}

impl Device for Recording {
    fn info(&self) -> DeviceInfo {
        let discard_max = self.size;
        DeviceInfo { discard_max, ..DeviceInfo::plain(&*self.name, self.size, Bytes(LOGICAL_BLOCK)) }
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        let worker = {
            let mut log = self.log.lock();
            log.queues += 1;
            log.queues - 1
        };
        Ok(Box::new(RecordingQueue {
            target: self.name.clone(),
            worker,
            latency: self.latency,
            clock: Arc::clone(&self.clock),
            log: Arc::clone(&self.log),
            capacity: options.depth as usize,
            in_flight: Vec::new(),
        }))
    }

    fn extents(&self, _range: LbaRange) -> Result<Vec<Extent>> {
        Ok(Vec::new())
    }

    fn set_wce(&self, _enabled: bool) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, "set the write cache of", &*self.name))
    }

    fn latched(&self) -> Option<Latch> {
        None
    }
}

struct RecordingQueue {
    target: String,
    worker: usize,
    latency: Nanos,
    clock: Arc<dyn Clock>,
    log: Arc<Log>,
    capacity: usize,
    in_flight: Vec<(Nanos, Nanos, Request)>,
}

impl Queue for RecordingQueue {
    fn submit(&mut self, request: Request) -> std::result::Result<(), QueueFull> {
        if self.in_flight.len() == self.capacity {
            return Err(QueueFull(request));
        }
        let at = self.clock.now();
        let due = at + self.latency;
        let mut log = self.log.lock();
        log.due.push(due);
        let seen = SeenRequest {
            target: self.target.clone(),
            worker: self.worker,
            at,
            op: request.op,
            offset: request.range.lba.0 * LOGICAL_BLOCK,
            length: request.range.nlb * LOGICAL_BLOCK,
            in_flight: self.in_flight.len() + 1,
            in_flight_anywhere: log.due.len(),
            carried: carried(&request.payload),
        };
        log.seen.push(seen);
        drop(log);
        self.in_flight.push((at, due, request));
        Ok(())
    }

    fn poll(&mut self, _wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        let now = self.clock.now();
        let (done, waiting): (Vec<_>, Vec<_>) = self.in_flight.drain(..).partition(|(_, due, _)| *due <= now);
        self.in_flight = waiting;
        let mut log = self.log.lock();
        let count = done.len();
        for (submitted_at, due, request) in done {
            let place = log.due.iter().position(|other| *other == due).unwrap();
            log.due.swap_remove(place);
            completions.push(Completion { submitted_at, ..request.completed(Outcome::Done, now) });
        }
        Ok(count)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

fn carried(payload: &Payload) -> RequestContent {
    match payload {
        Payload::None | Payload::Into(_) => RequestContent::Nothing,
        Payload::Pattern(pattern) => {
            RequestContent::Pattern { seed: pattern.seed, generation: pattern.generation }
        }
        Payload::Bytes(bytes) => RequestContent::Bytes(bytes[..bytes.len().min(KEPT)].to_vec()),
    }
}
