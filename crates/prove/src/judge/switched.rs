//! A device in the place of which another can be put while it is attached: each state has a write-back cache
//! of its own.
//!
//! The caches go by virtual time. So they have no threads, and no descriptors, which would be those of the
//! thread that checks and not those of the one that serves; and what becomes of a state does not depend on
//! the machine.

use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};

use plumb_block::{
    Clock as _, Completion, Device, DeviceLayer, Nanos, Queue, QueueFull, QueueOptions, Request, Result,
    Time, Wait, wait_any,
};

/// How far virtual time goes on at a time while something is in flight.
const STEP: Nanos = Nanos::millis(1);

/// Shows one device after the other. All have the same size and blocks.
#[derive(Clone)]
pub(super) struct SwitchedDevice {
    shown: Arc<Mutex<ShownDevice>>,
}

#[derive(Clone)]
struct ShownDevice {
    device: Arc<dyn Device>,
    /// Time source of the device.
    time: Time,
    /// How many were shown before.
    number: u64,
}

impl SwitchedDevice {
    /// Shows this one, which answers at once.
    pub(super) fn new(device: Arc<dyn Device>) -> Self {
        let time = Time::Virtual(Arc::default());
        Self { shown: Arc::new(Mutex::new(ShownDevice { device, time, number: 0 })) }
    }

    /// Shows this one from now on, which goes by `time`. What is in flight is answered by the one before.
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
    /// Goes over to the device that is shown, once nothing is in flight. Until then, and if that one gives no
    /// queue, there is no room.
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
