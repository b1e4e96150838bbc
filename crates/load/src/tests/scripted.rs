//! A device for tests: a script determines the duration and the outcome of every request. Time is virtual,
//! and the device records all requests in order.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard};

use plumb_block::{
    Bytes, Clock, Completion, Device, DeviceInfo, Error, ErrorKind, EventSource, Extent, Latch, LbaRange,
    Nanos, Op, Outcome, Payload, Queue, QueueFull, QueueOptions, Request, Result, Tag, Time, VirtualClock,
    Wait,
};

use crate::outcome::LoadOutcome;
use crate::window::Window;
use crate::worker::{Step, Worker};

/// Script of a read: fills in the data, and returns the outcome.
pub(crate) type Reading = Box<dyn FnMut(LbaRange, &mut [u8]) -> Outcome + Send>;

/// Script of a request: returns its completion time and outcome.
pub(crate) type LatencyScript = Box<dyn FnMut(&Request, Nanos) -> (Nanos, Outcome) + Send>;

/// Request that the device received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenRequest {
    pub(crate) at: Nanos,
    pub(crate) op: Op,
    pub(crate) range: LbaRange,
    pub(crate) generation: Option<u64>,
}

pub(crate) struct ScriptedDevice {
    shared: Arc<SharedScript>,
    pub(crate) clock: Arc<VirtualClock>,
}

struct SharedScript(Mutex<Script>);

struct Script {
    latency: LatencyScript,
    reading: Option<Reading>,
    asked: Vec<SeenRequest>,
    /// Due times of everything in flight on any queue.
    due: Vec<Nanos>,
    capacity: usize,
}

impl ScriptedDevice {
    pub(crate) fn new(script: impl FnMut(&Request, Nanos) -> (Nanos, Outcome) + Send + 'static) -> Self {
        let latency = Box::new(script);
        let script =
            Script { latency, reading: None, asked: Vec::new(), due: Vec::new(), capacity: usize::MAX };
        let device = Self { shared: Arc::new(SharedScript(Mutex::new(script))), clock: Arc::default() };
        let source = Arc::downgrade(&device.shared);
        device.clock.register(source);
        device
    }

    /// Creates a device on which every request takes `latency` and succeeds.
    pub(crate) fn steady(latency: Nanos) -> Self {
        Self::new(move |_, _| (latency, Outcome::Done))
    }

    /// Creates a device whose reads complete at once, with the data and the outcome of `reading`.
    pub(crate) fn reading(reading: impl FnMut(LbaRange, &mut [u8]) -> Outcome + Send + 'static) -> Self {
        let device = Self::steady(Nanos::ZERO);
        device.lock().reading = Some(Box::new(reading));
        device
    }

    /// Limits queues to `capacity` requests, whatever depth was requested.
    pub(crate) fn with_capacity(self, capacity: usize) -> Self {
        self.lock().capacity = capacity;
        self
    }

    pub(crate) fn asked(&self) -> Vec<SeenRequest> {
        self.lock().asked.clone()
    }

    /// Returns the time of the device.
    pub(crate) fn time(&self) -> Time {
        Time::Virtual(Arc::clone(&self.clock))
    }

    /// Steps a worker to its end, and calls `look` after each step. Returns the measurements.
    pub(crate) fn run(&self, mut worker: Worker, mut look: impl FnMut(&Worker)) -> LoadOutcome {
        let window = Window::closed(Nanos::ZERO);
        window.begin_at(self.clock.now());
        worker.set_waits(false);
        worker.start(self.clock.now(), &Arc::new(window));
        loop {
            match worker.step(self.clock.now()).unwrap() {
                Step::Progressed => {}
                Step::Waiting { until } | Step::Idle { until } => {
                    self.clock.advance(until);
                }
                Step::Done => break,
            }
            look(&worker);
        }
        worker.finish().0
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        self.shared.lock()
    }
}

impl SharedScript {
    fn lock(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap()
    }
}

impl EventSource for SharedScript {
    fn next_event(&self) -> Option<Nanos> {
        self.lock().due.iter().copied().min()
    }

    fn advance(&self, now: Nanos) -> bool {
        self.next_event().is_some_and(|due| due <= now)
    }
}

impl Device for ScriptedDevice {
    fn info(&self) -> DeviceInfo {
        DeviceInfo::plain("scripted", Bytes::mib(64), Bytes(512))
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        let capacity = (options.depth as usize).min(self.lock().capacity);
        let (shared, clock) = (Arc::clone(&self.shared), Arc::clone(&self.clock));
        Ok(Box::new(ScriptedQueue { shared, clock, capacity, in_flight: Vec::new() }))
    }

    fn extents(&self, _range: LbaRange) -> Result<Vec<Extent>> {
        Ok(Vec::new())
    }

    fn set_wce(&self, _enabled: bool) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, "set the write cache of", "scripted"))
    }

    fn latched(&self) -> Option<Latch> {
        None
    }
}

struct ScriptedQueue {
    shared: Arc<SharedScript>,
    clock: Arc<VirtualClock>,
    capacity: usize,
    in_flight: Vec<(Nanos, Tag, Outcome, Nanos, Payload)>,
}

impl Queue for ScriptedQueue {
    fn submit(&mut self, mut request: Request) -> std::result::Result<(), QueueFull> {
        if self.in_flight.len() == self.capacity {
            return Err(QueueFull(request));
        }
        let now = self.clock.now();
        let mut shared = self.shared.lock();
        let (latency, mut outcome) = (shared.latency)(&request, now);
        if let (Some(reading), Payload::Into(bytes)) = (&mut shared.reading, &mut request.payload) {
            outcome = reading(request.range, bytes);
        }
        let due = now.saturating_add(latency);
        let generation = match &request.payload {
            Payload::Pattern(pattern) => Some(pattern.generation),
            _ => None,
        };
        shared.asked.push(SeenRequest { at: now, op: request.op, range: request.range, generation });
        shared.due.push(due);
        self.in_flight.push((due, request.tag, outcome, now, request.payload));
        Ok(())
    }

    fn poll(&mut self, _wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        let now = self.clock.now();
        let (done, in_flight) =
            std::mem::take(&mut self.in_flight).into_iter().partition(|entry| entry.0 <= now);
        self.in_flight = in_flight;
        let mut done: Vec<_> = done;
        done.sort_by_key(|entry| entry.0);
        let mut shared = self.shared.lock();
        let count = done.len();
        for (due, tag, outcome, submitted_at, payload) in done {
            let place = shared.due.iter().position(|other| *other == due).unwrap();
            shared.due.swap_remove(place);
            completions.push(Completion { tag, outcome, submitted_at, completed_at: due, payload });
        }
        Ok(count)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
