//! The transmission phase of one connection: requests in, replies out, in whatever order the device completes them.
//!
//! - `plan`: what a request means, or why it is refused: pure.
//! - `intake`: takes requests off the input, cuts them into pieces that the device takes, and submits them.
//! - `command`: the requests in flight.
//! - `answer`: from completions to replies.
//! - `status`: what is behind the blocks.
//!
//! One turn is: understand what was received, submit, collect what completed, send. In between nothing is waited for,
//! so requests that arrived together go to the device together and their replies leave together. Only when a turn
//! changed nothing does the connection wait, by the first of these that applies:
//!
//! 1. Nothing is in flight and nothing to be sent: in the receive call itself, after looking again for a moment where
//!    that pays. A device that completes within the poll costs two system calls a request and, with a client that
//!    sends the next one soon, no wakeup.
//! 2. Something is in flight and the queue has a descriptor: for the socket and the descriptor together.
//! 3. Something is in flight, the queue has no descriptor, and nothing can be sent or received now: in the queue's
//!    own poll, for one completion. Requests that arrive meanwhile are seen when it returns.
//!
//! Invariants:
//! - A reply that says "done" leaves only after every piece of the request, and the flush that its FUA asks for,
//!   completed as done. The first failure is the answer.
//! - When a request ends as unknown, or the device lost power, nothing more is answered on the connection: it ends,
//!   as if the device had vanished, and the client must treat everything in flight as unanswered.
//! - Memory is bounded by the pools, by [`Output`]'s limit, and by one gathered read at a time.

mod answer;
mod command;
mod intake;
mod plan;
mod status;

use plumb_block::{Completion, Errno, Queue, QueueOptions, Request, Wait};
use std::collections::VecDeque;
use std::io::{self, IoSliceMut};

use super::buffers::{Budgets, Buffers};
use super::handshake::Session;
use super::input::Input;
use super::output::Output;
use super::planted::Planted;
use super::transport::{Patience, Transport, Wants};
use crate::eagerness::Eagerness;
use crate::nbd::wire::Malformed;
use command::Commands;
use intake::Intake;
use plan::Rules;

/// How much is received at once at most.
const INPUT_BYTES: usize = 256 << 10;

/// Why a connection ended before the client said so.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error("the client does not speak the protocol")]
    Protocol(#[from] Malformed),
    #[error("the connection failed")]
    Socket(#[from] io::Error),
    #[error("the device failed")]
    Device(#[from] plumb_block::Error),
    #[error("the device lost power or did not answer: what was in flight stays unanswered")]
    Unanswered,
    #[error("the handshake took too long")]
    Stalled,
}

/// What must happen before more can be taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blocked {
    /// More bytes must come.
    Input,
    /// A buffer or a place in the queue must become free, or replies must leave.
    Room,
}

/// What the connection has of the device, from its first request on.
struct Lane {
    queue: Box<dyn Queue>,
    buffers: Buffers,
}

/// How a server wants transmission done.
#[derive(Clone)]
pub(super) struct Manner {
    /// How many requests a connection's queue holds.
    pub(super) depth: u32,
    pub(super) budgets: Budgets,
    pub(super) planted: Planted,
}

/// One connection in its transmission phase.
pub(super) struct Transmission {
    session: Session,
    rules: Rules,
    manner: Manner,
    lane: Option<Lane>,
    input: Input,
    intake: Intake,
    commands: Commands,
    /// Requests that the queue had no room for.
    stalled: VecDeque<Request>,
    in_flight: u32,
    /// Requests were submitted since the last poll: the device may not have seen them.
    is_unpolled: bool,
    completions: Vec<Completion>,
    output: Output,
    eagerness: Eagerness,
    /// Whether this connection has written: for a planted bug.
    has_written: bool,
    /// How many replies were answered as done: for a planted bug.
    replies: u64,
    /// No more bytes will come.
    is_at_end: bool,
    /// No more requests are taken.
    is_leaving: bool,
}

impl Transmission {
    /// Transmission as agreed in `session`; `received` came behind the handshake already.
    pub(super) fn new(session: Session, manner: Manner, received: &[u8]) -> Self {
        let mut input = Input::new(INPUT_BYTES.max(received.len()));
        input.append(received);
        Self {
            rules: Rules::new(&session, manner.planted),
            session,
            manner,
            lane: None,
            input,
            intake: Intake::Head,
            commands: Commands::default(),
            stalled: VecDeque::new(),
            in_flight: 0,
            is_unpolled: false,
            completions: Vec::new(),
            output: Output::default(),
            eagerness: Eagerness::default(),
            has_written: false,
            replies: 0,
            is_at_end: false,
            is_leaving: false,
        }
    }

    /// Serves until the client leaves, the input ends, or something breaks.
    pub(super) fn run(&mut self, transport: &mut impl Transport) -> Result<(), Broken> {
        loop {
            let blocked = self.take_in()?;
            let has_completed = self.collect(Wait::NONE)?;
            // A completion may have led to another request, the flush after a trim, which the device must see.
            if self.is_unpolled || (has_completed && blocked == Blocked::Room) {
                continue;
            }
            let has_sent = self.output.send(transport)?;
            let is_handed_over = transport.hand_over()?;
            if blocked == Blocked::Input && self.is_at_end {
                self.is_leaving = true;
            }
            if self.is_leaving && self.is_idle() && is_handed_over {
                return Ok(());
            }
            if blocked == Blocked::Room && (has_completed || has_sent) {
                continue;
            }
            let may_receive = blocked == Blocked::Input && !self.is_leaving;
            self.wait(transport, may_receive, is_handed_over)?;
        }
    }

    /// Nothing is being done and nothing is to be sent.
    fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.stalled.is_empty() && self.output.is_empty()
    }

    /// Waits as the module says, and receives what is there.
    fn wait(
        &mut self,
        transport: &mut impl Transport,
        may_receive: bool,
        is_sent: bool,
    ) -> Result<(), Broken> {
        let is_sent = is_sent && self.output.is_empty();
        if may_receive {
            let may_sleep = self.in_flight == 0 && is_sent;
            if may_sleep && self.receive_soon(transport)? {
                return Ok(());
            }
            let patience = if may_sleep { Patience::Endless } else { Patience::None };
            if self.receive(transport, patience)? {
                return Ok(());
            }
        }
        let wake = self.lane.as_ref().and_then(|lane| lane.queue.wake_fd()).filter(|_| self.in_flight > 0);
        if self.in_flight > 0 && wake.is_none() && is_sent {
            self.collect(Wait::ONE)?;
            return Ok(());
        }
        let wants = Wants { read: may_receive, write: !is_sent, wake, until: None };
        if wants.read || wants.write || wants.wake.is_some() {
            transport.wait(wants)?;
        }
        Ok(())
    }

    /// Receives what comes within a moment; whether anything did.
    fn receive_soon(&mut self, transport: &mut impl Transport) -> Result<bool, Broken> {
        let mut eagerness = std::mem::take(&mut self.eagerness);
        let received = eagerness.look_again(|| match self.receive(transport, Patience::None) {
            Ok(false) => None,
            other => Some(other),
        });
        self.eagerness = eagerness;
        received.unwrap_or(Ok(false))
    }

    /// Receives into the buffer of the write that is being taken in, if there is one, and behind that into the input.
    /// Whether the state of affairs changed.
    fn receive(&mut self, transport: &mut impl Transport, patience: Patience) -> Result<bool, Broken> {
        let (payload, is_last) = self.intake.payload_space(self.input.is_empty());
        let payload_bytes = payload.len();
        // While more of the payload is to come than fits, what comes next belongs into the next buffer.
        let outcome = match (payload_bytes, is_last) {
            (0, _) => transport.receive(&mut [IoSliceMut::new(self.input.space())], patience),
            (_, false) => transport.receive(&mut [IoSliceMut::new(payload)], patience),
            (_, true) => {
                let mut both = [IoSliceMut::new(payload), IoSliceMut::new(self.input.space())];
                transport.receive(&mut both, patience)
            }
        };
        let count = match outcome {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        self.is_at_end = count == 0;
        self.intake.payload_received(count.min(payload_bytes));
        self.input.received(count - count.min(payload_bytes));
        Ok(true)
    }

    /// The lane, opened at the first request: an idle connection holds no queue and no buffers.
    fn lane(&mut self) -> Result<&mut Lane, Errno> {
        if self.lane.is_none() {
            let broken = |error: plumb_block::Error| error.errno().unwrap_or(Errno::EIO);
            let buffers = Buffers::new(&self.rules.info, &self.manner.budgets.pools).map_err(broken)?;
            let options = QueueOptions { depth: self.manner.depth, pool: buffers.small.clone() };
            let queue = self.session.served.export.device.open_queue(options).map_err(broken)?;
            self.lane = Some(Lane { queue, buffers });
        }
        self.lane.as_mut().ok_or(Errno::EIO)
    }

    /// Hands a request to the queue, or keeps it until the queue has room.
    fn submit(&mut self, request: Request) {
        let Some(lane) = self.lane.as_mut().filter(|_| self.stalled.is_empty()) else {
            return self.stalled.push_back(request);
        };
        match lane.queue.submit(request) {
            Ok(()) => {
                self.in_flight += 1;
                self.is_unpolled = true;
            }
            Err(full) => self.stalled.push_back(full.0),
        }
    }

    /// Submits what had no room; whether all of it has.
    fn submit_stalled(&mut self) -> bool {
        let Some(lane) = self.lane.as_mut() else { return self.stalled.is_empty() };
        while let Some(request) = self.stalled.pop_front() {
            match lane.queue.submit(request) {
                Ok(()) => {
                    self.in_flight += 1;
                    self.is_unpolled = true;
                }
                Err(full) => {
                    self.stalled.push_front(full.0);
                    return false;
                }
            }
        }
        true
    }

    /// Polls the queue and answers what completed; whether anything did.
    fn collect(&mut self, wait: Wait) -> Result<bool, Broken> {
        let Some(lane) = self.lane.as_mut().filter(|_| self.in_flight > 0) else { return Ok(false) };
        let mut completions = std::mem::take(&mut self.completions);
        self.is_unpolled = false;
        lane.queue.poll(wait, &mut completions)?;
        let has_completed = !completions.is_empty();
        let mut outcome = Ok(());
        for completion in completions.drain(..) {
            self.in_flight = self.in_flight.saturating_sub(1);
            if outcome.is_ok() {
                outcome = self.completed(completion);
            }
        }
        self.completions = completions;
        outcome.map(|()| has_completed)
    }
}
