//! One connection from greeting to goodbye, over any transport.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use super::handshake::{Handshake, Session, Step, Terms};
use super::transmission::{Broken, Limits, Transmission};
use crate::nbd::transport::Transport;

/// How much is received at once during the handshake.
const PIECE_BYTES: usize = 4 << 10;

/// Settings of a connection.
pub(super) struct Setting {
    pub(super) terms: Terms,
    pub(super) limits: Limits,
    pub(super) tls: Option<Arc<rustls::ServerConfig>>,
    /// When the handshake must be over.
    pub(super) until: Instant,
}

/// Serves one connection to its end.
pub(super) fn serve(transport: &mut impl Transport, setting: Setting) -> Result<(), Broken> {
    let mut received = Vec::new();
    match shake_hands(transport, &setting, &mut received)? {
        None => Ok(()),
        Some(session) => Transmission::new(session, setting.limits, &received).run(transport),
    }
}

/// Shakes hands and returns what was agreed, if anything; bytes that came behind it are left in `received`.
fn shake_hands(
    transport: &mut impl Transport,
    setting: &Setting,
    received: &mut Vec<u8>,
) -> Result<Option<Session>, Broken> {
    let until = setting.until;
    let mut handshake = Handshake::new(setting.terms.clone());
    transport.send_all(&Handshake::greeting(), until).map_err(broken)?;
    let mut output = Vec::new();
    loop {
        let (consumed, step) = handshake.advance(received, &mut output)?;
        received.drain(..consumed);
        if !matches!(step, Step::Continue) || output.len() > PIECE_BYTES {
            transport.send_all(&output, until).map_err(broken)?;
            output.clear();
        }
        match step {
            Step::Continue => {}
            Step::NeedBytes => {
                let mut piece = [0; PIECE_BYTES];
                let count = transport.receive_by(&mut piece, until).map_err(broken)?;
                if count == 0 {
                    return Ok(None);
                }
                received.extend_from_slice(&piece[..count]);
            }
            Step::Close => return Ok(None),
            Step::Transmit(session) => return Ok(Some(session)),
            Step::StartTls => {
                // Bytes sent in the clear behind STARTTLS could be anyone's.
                let Some(config) = setting.tls.as_ref().filter(|_| received.is_empty()) else {
                    return Err(Broken::Socket(io::ErrorKind::InvalidData.into()));
                };
                let tls = rustls::ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
                transport.encrypt(tls.into(), until).map_err(broken)?;
                handshake.encrypted();
            }
        }
    }
}

fn broken(error: io::Error) -> Broken {
    if error.kind() == io::ErrorKind::TimedOut { Broken::Stalled } else { Broken::Socket(error) }
}
