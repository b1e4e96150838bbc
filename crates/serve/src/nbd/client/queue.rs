//! A queue: requests in, completions out, over the connection that the device has for it.

use std::collections::VecDeque;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use plumb_block::{
    Clock as _, Completion, Error, ErrorKind, Nanos, Outcome, Queue, QueueFull, QueueOptions, Request,
    Result, Wait, wait_any, waiting_poll,
};

use super::connections::Connections;
use super::error::NOT_CONNECTED;
use super::jobs::PortId;
use super::link::{Link, Mail};
use super::wakeups::Wakeups;

const NEVER: Nanos = Nanos(u64::MAX);

pub(super) struct NbdQueue {
    connections: Arc<Connections>,
    link: Arc<Link>,
    port: PortId,
    /// True if data is left to send.
    to_write: bool,
    is_lost: bool,
    depth: usize,
    /// Wake-up descriptor, if there is a socket.
    wakeups: Option<Arc<Wakeups>>,
    /// Requests not yet accepted by the connection.
    pending: VecDeque<Request>,
    /// Number of requests at the connection, including those given up.
    taken: usize,
    /// Number of requests given up.
    given_up: usize,
    /// Lower bound of all deadlines.
    deadline_earliest: Nanos,
    mail: Vec<Mail>,
}

impl NbdQueue {
    /// Creates a queue over the connection for `lane`.
    pub(super) fn new(connections: Arc<Connections>, lane: usize, options: &QueueOptions) -> Result<Self> {
        let place = connections.uri.to_string();
        let link = Arc::clone(connections.link_for(lane));
        let wakeups = link.wakeups().map_err(|error| Error::io(&error, "open a queue to", &place))?;
        let port =
            link.join(wakeups.as_ref()).filter(|_| connections.why_lost().is_none()).ok_or_else(|| {
                let because = connections.why_lost().unwrap_or("the connection is lost").to_owned();
                Error::new(ErrorKind::Os(NOT_CONNECTED), "open a queue to", place).because(because)
            })?;
        Ok(Self {
            connections,
            link,
            port,
            to_write: false,
            is_lost: false,
            depth: options.depth.max(1) as usize,
            wakeups,
            pending: VecDeque::new(),
            taken: 0,
            given_up: 0,
            deadline_earliest: NEVER,
            mail: Vec::new(),
        })
    }

    fn now(&self) -> Nanos {
        self.connections.common.time.now()
    }

    /// Returns the number of requests that are not given up.
    fn awaited(&self) -> usize {
        self.pending.len() + self.taken - self.given_up
    }

    /// Sends, and receives if `to_receive`; collects the mail.
    fn exchange(&mut self, to_receive: bool, completions: &mut Vec<Completion>) {
        if !self.is_lost {
            self.taken += self.pending.len();
            let outcome = self.link.exchange(self.port, &mut self.pending, to_receive, &mut self.mail);
            // A lost connection accepts no requests.
            self.taken -= self.pending.len();
            match outcome {
                Ok(to_write) => self.to_write = to_write,
                Err(lost) => {
                    self.is_lost = true;
                    self.connections.lost(&lost.0);
                }
            }
            self.open_mail(completions);
        }
        if self.is_lost {
            let common = &self.connections.common;
            completions.extend(self.pending.drain(..).map(|request| common.not_connected(request)));
        }
    }

    #[inline]
    fn open_mail(&mut self, completions: &mut Vec<Completion>) {
        for mail in self.mail.drain(..) {
            match mail {
                Mail::Ended(ended) => {
                    self.taken -= 1;
                    completions.push(ended);
                }
                Mail::GivenUp(ended) => {
                    self.given_up += 1;
                    completions.push(ended);
                }
                Mail::Released => {
                    self.taken -= 1;
                    self.given_up -= 1;
                }
                // Queues send no such queries.
                Mail::Status(_) => {}
            }
        }
    }

    /// Ends requests past their deadline as unknown.
    fn expire(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        if self.deadline_earliest > now {
            return;
        }
        let mut earliest = NEVER;
        let mut kept = VecDeque::with_capacity(self.pending.len());
        for request in self.pending.drain(..) {
            match request.deadline {
                Some(deadline) if deadline <= now => {
                    completions.push(request.completed(Outcome::Unknown, now));
                }
                deadline => {
                    earliest = earliest.min(deadline.unwrap_or(NEVER));
                    kept.push_back(request);
                }
            }
        }
        self.pending = kept;
        let of_link = self.link.expire(self.port, now, &mut self.mail);
        earliest = earliest.min(of_link.unwrap_or(NEVER));
        self.deadline_earliest = earliest;
        self.open_mail(completions);
    }

    fn update_wakeups(&self) {
        let Some(wakeups) = &self.wakeups else { return };
        let deadline = (self.deadline_earliest != NEVER).then(|| self.deadline_earliest.since(self.now()));
        wakeups.update(self.is_lost, self.to_write, deadline);
    }
}

impl Queue for NbdQueue {
    #[inline]
    fn submit(&mut self, request: Request) -> std::result::Result<(), QueueFull> {
        if self.pending.len() + self.taken >= self.depth {
            return Err(QueueFull(request));
        }
        if let Some(deadline) = request.deadline {
            self.deadline_earliest = self.deadline_earliest.min(deadline);
        }
        self.pending.push_back(request);
        Ok(())
    }

    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        if wait.completions > 0 {
            let (in_flight, time) = (self.awaited(), self.link.time().clone());
            return waiting_poll(self, in_flight, wait, completions, &mut &time);
        }
        let before = completions.len();
        // There can be no answers to requests that were not sent; but other requests may have been waiting
        // for long.
        self.exchange(self.taken > 0 || self.pending.is_empty(), completions);
        if self.deadline_earliest != NEVER {
            self.expire(self.now(), completions);
        }
        self.update_wakeups();
        Ok(completions.len() - before)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.wakeups.as_ref().map(|wakeups| wakeups.as_fd())
    }
}

/// Waits for replies until the configured timeout. The connection then releases the memory of unanswered
/// requests; late answers to them are discarded.
impl Drop for NbdQueue {
    fn drop(&mut self) {
        let mut ignored = Vec::new();
        self.pending.clear();
        let time = self.link.time().clone();
        let until = time.now().saturating_add(self.connections.options.drop_patience);
        while self.taken > 0 && !self.is_lost {
            self.exchange(true, &mut ignored);
            ignored.clear();
            self.update_wakeups();
            let is_over = self.taken == 0 || time.now() >= until;
            if is_over || wait_any([&*self as &dyn Queue], Some(until), &mut &time).is_err() {
                break;
            }
        }
        self.link.leave(self.port);
    }
}
