//! Flushes and FUA as sent by the block layer: only to a volatile cache, one at a time, and FUA as a write
//! followed by a flush if the drive does not support it.
//!
//! Invariants:
//! - at most one flush of a group is in flight; a group is a device in virtual time, and a queue in real
//!   time;
//! - a request waits for a flush submitted after the request, and for FUA after the completion of its write;
//! - in virtual time the clock stops for a queue with answers that were brought by another queue.

use std::collections::VecDeque;
use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use plumb_block::{
    Clock as _, Completion, Device, DeviceLayer, EventSource, Nanos, Op, Outcome, Queue, QueueFull,
    QueueOptions, Request, Result, Tag, Time, VolatileCache, Wait, waiting_poll,
};

/// Tag of the flush in flight: the letters `kernelfl`, which no caller's counter reaches.
const FLUSH: Tag = Tag(0x6b65_726e_656c_666c);

/// A device with the flush handling of Linux.
pub(super) struct Flushing {
    device: Arc<dyn Device>,
    time: Time,
    group: Arc<Group>,
}

impl Flushing {
    /// Wraps `device`, whose queues use `time`, so that flushes are merged.
    pub(super) fn above(device: Arc<dyn Device>, time: Time) -> Self {
        let group = Arc::new(Group::default());
        if let Time::Virtual(clock) = &time {
            let source = Arc::downgrade(&group);
            clock.register(source as Weak<dyn EventSource>);
        }
        Self { device, time, group }
    }
}

impl DeviceLayer for Flushing {
    type Inner = dyn Device;

    fn inner(&self) -> impl Deref<Target = Self::Inner> {
        &*self.device
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        let depth = options.depth.max(1);
        let queue = self.device.open_queue(QueueOptions { depth: depth.saturating_add(1), ..options })?;
        let group = if self.time.is_virtual() { Arc::clone(&self.group) } else { Arc::default() };
        let number = group.lock().open_queue();
        Ok(Box::new(FlushingQueue {
            queue,
            device: Arc::clone(&self.device),
            time: self.time.clone(),
            group,
            number,
            depth: depth as usize,
            in_flight: 0,
            written_before_flush: Vec::new(),
            is_flushing: false,
            answers: Vec::new(),
        }))
    }
}

/// Queues with merged flushes.
#[derive(Default)]
struct Group(Mutex<State>);

#[derive(Default)]
struct State {
    queues: u64,
    /// Requests served by the flush in flight.
    served: Option<Vec<WaitingRequest>>,
    /// Requests that need the next flush.
    waiting: Vec<WaitingRequest>,
    /// Answers not yet taken by their queues.
    answered: VecDeque<(u64, Completion)>,
    /// True if the clock must stop once because a poll of one queue has left work for others.
    has_news: bool,
}

/// A request that needs a flush.
struct WaitingRequest {
    queue: u64,
    /// Completion of the request if the flush succeeds.
    done: Completion,
    deadline: Option<Nanos>,
}

impl Group {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves only complete entries behind this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn open_queue(&mut self) -> u64 {
        self.queues += 1;
        self.queues
    }

    /// Answers the requests served by the completed flush with its outcome.
    fn flushed(&mut self, answer: &Completion) {
        for WaitingRequest { queue, done, .. } in self.served.take().into_iter().flatten() {
            let done = Completion { outcome: answer.outcome, completed_at: answer.completed_at, ..done };
            self.answered.push_back((queue, done));
            self.has_news = true;
        }
    }

    /// Moves the answers for `queue` to `completions`. Returns their number.
    fn take_answers(&mut self, queue: u64, completions: &mut Vec<Completion>) -> usize {
        let before = completions.len();
        for _ in 0..self.answered.len() {
            match self.answered.pop_front() {
                Some((of, done)) if of == queue => completions.push(done),
                other => self.answered.extend(other),
            }
        }
        completions.len() - before
    }

    /// Removes a queue. If the flush in flight was submitted through it, requests of other queues need
    /// another flush.
    fn close_queue(&mut self, queue: u64, is_flushing: bool) {
        if is_flushing {
            let served = self.served.take();
            self.waiting.extend(served.into_iter().flatten());
            self.has_news = true;
        }
        self.waiting.retain(|one| one.queue != queue);
        self.served.iter_mut().for_each(|served| served.retain(|one| one.queue != queue));
        self.answered.retain(|(of, _)| *of != queue);
    }
}

impl EventSource for Group {
    fn next_event(&self) -> Option<Nanos> {
        // Already due: the clock stops without moving.
        self.lock().has_news.then_some(Nanos::ZERO)
    }

    fn advance(&self, _now: Nanos) -> bool {
        std::mem::take(&mut self.lock().has_news)
    }
}

struct FlushingQueue {
    queue: Box<dyn Queue>,
    device: Arc<dyn Device>,
    time: Time,
    group: Arc<Group>,
    /// Number of the queue in the group.
    number: u64,
    depth: usize,
    in_flight: usize,
    /// FUA writes in flight that need a flush to become durable.
    written_before_flush: Vec<(Tag, Option<Nanos>)>,
    /// True if this queue submitted the flush in flight.
    is_flushing: bool,
    /// Buffer for the device's answers, kept to reuse its memory.
    answers: Vec<Completion>,
}

impl FlushingQueue {
    /// Submits a flush for waiting requests unless one is in flight.
    fn flush(&mut self) {
        let mut state = self.group.lock();
        if state.served.is_some() || state.waiting.is_empty() {
            return;
        }
        let deadline = state.waiting.iter().filter_map(|one| one.deadline).min();
        // A slot is reserved for the flush.
        if self.queue.submit(Request { deadline, ..Request::flush(FLUSH) }).is_ok() {
            let waiting = std::mem::take(&mut state.waiting);
            state.served = Some(waiting);
            self.is_flushing = true;
        }
    }

    fn wait_for_flush(&mut self, done: Completion, deadline: Option<Nanos>) {
        self.group.lock().waiting.push(WaitingRequest { queue: self.number, done, deadline });
    }

    /// Collects the device's answers. Returns the number of requests that completed.
    fn reap(&mut self, completions: &mut Vec<Completion>) -> Result<usize> {
        let mut answers = std::mem::take(&mut self.answers);
        let polled = self.queue.poll(Wait::NONE, &mut answers);
        let before = completions.len();
        for answer in answers.drain(..) {
            if answer.tag == FLUSH {
                self.is_flushing = false;
                self.group.lock().flushed(&answer);
                continue;
            }
            let written = self.written_before_flush.iter().position(|(tag, _)| *tag == answer.tag);
            let written = written.map(|place| self.written_before_flush.swap_remove(place));
            match written {
                Some((_, deadline)) if answer.outcome.is_done() => self.wait_for_flush(answer, deadline),
                _ => completions.push(answer),
            }
        }
        self.answers = answers;
        polled?;
        self.flush();
        self.group.lock().take_answers(self.number, completions);
        Ok(completions.len() - before)
    }
}

impl Queue for FlushingQueue {
    fn submit(&mut self, request: Request) -> std::result::Result<(), QueueFull> {
        if self.in_flight == self.depth {
            return Err(QueueFull(request));
        }
        let is_flush = request.op == Op::Flush;
        if !is_flush && !request.op.is_fua() {
            self.queue.submit(request)?;
            self.in_flight += 1;
            return Ok(());
        }
        let info = self.device.info();
        let is_volatile = info.volatile_cache != VolatileCache::None;
        if is_flush {
            let now = self.time.now();
            let deadline = request.deadline;
            let done = request.completed(Outcome::Done, now);
            // A latched or unpowered device reports its own error.
            if is_volatile || self.device.latched().is_some() || !self.device.power().is_on {
                self.wait_for_flush(done, deadline);
                self.flush();
            } else {
                self.group.lock().answered.push_back((self.number, done));
            }
        } else {
            let needs_flush = is_volatile && !info.fua_native;
            let (tag, deadline, asked) = (request.tag, request.deadline, request.op);
            let op = if is_volatile && info.fua_native { asked } else { asked.without_fua() };
            let given = self.queue.submit(Request { op, ..request });
            given.map_err(|full| QueueFull(Request { op: asked, ..full.0 }))?;
            self.written_before_flush.extend(needs_flush.then_some((tag, deadline)));
        }
        self.in_flight += 1;
        Ok(())
    }

    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        if wait.completions > 0 {
            let (in_flight, time) = (self.in_flight, self.time.clone());
            return waiting_poll(self, in_flight, wait, completions, &mut &time);
        }
        let count = self.reap(completions)?;
        self.in_flight -= count;
        Ok(count)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.queue.wake_fd()
    }
}

impl Drop for FlushingQueue {
    fn drop(&mut self) {
        self.group.lock().close_queue(self.number, self.is_flushing);
    }
}
