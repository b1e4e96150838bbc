//! A drive as a [`Device`]: any number of queues on one drive, in virtual or real time.
//!
//! Nothing runs in the background. In virtual time the clock advances the drive. In real time the thread that
//! polls does, and fires the timers of other queues that get completions; a queue's timer also fires at the
//! drive's next event.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use plumb_block::{
    Clock, Completion, Device, DeviceInfo, EventSource, Extent, Latch, LbaRange, Nanos, Power, Queue,
    QueueFull, QueueOptions, Request, Result, StorageCounters, StorageSnapshot, Time, Wait, waiting_poll,
};

use crate::drive::{Drive, PortNumber};
use crate::timer::{self, Timer};
use crate::wake_ahead::WakeAhead;

/// Time for which a due event is awaited by polling, since a sleep would take longer.
const NEAR: Nanos = Nanos::micros(2);

/// A drive shared by its queues, its server, and the owner of its power switch.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<SharedState>,
    time: Time,
}

struct SharedState(Mutex<State>);

struct State {
    drive: Drive,
    /// Timers that wake the queues in real time, by port.
    timers: Vec<Option<Timer>>,
    /// Port whose queue wakes ahead of the next event. The other queues wake when it is due, or when their
    /// timers are fired.
    wakes_ahead: Option<PortNumber>,
}

impl SharedState {
    fn lock(&self) -> MutexGuard<'_, State> {
        // After a panic no test may trust the drive, but a server may still report on it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSource for SharedState {
    fn next_event(&self) -> Option<Nanos> {
        self.lock().drive.next_event()
    }

    fn advance(&self, now: Nanos) -> bool {
        let mut state = self.lock();
        state.drive.advance(now);
        state.drive.has_ready()
    }
}

impl State {
    /// Fires the timers of the queues with completions, except `own`.
    fn fire_timers(&mut self, own: Option<PortNumber>) {
        for port in self.drive.ports_ready().filter(|port| Some(*port) != own) {
            if let Some(Some(timer)) = self.timers.get_mut(port.0 as usize) {
                timer.fire();
            }
        }
    }

    /// Sets the timer of `port` for the next event if it has requests in flight.
    fn set_timer(&mut self, port: PortNumber, now: Nanos, is_busy: bool, ahead: &mut WakeAhead) {
        let next = self.drive.next_event().filter(|_| is_busy);
        if !is_busy && self.wakes_ahead == Some(port) {
            self.wakes_ahead = None;
        }
        let is_ahead = is_busy && *self.wakes_ahead.get_or_insert(port) == port;
        let due = next.map(|next| if is_ahead { ahead.wake_time(now, next) } else { next });
        if let Some(Some(timer)) = self.timers.get_mut(port.0 as usize) {
            timer.set(now, due);
        }
    }
}

impl Handle {
    /// Creates a drive with this time base. In real time, completions arrive when a real drive of the model
    /// would deliver them.
    pub fn new(drive: Drive, time: Time) -> Self {
        let state = State { drive, timers: Vec::new(), wakes_ahead: None };
        let shared = Arc::new(SharedState(Mutex::new(state)));
        if let Time::Virtual(clock) = &time {
            let source = Arc::downgrade(&shared);
            clock.register(source as Weak<dyn EventSource>);
        }
        Self { shared, time }
    }

    /// Advances the drive to the present, then inspects or changes it.
    pub fn with<R>(&self, look: impl FnOnce(&mut Drive, Nanos) -> R) -> R {
        let (mut state, now) = self.advanced();
        let result = look(&mut state.drive, now);
        state.fire_timers(None);
        result
    }

    /// Returns the drive as a device. All devices of a handle are the same drive.
    pub fn device(&self) -> Arc<dyn Device> {
        Arc::new(SimDevice(self.clone()))
    }

    /// Returns the counters of requests that reach the drive.
    pub fn counters(&self) -> Arc<dyn StorageCounters> {
        Arc::new(SimCounters(self.clone()))
    }

    /// Locks the state and advances it to the present. Returns it with the current time.
    fn advanced(&self) -> (MutexGuard<'_, State>, Nanos) {
        let mut state = self.shared.lock();
        // Read under the lock, because the drive's time must not run backwards.
        let now = self.time.now();
        state.drive.advance(now);
        (state, now)
    }

    /// Advances to the present as [`advanced`](Self::advanced) does, and on to events that are due before a
    /// sleep could end. The drive is not locked while waiting.
    fn advanced_to_near(&self) -> (MutexGuard<'_, State>, Nanos) {
        let (mut state, mut now) = self.advanced();
        let end = now.saturating_add(NEAR);
        while let Some(next) = state.drive.next_event().filter(|next| *next <= end) {
            drop(state);
            while self.time.now() < next {
                std::hint::spin_loop();
            }
            (state, now) = self.advanced();
        }
        (state, now)
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("is_virtual", &self.time.is_virtual()).finish_non_exhaustive()
    }
}

struct SimDevice(Handle);

impl Device for SimDevice {
    fn info(&self) -> DeviceInfo {
        self.0.shared.lock().drive.info().clone()
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        let descriptor = if self.0.time.is_virtual() { None } else { Some(Arc::new(timer::descriptor()?)) };
        let mut state = self.0.shared.lock();
        let port = state.drive.open_port();
        let index = port.0 as usize;
        if state.timers.len() <= index {
            state.timers.resize_with(index + 1, || None);
        }
        state.timers[index] = descriptor.clone().map(Timer::new);
        drop(state);
        let capacity = options.depth.max(1) as usize;
        let ahead = WakeAhead::new(self.0.time.now());
        Ok(Box::new(SimQueue { handle: self.0.clone(), port, descriptor, ahead, capacity, in_flight: 0 }))
    }

    fn extents(&self, range: LbaRange) -> Result<Vec<Extent>> {
        Ok(self.0.with(|drive, _| drive.extents(range)))
    }

    fn set_wce(&self, enabled: bool) -> Result<()> {
        self.0.with(|drive, now| drive.set_wce(now, enabled))
    }

    fn latched(&self) -> Option<Latch> {
        self.0.shared.lock().drive.latched()
    }

    fn power(&self) -> Power {
        let state = self.0.shared.lock();
        Power { is_on: state.drive.is_powered(), losses: state.drive.counters().cuts }
    }
}

struct SimQueue {
    handle: Handle,
    port: PortNumber,
    /// Descriptor of the port's timer; only in real time.
    descriptor: Option<Arc<OwnedFd>>,
    ahead: WakeAhead,
    capacity: usize,
    in_flight: usize,
}

impl Queue for SimQueue {
    fn submit(&mut self, request: Request) -> std::result::Result<(), QueueFull> {
        if self.in_flight == self.capacity {
            return Err(QueueFull(request));
        }
        let (mut state, now) = self.handle.advanced();
        state.drive.submit(now, self.port, request);
        self.in_flight += 1;
        Ok(())
    }

    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        if wait.completions == 0 {
            return Ok(self.reap(completions));
        }
        let (in_flight, time) = (self.in_flight, self.handle.time.clone());
        waiting_poll(self, in_flight, wait, completions, &mut &time)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor.as_ref().map(|descriptor| descriptor.as_fd())
    }
}

impl SimQueue {
    /// Takes available completions and returns their number.
    fn reap(&mut self, completions: &mut Vec<Completion>) -> usize {
        if self.descriptor.is_some() {
            return self.reap_in_real_time(completions);
        }
        let (mut state, _) = self.handle.advanced();
        let count = state.drive.take_ready(self.port, completions);
        self.in_flight -= count;
        count
    }

    fn reap_in_real_time(&mut self, completions: &mut Vec<Completion>) -> usize {
        let first = completions.len();
        let is_busy = self.in_flight > 0;
        let (mut state, now) = if is_busy { self.handle.advanced_to_near() } else { self.handle.advanced() };
        let count = state.drive.take_ready(self.port, completions);
        self.in_flight -= count;
        state.fire_timers(Some(self.port));
        self.ahead.woke(now);
        // Set the timer under the lock, so that no other thread fires it in between.
        state.set_timer(self.port, now, self.in_flight > 0, &mut self.ahead);
        drop(state);
        for completion in &mut completions[first..] {
            completion.completed_at = now;
        }
        count
    }
}

impl Drop for SimQueue {
    fn drop(&mut self) {
        let mut state = self.handle.shared.lock();
        state.wakes_ahead = state.wakes_ahead.filter(|port| *port != self.port);
        state.drive.close_port(self.port);
        if let Some(timer) = state.timers.get_mut(self.port.0 as usize) {
            *timer = None;
        }
    }
}

struct SimCounters(Handle);

impl StorageCounters for SimCounters {
    fn read(&self) -> Result<StorageSnapshot> {
        Ok(self.0.with(|drive, now| {
            let mut counters = drive.counters().storage.clone();
            counters.name.clone_from(&drive.info().name);
            counters.flushes.get_or_insert(0);
            StorageSnapshot { at: now, devices: vec![counters] }
        }))
    }
}

#[cfg(test)]
mod tests {
    use plumb_block::{Bytes, Lba, Op, Payload, Pool, PoolShape, Tag};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;
    use crate::drive::DriveOptions;
    use crate::model::Model;

    /// Time long enough for everything requested here.
    const LONG: Timespec = Timespec { tv_sec: 600, tv_nsec: 0 };

    /// Reads one block after the other, and waits for each on the descriptor, as a server does. Returns the
    /// number of reads.
    fn read_in_turn(mut queue: Box<dyn Queue>, count: u64) -> usize {
        let mut completions = Vec::new();
        for block in 0..count {
            let range = LbaRange::new(Lba(block), 1);
            let request =
                Request { tag: Tag(block), op: Op::Read, range, payload: Payload::None, deadline: None };
            queue.submit(request).unwrap();
            while queue.poll(Wait::NONE, &mut completions).unwrap() == 0 {
                let fd = PollFd::from_borrowed_fd(queue.wake_fd().unwrap(), PollFlags::IN);
                assert_eq!(poll(&mut [fd], Some(&LONG)), Ok(1), "no timer fired for block {block}");
            }
        }
        completions.iter().filter(|completion| completion.outcome.is_done()).count()
    }

    #[test]
    fn nothing_is_left_of_the_deadline_of_a_command_that_was_answered() {
        let drive = Drive::new(&Model::named("plp-nvme-ssd").unwrap(), DriveOptions::default()).unwrap();
        let handle = Handle::new(drive, Time::Virtual(Arc::default()));
        let shape = PoolShape { buffer: Bytes::kib(4), count: 1, alignment: Bytes::kib(4) };
        let pool = Pool::new(shape).unwrap();
        let mut queue = handle.device().open_queue(QueueOptions { depth: 2, pool }).unwrap();
        for (tag, deadline) in [(0, Nanos::secs(30)), (1, Nanos::micros(10))] {
            let range = LbaRange::new(Lba(tag), 1);
            queue.submit(Request { deadline: Some(deadline), ..Request::read(Tag(tag), range) }).unwrap();
        }
        let mut completions = Vec::new();
        queue.poll(Wait { completions: 2, ..Wait::ONE }, &mut completions).unwrap();
        // The one that is given up in time, and then the other.
        let ends: Vec<_> = completions.iter().map(|one| (one.tag.0, one.outcome.is_done())).collect();
        assert_eq!(ends, [(1, false), (0, true)]);
        assert_eq!(completions[0].completed_at, Nanos::micros(10));
        queue.poll(Wait::NONE, &mut completions).unwrap();
        let next = handle.shared.next_event();
        assert!(next.is_none_or(|next| next < Nanos::millis(1)), "something happens at {next:?}");
    }

    #[test]
    fn the_timers_of_queues_beside_each_other_are_all_fired() {
        let shape = PoolShape { buffer: Bytes::kib(4), count: 1, alignment: Bytes::kib(4) };
        // The first model answers before a wait could sleep, the second long after.
        for (model, count) in [("null", 2000), ("plp-nvme-ssd", 200)] {
            let drive = Drive::new(&Model::named(model).unwrap(), DriveOptions::default()).unwrap();
            let device = Handle::new(drive, Time::real()).device();
            let open = || {
                let pool = Pool::new(shape).unwrap();
                device.open_queue(QueueOptions { depth: 1, pool }).unwrap()
            };
            std::thread::scope(|scope| {
                let readers: Vec<_> = (0..4)
                    .map(|_| {
                        let queue = open();
                        scope.spawn(move || read_in_turn(queue, count))
                    })
                    .collect();
                for reader in readers {
                    assert_eq!(reader.join().unwrap(), count as usize, "{model}");
                }
            });
        }
    }
}
