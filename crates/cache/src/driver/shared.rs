//! State that the front queues, the thread and the clock share: the core, and the queues of its members.
//!
//! The caller that polls a front queue advances the core, submits its actions to the members, and takes their
//! completions: a request needs no other thread. One of two parties waits for the members meanwhile. In real
//! time that is the *watcher*, the owner of one front queue, whose descriptor becomes readable for the
//! members too; without a watcher it is the thread. Between two requests the owner stays the watcher, so that
//! no request wakes the thread. The thread checks from time to time that the watcher still waits, and takes
//! over if it does not. The thread also runs the core's timers. In virtual time there is no thread: the clock
//! and the pollers advance the core.
//!
//! A member without a descriptor (pread and pwrite where io_uring is forbidden) completes requests in its
//! poll: then the thread alone drives.
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

/// Interval at which the thread checks that the watcher still waits. Destaging continues after so long if
/// nobody else drives.
const RELIEVE_EVERY: Nanos = Nanos::millis(10);
/// Number of rounds in which a user of the cache carries out what was answered meanwhile, before it takes its
/// own answers.
const ROUNDS: u32 = 8;
/// Time that the thread waits for members that cannot wake it.
const UNSIGNALLED: Nanos = Nanos::millis(1);
/// Time that a queue that is dropped waits for its requests: as long as a server does before it gives one up.
const UNANSWERED: Nanos = Nanos::secs(30);

/// A cache that runs: until its last owner, a device or a queue, is gone.
pub(super) struct RunningCache {
    shared: Arc<SharedState>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

pub(super) struct SharedState {
    time: Time,
    members: Mutex<MemberQueues>,
    inner: Mutex<Inner>,
    /// The core has got on; in real time.
    changed: Condvar,
    /// There is a mark for the backing device, or nobody writes one any more.
    to_mark: Condvar,
    /// Wakes the thread; in real time.
    kick: Option<OwnedFd>,
    /// Readable when a member may have answered; in real time.
    answered: Option<Arc<OwnedFd>>,
}

struct Inner {
    core: Cache,
    ports: Ports,
    /// The core was told something since it was last advanced.
    has_work: bool,
    /// State of the members since the core was last advanced.
    members: MemberState,
    /// The front queue whose owner waits for the members.
    watcher: Option<Watcher>,
    /// How the thread waits, unless it runs.
    asleep: Option<Asleep>,
    /// Number that wait for `changed`.
    waiting: u32,
    is_stopping: bool,
}

/// A front queue whose descriptor is readable for the members, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Watcher {
    port: usize,
    /// True if its owner has requests in flight, and so waits.
    is_waiting: bool,
}

/// Events that the thread waits for, beside a kick.
#[derive(Debug, Clone, Copy)]
struct Asleep {
    until: Option<Nanos>,
    /// True if the owner of this queue also waits for the members.
    watches: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of the core is an error of its own that tests show; what it holds is still to be reported on.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RunningCache {
    /// Starts a core over the queues of its members: on a thread of its own, or on the virtual clock.
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

    /// Returns a wake for the owner of a new front queue; none in virtual time.
    pub(super) fn wake(&self) -> Result<Option<Arc<Wake>>> {
        self.shared
            .answered
            .as_ref()
            .map(|answered| Wake::new(Arc::clone(answered)).map(Arc::new))
            .transpose()
    }

    /// Returns a new front queue.
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

    /// Advances the core and takes the completions for `port`, which had `in_flight` requests in flight.
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

    /// Returns the latency of the requests that were answered.
    pub(super) fn latency(&self) -> LatencyByRequest {
        lock(&self.shared.inner).ports.latency()
    }

    /// Tells the core something.
    pub(super) fn with<R>(&self, tell: impl FnOnce(&mut Cache, Nanos) -> R) -> R {
        let mut inner = lock(&self.shared.inner);
        let now = self.shared.time.now();
        let result = tell(&mut inner.core, now);
        inner.has_work = true;
        self.shared.wake_thread(inner);
        result
    }

    /// Takes away the queue of a member, and tells the core that what was in flight in it has no answer.
    /// Returns when the device has let go of its memory.
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
    /// If the system cannot wait for it.
    pub(super) fn add_member(&self, member: Member, queue: Box<dyn Queue>) -> Result<()> {
        lock(&self.shared.members).add(member, queue)
    }

    /// Waits until `look` finds what it waits for. `None` if that can never come: in virtual time, when
    /// nothing happens any more.
    ///
    /// # Errors
    /// If the system cannot wait.
    pub(super) fn wait_for<R>(&self, mut look: impl FnMut(&mut Cache) -> Option<R>) -> Result<Option<R>> {
        self.shared.wait_until(|inner| look(&mut inner.core), None)
    }

    /// Waits for a mark that the backing device is to get. `None` once it [is over](Self::end_marking).
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

    /// Notes that a queue is gone. Its memory is free when this returns, but for that of requests which no
    /// member answers for long.
    pub(super) fn close(&self, port: usize) {
        let mut inner = lock(&self.shared.inner);
        if inner.is_watcher(port) {
            inner.relieve();
        }
        self.shared.wake_thread(inner);
        let end = self.shared.time.now().saturating_add(UNANSWERED);
        let is_over = |inner: &mut Inner| (inner.is_stopping || inner.ports.is_idle(port)).then_some(());
        // If the system cannot wait the memory comes free later, too.
        self.shared.wait_until(is_over, Some(end)).ok();
        lock(&self.shared.inner).ports.close(port);
    }

    /// Ends as a killed process does: nothing more goes to a member, nobody is answered any more. What is
    /// acknowledged stands in the log.
    pub(super) fn halt(&self) {
        let mut inner = lock(&self.shared.inner);
        (inner.is_stopping, inner.has_work) = (true, true);
        self.shared.wake_thread(inner);
        let thread = lock(&self.thread).take();
        // A thread that panicked has said so.
        thread.into_iter().for_each(|thread| drop(thread.join()));
    }
}

/// Whoever drops it has stopped the core before, if that matters.
impl Drop for RunningCache {
    fn drop(&mut self) {
        self.halt();
    }
}

impl Inner {
    /// Returns when something is to be done that nobody asks for.
    fn next_event(&self) -> Option<Nanos> {
        self.core.next_event().into_iter().chain(self.ports.next_deadline()).min()
    }

    fn is_watcher(&self, port: usize) -> bool {
        self.watcher.is_some_and(|watcher| watcher.port == port)
    }

    /// Ends the watch, if there is a watcher.
    fn relieve(&mut self) {
        if let Some(watcher) = self.watcher.take() {
            self.ports.watch(watcher.port, false);
        }
    }
}

impl SharedState {
    /// Notes that the owner of `port` has its completions and `is_waiting` for more or not, and chooses who
    /// waits for the members now.
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

    /// Wakes the thread if it sleeps and there is something that it does not wait for.
    fn wake_thread(&self, mut inner: MutexGuard<'_, Inner>) {
        let Some(asleep) = inner.asleep else { return };
        // The thread finds out in time that a watcher which does not wait now does not come back.
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

    /// Waits until `look` finds what it waits for, or until `end`. `None` at the end, and when in virtual
    /// time nothing happens any more.
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

    /// Advances the core as far as it gets without waiting. `port` is of whoever calls this and takes its
    /// answers next.
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
                // Whoever drives next tells the core.
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

    /// The thread: drives, keeps the core's timers, and waits for the members while no watcher does.
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
                // The read fails only if somebody has read the descriptor before.
                rustix::io::read(kick, &mut [0_u8; 8]).ok();
            }
            lock(&self.inner).asleep = None;
            if waited.is_err() {
                // poll(2) fails for want of memory: then it is tried again.
                std::thread::sleep(LOOK_EVERY.into());
            }
        }
    }
}

impl Inner {
    /// Returns what the thread is to wait for.
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

/// Marks this thread as an I/O flusher: one that carries out writes of the cache must not wait for writes to
/// the very device that it serves when it needs memory. Without the privilege it runs none the less.
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
