//! One connection, shared by the queues with a port at it.
//!
//! The thread that polls works for all: it sends and receives whatever is possible, puts completions for
//! other queues into their mail and wakes them. Nobody waits while holding the lock. A wait is for the socket
//! or for the queue's own mail, whichever is first.
//!
//! - `staging`: from jobs to commands to be sent.
//! - `answers`: from received answers to mail.

mod answers;
mod staging;

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use plumb_block::{Clock as _, Completion, Errno, Latch, Nanos, Op, Outcome, Payload, Request, Time};

use super::commands::Commands;
use super::error::NOT_CONNECTED;
use super::export::{Export, Plan};
use super::jobs::{Job, JobWaiter, Jobs, Phase, PortId};
use super::replies::{Answer, Replies};
use super::wakeups::Wakeups;
use crate::nbd::output::Output;
use crate::nbd::transport::Transport;
use crate::nbd::wire::{BlockDescriptor, Command, CommandFlags, Cookie, RequestHeader};

/// State shared by the connections of a device.
pub(super) struct Common {
    pub(super) time: Time,
    /// First failed flush; all later ones fail, too.
    pub(super) latch: OnceLock<Latch>,
}

impl Common {
    /// Records a failed flush.
    pub(super) fn flush_failed(&self, errno: Errno, at: Nanos) {
        self.latch.get_or_init(|| Latch { errno, at });
    }

    /// Returns the completion of a request to a lost connection.
    pub(super) fn not_connected(&self, request: Request) -> Completion {
        let now = self.time.now();
        if request.op == Op::Flush {
            self.flush_failed(NOT_CONNECTED, now);
        }
        request.completed(Outcome::Failed(NOT_CONNECTED), now)
    }
}

/// Message to a port.
#[derive(Debug)]
pub(super) enum Mail {
    Ended(Completion),
    /// A request was given up with an unknown outcome; the connection keeps its memory until it is over.
    GivenUp(Completion),
    /// A request that was given up is over, and its memory is free.
    Released,
    /// The answer to a request for block status.
    Status(Result<Vec<BlockDescriptor>, Errno>),
}

/// The connection is lost; with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lost(pub(super) String);

/// Mailbox of a queue.
struct Port {
    mail: Vec<Mail>,
    /// Wake-up descriptor, if the queue has one.
    wakeups: Option<Arc<Wakeups>>,
    /// True if the port was already woken for its mail.
    is_woken: bool,
}

/// Transport of a connection.
pub(super) struct Way {
    pub(super) transport: Box<dyn Transport>,
    /// Socket of the transport, if there is one.
    pub(super) socket: Option<Arc<OwnedFd>>,
}

pub(super) struct Link {
    pub(super) export: Arc<Export>,
    /// Socket of the transport, if there is one.
    socket: Option<Arc<OwnedFd>>,
    common: Arc<Common>,
    state: Mutex<State>,
}

struct State {
    transport: Box<dyn Transport>,
    replies: Replies,
    commands: Commands,
    output: Output,
    jobs: Jobs,
    /// Jobs with commands to stage, oldest first.
    to_stage: VecDeque<u32>,
    ports: Vec<Option<Port>>,
    answers: Vec<Answer>,
    /// Port that currently polls, which needs no wake-up.
    poller: PortId,
    lost: Option<Lost>,
}

impl Link {
    pub(super) fn new(way: Way, export: Arc<Export>, common: Arc<Common>) -> Self {
        let Way { transport, socket } = way;
        let state = State {
            replies: Replies::new(export.is_structured),
            transport,
            commands: Commands::default(),
            output: Output::default(),
            jobs: Jobs::default(),
            to_stage: VecDeque::new(),
            ports: Vec::new(),
            answers: Vec::new(),
            poller: 0,
            lost: None,
        };
        Self { export, socket, common, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // After a panic in another queue's thread, a reply may be partially processed: then the next is
        // refused as malformed, or the connection hangs, both as on a broken connection.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a wake-up descriptor for a new port; `None` without a socket.
    ///
    /// # Errors
    /// If the kernel cannot create one.
    pub(super) fn wakeups(&self) -> io::Result<Option<Arc<Wakeups>>> {
        self.socket.as_ref().map(|socket| Wakeups::new(socket).map(Arc::new)).transpose()
    }

    /// Returns the clock of the queues.
    pub(super) fn time(&self) -> &Time {
        &self.common.time
    }

    /// Ends the connection; its users learn of it at their next poll.
    pub(super) fn cut(&self) {
        self.state().transport.cut();
    }

    /// Adds a port; `None` if the connection is lost.
    pub(super) fn join(&self, wakeups: Option<&Arc<Wakeups>>) -> Option<PortId> {
        let mut state = self.state();
        if state.lost.is_some() {
            return None;
        }
        let port = Some(Port { mail: Vec::new(), wakeups: wakeups.map(Arc::clone), is_woken: false });
        let index = state.ports.iter().position(Option::is_none).unwrap_or(state.ports.len());
        if index == state.ports.len() {
            state.ports.push(port);
        } else {
            state.ports[index] = port;
        }
        Some(index as PortId)
    }

    /// Removes a port: the memory of its jobs is released immediately, and their answers are discarded.
    pub(super) fn leave(&self, port: PortId) {
        let mut state = self.state();
        let State { jobs, to_stage, output, ports, .. } = &mut *state;
        for number in jobs.numbers(|job| job.port == port) {
            // Without outstanding commands no answer will end it.
            let is_idle = jobs.get(number).is_some_and(|job| job.pieces == 0 && !job.is_at_flush());
            let is_begun = jobs.get(number).is_some_and(|job| job.is_begun());
            if !is_begun || is_idle {
                to_stage.retain(|waiting| *waiting != number);
                jobs.remove(number);
            } else if let Some(job) = jobs.get(number) {
                job.wanted = JobWaiter::No;
                // The unstaged rest of a write is never sent.
                if job.phase == Phase::Itself && job.staged < job.plan.length {
                    job.failed = Some(Errno::EINTR);
                    to_stage.retain(|waiting| *waiting != number);
                }
                output.disown(number);
                job.request.payload = Payload::None;
            }
        }
        ports[port as usize] = None;
    }

    /// Accepts the requests of `port`, sends and receives as far as possible without waiting, and collects
    /// the mail of `port`. Returns true if data is left to send.
    ///
    /// # Errors
    /// If the connection is lost; the mail then tells how everything ended, except `requests`, which remain.
    pub(super) fn exchange(
        &self,
        port: PortId,
        requests: &mut VecDeque<Request>,
        to_receive: bool,
        mail: &mut Vec<Mail>,
    ) -> Result<bool, Lost> {
        let mut state = self.state();
        state.poller = port;
        if state.lost.is_none() {
            let now = self.common.time.now();
            requests.drain(..).for_each(|request| state.admit(port, request, &self.export, now));
        }
        let outcome = self.work(&mut state, to_receive);
        state.take_mail(port, mail);
        outcome
    }

    /// Queries the status of `length` bytes at `offset`; the answer arrives as [`Mail::Status`].
    pub(super) fn ask_status(&self, port: PortId, request: Request, offset: u64, length: u32) {
        let piece_max = u64::from(u32::MAX);
        let plan = Plan::new(Command::BLOCK_STATUS, offset, length.into(), piece_max);
        let mut state = self.state();
        let number = state.jobs.insert(Job::new(port, request, plan));
        state.to_stage.push_back(number);
    }

    /// Gives up requests of `port` with a deadline at or before `now`. Returns the earliest deadline of the
    /// others.
    pub(super) fn expire(&self, port: PortId, now: Nanos, mail: &mut Vec<Mail>) -> Option<Nanos> {
        let mut state = self.state();
        let State { jobs, to_stage, .. } = &mut *state;
        let mut earliest = None;
        for number in jobs.numbers(|job| job.port == port && job.wanted == JobWaiter::Yes) {
            let Some(job) = jobs.get(number) else { continue };
            match job.request.deadline {
                Some(deadline) if deadline > now => {
                    earliest = Some(earliest.map_or(deadline, |other: Nanos| other.min(deadline)));
                }
                Some(_) if job.is_begun() => {
                    job.wanted = JobWaiter::TooLate;
                    let submitted_at = job.submitted_at.unwrap_or(now);
                    let left = Request::flush(job.request.tag).completed(Outcome::Unknown, now);
                    mail.push(Mail::GivenUp(Completion { submitted_at, ..left }));
                }
                Some(_) => {
                    to_stage.retain(|waiting| *waiting != number);
                    let ended = jobs.remove(number).map(|job| job.into_completion(Outcome::Unknown, now));
                    mail.extend(ended.map(Mail::Ended));
                }
                None => {}
            }
        }
        earliest
    }

    fn work(&self, state: &mut State, to_receive: bool) -> Result<bool, Lost> {
        if let Some(lost) = &state.lost {
            return Err(lost.clone());
        }
        let outcome = state.send(&self.common).and_then(|is_sent| {
            if to_receive {
                state.receive(&self.common)?;
                // Answers may require or permit further commands.
                if !state.to_stage.is_empty() {
                    return state.send(&self.common);
                }
            }
            Ok(is_sent)
        });
        match outcome {
            Ok(is_sent) => Ok(!is_sent),
            Err(lost) => {
                state.end(lost.clone(), &self.common);
                state.transport.cut();
                Err(lost)
            }
        }
    }
}

/// Sends a disconnect, so that the server does not report a failure.
impl Drop for Link {
    fn drop(&mut self) {
        let mut state = self.state();
        if state.lost.is_none() && state.output.is_empty() {
            let (flags, cookie) = (CommandFlags::default(), Cookie(0));
            let header = RequestHeader { flags, command: Command::DISC, cookie, offset: 0, length: 0 };
            let State { output, transport, .. } = &mut *state;
            output.head(&header.encode());
            // If it cannot be sent, the end of the stream suffices.
            output.send(&mut **transport).ok();
        }
    }
}

fn broken(error: &io::Error) -> Lost {
    Lost(error.to_string())
}

impl State {
    /// Puts mail into a port, and wakes it unless it is polling.
    fn post(&mut self, to: PortId, mail: Mail) {
        let Some(Some(port)) = self.ports.get_mut(to as usize) else { return };
        if to != self.poller && !port.is_woken {
            port.is_woken = true;
            port.wakeups.iter().for_each(|wakeups| wakeups.mail());
        }
        port.mail.push(mail);
    }

    fn take_mail(&mut self, port: PortId, into: &mut Vec<Mail>) {
        if let Some(Some(port)) = self.ports.get_mut(port as usize) {
            into.append(&mut port.mail);
            if std::mem::take(&mut port.is_woken) {
                port.wakeups.iter().for_each(|wakeups| wakeups.mail_taken());
            }
        }
    }

    fn admit(&mut self, port: PortId, request: Request, export: &Export, now: Nanos) {
        match export.plan(&request) {
            Ok(plan) => {
                let number = self.jobs.insert(Job::new(port, request, plan));
                self.to_stage.push_back(number);
            }
            Err(errno) => {
                self.post(port, Mail::Ended(request.completed(Outcome::Failed(errno), now)));
            }
        }
    }

    /// Ends a lost connection: everything that the server may have seen is unknown, the rest fails.
    fn end(&mut self, lost: Lost, common: &Common) {
        let now = common.time.now();
        self.lost = Some(lost);
        self.output = Output::default();
        self.commands = Commands::default();
        self.to_stage.clear();
        for job in self.jobs.take_all() {
            let to = job.port;
            let mail = match (job.wanted, job.is_begun()) {
                (JobWaiter::No, _) => continue,
                (JobWaiter::TooLate, _) => Mail::Released,
                (JobWaiter::Yes, _) if job.plan.command == Command::BLOCK_STATUS => {
                    Mail::Status(Err(NOT_CONNECTED))
                }
                (JobWaiter::Yes, true) => Mail::Ended(job.into_completion(Outcome::Unknown, now)),
                (JobWaiter::Yes, false) => Mail::Ended(common.not_connected(job.request)),
            };
            self.post(to, mail);
        }
    }
}
