//! The reference model as a device on which a test can stage events: requests that are held, fail, or are
//! never answered, and power cuts. Its clock advances during waits, and its queues have a descriptor to wait
//! on.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};

use plumb_block::conformance::{ModelDevice, ModelOptions};
use plumb_block::{
    Bytes, Clock, Completion, Device, DeviceInfo, Extent, Latch, LbaRange, Nanos, Op, Outcome, Power, Queue,
    QueueFull, QueueOptions, Request, Result, VirtualClock, Wait,
};
use rustix::event::{EventfdFlags, eventfd};

/// Predicate of the requests that an event applies to.
type Which = Box<dyn Fn(Op, LbaRange) -> bool + Send>;

struct Stage {
    power: Power,
    hold: Option<Which>,
    end: Option<(Which, Outcome)>,
    seen: Vec<(Op, LbaRange)>,
}

impl Default for Stage {
    fn default() -> Self {
        Self { power: Power::ALWAYS, hold: None, end: None, seen: Vec::new() }
    }
}

#[derive(Clone)]
pub(crate) struct StagedServer {
    pub(crate) model: ModelDevice,
    clock: Arc<VirtualClock>,
    stage: Arc<Mutex<Stage>>,
    wake: Arc<OwnedFd>,
    transfer_max: Bytes,
}

impl StagedServer {
    pub(crate) fn new(options: ModelOptions) -> Self {
        let clock = Arc::new(VirtualClock::new());
        let model = ModelDevice::new(options, Arc::clone(&clock));
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        Self { model, clock, stage: Arc::default(), wake, transfer_max: Bytes::kib(4) }
    }

    /// Holds requests that satisfy `which` until [`release`](Self::release).
    pub(crate) fn hold(&self, which: impl Fn(Op, LbaRange) -> bool + Send + 'static) {
        self.stage.lock().unwrap().hold = Some(Box::new(which));
    }

    pub(crate) fn release(&self) {
        self.stage.lock().unwrap().hold = None;
        rustix::io::write(&*self.wake, &1_u64.to_ne_bytes()).unwrap();
    }

    /// Ends the next request that satisfies `which` with `outcome`; the model never receives it.
    pub(crate) fn end_next(&self, outcome: Outcome, which: impl Fn(Op, LbaRange) -> bool + Send + 'static) {
        self.stage.lock().unwrap().end = Some((Box::new(which), outcome));
    }

    /// Sets the power state that the device reports from now on.
    pub(crate) fn set_power(&self, power: Power) {
        self.stage.lock().unwrap().power = power;
    }

    /// Returns the requests that were submitted to any queue.
    pub(crate) fn seen(&self) -> Vec<(Op, LbaRange)> {
        self.stage.lock().unwrap().seen.clone()
    }
}

impl Device for StagedServer {
    fn info(&self) -> DeviceInfo {
        DeviceInfo { transfer_max: self.transfer_max, ..self.model.info() }
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        let inner = self.model.open_queue(options)?;
        Ok(Box::new(StagedQueue { staged: self.clone(), inner, held: Vec::new(), ended: Vec::new(), out: 0 }))
    }

    fn extents(&self, range: LbaRange) -> Result<Vec<Extent>> {
        self.model.extents(range)
    }

    fn set_wce(&self, enabled: bool) -> Result<()> {
        self.model.set_wce(enabled)
    }

    fn latched(&self) -> Option<Latch> {
        self.model.latched()
    }

    fn power(&self) -> Power {
        self.stage.lock().unwrap().power
    }
}

struct StagedQueue {
    staged: StagedServer,
    inner: Box<dyn Queue>,
    held: Vec<Request>,
    ended: Vec<(Request, Outcome)>,
    out: usize,
}

impl Queue for StagedQueue {
    fn submit(&mut self, request: Request) -> std::result::Result<(), QueueFull> {
        let stage = Arc::clone(&self.staged.stage);
        let mut stage = stage.lock().unwrap();
        stage.seen.push((request.op, request.range));
        if stage.end.as_ref().is_some_and(|(which, _)| which(request.op, request.range)) {
            let (_, outcome) = stage.end.take().unwrap();
            self.ended.push((request, outcome));
            return Ok(());
        }
        if stage.hold.as_ref().is_some_and(|which| which(request.op, request.range)) {
            self.held.push(request);
            return Ok(());
        }
        self.inner.submit(request)?;
        self.out += 1;
        Ok(())
    }

    fn poll(&mut self, _wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        let before = completions.len();
        if self.staged.stage.lock().unwrap().hold.is_none() {
            for request in self.held.drain(..) {
                self.inner.submit(request).unwrap();
                self.out += 1;
            }
        }
        for (request, outcome) in self.ended.drain(..) {
            completions.push(request.completed(outcome, Nanos::ZERO));
        }
        while self.out > 0 {
            let count = self.inner.poll(Wait::NONE, completions)?;
            self.out -= count;
            if self.out > 0 && count == 0 {
                let next = self.staged.model.next_answer().unwrap_or(self.staged.clock.now());
                self.staged.clock.advance_to(next);
            }
        }
        Ok(completions.len() - before)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.staged.wake.as_fd())
    }
}
