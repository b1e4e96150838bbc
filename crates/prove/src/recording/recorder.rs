//! Device that records the commands passing through it, and their completions.

use std::collections::HashMap;
use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plumb_block::{
    Clock, Completion, Device, DeviceInfo, DeviceLayer, Nanos, Op, Outcome, Payload, Queue, QueueFull,
    QueueOptions, Request, Result, Tag, Time, Wait, waiting_poll,
};

use super::{CommandId, Event, Recording};

/// Recording in progress, and the device that takes it.
///
/// A command is recorded before the device below receives it, and a completion before the client does. So in
/// the recording a command is in flight for at least as long as at the device, and a cut of the recording has
/// at least the outcomes of a real one.
#[derive(Clone)]
pub struct Recorder {
    recording: Arc<Mutex<Recording>>,
    clock: Arc<dyn Clock>,
    /// Minimum time that a command is in flight.
    in_flight_min: Nanos,
}

impl Recorder {
    /// Creates a recorder for a blank device with these properties.
    pub fn of_blank(info: &DeviceInfo, clock: Arc<dyn Clock>) -> Self {
        Self::continuing(Recording::of_blank(info.size, info.logical_block), clock)
    }

    /// Creates a recorder that continues a recording. Its device holds what is visible at the end of that.
    pub fn continuing(recording: Recording, clock: Arc<dyn Clock>) -> Self {
        Self { recording: Arc::new(Mutex::new(recording)), clock, in_flight_min: Nanos(0) }
    }

    /// Keeps each command in flight for at least `in_flight_min`. A device that answers at once would hide
    /// concurrency of the file system. Works with a real clock only.
    #[must_use]
    pub fn with_in_flight_min(self, in_flight_min: Nanos) -> Self {
        Self { in_flight_min, ..self }
    }

    /// Records several drives, the further ones beginning at these blocks.
    #[must_use]
    pub fn with_further_drives(self, further_drives: Vec<u64>) -> Self {
        self.lock().further_drives = further_drives;
        self
    }

    /// Returns the device that records `inner`, which must be blank.
    pub fn device(&self, inner: Arc<dyn Device>) -> Arc<dyn Device> {
        Arc::new(RecorderState { inner, recorder: self.clone() })
    }

    /// Records an event after all earlier ones. Returns the number of events.
    pub fn happened(&self, event: Event) -> usize {
        let mut recording = self.lock();
        recording.happened(self.clock.now(), event);
        recording.events.len()
    }

    /// Returns the recording so far.
    pub fn recording(&self) -> Recording {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Recording> {
        // Each change is a single push, so a panic elsewhere leaves no partial change.
        self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct RecorderState {
    inner: Arc<dyn Device>,
    recorder: Recorder,
}

impl DeviceLayer for RecorderState {
    type Inner = dyn Device;

    fn inner(&self) -> impl Deref<Target = Self::Inner> {
        &*self.inner
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        let inner = self.inner.open_queue(options)?;
        Ok(Box::new(RecordedQueue {
            inner,
            device: Arc::clone(&self.inner),
            recorder: self.recorder.clone(),
            in_flight: HashMap::new(),
            held: Vec::new(),
            next: 0,
        }))
    }
}

struct RecordedQueue {
    inner: Box<dyn Queue>,
    device: Arc<dyn Device>,
    recorder: Recorder,
    /// Requests in flight by own tags, since the submitter may use a tag twice.
    in_flight: HashMap<Tag, InFlight>,
    /// Completions that the device returned before their minimum time.
    held: Vec<Completion>,
    next: u64,
}

#[derive(Clone, Copy)]
struct InFlight {
    /// Tag of the submitter.
    asked: Tag,
    command: Option<CommandId>,
    /// Time before which the request does not complete.
    until: Nanos,
}

impl Queue for RecordedQueue {
    fn submit(&mut self, mut request: Request) -> std::result::Result<(), QueueFull> {
        let bytes = bytes_of(&self.device.info(), &request);
        let (own, asked) = (Tag(self.next), request.tag);
        request.tag = own;
        // The lock is held until the device has accepted the request, so that the record of a refused one can
        // be removed.
        let mut recording = self.recorder.lock();
        let (op, range) = (request.op, request.range);
        let now = self.recorder.clock.now();
        let command = bytes.map(|bytes| recording.submit(now, op, range, &bytes));
        let until = if command.is_some() { now.saturating_add(self.recorder.in_flight_min) } else { now };
        match self.inner.submit(request) {
            Ok(()) => {
                self.next += 1;
                self.in_flight.insert(own, InFlight { asked, command, until });
                Ok(())
            }
            Err(QueueFull(mut request)) => {
                if command.is_some() {
                    recording.commands.pop();
                    recording.events.pop();
                }
                request.tag = asked;
                Err(QueueFull(request))
            }
        }
    }

    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        if self.recorder.in_flight_min > Nanos(0) && wait.completions > 0 {
            let time = Time::Real(Arc::clone(&self.recorder.clock));
            let in_flight = self.in_flight.len();
            return waiting_poll(self, in_flight, wait, completions, &mut &time);
        }
        let polled = self.inner.poll(wait, &mut self.held);
        let mut recording = self.recorder.lock();
        let (at, before) = (self.recorder.clock.now(), completions.len());
        for mut completion in std::mem::take(&mut self.held) {
            match self.in_flight.get(&completion.tag) {
                Some(in_flight) if in_flight.until > at => {
                    self.held.push(completion);
                    continue;
                }
                Some(InFlight { asked, command, .. }) => {
                    if let Some(command) = *command {
                        let is_done = completion.outcome == Outcome::Done;
                        let event = if is_done { Event::Completed } else { Event::Failed };
                        recording.happened(at, event(command));
                    }
                    let asked = *asked;
                    self.in_flight.remove(&completion.tag);
                    completion.tag = asked;
                }
                None => {}
            }
            completions.push(completion);
        }
        polled.map(|_| completions.len() - before)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        // There is no descriptor for the minimum time, so such a queue must be polled.
        self.inner.wake_fd().filter(|_| self.recorder.in_flight_min == Nanos(0))
    }
}

/// Returns the bytes of a write, or none for another command that changes blocks. Returns `None` for a read,
/// and for an invalid request, which the device refuses.
pub(crate) fn bytes_of(info: &DeviceInfo, request: &Request) -> Option<Vec<u8>> {
    let length = || info.length_of(request.range).0 as usize;
    match (request.op, &request.payload) {
        (Op::Flush, _) => Some(Vec::new()),
        (Op::Read, _) => None,
        _ if !info.holds(request.range) => None,
        (Op::Write { .. }, Payload::Bytes(bytes)) => (bytes.len() == length()).then(|| bytes.to_vec()),
        (Op::Write { .. }, Payload::Pattern(pattern)) => {
            let mut bytes = vec![0; length()];
            pattern.fill(info.logical_block.0 as usize, &mut bytes);
            Some(bytes)
        }
        (Op::Write { .. }, _) => None,
        (Op::Discard | Op::WriteZeroes { .. }, _) => Some(Vec::new()),
    }
}
