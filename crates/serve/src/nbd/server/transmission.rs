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
//! One turn is: collect what completed, or receive; understand it, submit, collect, send. In between nothing
//! is waited for, so requests that arrived together go to the device together and their replies leave
//! together.
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

use plumb_block::{Errno, LbaRange, Nanos, Op, Payload, Queue, Wait};

use super::buffers::{Budget, Buffers};
use super::handshake::Session;
use crate::nbd::input::Input;
use crate::nbd::output::Output;
use crate::nbd::transport::Transport;
use crate::nbd::turn::{Turn, Wants};
use crate::nbd::wire::{RequestHeader, WireError};
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

/// Reason why a connection ended before the client said so.
#[derive(Debug, thiserror::Error)]
pub enum TransmissionFault {
    /// The client sent something that is not the protocol.
    #[error("the client does not speak the protocol")]
    Protocol(#[from] WireError),
    /// The transport broke.
    #[error("the connection failed")]
    Socket(#[from] io::Error),
    /// The device gave no answer.
    #[error("the device lost power or did not answer: what was in flight stays unanswered")]
    Unanswered,
    /// The client was too slow to shake hands.
    #[error("the handshake took too long")]
    Stalled,
    /// A read failed after a part of its answer was sent.
    #[error(
        "the device failed in the middle of a read that was already sent in part: the answer cannot be \
         completed"
    )]
    HalfSent,
}

/// Event that must happen before more can be taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockReason {
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
    /// Number of requests that a connection's queue holds.
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
    /// True if bytes can be taken in.
    may_receive: bool,
    /// No more bytes will come.
    is_at_end: bool,
    /// No more requests are taken.
    is_leaving: bool,
}

impl Transmission {
    /// Creates the transmission as agreed in `session`; `received` came behind the handshake already.
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
            may_receive: false,
            is_at_end: false,
            is_leaving: false,
        }
    }

    /// Takes one turn at the time `now`; the device is polled with `wait` first.
    pub(super) fn advance(
        &mut self,
        transport: &mut dyn Transport,
        now: Nanos,
        wait: Wait,
    ) -> Result<Turn, TransmissionFault> {
        let mut has_moved = self.collect(wait)? || (self.may_receive && self.receive(transport)?);
        loop {
            let blocked = self.take_in()?;
            let has_completed = self.needs_poll() && self.collect(Wait::NONE)?;
            has_moved |= has_completed;
            // A completion may have led to another request, the flush after a trim, which the device must
            // see.
            if self.needs_poll() || (has_completed && blocked == BlockReason::Room) {
                continue;
            }
            let has_sent = self.output.send(transport)?;
            has_moved |= has_sent;
            let is_sent = transport.hand_over()? && self.output.is_empty();
            if blocked == BlockReason::Input && self.is_at_end {
                self.is_leaving = true;
            }
            let in_flight = self.in_flight();
            if self.is_leaving && in_flight == 0 && is_sent {
                return Ok(Turn::Over);
            }
            if blocked == BlockReason::Room && (has_completed || has_sent) {
                continue;
            }
            self.may_receive = blocked == BlockReason::Input && !self.is_leaving;
            let wait_max = self.lane.as_ref().map(|lane| lane.requests.wait_max());
            let until = wait_max.filter(|_| in_flight > 0).map(|most| now.saturating_add(most));
            let wants = Wants { read: self.may_receive, write: !is_sent, in_flight, until };
            return Ok(Turn::new(has_moved, wants));
        }
    }

    /// Returns the queue of the device, if any request came.
    pub(super) fn queue(&self) -> Option<&dyn Queue> {
        self.lane.as_ref().map(|lane| lane.requests.queue())
    }

    fn needs_poll(&self) -> bool {
        self.lane.as_ref().is_some_and(|lane| lane.requests.needs_poll())
    }

    fn in_flight(&self) -> usize {
        self.lane.as_ref().map_or(0, |lane| lane.requests.in_flight())
    }

    /// Returns true if another piece can be submitted.
    fn has_room(&self) -> bool {
        self.lane.as_ref().is_none_or(|lane| lane.requests.has_room())
    }

    /// Receives into the buffer of the write that is being taken in, if there is one, and behind that into
    /// the input. Returns true if bytes came, or the end.
    fn receive(&mut self, transport: &mut dyn Transport) -> Result<bool, TransmissionFault> {
        let (payload, is_last) = self.intake.payload_space(self.input.is_empty());
        let payload_bytes = payload.len();
        let ahead = if self.expects_large { RequestHeader::BYTES } else { INPUT_BYTES };
        // While more of the payload is to come than fits, what comes next belongs into the next buffer.
        let outcome = match (payload_bytes, is_last) {
            (0, _) => transport.receive(&mut [IoSliceMut::new(self.input.space(ahead))]),
            (_, false) => transport.receive(&mut [IoSliceMut::new(payload)]),
            (_, true) => {
                let mut both = [IoSliceMut::new(payload), IoSliceMut::new(self.input.space(ahead))];
                transport.receive(&mut both)
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

    /// Returns the lane, opened at the first request: an idle connection holds no queue and no buffers.
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
    fn collect(&mut self, wait: Wait) -> Result<bool, TransmissionFault> {
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
