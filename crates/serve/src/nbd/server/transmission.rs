//! Transmission phase of a connection: requests in, replies out, in the order in which the device completes
//! them.
//!
//! - `plan`: the meaning of a request, or the reason to refuse it: pure.
//! - `intake`: parses requests, splits them into pieces that the device accepts, and submits them
//!   ([`Requests`]).
//! - `command`: the requests in flight.
//! - `answer`: replies for ended pieces.
//! - `status`: block status.
//!
//! One turn consists of: collect completions, or receive; then parse, submit, collect, send. Nothing waits in
//! between, so requests that arrived together go to the device together, and their replies leave together.
//!
//! Invariants:
//! - A successful reply is sent only after every piece of the request, and the flush for its FUA, completed
//!   successfully. The first failure determines the answer.
//! - When a request ends unanswered (given up, or the device lost power), no further answers are sent: the
//!   connection ends as if the device had vanished, and the client must treat everything in flight as
//!   unanswered.
//! - Memory is bounded by the pools and by [`Output`]'s limit, whatever the client requests and whether it
//!   reads the replies: a read larger than the pools is sent piece by piece, alone on its connection.

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

/// Maximum amount received at once.
const INPUT_BYTES: usize = 256 << 10;
/// Size of a write after which another large one is expected. Then only its header is received in advance:
/// its payload goes directly to the device's buffer.
const LARGE_BYTES: u32 = 32 << 10;

/// Reason why a connection ended without a disconnect by the client.
#[derive(Debug, thiserror::Error)]
pub enum TransmissionFault {
    /// The client violated the protocol.
    #[error("the client does not speak the protocol")]
    Protocol(#[from] WireError),
    /// The transport broke.
    #[error("the connection failed")]
    Socket(#[from] io::Error),
    /// The device did not answer.
    #[error("the device lost power or did not answer: what was in flight stays unanswered")]
    Unanswered,
    /// The handshake took too long.
    #[error("the handshake took too long")]
    Stalled,
    /// A read failed after a part of its data was sent.
    #[error(
        "the device failed in the middle of a read that was already sent in part: the answer cannot be \
         completed"
    )]
    HalfSent,
}

/// Event that must happen before more can be processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockReason {
    /// More data must arrive.
    Input,
    /// A buffer or queue slot must become free, or replies must be sent.
    Room,
}

/// Queue and buffers of a connection, from its first request on.
struct Lane {
    requests: Requests<Piece>,
    buffers: Buffers,
}

/// Limits of a connection.
#[derive(Clone)]
pub(super) struct Limits {
    /// Queue depth of a connection.
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
    /// True if the last request was a large write.
    expects_large: bool,
    commands: Slab<Command>,
    /// Read that is being sent piece by piece; nothing else is accepted before it ends.
    streamed: Option<u32>,
    output: Output,
    /// True if data can be received.
    may_receive: bool,
    /// True if no more data will arrive.
    is_at_end: bool,
    /// True if no more requests are accepted.
    is_leaving: bool,
}

impl Transmission {
    /// Creates the transmission for `session`; `received` arrived directly after the handshake.
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

    /// Takes one turn at the time `now`, starting with a poll of the device with `wait`.
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
            // A completion may have caused another request (the flush after a trim), which the device must
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

    /// Returns the device queue once a request has arrived.
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

    /// Receives into the buffer of the current write, if any, and then into the input. Returns true if data
    /// arrived, or the end.
    fn receive(&mut self, transport: &mut dyn Transport) -> Result<bool, TransmissionFault> {
        let (payload, is_last) = self.intake.payload_space(self.input.is_empty());
        let payload_bytes = payload.len();
        let ahead = if self.expects_large { RequestHeader::BYTES } else { INPUT_BYTES };
        // If more of the payload is to come than fits, the following data belongs in the next buffer.
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

    /// Submits a piece. The lane exists since its command was started.
    fn submit(&mut self, piece: Piece, op: Op, range: LbaRange, payload: Payload) {
        if let Some(lane) = &mut self.lane {
            lane.requests.submit(piece, op, range, payload);
        }
    }

    /// Collects and answers ended pieces. Returns true if there were any.
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
