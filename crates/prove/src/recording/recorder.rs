//! A device that puts down what passes through it.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plumb_block::{
    Clock, Completion, Device, DeviceInfo, Extent, Latch, LbaRange, Op, Outcome, Payload, Power, Queue,
    QueueFull, QueueOptions, Request, Result, Tag, Wait,
};

use super::{CommandId, Event, Recording};

/// A recording in progress, and the device through which it is taken.
///
/// A command is put down before the device beneath may see it, and its completion before whoever asked may. So a command is
/// in flight here for at least as long as there: what the recording says a cut may leave is never less than what it may.
#[derive(Clone)]
pub struct Recorder {
    recording: Arc<Mutex<Recording>>,
    clock: Arc<dyn Clock>,
}

impl Recorder {
    /// A recorder of a blank device with these properties.
    pub fn of_blank(info: &DeviceInfo, clock: Arc<dyn Clock>) -> Self {
        let recording = Recording::of_blank(info.size, info.logical_block);
        Self { recording: Arc::new(Mutex::new(recording)), clock }
    }

    /// The device through which `inner`, which is blank, is recorded.
    pub fn device(&self, inner: Arc<dyn Device>) -> Arc<dyn Device> {
        Arc::new(Recorded { inner, recorder: self.clone() })
    }

    /// Puts down what happened now, after everything that was put down before, and how many events there are then.
    pub fn happened(&self, event: Event) -> usize {
        let mut recording = self.lock();
        recording.happened(self.clock.now(), event);
        recording.events.len()
    }

    /// What was recorded until now.
    pub fn recording(&self) -> Recording {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Recording> {
        // Each change is one push, so a panic elsewhere leaves nothing half-done.
        self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Recorded {
    inner: Arc<dyn Device>,
    recorder: Recorder,
}

impl Device for Recorded {
    fn info(&self) -> DeviceInfo {
        self.inner.info()
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        let inner = self.inner.open_queue(options)?;
        Ok(Box::new(RecordedQueue {
            inner,
            device: Arc::clone(&self.inner),
            recorder: self.recorder.clone(),
            in_flight: HashMap::new(),
            next: 0,
        }))
    }

    fn extents(&self, range: LbaRange) -> Result<Vec<Extent>> {
        self.inner.extents(range)
    }

    fn set_wce(&self, enabled: bool) -> Result<()> {
        self.inner.set_wce(enabled)
    }

    fn latched(&self) -> Option<Latch> {
        self.inner.latched()
    }

    fn power(&self) -> Power {
        self.inner.power()
    }
}

struct RecordedQueue {
    inner: Box<dyn Queue>,
    device: Arc<dyn Device>,
    recorder: Recorder,
    /// By our own tag, since those of the submitter may come twice: its tag, and which command it is.
    in_flight: HashMap<Tag, (Tag, Option<CommandId>)>,
    next: u64,
}

impl RecordedQueue {
    /// The bytes of a write; `None` for what changes nothing, or cannot be done and is refused by the device.
    fn bytes_of(&self, request: &Request) -> Option<Vec<u8>> {
        let info = self.device.info();
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
}

impl Queue for RecordedQueue {
    fn submit(&mut self, mut request: Request) -> std::result::Result<(), QueueFull> {
        let bytes = self.bytes_of(&request);
        let (own, asked) = (Tag(self.next), request.tag);
        request.tag = own;
        // The lock is held until the device has the request, so that one it does not take can be taken back.
        let mut recording = self.recorder.lock();
        let (op, range) = (request.op, request.range);
        let command = bytes.map(|bytes| recording.submit(self.recorder.clock.now(), op, range, &bytes));
        match self.inner.submit(request) {
            Ok(()) => {
                self.next += 1;
                self.in_flight.insert(own, (asked, command));
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
        let first = completions.len();
        let polled = self.inner.poll(wait, completions);
        let mut recording = self.recorder.lock();
        let at = self.recorder.clock.now();
        for completion in &mut completions[first..] {
            let Some((asked, command)) = self.in_flight.remove(&completion.tag) else { continue };
            completion.tag = asked;
            match (command, completion.outcome) {
                (None, _) => {}
                (Some(command), Outcome::Done) => recording.happened(at, Event::Completed(command)),
                (Some(command), _) => recording.happened(at, Event::Failed(command)),
            }
        }
        polled
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.wake_fd()
    }
}
