//! The transmission phase of one connection: requests in, replies out, in whatever order the device completes
//! them.
//!
//! - `plan`: what a request means, or why it is refused: pure.
//! - `intake`: takes requests off the input, cuts them into pieces that the device takes, and submits them
//!   ([`Requests`]).
//! - `command`: the requests in flight.
//! - `answer`: from pieces that have ended to replies.
//! - `status`: what is behind the blocks.
//!
//! One turn is: understand what was received, submit, collect what completed, send. In between nothing is
//! waited for, so requests that arrived together go to the device together and their replies leave together.
//! Only when a turn changed nothing does the connection wait, by the first of these that applies:
//!
//! 1. Nothing is in flight and nothing to be sent: in the receive call itself, after polling for a moment
//!    where that pays. A device that completes within the poll costs two system calls a request and, with a
//!    client that sends the next one soon, no wakeup.
//! 2. Something is in flight and the queue has a descriptor: for the socket and the descriptor together; for
//!    one request, after polling both for a moment where that pays.
//! 3. Something is in flight, the queue has no descriptor, and nothing can be sent or received now: in the
//!    queue's own poll, for one completion. Requests that arrive meanwhile are seen when it returns.
//!
//! Invariants:
//! - A reply that says "done" leaves only after every piece of the request, and the flush that its FUA asks
//!   for, completed as done. The first failure is the answer.
//! - When a request ends unanswered (it was given up, or the device lost power), nothing more is answered on
//!   the connection: it ends, as if the device had vanished, and the client must treat everything in flight
//!   as unanswered.
//! - Memory is bounded by the pools and by [`Output`]'s limit, whatever the client asks for and whether it
//!   reads the replies: a read that does not fit into the pools is sent piece by piece, alone on its
//!   connection.

mod answer;
mod command;
mod intake;
mod plan;
mod status;

use std::io::{self, IoSliceMut};
use std::sync::Arc;
use std::time::Instant;

use plumb_block::{Errno, LbaRange, Op, Payload, Wait};

use super::buffers::{Budget, Buffers};
use super::handshake::Session;
use crate::busy_poll::BusyPoll;
use crate::nbd::input::Input;
use crate::nbd::output::Output;
use crate::nbd::transport::{Patience, Transport, Wants};
use crate::nbd::wire::{Malformed, RequestHeader};
use crate::requests::Requests;
use crate::slab::Slab;
use command::{Command, Piece};
use intake::Intake;
use plan::Rules;

/// How much is received at once at most.
const INPUT_BYTES: usize = 256 << 10;
/// Behind a write of so many bytes another one is expected. Only its header is received ahead: its payload
/// goes where the device takes it from.
const LARGE_BYTES: u32 = 32 << 10;

/// Why a connection ended before the client said so.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error("the client does not speak the protocol")]
    Protocol(#[from] Malformed),
    #[error("the connection failed")]
    Socket(#[from] io::Error),
    #[error("the device lost power or did not answer: what was in flight stays unanswered")]
    Unanswered,
    #[error("the handshake took too long")]
    Stalled,
    #[error(
        "the device failed in the middle of a read of which a part was sent: it cannot be answered to its end"
    )]
    HalfSent,
}

/// Event that must happen before more can be taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blocked {
    /// More bytes must come.
    Input,
    /// A buffer or a place in the queue must become free, or replies must leave.
    Room,
}

/// Queue and buffers that the connection has of the device, from its first request on.
struct Lane {
    requests: Requests<Piece>,
    buffers: Buffers,
}

/// Limits of what a connection may have.
#[derive(Clone)]
pub(super) struct Limits {
    /// How many requests a connection's queue holds.
    pub(super) depth: u32,
    pub(super) budget: Arc<Budget>,
}

/// One connection in its transmission phase.
pub(super) struct Transmission {
    session: Session,
    rules: Rules,
    limits: Limits,
    lane: Option<Lane>,
    input: Input,
    intake: Intake,
    /// The last request was a large write.
    expects_large: bool,
    commands: Slab<Command>,
    /// The read that is sent piece by piece: nothing else is taken in before it is over.
    streamed: Option<u32>,
    output: Output,
    /// For the next request, and for the end of the only one.
    busy_poll: [BusyPoll; 2],
    /// No more bytes will come.
    is_at_end: bool,
    /// No more requests are taken.
    is_leaving: bool,
}

impl Transmission {
    /// Transmission as agreed in `session`; `received` came behind the handshake already.
    pub(super) fn new(session: Session, limits: Limits, received: &[u8]) -> Self {
        let mut input = Input::new(INPUT_BYTES.max(received.len()));
        input.append(received);
        Self {
            rules: Rules::new(&session),
            session,
            limits,
            lane: None,
            input,
            intake: Intake::Head,
            expects_large: false,
            commands: Slab::default(),
            streamed: None,
            output: Output::default(),
            busy_poll: <[BusyPoll; 2]>::default(),
            is_at_end: false,
            is_leaving: false,
        }
    }

    /// Serves until the client leaves, the input ends, or something breaks.
    pub(super) fn run(&mut self, transport: &mut impl Transport) -> Result<(), Broken> {
        loop {
            let blocked = self.take_in()?;
            let has_completed = self.collect(Wait::NONE)?;
            // A completion may have led to another request, the flush after a trim, which the device must
            // see.
            let is_unpolled = self.lane.as_ref().is_some_and(|lane| lane.requests.is_unpolled());
            if is_unpolled || (has_completed && blocked == Blocked::Room) {
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
        self.in_flight() == 0 && self.output.is_empty()
    }

    fn in_flight(&self) -> usize {
        self.lane.as_ref().map_or(0, |lane| lane.requests.in_flight())
    }

    /// Returns true if another piece can be submitted.
    fn has_room(&self) -> bool {
        self.lane.as_ref().is_none_or(|lane| lane.requests.has_room())
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
            let may_sleep = self.in_flight() == 0 && is_sent;
            if may_sleep && self.receive_soon(transport)? {
                return Ok(());
            }
            let patience = if may_sleep { Patience::Endless } else { Patience::None };
            if self.receive(transport, patience)? {
                return Ok(());
            }
        }
        if self.in_flight() == 1 && is_sent && self.ends_soon(transport, may_receive)? {
            return Ok(());
        }
        let at_device = self.lane.as_ref().map(|lane| &lane.requests).filter(|at| at.in_flight() > 0);
        let wake = at_device.and_then(Requests::wake_fd);
        if at_device.is_some() && wake.is_none() && is_sent {
            self.collect(Wait::ONE)?;
            return Ok(());
        }
        let until = at_device.map(|requests| Instant::now() + requests.wait_max());
        let wants = Wants { read: may_receive, write: !is_sent, wake, until };
        if wants.read || wants.write || wants.wake.is_some() {
            transport.wait(wants)?;
        }
        Ok(())
    }

    /// Receives what comes within a moment; whether anything did.
    fn receive_soon(&mut self, transport: &mut impl Transport) -> Result<bool, Broken> {
        self.look_again(0, |this| this.receive(transport, Patience::None))
    }

    /// Collects what ends within a moment, or receives what comes; whether there was any.
    fn ends_soon(&mut self, transport: &mut impl Transport, may_receive: bool) -> Result<bool, Broken> {
        self.look_again(1, |this| {
            Ok(this.collect(Wait::NONE)? || (may_receive && this.receive(transport, Patience::None)?))
        })
    }

    /// Returns true if `look` finds something within a moment, where that pays.
    fn look_again(
        &mut self,
        what: usize,
        mut look: impl FnMut(&mut Self) -> Result<bool, Broken>,
    ) -> Result<bool, Broken> {
        let mut busy_poll = std::mem::take(&mut self.busy_poll[what]);
        let found = busy_poll.poll(|| match look(self) {
            Ok(false) => None,
            other => Some(other),
        });
        self.busy_poll[what] = busy_poll;
        found.unwrap_or(Ok(false))
    }

    /// Receives into the buffer of the write that is being taken in, if there is one, and behind that into
    /// the input. Whether the state of affairs changed.
    fn receive(&mut self, transport: &mut impl Transport, patience: Patience) -> Result<bool, Broken> {
        let (payload, is_last) = self.intake.payload_space(self.input.is_empty());
        let payload_bytes = payload.len();
        let ahead = if self.expects_large { RequestHeader::BYTES } else { INPUT_BYTES };
        // While more of the payload is to come than fits, what comes next belongs into the next buffer.
        let outcome = match (payload_bytes, is_last) {
            (0, _) => transport.receive(&mut [IoSliceMut::new(self.input.space(ahead))], patience),
            (_, false) => transport.receive(&mut [IoSliceMut::new(payload)], patience),
            (_, true) => {
                let mut both = [IoSliceMut::new(payload), IoSliceMut::new(self.input.space(ahead))];
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
            let buffers = Buffers::new(&self.rules.info, &self.limits.budget).map_err(broken)?;
            let (device, known) = (Arc::clone(&self.session.served.device), Arc::clone(&self.session.known));
            let requests =
                Requests::open(device, known, self.limits.depth, buffers.small.clone()).map_err(broken)?;
            self.lane = Some(Lane { requests, buffers });
        }
        self.lane.as_mut().ok_or(Errno::EIO)
    }

    /// Submits a piece. There is a lane since its command was begun.
    fn submit(&mut self, piece: Piece, op: Op, range: LbaRange, payload: Payload) {
        if let Some(lane) = &mut self.lane {
            lane.requests.submit(piece, op, range, payload);
        }
    }

    /// Collects and answers what has ended; whether anything had.
    fn collect(&mut self, wait: Wait) -> Result<bool, Broken> {
        let Some(lane) = self.lane.as_mut() else { return Ok(false) };
        lane.requests.poll(wait);
        let mut has_ended = false;
        while let Some(ended) = self.lane.as_mut().and_then(|lane| lane.requests.next_ended()) {
            has_ended = true;
            self.ended(ended)?;
        }
        Ok(has_ended)
    }
}
