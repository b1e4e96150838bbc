//! State shared by the front queues, the thread and the clock: the core, and the queues of its members.
//!
//! A caller that polls a front queue advances the core, submits its actions to the members, and collects
//! their completions, so a request needs no other thread. Meanwhile exactly one party waits for the members.
//! In real time that is the *watcher*: the owner of one front queue, whose descriptor also becomes readable
//! for the members. Without a watcher it is the thread. The owner stays the watcher between two requests, so
//! that no request wakes the thread. The thread checks regularly that the watcher still waits, and takes over
//! if not. It also handles the core's timers. In virtual time there is no thread: the clock and the pollers
//! advance the core.
//!
//! A member without a descriptor (pread and pwrite where io_uring is forbidden) executes requests in its
//! poll; then only the thread drives.
//!
//! Lock order: the members before the core. Neither lock is held during a wait, except for members that
//! complete requests in their poll.

use std::cell::Cell;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use plumb_block::wait::LOOK_EVERY;
use plumb_block::{
    Clock as _, Completion, Error, EventSource, Nanos, PollFlags, Poller, Queue, Request, Result, Time,
    wait_any,
};

use super::latency::LatencyByRequest;
use super::members::{FinishedAction, MemberQueues, MemberState};
use super::ports::Ports;
use super::wake::{Wake, fire, signal};
use crate::{Action, Cache, Mark, Member};

/// Interval at which the thread checks that the watcher still waits. Bounds the delay of destaging if nobody
/// else drives.
const RELIEVE_EVERY: Nanos = Nanos::millis(10);
/// Number of rounds in which a client's thread processes new completions before it returns its own.
const ROUNDS: u32 = 8;
/// Time that the thread waits for members without descriptors.
const UNSIGNALLED: Nanos = Nanos::millis(1);
/// Time that a dropped queue waits for its requests, equal to a server's timeout.
const UNANSWERED: Nanos = Nanos::secs(30);

/// A running cache. It ends with its last owner, a device or a queue.
pub(super) struct RunningCache {
    shared: Arc<SharedState>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

pub(super) struct SharedState {
    time: Time,
    members: Mutex<MemberQueues>,
    inner: Mutex<Inner>,
    /// Signalled when the core has advanced; in real time.
    changed: Condvar,
    /// Signalled when there is a mark for the backing device, or marking ends.
    to_mark: Condvar,
    /// Wakes the thread; in real time.
    kick: Option<OwnedFd>,
    /// Descriptor that is readable when a member may have completed something; in real time.
    answered: Option<Arc<OwnedFd>>,
}

struct Inner {
    core: Cache,
    ports: Ports,
    /// True if the core has received input since it was last advanced.
    has_work: bool,
    /// State of the members when the core was last advanced.
    members: MemberState,
    /// The front queue whose owner waits for the members.
    watcher: Option<Watcher>,
    /// Events that the thread waits for, unless it is running.
    asleep: Option<Asleep>,
    /// Number of threads that wait for `changed`.
    waiting: u32,
    is_stopping: bool,
}

/// A front queue whose descriptor is also readable for the members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Watcher {
    port: usize,
    /// True if its owner has requests in flight, and so is waiting.
    is_waiting: bool,
}

/// Events that the thread waits for, in addition to a kick.
#[derive(Debug, Clone, Copy)]
struct Asleep {
    until: Option<Nanos>,
    /// True if the thread also waits for the members.
    watches: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of the core is a separate error that tests show; its state must still be reported.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RunningCache {
    /// Starts a core with the queues of its members: on a separate thread, or on the virtual clock.
    pub(super) fn start(core: Cache, members: MemberQueues, time: Time) -> Result<Arc<Self>> {
        let kick = if time.is_virtual() { None } else { Some(signal()?) };
        let inner = Inner {
            core,
            ports: Ports::default(),
            has_work: true,
            members: MemberState::default(),
            watcher: None,
            asleep: None,
            waiting: 0,
            is_stopping: false,
        };
        let shared = Arc::new(SharedState {
            time,
            answered: members.answered(),
            members: Mutex::new(members),
            inner: Mutex::new(inner),
            changed: Condvar::new(),
            to_mark: Condvar::new(),
            kick,
        });
        let thread = match &shared.time {
            Time::Virtual(clock) => {
                let source = Arc::downgrade(&shared);
                clock.register(source as Weak<dyn EventSource>);
                None
            }
            Time::Real(_) => {
                let shared = Arc::clone(&shared);
                let spawned = std::thread::Builder::new().name("plumb-cache".to_owned());
                let spawned = spawned.spawn(move || shared.run());
                Some(spawned.map_err(|error| Error::io(&error, "start the thread of", "a cache"))?)
            }
        };
        Ok(Arc::new(Self { shared, thread: Mutex::new(thread) }))
    }

    pub(super) fn time(&self) -> &Time {
        &self.shared.time
    }

    /// Creates a wake for the owner of a new front queue; none in virtual time.
    pub(super) fn wake(&self) -> Result<Option<Arc<Wake>>> {
        self.shared
            .answered
            .as_ref()
            .map(|answered| Wake::new(Arc::clone(answered)).map(Arc::new))
            .transpose()
    }

    /// Opens a front queue. Returns its number.
    pub(super) fn open_port(&self, wake: Option<Arc<Wake>>) -> usize {
        lock(&self.shared.inner).ports.open(wake)
    }

    pub(super) fn submit(&self, port: usize, mut request: Request) {
        let mut inner = lock(&self.shared.inner);
        let Inner { core, ports, .. } = &mut *inner;
        let now = self.shared.time.now();
        ports.enter(port, &mut request, now);
        core.submit(request, now);
        inner.has_work = true;
    }

    /// Advances the core and collects the completions for `port`, which had `in_flight` requests in flight.
    pub(super) fn poll(&self, port: usize, in_flight: usize, completions: &mut Vec<Completion>) -> usize {
        let mut inner = lock(&self.shared.inner);
        let is_own = (inner.has_work && inner.members.is_signalled) || inner.is_watcher(port);
        if self.shared.time.is_virtual() || is_own {
            drop(inner);
            inner = self.shared.drive(Some(port));
        }
        let count = inner.ports.take_ready(port, completions);
        self.shared.choose_watcher(inner, port, in_flight > count);
        count
    }

    pub(super) fn look<R>(&self, look: impl FnOnce(&Cache) -> R) -> R {
        look(&lock(&self.shared.inner).core)
    }

    /// Returns the latency of answered requests.
    pub(super) fn latency(&self) -> LatencyByRequest {
        lock(&self.shared.inner).ports.latency()
    }

    /// Modifies the core.
    pub(super) fn with<R>(&self, tell: impl FnOnce(&mut Cache, Nanos) -> R) -> R {
        let mut inner = lock(&self.shared.inner);
        let now = self.shared.time.now();
        let result = tell(&mut inner.core, now);
        inner.has_work = true;
        self.shared.wake_thread(inner);
        result
    }

    /// Removes the queue of a member, and reports its requests in flight to the core as unanswered. Returns
    /// when the device no longer uses their memory.
    pub(super) fn remove_member(&self, member: Member) {
        let (mut members, mut ended) = (lock(&self.shared.members), Vec::new());
        let queue = members.remove(member, &mut ended);
        let mut inner = lock(&self.shared.inner);
        let now = self.shared.time.now();
        for FinishedAction { id, outcome, payload } in ended {
            inner.core.completed(id, outcome, payload, now);
        }
        inner.has_work = true;
        drop(members);
        self.shared.wake_thread(inner);
        drop(queue);
    }

    /// Gives a member a queue.
    ///
    /// # Errors
    /// If the system cannot wait for the queue.
    pub(super) fn add_member(&self, member: Member, queue: Box<dyn Queue>) -> Result<()> {
        lock(&self.shared.members).add(member, queue)
    }

    /// Waits until `look` returns a value. `None` if that cannot happen any more: in virtual time, without
    /// further events.
    ///
    /// # Errors
    /// If the system cannot wait.
    pub(super) fn wait_for<R>(&self, mut look: impl FnMut(&mut Cache) -> Option<R>) -> Result<Option<R>> {
        self.shared.wait_until(|inner| look(&mut inner.core), None)
    }

    /// Waits for a mark to write to the backing device. `None` after [`end_marking`](Self::end_marking).
    pub(super) fn wait_to_mark(&self, is_over: &AtomicBool) -> Option<Mark> {
        let mut inner = lock(&self.shared.inner);
        while !is_over.load(Ordering::Relaxed) {
            if let Some(mark) = inner.core.to_mark() {
                return Some(mark);
            }
            inner = self.shared.to_mark.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Ends [`wait_to_mark`](Self::wait_to_mark).
    pub(super) fn end_marking(&self, is_over: &AtomicBool) {
        let _inner = lock(&self.shared.inner);
        is_over.store(true, Ordering::Relaxed);
        self.shared.to_mark.notify_all();
    }

    /// Removes a queue. Its memory is free when this returns, except for requests that a member leaves
    /// unanswered for long.
    pub(super) fn close(&self, port: usize) {
        let mut inner = lock(&self.shared.inner);
        if inner.is_watcher(port) {
            inner.relieve();
        }
        self.shared.wake_thread(inner);
        let end = self.shared.time.now().saturating_add(UNANSWERED);
        let is_over = |inner: &mut Inner| (inner.is_stopping || inner.ports.is_idle(port)).then_some(());
        // If the system cannot wait, the memory becomes free later.
        self.shared.wait_until(is_over, Some(end)).ok();
        lock(&self.shared.inner).ports.close(port);
    }

    /// Ends like a killed process: no further requests to members, no further answers. Acknowledged data is
    /// in the log.
    pub(super) fn halt(&self) {
        let mut inner = lock(&self.shared.inner);
        (inner.is_stopping, inner.has_work) = (true, true);
        self.shared.wake_thread(inner);
        let thread = lock(&self.thread).take();
        // The panic of a thread was already reported.
        thread.into_iter().for_each(|thread| drop(thread.join()));
    }
}

/// If a clean stop matters, the core must be stopped before the drop.
impl Drop for RunningCache {
    fn drop(&mut self) {
        self.halt();
    }
}

impl Inner {
    /// Returns the time of the next event that needs no request.
    fn next_event(&self) -> Option<Nanos> {
        self.core.next_event().into_iter().chain(self.ports.next_deadline()).min()
    }

    fn is_watcher(&self, port: usize) -> bool {
        self.watcher.is_some_and(|watcher| watcher.port == port)
    }

    /// Dismisses the watcher, if any.
    fn relieve(&mut self) {
        if let Some(watcher) = self.watcher.take() {
            self.ports.watch(watcher.port, false);
        }
    }
}

impl SharedState {
    /// Records that the owner of `port` has its completions and whether it waits for more, and chooses who
    /// waits for the members.
    fn choose_watcher(&self, mut inner: MutexGuard<'_, Inner>, port: usize, is_waiting: bool) {
        if self.time.is_virtual() {
            return;
        }
        let is_free = is_waiting && inner.watcher.is_none_or(|watcher| !watcher.is_waiting);
        if inner.is_watcher(port) {
            inner.watcher = Some(Watcher { port, is_waiting });
        } else if is_free && inner.members.is_signalled {
            inner.relieve();
            inner.watcher = inner.ports.watch(port, true).then_some(Watcher { port, is_waiting });
        }
        self.wake_thread(inner);
    }

    /// Wakes the thread if there is an event that it does not wait for.
    fn wake_thread(&self, mut inner: MutexGuard<'_, Inner>) {
        let Some(asleep) = inner.asleep else { return };
        // The thread detects soon enough that a watcher which is not waiting does not return.
        let soon = self.time.now().saturating_add(RELIEVE_EVERY);
        let is_late = asleep.until.is_none_or(|until| until > soon);
        let is_left = inner.watcher.is_none_or(|watcher| !watcher.is_waiting && is_late);
        let is_unwatched = inner.members.is_busy && is_left && !asleep.watches;
        let is_early = inner.next_event().is_some_and(|at| asleep.until.is_none_or(|until| at < until));
        if !inner.has_work && !is_unwatched && !is_early {
            return;
        }
        inner.asleep = None;
        drop(inner);
        self.kick.iter().for_each(fire);
    }

    /// Waits until `look` returns a value, or until `end`. `None` at the end, and in virtual time without
    /// further events.
    fn wait_until<R>(
        &self,
        mut look: impl FnMut(&mut Inner) -> Option<R>,
        end: Option<Nanos>,
    ) -> Result<Option<R>> {
        loop {
            let mut inner = if self.time.is_virtual() { self.drive(None) } else { lock(&self.inner) };
            if let Some(found) = look(&mut inner) {
                return Ok(Some(found));
            }
            if end.is_some_and(|end| end <= self.time.now()) {
                return Ok(None);
            }
            if self.time.is_virtual() {
                drop(inner);
                if !wait_any([], end, &mut &self.time)? {
                    return Ok(None);
                }
                continue;
            }
            inner.waiting += 1;
            let waited = self.changed.wait_timeout(inner, Duration::from(LOOK_EVERY));
            waited.unwrap_or_else(PoisonError::into_inner).0.waiting -= 1;
        }
    }

    /// Advances the core as far as possible without waiting. `port` belongs to the caller, who collects its
    /// completions next.
    fn drive(&self, port: Option<usize>) -> MutexGuard<'_, Inner> {
        let mut members = lock(&self.members);
        let (mut actions, mut ended) = (Vec::<Action>::new(), Vec::<FinishedAction>::new());
        let (mut answers, mut woken) = (Vec::<Completion>::new(), Vec::new());
        let mut round = 0;
        loop {
            members.poll(&mut ended);
            let mut inner = lock(&self.inner);
            let is_enough = port.is_some() && round >= ROUNDS;
            if is_enough || (ended.is_empty() && round > 0) {
                // The next caller that drives reports the ended actions to the core.
                inner.has_work |= !ended.is_empty();
                members.put_back(ended);
                inner.members = members.state();
                if inner.waiting > 0 {
                    self.changed.notify_all();
                }
                return inner;
            }
            let now = self.time.now();
            let Inner { core, ports, has_work, is_stopping, .. } = &mut *inner;
            *has_work = false;
            for FinishedAction { id, outcome, payload } in ended.drain(..) {
                core.completed(id, outcome, payload, now);
            }
            core.advance(now);
            if !*is_stopping {
                core.take_actions(&mut actions);
                core.take_answers(&mut answers);
            }
            if core.to_mark().is_some() {
                self.to_mark.notify_all();
            }
            for Completion { tag, outcome, payload, .. } in answers.drain(..) {
                ports.answer(tag, outcome, payload, now);
            }
            ports.give_up_late(now);
            woken.extend(ports.take_wakes(port));
            drop(inner);
            woken.drain(..).for_each(|wake: Arc<Wake>| wake.fire());
            actions.drain(..).for_each(|action| members.submit(action, &mut ended));
            round += 1;
        }
    }

    /// Main loop of the thread: drives, handles the core's timers, and waits for the members while there is
    /// no watcher.
    fn run(&self) {
        let (Time::Real(clock), Some(kick), Some(answered)) = (&self.time, &self.kick, &self.answered) else {
            return;
        };
        become_io_flusher();
        loop {
            let mut inner = self.drive(None);
            if inner.is_stopping && !inner.members.is_busy {
                break;
            }
            if inner.has_work {
                continue;
            }
            if inner.watcher.is_some_and(|watcher| !watcher.is_waiting) {
                inner.relieve();
            }
            let asleep = inner.sleep(clock.now());
            inner.asleep = Some(asleep);
            drop(inner);
            let mut waiter = Poller::new(&**clock).watching(kick.as_fd(), PollFlags::IN);
            if asleep.watches {
                waiter = waiter.watching(answered.as_fd(), PollFlags::IN);
            }
            let waited = wait_any([], asleep.until, &mut waiter);
            if !waiter.events(0).is_empty() {
                // The read fails only if another thread has read the descriptor before.
                rustix::io::read(kick, &mut [0_u8; 8]).ok();
            }
            lock(&self.inner).asleep = None;
            if waited.is_err() {
                // poll(2) fails for lack of memory; try again.
                std::thread::sleep(LOOK_EVERY.into());
            }
        }
    }
}

impl Inner {
    /// Returns the events that the thread should wait for.
    fn sleep(&self, now: Nanos) -> Asleep {
        let MemberState { is_busy, is_signalled } = self.members;
        let is_watched = self.watcher.is_some();
        let look = match (is_watched, is_signalled) {
            _ if !is_busy => None,
            (false, true) => None,
            (false, false) => Some(UNSIGNALLED),
            (true, _) => Some(RELIEVE_EVERY),
        };
        let look = look.map(|after| now.saturating_add(after));
        let watches = !is_watched && (is_signalled || is_busy);
        Asleep { until: self.next_event().into_iter().chain(look).min(), watches }
    }
}

/// Marks this thread as an I/O flusher: if it needs memory while writing for the cache, it must not wait for
/// write-back to the device that it serves. Without the privilege the thread runs unmarked.
pub(super) fn become_io_flusher() {
    thread_local! {
        static IS_FLUSHER: Cell<bool> = const { Cell::new(false) };
    }
    if !IS_FLUSHER.replace(true) {
        rustix::process::configure_io_flusher_behavior(true).unwrap_or_default();
    }
}

impl EventSource for SharedState {
    fn next_event(&self) -> Option<Nanos> {
        lock(&self.inner).next_event()
    }

    fn advance(&self, _now: Nanos) -> bool {
        self.drive(None).ports.has_ready()
    }
}
