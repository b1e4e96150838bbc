//! One connection from greeting to goodbye, over any transport.

use std::io::{self, IoSlice, IoSliceMut};
use std::sync::Arc;
use std::time::Instant;

use super::handshake::{Handshake, Session, Step, Terms};
use super::transmission::{Broken, Manner, Transmission};
use super::transport::{Patience, Transport, Wants};

/// How much is received at once during the handshake.
const PIECE_BYTES: usize = 4 << 10;

/// What a connection needs to know.
pub(super) struct Setting {
    pub(super) terms: Terms,
    pub(super) manner: Manner,
    pub(super) tls: Option<Arc<rustls::ServerConfig>>,
    /// When the handshake must be over.
    pub(super) until: Instant,
}

/// Serves one connection to its end.
pub(super) fn serve(transport: &mut impl Transport, setting: Setting) -> Result<(), Broken> {
    let Setting { terms, manner, tls, until } = setting;
    let mut talk = Talk { transport, until, received: Vec::new() };
    match talk.shake_hands(Handshake::new(terms), tls.as_ref())? {
        None => Ok(()),
        Some(session) => {
            let received = std::mem::take(&mut talk.received);
            Transmission::new(session, manner, &received).run(transport)
        }
    }
}

/// The handshake with its clock and its buffer.
struct Talk<'a, T> {
    transport: &'a mut T,
    until: Instant,
    received: Vec<u8>,
}

impl<T: Transport> Talk<'_, T> {
    fn shake_hands(
        &mut self,
        mut handshake: Handshake,
        tls: Option<&Arc<rustls::ServerConfig>>,
    ) -> Result<Option<Session>, Broken> {
        self.send(&Handshake::greeting())?;
        let mut output = Vec::new();
        loop {
            let (consumed, step) = handshake.advance(&self.received, &mut output)?;
            self.received.drain(..consumed);
            if !matches!(step, Step::Continue) || output.len() > PIECE_BYTES {
                self.send(&output)?;
                output.clear();
            }
            match step {
                Step::Continue => {}
                Step::NeedBytes => {
                    if !self.receive()? {
                        return Ok(None);
                    }
                }
                Step::Close => return Ok(None),
                Step::Transmit(session) => return Ok(Some(session)),
                Step::StartTls => {
                    // Bytes sent in the clear behind STARTTLS could be anyone's.
                    let Some(config) = tls.filter(|_| self.received.is_empty()) else {
                        return Err(Broken::Socket(io::ErrorKind::InvalidData.into()));
                    };
                    self.transport.encrypt(config, self.until)?;
                    handshake.encrypted();
                }
            }
        }
    }

    fn wait(&mut self, is_for_reading: bool) -> Result<(), Broken> {
        if Instant::now() >= self.until {
            return Err(Broken::Stalled);
        }
        let (read, write) = (is_for_reading, !is_for_reading);
        Ok(self.transport.wait(Wants { read, write, wake: None, until: Some(self.until) })?)
    }

    fn receive(&mut self) -> Result<bool, Broken> {
        let mut piece = [0; PIECE_BYTES];
        loop {
            match self.transport.receive(&mut [IoSliceMut::new(&mut piece)], Patience::None) {
                Ok(count) => {
                    self.received.extend_from_slice(&piece[..count]);
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(true)?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn send(&mut self, mut bytes: &[u8]) -> Result<(), Broken> {
        loop {
            if bytes.is_empty() {
                if self.transport.hand_over()? {
                    return Ok(());
                }
                self.wait(false)?;
                continue;
            }
            match self.transport.send(&[IoSlice::new(bytes)]) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(false)?,
                Err(error) => return Err(error.into()),
            }
        }
    }
}
