//! A drive as a [`Device`]: any number of queues on one drive, in virtual or in real time.
//!
//! Nothing runs in the background. Whoever polls lets the drive advance to the time that it is, and rings for the queues
//! for which something is ready. A poll that waits sleeps in real time until the drive's next event; in virtual time it
//! lets the world move the clock there.

use std::ops::{Deref, DerefMut};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use plumb_block::{
    Clock, Completion, Device, DeviceInfo, Extent, Latch, LbaRange, Nanos, Queue, QueueFull, QueueOptions,
    Request, Result, StorageCounters, StorageSnapshot, VirtualClock, Wait,
};

use crate::alarm::Alarm;
use crate::drive::{Drive, PortNumber};
use crate::lead::Lead;
use crate::world;

/// What is due within this is waited for without a sleep, which takes longer.
const NEAR: Nanos = Nanos::micros(2);

/// A drive that is shared: by its queues, by whoever serves it, by whoever holds its power switch.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
    /// The world that moves the clock; `None` in real time.
    world: Option<Weak<world::Shared>>,
}

struct Shared {
    state: Mutex<State>,
    /// Until when nothing happens and nothing is ready, as of the last time that the state was let go.
    quiet_until: AtomicU64,
}

struct State {
    drive: Drive,
    /// By port: how a queue in real time is woken.
    alarms: Vec<Option<Arc<Alarm>>>,
    /// Whose queue gets up before an event; the others are rung for, or wake when it is due.
    early: Option<PortNumber>,
}

impl State {
    /// Wakes the queues, but `own`, for which something is ready.
    fn ring(&self, own: Option<PortNumber>) {
        for port in self.drive.ports_ready().filter(|port| Some(*port) != own) {
            if let Some(Some(alarm)) = self.alarms.get(port.0 as usize)
                && !alarm.is_attended()
            {
                alarm.ring();
            }
        }
    }

    /// Whether `port`, which awaits something or not, is the one that gets up early.
    fn is_early(&mut self, port: PortNumber, awaits: bool) -> bool {
        if !awaits {
            self.early = self.early.filter(|early| *early != port);
            return false;
        }
        *self.early.get_or_insert(port) == port
    }
}

/// The state, locked.
struct Locked<'a> {
    state: MutexGuard<'a, State>,
    quiet_until: &'a AtomicU64,
}

impl Deref for Locked<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.quiet_until.store(self.state.drive.quiet_until().0, Ordering::Release);
    }
}

impl Handle {
    /// A drive whose time a [`World`](crate::world::World) moves.
    pub(crate) fn in_virtual_time(drive: Drive, clock: Arc<dyn Clock>, world: Weak<world::Shared>) -> Self {
        Self { world: Some(world), ..Self::in_real_time(drive, clock) }
    }

    /// A drive that goes by `clock`, the real one: its completions come when a drive of its model would bring them.
    pub fn in_real_time(drive: Drive, clock: Arc<dyn Clock>) -> Self {
        let state = State { drive, alarms: Vec::new(), early: None };
        let shared = Shared { state: Mutex::new(state), quiet_until: AtomicU64::new(0) };
        Self { shared: Arc::new(shared), clock, world: None }
    }

    /// Lets the drive advance to now, then looks at it or changes it.
    pub fn with<R>(&self, look: impl FnOnce(&mut Drive, Nanos) -> R) -> R {
        let mut shared = self.lock();
        let now = self.clock.now();
        shared.drive.advance(now);
        let result = look(&mut shared.drive, now);
        if self.world.is_none() {
            shared.ring(None);
        }
        result
    }

    /// The drive as a device. The devices of one handle are the same device.
    pub fn device(&self) -> Arc<dyn Device> {
        Arc::new(SimDevice(self.clone()))
    }

    /// What reaches the drive, counted at the drive.
    pub fn counters(&self) -> Arc<dyn StorageCounters> {
        Arc::new(SimCounters(self.clone()))
    }

    /// When something happens next by itself.
    pub(crate) fn next_event(&self) -> Option<Nanos> {
        self.lock().drive.next_event()
    }

    /// Lets the drive advance to now; whether a queue has something to take.
    pub(crate) fn catch_up(&self) -> bool {
        let mut shared = self.lock();
        let now = self.clock.now();
        shared.drive.advance(now);
        shared.drive.has_ready()
    }

    /// Lets the drive run to its next answer, but not beyond `deadline`, and moves `clock` along. Whether anything
    /// happened.
    pub(crate) fn run_to_answer(&self, deadline: Nanos, clock: &VirtualClock) -> bool {
        let mut shared = self.lock();
        let reached = shared.drive.run_to_answer(deadline);
        // Before anybody else gets at the drive, for which time must not run backwards.
        if let Some(reached) = reached {
            clock.advance_to(reached);
        }
        reached.is_some()
    }

    /// Lets everything happen that is due, and what is due so soon that a sleep would take longer, if the owner of an
    /// alarm awaits that; and the time that it is then. The drive is not locked meanwhile, so that others get on.
    fn settle(&self, awaits: Option<&Alarm>) -> (Locked<'_>, Nanos) {
        let mut shared = self.lock();
        let mut now = self.clock.now();
        shared.drive.advance(now);
        let Some(alarm) = awaits else { return (shared, now) };
        let end = now.saturating_add(NEAR);
        while let Some(next) = shared.drive.next_event().filter(|next| *next <= end) {
            alarm.attend(true);
            drop(shared);
            while self.clock.now() < next {
                std::hint::spin_loop();
            }
            shared = self.lock();
            alarm.attend(false);
            // Read again: another queue may have let the drive advance further meanwhile.
            now = self.clock.now();
            shared.drive.advance(now);
        }
        (shared, now)
    }

    fn lock(&self) -> Locked<'_> {
        // Whoever panicked holding the lock has left a drive that no test may trust, but a server may still report on.
        let state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        Locked { state, quiet_until: &self.shared.quiet_until }
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("in_real_time", &self.world.is_none()).finish_non_exhaustive()
    }
}

struct SimDevice(Handle);

impl Device for SimDevice {
    fn info(&self) -> DeviceInfo {
        self.0.lock().drive.info().clone()
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        let alarm = if self.0.world.is_none() { Some(Arc::new(Alarm::new()?)) } else { None };
        let mut shared = self.0.lock();
        let port = shared.drive.open_port();
        let place = port.0 as usize;
        if shared.alarms.len() <= place {
            shared.alarms.resize(place + 1, None);
        }
        shared.alarms[place].clone_from(&alarm);
        drop(shared);
        let capacity = options.depth.max(1) as usize;
        let lead = Lead::new(self.0.clock.now());
        Ok(Box::new(SimQueue { handle: self.0.clone(), port, alarm, lead, capacity, in_flight: 0 }))
    }

    fn extents(&self, range: LbaRange) -> Result<Vec<Extent>> {
        Ok(self.0.with(|drive, _| drive.extents(range)))
    }

    fn set_wce(&self, enabled: bool) -> Result<()> {
        self.0.with(|drive, now| drive.set_wce(now, enabled))
    }

    fn latched(&self) -> Option<Latch> {
        self.0.lock().drive.latched()
    }
}

struct SimQueue {
    handle: Handle,
    port: PortNumber,
    /// In real time only.
    alarm: Option<Arc<Alarm>>,
    lead: Lead,
    capacity: usize,
    in_flight: usize,
}

impl Queue for SimQueue {
    fn submit(&mut self, request: Request) -> std::result::Result<(), QueueFull> {
        if self.in_flight == self.capacity {
            return Err(QueueFull(request));
        }
        let mut shared = self.handle.lock();
        let now = self.handle.clock.now();
        shared.drive.advance(now);
        shared.drive.submit(now, self.port, request);
        self.in_flight += 1;
        Ok(())
    }

    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        let (mut count, began) = self.reap(completions);
        let wanted = (wait.completions as usize).min(count + self.in_flight);
        let patience = wait.patience.map(|patience| began.saturating_add(patience));
        while count < wanted {
            let until = if count > 0 { patience } else { None };
            let end = [wait.deadline, until].into_iter().flatten().min();
            if end.is_some_and(|end| end <= self.handle.clock.now()) || !self.let_time_pass(end)? {
                break;
            }
            count += self.reap(completions).0;
        }
        Ok(count)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.alarm.as_ref().map(|alarm| alarm.watched())
    }
}

impl SimQueue {
    /// Waits for the drive's next event, but not beyond `end`. False if nothing will ever happen.
    fn let_time_pass(&mut self, end: Option<Nanos>) -> Result<bool> {
        let Some(alarm) = &self.alarm else { return Ok(self.let_world_move(end)) };
        let mut shared = self.handle.lock();
        let now = self.handle.clock.now();
        shared.drive.advance(now);
        let is_ready = shared.drive.ports_ready().any(|port| port == self.port);
        if !is_ready {
            // While the drive is locked, so that nobody can ring in between.
            let rise = rise(&mut self.lead, &mut shared, self.port, now, self.in_flight > 0);
            alarm.set(now, [rise, end].into_iter().flatten().min());
            drop(shared);
            alarm.wait()?;
        }
        Ok(true)
    }

    /// As [`let_time_pass`](Self::let_time_pass), in virtual time.
    fn let_world_move(&self, end: Option<Nanos>) -> bool {
        let world = self.handle.world.as_ref().and_then(Weak::upgrade);
        let Some(world) = world.filter(|world| end.is_some() || world.has_events()) else { return false };
        world.advance(end.unwrap_or(Nanos(u64::MAX)));
        true
    }

    /// Takes what is ready; how much that was, and the time.
    fn reap(&mut self, completions: &mut Vec<Completion>) -> (usize, Nanos) {
        if self.alarm.is_none() {
            let now = self.handle.clock.now();
            if now.0 < self.handle.shared.quiet_until.load(Ordering::Acquire) {
                return (0, now);
            }
        }
        let first = completions.len();
        let awaits = self.alarm.as_deref().filter(|_| self.in_flight > 0);
        let (mut shared, now) = self.handle.settle(awaits);
        let count = shared.drive.take_ready(self.port, completions);
        self.in_flight -= count;
        if let Some(alarm) = &self.alarm {
            shared.ring(Some(self.port));
            self.lead.awake(now);
            let rise = rise(&mut self.lead, &mut shared, self.port, now, self.in_flight > 0);
            alarm.set_if_watched(now, rise);
            for completion in &mut completions[first..] {
                completion.completed_at = now;
            }
        }
        (count, now)
    }
}

/// When the queue of `port` wakes for what the drive does next, if it awaits anything.
fn rise(lead: &mut Lead, shared: &mut State, port: PortNumber, now: Nanos, awaits: bool) -> Option<Nanos> {
    let is_early = shared.is_early(port, awaits);
    let next = shared.drive.next_event().filter(|_| awaits)?;
    Some(if is_early { lead.rise(now, next) } else { next })
}

impl Drop for SimQueue {
    fn drop(&mut self) {
        let mut shared = self.handle.lock();
        shared.is_early(self.port, false);
        shared.drive.close_port(self.port);
        if let Some(alarm) = shared.alarms.get_mut(self.port.0 as usize) {
            *alarm = None;
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
    use plumb_block::{Bytes, Lba, Op, Payload, Pool, PoolShape, RealClock, Tag};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;
    use crate::drive::DriveOptions;
    use crate::model::Model;

    /// Long after everything that is asked here is done.
    const NEVER_RUNG: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };

    /// Reads one block after the other, and waits for each as a server does, for the descriptor; how many were read.
    fn read_in_turn(mut queue: Box<dyn Queue>, count: u64) -> usize {
        let mut completions = Vec::new();
        for block in 0..count {
            let range = LbaRange::new(Lba(block), 1);
            let request =
                Request { tag: Tag(block), op: Op::Read, range, payload: Payload::None, deadline: None };
            queue.submit(request).unwrap();
            while queue.poll(Wait::NONE, &mut completions).unwrap() == 0 {
                let fd = PollFd::from_borrowed_fd(queue.wake_fd().unwrap(), PollFlags::IN);
                assert_eq!(poll(&mut [fd], Some(&NEVER_RUNG)), Ok(1), "nobody rang for block {block}");
            }
        }
        completions.iter().filter(|completion| completion.outcome.is_done()).count()
    }

    #[test]
    fn nothing_is_left_of_the_deadline_of_a_command_that_was_answered() {
        let world = world::World::new();
        let drive = Drive::new(&Model::named("plp-nvme-ssd").unwrap(), DriveOptions::default()).unwrap();
        let handle = world.drive(world.add(drive));
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
        let next = handle.next_event();
        assert!(next.is_none_or(|next| next < Nanos::millis(1)), "something happens at {next:?}");
    }

    #[test]
    fn queues_beside_each_other_are_all_rung_for() {
        let shape = PoolShape { buffer: Bytes::kib(4), count: 1, alignment: Bytes::kib(4) };
        // One answers while it is waited for without a sleep, the other long after.
        for (model, count) in [("null", 2000), ("plp-nvme-ssd", 200)] {
            let drive = Drive::new(&Model::named(model).unwrap(), DriveOptions::default()).unwrap();
            let device = Handle::in_real_time(drive, Arc::new(RealClock::start())).device();
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
