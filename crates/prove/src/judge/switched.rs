//! Device that can be replaced by another one while it is attached, since each state has its own write-back
//! cache.
//!
//! The caches run in virtual time. So they need no threads and no descriptors, which would belong to the
//! checking thread instead of the serving one, and their behaviour does not depend on the machine.

use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};

use plumb_block::{
    Clock as _, Completion, Device, DeviceLayer, Nanos, Queue, QueueFull, QueueOptions, Request, Result,
    Time, Wait, wait_any,
};

/// Step of virtual time while requests are in flight.
const STEP: Nanos = Nanos::millis(1);

/// Device that shows one device after another. All have the same size and blocks.
#[derive(Clone)]
pub(super) struct SwitchedDevice {
    shown: Arc<Mutex<ShownDevice>>,
}

#[derive(Clone)]
struct ShownDevice {
    device: Arc<dyn Device>,
    /// Time source of the device.
    time: Time,
    /// Number of devices shown before.
    number: u64,
}

impl SwitchedDevice {
    /// Creates the device. The first one shown answers at once.
    pub(super) fn new(device: Arc<dyn Device>) -> Self {
        let time = Time::Virtual(Arc::default());
        Self { shown: Arc::new(Mutex::new(ShownDevice { device, time, number: 0 })) }
    }

    /// Shows another device, which runs in `time`. Requests in flight complete on the previous one.
    pub(super) fn show(&self, device: Arc<dyn Device>, time: Time) {
        let number = self.shown().number + 1;
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *shown, ShownDevice { device, time, number });
        drop(shown);
        drop(before);
    }

    fn shown(&self) -> ShownDevice {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl DeviceLayer for SwitchedDevice {
    type Inner = dyn Device;

    fn inner(&self) -> impl Deref<Target = Self::Inner> {
        self.shown().device
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        let shown = self.shown();
        let queue = shown.device.open_queue(options.clone())?;
        Ok(Box::new(SwitchedQueue { queue, of: shown, switched: self.clone(), options, in_flight: 0 }))
    }
}

struct SwitchedQueue {
    queue: Box<dyn Queue>,
    /// Device that the queue belongs to.
    of: ShownDevice,
    switched: SwitchedDevice,
    options: QueueOptions,
    in_flight: usize,
}

impl Queue for SwitchedQueue {
    /// Switches to the shown device once nothing is in flight. Until then, and if that device gives no queue,
    /// the queue is full.
    fn submit(&mut self, request: Request) -> std::result::Result<(), QueueFull> {
        let shown = self.switched.shown();
        if shown.number != self.of.number {
            let opened =
                if self.in_flight == 0 { shown.device.open_queue(self.options.clone()).ok() } else { None };
            let Some(queue) = opened else { return Err(QueueFull(request)) };
            (self.queue, self.of) = (queue, shown);
        }
        self.queue.submit(request)?;
        self.in_flight += 1;
        Ok(())
    }

    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        let mut count = self.queue.poll(wait, completions)?;
        if count == 0 && self.in_flight > 0 {
            let mut time = &self.of.time;
            let until = time.now().saturating_add(STEP);
            wait_any([], Some(until), &mut time)?;
            count = self.queue.poll(Wait::NONE, completions)?;
        }
        self.in_flight -= count;
        Ok(count)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
