//! One connection from start to end, as a step function over any transport, and its driver over a socket.
//!
//! A [`Connection`] reads no clock and never waits: each turn processes available data of the transport and
//! the device, and returns what it [wants](Wants) next. [`serve`] waits for that in a separate thread, by the
//! first of these that applies:
//!
//! 1. Nothing is in flight and there is nothing to send: in the receive call itself, after a short busy poll
//!    if that pays off. If the device completes within the poll, a request costs two system calls, and no
//!    wake-up with a client that sends the next one soon.
//! 2. Something is in flight and the queue has a descriptor: for the socket and the descriptor together; for
//!    a single request, after a short busy poll of both if that pays off.
//! 3. Something is in flight, the queue has no descriptor, and nothing can be sent or received now: in the
//!    queue's own poll, for one completion. Requests that arrive meanwhile are processed when it returns.

use std::io::{self, IoSliceMut};
use std::sync::Arc;

use plumb_block::{Clock, Nanos, Queue, Wait};

use super::handshake::{Handshake, Session, Step, Terms};
use super::transmission::{Limits, Transmission, TransmissionFault};
use crate::busy_poll::BusyPoll;
use crate::nbd::output::Output;
use crate::nbd::transport::{Socket, Transport};
use crate::nbd::turn::{Turn, Wants};

/// Maximum amount received at once during the handshake.
const PIECE_BYTES: usize = 4 << 10;

/// Settings of a connection.
pub(super) struct Setting {
    pub(super) terms: Terms,
    pub(super) limits: Limits,
    pub(super) tls: Option<Arc<rustls::ServerConfig>>,
    /// Deadline of the handshake.
    pub(super) until: Nanos,
}

/// A connection to an export.
pub struct Connection {
    phase: Phase,
}

enum Phase {
    Handshake(Box<Greeting>),
    Transmission(Box<Transmission>),
}

impl Connection {
    pub(super) fn new(setting: Setting) -> Self {
        Self { phase: Phase::Handshake(Box::new(Greeting::new(setting))) }
    }

    /// Takes one turn at the time `now`, polling the device with `wait`: a driver for a device without a
    /// descriptor waits there.
    ///
    /// # Errors
    /// If the connection must end although the client did not leave; requests in flight are unanswered.
    pub fn advance(
        &mut self,
        transport: &mut dyn Transport,
        now: Nanos,
        wait: Wait,
    ) -> Result<Turn, TransmissionFault> {
        match &mut self.phase {
            Phase::Transmission(transmission) => transmission.advance(transport, now, wait),
            Phase::Handshake(greeting) => {
                let turn = greeting.advance(transport, now)?;
                if let Some(session) = greeting.session.take() {
                    let limits = greeting.setting.limits.clone();
                    let transmission = Transmission::new(session, limits, &greeting.received);
                    self.phase = Phase::Transmission(Box::new(transmission));
                }
                Ok(turn)
            }
        }
    }

    /// Returns the device queue once a request has arrived.
    fn queue(&self) -> Option<&dyn Queue> {
        match &self.phase {
            Phase::Handshake(_) => None,
            Phase::Transmission(transmission) => transmission.queue(),
        }
    }
}

/// A connection during its handshake.
struct Greeting {
    setting: Setting,
    handshake: Handshake,
    received: Vec<u8>,
    output: Output,
    /// Latest step of the handshake, executed once all output is sent.
    step: Step,
    is_encrypting: bool,
    /// Negotiated session.
    session: Option<Session>,
}

impl Greeting {
    fn new(setting: Setting) -> Self {
        let mut output = Output::default();
        output.bytes(Handshake::greeting().to_vec());
        Self {
            handshake: Handshake::new(setting.terms.clone()),
            setting,
            received: Vec::new(),
            output,
            step: Step::NeedBytes,
            is_encrypting: false,
            session: None,
        }
    }

    fn advance(&mut self, transport: &mut dyn Transport, now: Nanos) -> Result<Turn, TransmissionFault> {
        let mut has_moved = false;
        loop {
            while matches!(self.step, Step::Continue) && !self.output.is_full() {
                let mut answer = Vec::new();
                let (consumed, step) = self.handshake.advance(&self.received, &mut answer)?;
                self.received.drain(..consumed);
                if !answer.is_empty() {
                    self.output.bytes(answer);
                }
                self.step = step;
            }
            has_moved |= self.output.send(transport)?;
            let is_sent = transport.hand_over()? && self.output.is_empty();
            if !is_sent {
                return self.waits(now, has_moved, Wants { write: true, ..Wants::default() });
            }
            if self.is_encrypting {
                if !transport.is_encrypted()? {
                    let write = !transport.hand_over()?;
                    return self.waits(now, has_moved, Wants { read: true, write, ..Wants::default() });
                }
                self.is_encrypting = false;
                self.handshake.encrypted();
            }
            match std::mem::replace(&mut self.step, Step::Continue) {
                Step::Continue => {}
                Step::Close => return Ok(Turn::Over),
                Step::Transmit(session) => {
                    self.session = Some(session);
                    return Ok(Turn::Moved(Wants { read: true, ..Wants::default() }));
                }
                Step::StartTls => self.encrypt(transport)?,
                Step::NeedBytes => match self.receive(transport)? {
                    Some(0) => return Ok(Turn::Over),
                    Some(_) => has_moved = true,
                    None => {
                        self.step = Step::NeedBytes;
                        return self.waits(now, has_moved, Wants { read: true, ..Wants::default() });
                    }
                },
            }
        }
    }

    /// Receives once; `None` if nothing is available.
    fn receive(&mut self, transport: &mut dyn Transport) -> io::Result<Option<usize>> {
        let mut piece = [0; PIECE_BYTES];
        match transport.receive(&mut [IoSliceMut::new(&mut piece)]) {
            Ok(count) => {
                self.received.extend_from_slice(&piece[..count]);
                Ok(Some(count))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn encrypt(&mut self, transport: &mut dyn Transport) -> io::Result<()> {
        // Unencrypted data after STARTTLS could come from anyone.
        let Some(config) = self.setting.tls.as_ref().filter(|_| self.received.is_empty()) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let tls = rustls::ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        self.is_encrypting = true;
        transport.encrypt(tls.into())
    }

    fn waits(&self, now: Nanos, has_moved: bool, wants: Wants) -> Result<Turn, TransmissionFault> {
        let until = self.setting.until;
        if now >= until && !has_moved {
            return Err(TransmissionFault::Stalled);
        }
        Ok(Turn::new(has_moved, Wants { until: Some(until), ..wants }))
    }
}

/// Serves a connection until its end.
pub(super) fn serve(
    mut connection: Connection,
    socket: &mut Socket,
    clock: &dyn Clock,
) -> Result<(), TransmissionFault> {
    // Polling for the next request, and for the end of a single one.
    let (mut request_poll, mut end_poll) = (BusyPoll::default(), BusyPoll::default());
    let mut turn = connection.advance(socket, clock.now(), Wait::NONE)?;
    loop {
        let mut look = || match connection.advance(socket, clock.now(), Wait::NONE) {
            Ok(Turn::Idle(_)) => None,
            other => Some(other),
        };
        turn = match turn {
            Turn::Over => return Ok(()),
            Turn::Moved(wants) | Turn::Idle(wants) if wants.is_for_bytes_alone() => {
                match request_poll.poll(clock, look) {
                    Some(found) => found?,
                    None => {
                        socket.wait_in_next_receive();
                        connection.advance(socket, clock.now(), Wait::NONE)?
                    }
                }
            }
            Turn::Moved(_) => connection.advance(socket, clock.now(), Wait::NONE)?,
            Turn::Idle(wants) => {
                let found =
                    if wants.in_flight == 1 && !wants.write { end_poll.poll(clock, &mut look) } else { None };
                let is_blind = connection.queue().is_some_and(|queue| queue.wake_fd().is_none());
                match found {
                    Some(found) => found?,
                    None if wants.in_flight > 0 && is_blind && !wants.write => {
                        connection.advance(socket, clock.now(), Wait::ONE)?
                    }
                    None => {
                        let queue = connection.queue().filter(|_| wants.in_flight > 0);
                        socket.wait(wants, queue, clock).map_err(io::Error::other)?;
                        connection.advance(socket, clock.now(), Wait::NONE)?
                    }
                }
            }
        };
    }
}
