//! The handshake as a state machine: bytes in, bytes out, no socket and no clock.
//!
//! ```text
//! greeting ─► client's flags ─► option ─┬─► reply ─► option ...
//!                                       ├─► STARTTLS: encrypt, then forget all that was negotiated in the clear
//!                                       ├─► GO, EXPORT_NAME: transmission
//!                                       └─► ABORT: close
//! ```
//!
//! Invariant: at most [`OPTION_MAX_BYTES`] of an option are looked at. What is larger is answered TOO_BIG at
//! once; up to [`SKIP_MAX_BYTES`] are then skipped unseen, and a client that announces more is hung up on.

mod answers;

use std::sync::Arc;

use super::export::ServedExport;
use crate::nbd::wire::{
    ClientFlags, HandshakeFlags, OPTION_MAX_BYTES, OptionCode, OptionHeader, OptionReplyKind, ServerHello,
    WireError, encode_option_reply,
};

use crate::served_device::KnownLosses;

pub(super) use answers::ALLOCATION_ID;

/// The largest option that is skipped.
const SKIP_MAX_BYTES: u32 = 1 << 20;

/// State of the encryption of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encryption {
    /// There are no certificates.
    Unavailable,
    /// Nothing else is answered before it.
    Required,
    /// Encryption is on.
    Established,
}

/// Properties of the server that the handshake knows.
#[derive(Clone)]
pub(super) struct Terms {
    pub(super) exports: Arc<[Arc<ServedExport>]>,
    pub(super) encryption: Encryption,
    /// Reason why no export is served on this connection, if so.
    pub(super) refusal: Option<String>,
}

/// Session that a handshake agreed on.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) served: Arc<ServedExport>,
    /// The losses of power that the client knows of: those until now.
    pub(super) known: Arc<KnownLosses>,
    /// True if replies may come in chunks.
    pub(super) is_structured: bool,
    /// True if block status is told in `base:allocation`.
    pub(super) has_allocation: bool,
}

/// Next step of a handshake.
pub(super) enum Step {
    /// Nothing: more bytes are needed.
    NeedBytes,
    /// Something was consumed; go on.
    Continue,
    /// Send what is there, then encrypt.
    StartTls,
    /// Send what is there, then transmission begins.
    Transmit(Session),
    /// Send what is there, then close: the client said so, or was refused in a way that has no reply.
    Close,
}

/// Where in the handshake we are.
enum State {
    ClientFlags,
    Option,
    /// The rest of an option that was answered is still to come: `left` bytes.
    Skip {
        left: u32,
    },
}

/// One side of a handshake.
pub(super) struct Handshake {
    terms: Terms,
    state: State,
    has_no_zeroes: bool,
    is_structured: bool,
    /// The export for which `base:allocation` was chosen.
    allocation_of: Option<Arc<ServedExport>>,
}

impl Handshake {
    /// Creates a handshake that has just begun.
    pub(super) fn new(terms: Terms) -> Self {
        let state = State::ClientFlags;
        Self { terms, state, has_no_zeroes: false, is_structured: false, allocation_of: None }
    }

    /// Returns the bytes that the server sends first.
    pub(super) fn greeting() -> [u8; ServerHello::BYTES] {
        let flags = HandshakeFlags::FIXED_NEWSTYLE.with(HandshakeFlags::NO_ZEROES);
        ServerHello { flags }.encode()
    }

    /// Notes that the connection is encrypted from here on: what was said before may have been said by
    /// anyone.
    pub(super) fn encrypted(&mut self) {
        self.terms.encryption = Encryption::Established;
        self.is_structured = false;
        self.allocation_of = None;
    }

    /// Consumes bytes off the front of `input`, appends what is to be sent to `output`. Returns how many
    /// bytes were consumed.
    ///
    /// # Errors
    /// If the client does not speak the protocol: close.
    pub(super) fn advance(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<(usize, Step), WireError> {
        match self.state {
            State::ClientFlags => self.client_flags(input),
            State::Option => self.option(input, output),
            State::Skip { left } => {
                let skipped = input.len().min(left as usize);
                let left = left - skipped as u32;
                self.state = if left > 0 { State::Skip { left } } else { State::Option };
                let step = if left > 0 && skipped == 0 { Step::NeedBytes } else { Step::Continue };
                Ok((skipped, step))
            }
        }
    }

    fn client_flags(&mut self, input: &[u8]) -> Result<(usize, Step), WireError> {
        let Some(bytes) = input.first_chunk() else { return Ok((0, Step::NeedBytes)) };
        let flags = ClientFlags::decode(*bytes);
        let known = ClientFlags::FIXED_NEWSTYLE.with(ClientFlags::NO_ZEROES);
        if flags.has_beyond(known) {
            return Err(WireError::Value { what: "the client's flags", found: u64::from(flags.0) });
        }
        self.has_no_zeroes = flags.has(ClientFlags::NO_ZEROES);
        self.state = State::Option;
        Ok((ClientFlags::BYTES, Step::Continue))
    }

    fn option(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<(usize, Step), WireError> {
        let Some((head, rest)) = input.split_first_chunk() else { return Ok((0, Step::NeedBytes)) };
        let header = OptionHeader::decode(head)?;
        if header.length > OPTION_MAX_BYTES {
            // EXPORT_NAME has no reply: all that can be said is to hang up.
            let has_reply = header.code != OptionCode::EXPORT_NAME;
            if has_reply {
                let why =
                    format!("{} bytes of an option, and at most {OPTION_MAX_BYTES} are taken", header.length);
                refuse(header.code, OptionReplyKind::ERR_TOO_BIG, &why, output);
            }
            if !has_reply || header.length > SKIP_MAX_BYTES {
                return Ok((OptionHeader::BYTES, Step::Close));
            }
            self.state = State::Skip { left: header.length };
            return Ok((OptionHeader::BYTES, Step::Continue));
        }
        let Some(data) = rest.get(..header.length as usize) else { return Ok((0, Step::NeedBytes)) };
        let step = self.answer(header.code, data, output);
        Ok((OptionHeader::BYTES + data.len(), step))
    }
}

/// Sends an error reply with a sentence for people.
fn refuse(code: OptionCode, kind: OptionReplyKind, why: &str, output: &mut Vec<u8>) {
    encode_option_reply(code, kind, why.as_bytes(), output);
}
