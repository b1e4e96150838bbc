//! What the front queues, the thread and the clock share: the core, and the queues of its members.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use plumb_block::{
    Clock as _, Completion, Error, EventSource, Nanos, PollFlags, Poller, Queue, Request, Result, Time,
    wait_any,
};
use rustix::event::{EventfdFlags, eventfd};

use super::members::{Ended, MemberQueues};
use super::ports::Ports;
use crate::{Action, Cache, Member};

/// How long whoever waits for the core to get somewhere sleeps before it looks again, should nobody wake it.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a queue that is dropped waits for its requests: as long as a server does before it gives one up.
const UNANSWERED: Nanos = Nanos::secs(30);

/// A cache that runs: until its last owner, a device or a queue, is gone.
pub(super) struct Running {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

pub(super) struct Shared {
    time: Time,
    /// Locked before the core.
    members: Mutex<MemberQueues>,
    inner: Mutex<Inner>,
    /// The core has got on; in real time.
    changed: Condvar,
    /// Wakes the thread; in real time.
    kick: Option<OwnedFd>,
}

struct Inner {
    core: Cache,
    ports: Ports,
    /// The core was told something since it was last moved on.
    has_work: bool,
    /// The thread waits, or is about to.
    is_asleep: bool,
    is_stopping: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of the core is an error of its own that tests show; what it holds is still to be reported on.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An eventfd that is not readable yet.
pub(super) fn signal() -> Result<OwnedFd> {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|errno| Error::io(&errno.into(), "make an eventfd for", "a cache"))
}

fn fire(signal: &OwnedFd) {
    // It fails only if the counter is full, and then it is readable already.
    rustix::io::write(signal, &1_u64.to_ne_bytes()).ok();
}

impl Running {
    /// Starts a core over the queues of its members: on a thread of its own, or on the virtual clock.
    pub(super) fn start(core: Cache, members: MemberQueues, time: Time) -> Result<Arc<Self>> {
        let kick = if time.is_virtual() { None } else { Some(signal()?) };
        let inner =
            Inner { core, ports: Ports::default(), has_work: true, is_asleep: false, is_stopping: false };
        let shared = Arc::new(Shared {
            time,
            members: Mutex::new(members),
            inner: Mutex::new(inner),
            changed: Condvar::new(),
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

    /// A new front queue.
    pub(super) fn open_port(&self, wake: Option<Arc<OwnedFd>>) -> usize {
        lock(&self.shared.inner).ports.open(wake)
    }

    /// Enters a request.
    pub(super) fn submit(&self, port: usize, mut request: Request) {
        let mut inner = lock(&self.shared.inner);
        let Inner { core, ports, .. } = &mut *inner;
        let now = self.shared.time.now();
        ports.enter(port, &mut request, now);
        core.submit(request, now);
        inner.has_work = true;
    }

    /// Moves the core on, or has the thread do it, and takes what is ready for `port`.
    pub(super) fn take(&self, port: usize, completions: &mut Vec<Completion>) -> usize {
        if self.shared.time.is_virtual() {
            self.shared.drive();
            return lock(&self.shared.inner).ports.take(port, completions);
        }
        let mut inner = lock(&self.shared.inner);
        let count = inner.ports.take(port, completions);
        self.shared.wake_thread(inner);
        count
    }

    /// Looks at the core or tells it something.
    pub(super) fn with<R>(&self, look: impl FnOnce(&mut Cache, Nanos) -> R) -> R {
        let mut inner = lock(&self.shared.inner);
        let now = self.shared.time.now();
        let result = look(&mut inner.core, now);
        inner.has_work = true;
        self.shared.wake_thread(inner);
        result
    }

    /// Takes away the queue of a member, and tells the core that what was in flight in it has no answer. Returns when the device has
    /// let go of its memory.
    pub(super) fn remove_member(&self, member: Member) {
        let (mut members, mut ended) = (lock(&self.shared.members), Vec::new());
        let queue = members.remove(member, &mut ended);
        let mut inner = lock(&self.shared.inner);
        let now = self.shared.time.now();
        for Ended { id, outcome, payload } in ended {
            inner.core.completed(id, outcome, payload, now);
        }
        inner.has_work = true;
        drop(members);
        self.shared.wake_thread(inner);
        drop(queue);
    }

    /// Gives a member a queue.
    pub(super) fn add_member(&self, member: Member, queue: Box<dyn Queue>) {
        lock(&self.shared.members).add(member, queue);
    }

    /// Waits until `look` finds what it waits for. `None` if that can never come: in virtual time, when nothing happens any more.
    ///
    /// # Errors
    /// If the system cannot wait.
    pub(super) fn wait_for<R>(&self, mut look: impl FnMut(&mut Cache) -> Option<R>) -> Result<Option<R>> {
        self.shared.wait_until(|inner| look(&mut inner.core), None)
    }

    /// A queue is gone. Its memory is free when this returns, but for that of requests which no member answers for long.
    pub(super) fn close(&self, port: usize) {
        let end = self.shared.time.now().saturating_add(UNANSWERED);
        let is_over = |inner: &mut Inner| (inner.is_stopping || inner.ports.is_idle(port)).then_some(());
        // If the system cannot wait the memory comes free later, too.
        self.shared.wait_until(is_over, Some(end)).ok();
        lock(&self.shared.inner).ports.close(port);
    }
}

impl Running {
    /// Ends as a killed process does: nothing more goes to a member, nobody is answered any more. What is acknowledged stands in
    /// the log.
    pub(super) fn halt(&self) {
        lock(&self.shared.inner).is_stopping = true;
        self.shared.kick.iter().for_each(fire);
        let thread = lock(&self.thread).take();
        // A thread that panicked has said so.
        thread.into_iter().for_each(|thread| drop(thread.join()));
    }
}

/// Whoever drops it has stopped the core before, if that matters.
impl Drop for Running {
    fn drop(&mut self) {
        self.halt();
    }
}

impl Shared {
    /// Wakes the thread, if there is something to do and it sleeps.
    fn wake_thread(&self, mut inner: MutexGuard<'_, Inner>) {
        let is_needed = inner.has_work && std::mem::take(&mut inner.is_asleep);
        drop(inner);
        if is_needed {
            self.kick.iter().for_each(fire);
        }
    }

    /// Waits until `look` finds what it waits for, or until `end`. `None` at the end, and when in virtual time nothing happens any
    /// more.
    fn wait_until<R>(
        &self,
        mut look: impl FnMut(&mut Inner) -> Option<R>,
        end: Option<Nanos>,
    ) -> Result<Option<R>> {
        loop {
            if self.time.is_virtual() {
                self.drive();
            }
            let mut inner = lock(&self.inner);
            if let Some(found) = look(&mut inner) {
                return Ok(Some(found));
            }
            if end.is_some_and(|end| end <= self.time.now()) {
                return Ok(None);
            }
            if !self.time.is_virtual() {
                drop(self.changed.wait_timeout(inner, LOOK_EVERY));
                continue;
            }
            drop(inner);
            if !wait_any([], end, &mut &self.time)? {
                return Ok(None);
            }
        }
    }

    /// Moves the core on as far as it gets without waiting.
    fn drive(&self) {
        let mut members = lock(&self.members);
        let (mut actions, mut ended) = (Vec::<Action>::new(), Vec::<Ended>::new());
        let (mut answers, mut fired) = (Vec::<Completion>::new(), Vec::new());
        let mut is_first = true;
        loop {
            members.poll(&mut ended);
            if ended.is_empty() && !is_first {
                break;
            }
            is_first = false;
            let mut inner = lock(&self.inner);
            let now = self.time.now();
            let Inner { core, ports, has_work, is_stopping, .. } = &mut *inner;
            *has_work = false;
            for Ended { id, outcome, payload } in ended.drain(..) {
                core.completed(id, outcome, payload, now);
            }
            core.advance(now);
            if !*is_stopping {
                core.take_actions(&mut actions);
                core.take_answers(&mut answers);
            }
            for Completion { tag, outcome, payload, .. } in answers.drain(..) {
                ports.answer(tag, outcome, payload, now, &mut fired);
            }
            ports.give_up_late(now, &mut fired);
            drop(inner);
            fired.drain(..).for_each(|signal| fire(&signal));
            actions.drain(..).for_each(|action| members.submit(action, &mut ended));
        }
        self.changed.notify_all();
    }

    /// The thread: drives, and waits for a member, a timer of the core, or a kick.
    fn run(&self) {
        let (Time::Real(clock), Some(kick)) = (&self.time, &self.kick) else { return };
        // It must not wait for writes to the very device that it serves when it needs memory. Without the privilege it runs none
        // the less.
        rustix::process::configure_io_flusher_behavior(true).unwrap_or_default();
        loop {
            self.drive();
            let members = lock(&self.members);
            let mut inner = lock(&self.inner);
            if inner.is_stopping && members.is_idle() {
                break;
            }
            if inner.has_work {
                continue;
            }
            inner.is_asleep = true;
            let until = inner.core.next_event().into_iter().chain(inner.ports.next_deadline()).min();
            drop(inner);
            let mut waiter = Poller::new(&**clock).watching(kick.as_fd(), PollFlags::IN);
            let waited = wait_any(members.busy(), until, &mut waiter);
            if !waiter.events(0).is_empty() {
                // It fails only if somebody has read it.
                rustix::io::read(kick, &mut [0_u8; 8]).ok();
            }
            lock(&self.inner).is_asleep = false;
            if waited.is_err() {
                // poll(2) fails for want of memory: then it is tried again.
                std::thread::sleep(LOOK_EVERY);
            }
        }
    }
}

impl EventSource for Shared {
    fn next_event(&self) -> Option<Nanos> {
        let inner = lock(&self.inner);
        inner.core.next_event().into_iter().chain(inner.ports.next_deadline()).min()
    }

    fn advance(&self, _now: Nanos) -> bool {
        self.drive();
        lock(&self.inner).ports.has_ready()
    }
}
