//! The front side: the queues of those who use the cache, and whom each request belongs to.

use std::collections::{BTreeSet, HashMap};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use plumb_block::{Completion, Nanos, Outcome, Payload, Request, Tag};

/// The front queues, and the requests that the core has.
#[derive(Default)]
pub(super) struct Ports {
    ports: Vec<Option<Port>>,
    /// By the tag that the core knows the request by.
    waiting: HashMap<Tag, Waiting>,
    /// Those that are given up when they are not answered by then.
    deadlines: BTreeSet<(Nanos, Tag)>,
    next: u64,
}

struct Port {
    ready: Vec<Completion>,
    /// An eventfd, in real time only: readable while something is ready.
    wake: Option<Arc<OwnedFd>>,
    is_signalled: bool,
}

struct Waiting {
    port: usize,
    tag: Tag,
    submitted_at: Nanos,
    deadline: Option<Nanos>,
}

impl Ports {
    /// A new queue; its number.
    pub(super) fn open(&mut self, wake: Option<Arc<OwnedFd>>) -> usize {
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

    /// The queue is gone; nobody is told what its requests come to.
    pub(super) fn close(&mut self, port: usize) {
        self.ports[port] = None;
        self.waiting.retain(|_, waiting| waiting.port != port);
        let Self { waiting, deadlines, .. } = self;
        deadlines.retain(|(_, tag)| waiting.contains_key(tag));
    }

    /// Whether nothing of this queue is with the core.
    pub(super) fn is_idle(&self, port: usize) -> bool {
        !self.waiting.values().any(|waiting| waiting.port == port)
    }

    /// Enters a request; it has the tag then that the core is to know it by.
    pub(super) fn enter(&mut self, port: usize, request: &mut Request, now: Nanos) {
        let tag = Tag(self.next);
        self.next += 1;
        let waiting = Waiting { port, tag: request.tag, submitted_at: now, deadline: request.deadline };
        self.deadlines.extend(request.deadline.map(|deadline| (deadline, tag)));
        self.waiting.insert(tag, waiting);
        request.tag = tag;
    }

    /// Takes the answer to a request. `fired` gets what wakes its queue, if that sleeps. The answer to a request that was given up
    /// is dropped, and its memory with it.
    pub(super) fn answer(
        &mut self,
        tag: Tag,
        outcome: Outcome,
        payload: Payload,
        now: Nanos,
        fired: &mut Vec<Arc<OwnedFd>>,
    ) {
        let Some(Waiting { port, tag: asked, submitted_at, deadline }) = self.waiting.remove(&tag) else {
            return;
        };
        if let Some(deadline) = deadline {
            self.deadlines.remove(&(deadline, tag));
        }
        let Some(Some(port)) = self.ports.get_mut(port) else { return };
        port.ready.push(Completion { tag: asked, outcome, submitted_at, completed_at: now, payload });
        if let Some(wake) = port.wake.as_ref().filter(|_| !port.is_signalled) {
            fired.push(Arc::clone(wake));
            port.is_signalled = true;
        }
    }

    /// Gives up what has not been answered by its deadline.
    pub(super) fn give_up_late(&mut self, now: Nanos, fired: &mut Vec<Arc<OwnedFd>>) {
        while let Some((_, tag)) = self.deadlines.first().copied().filter(|(deadline, _)| *deadline <= now) {
            self.answer(tag, Outcome::Unknown, Payload::None, now, fired);
        }
    }

    /// When the next request is given up.
    pub(super) fn next_deadline(&self) -> Option<Nanos> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Takes what is ready for a queue; how much that was.
    pub(super) fn take(&mut self, port: usize, completions: &mut Vec<Completion>) -> usize {
        let Some(Some(port)) = self.ports.get_mut(port) else { return 0 };
        if std::mem::take(&mut port.is_signalled)
            && let Some(wake) = &port.wake
        {
            // It fails only if it was clear.
            rustix::io::read(wake, &mut [0_u8; 8]).ok();
        }
        let count = port.ready.len();
        completions.append(&mut port.ready);
        count
    }

    /// Whether a queue has something to take.
    pub(super) fn has_ready(&self) -> bool {
        self.ports.iter().flatten().any(|port| !port.ready.is_empty())
    }
}
