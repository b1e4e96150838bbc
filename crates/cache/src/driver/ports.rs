//! Front side: the client queues, and the mapping of requests to them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use plumb_block::{Completion, Nanos, Op, Outcome, Payload, Request, Tag};

use super::latency::{Latencies, LatencyByRequest};
use super::wake::Wake;

/// Front queues, and the requests that the core is processing.
#[derive(Default)]
pub(super) struct Ports {
    ports: Vec<Option<Port>>,
    /// Requests in progress by their tag in the core.
    waiting: HashMap<Tag, WaitingRequest>,
    /// Deadlines of requests, which are given up if unanswered by then.
    deadlines: BTreeSet<(Nanos, Tag)>,
    next: u64,
    latencies: Latencies,
}

struct Port {
    ready: Vec<Completion>,
    /// Descriptor that wakes the client; only in real time.
    wake: Option<Arc<Wake>>,
    /// True if the wake is being fired or was fired and has not been cleared.
    is_signalled: bool,
}

struct WaitingRequest {
    port: usize,
    tag: Tag,
    op: Op,
    submitted_at: Nanos,
    deadline: Option<Nanos>,
}

impl Ports {
    /// Adds a queue. Returns its number.
    pub(super) fn open(&mut self, wake: Option<Arc<Wake>>) -> usize {
        let port = Port { ready: Vec::new(), wake, is_signalled: false };
        match self.ports.iter().position(Option::is_none) {
            Some(free) => {
                self.ports[free] = Some(port);
                free
            }
            None => {
                self.ports.push(Some(port));
                self.ports.len() - 1
            }
        }
    }

    /// Removes a queue; the results of its requests are discarded.
    pub(super) fn close(&mut self, port: usize) {
        self.ports[port] = None;
        self.waiting.retain(|_, waiting| waiting.port != port);
        let Self { waiting, deadlines, .. } = self;
        deadlines.retain(|(_, tag)| waiting.contains_key(tag));
    }

    /// Returns true if the core has no requests of this queue.
    pub(super) fn is_idle(&self, port: usize) -> bool {
        !self.waiting.values().any(|waiting| waiting.port == port)
    }

    /// Registers a request and gives it its tag for the core.
    pub(super) fn enter(&mut self, port: usize, request: &mut Request, now: Nanos) {
        let tag = Tag(self.next);
        self.next += 1;
        let Request { tag: client, op, deadline, .. } = *request;
        let waiting = WaitingRequest { port, tag: client, op, submitted_at: now, deadline };
        self.deadlines.extend(request.deadline.map(|deadline| (deadline, tag)));
        self.waiting.insert(tag, waiting);
        request.tag = tag;
    }

    /// Processes the answer to a request. The answer to a request that was given up is dropped with its
    /// memory.
    pub(super) fn answer(&mut self, tag: Tag, outcome: Outcome, payload: Payload, now: Nanos) {
        let Some(WaitingRequest { port, tag: client, op, submitted_at, deadline }) =
            self.waiting.remove(&tag)
        else {
            return;
        };
        if let Some(deadline) = deadline {
            self.deadlines.remove(&(deadline, tag));
        }
        self.latencies.record(&op, now.since(submitted_at));
        if let Some(Some(port)) = self.ports.get_mut(port) {
            port.ready.push(Completion { tag: client, outcome, submitted_at, completed_at: now, payload });
        }
    }

    /// Returns the latency of all answered requests.
    pub(super) fn latency(&self) -> LatencyByRequest {
        self.latencies.summary()
    }

    /// Gives up requests that are past their deadline.
    pub(super) fn give_up_late(&mut self, now: Nanos) {
        while let Some((_, tag)) = self.deadlines.first().copied().filter(|(deadline, _)| *deadline <= now) {
            self.answer(tag, Outcome::Unknown, Payload::None, now);
        }
    }

    /// Returns the wakes to fire: of queues with completions, except `own`, whose owner is awake.
    pub(super) fn take_wakes(&mut self, own: Option<usize>) -> impl Iterator<Item = Arc<Wake>> {
        let ports = self.ports.iter_mut().enumerate().filter(move |(number, _)| Some(*number) != own);
        let ports = ports.filter_map(|(_, port)| port.as_mut());
        ports.filter(|port| !port.ready.is_empty() && !port.is_signalled).filter_map(|port| {
            port.is_signalled = port.wake.is_some();
            port.wake.clone()
        })
    }

    /// Sets whether the owner of a queue is also woken for the members. Returns false if the kernel refuses.
    pub(super) fn watch(&self, port: usize, on: bool) -> bool {
        let port = self.ports.get(port).and_then(Option::as_ref);
        port.and_then(|port| port.wake.as_ref()).is_some_and(|wake| wake.watch(on))
    }

    /// Returns the earliest deadline.
    pub(super) fn next_deadline(&self) -> Option<Nanos> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Moves the completions of a queue to `completions`. Returns their number.
    pub(super) fn take_ready(&mut self, port: usize, completions: &mut Vec<Completion>) -> usize {
        let Some(Some(port)) = self.ports.get_mut(port) else { return 0 };
        // A wake that another thread is just firing is cleared later.
        if port.is_signalled && port.wake.as_ref().is_some_and(|wake| wake.take_fired()) {
            port.is_signalled = false;
        }
        let count = port.ready.len();
        completions.append(&mut port.ready);
        count
    }

    /// Returns true if a queue has completions.
    pub(super) fn has_ready(&self) -> bool {
        self.ports.iter().flatten().any(|port| !port.ready.is_empty())
    }
}
