//! Handshake as a state machine: data in, data out, independent of sockets and clocks.
//!
//! ```text
//! greeting ─► client's flags ─► option ─┬─► reply ─► option ...
//!                                       ├─► STARTTLS: encrypt, then forget all that was negotiated in the clear
//!                                       ├─► GO, EXPORT_NAME: transmission
//!                                       └─► ABORT: close
//! ```
//!
//! Invariant: at most [`OPTION_MAX_BYTES`] of an option are processed. A larger one is answered TOO_BIG at
//! once; up to [`SKIP_MAX_BYTES`] are then skipped, and a client that announces more is disconnected.

mod answers;

use std::sync::Arc;

use super::export::ServedExport;
use crate::nbd::wire::{
    ClientFlags, HandshakeFlags, OPTION_MAX_BYTES, OptionCode, OptionHeader, OptionReplyKind, ServerHello,
    WireError, encode_option_reply,
};

use crate::served_device::KnownLosses;

pub(super) use answers::ALLOCATION_ID;

/// Maximum size of a skipped option.
const SKIP_MAX_BYTES: u32 = 1 << 20;

/// State of the encryption of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encryption {
    /// Not available: there are no certificates.
    Unavailable,
    /// Required before anything else is answered.
    Required,
    /// Active.
    Established,
}

/// Server properties for the handshake.
#[derive(Clone)]
pub(super) struct Terms {
    pub(super) exports: Arc<[Arc<ServedExport>]>,
    pub(super) encryption: Encryption,
    /// Reason why no export is served on this connection, if any.
    pub(super) refusal: Option<String>,
}

/// Session that a handshake agreed on.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) served: Arc<ServedExport>,
    /// Power losses known to the client: those until now.
    pub(super) known: Arc<KnownLosses>,
    /// True if structured replies were negotiated.
    pub(super) is_structured: bool,
    /// True if block status in `base:allocation` was negotiated.
    pub(super) has_allocation: bool,
}

/// Next step of a handshake.
pub(super) enum Step {
    /// Wait for more data.
    NeedBytes,
    /// Continue with further input.
    Continue,
    /// Send the output, then encrypt.
    StartTls,
    /// Send the output, then start the transmission.
    Transmit(Session),
    /// Send the output, then close, because the client asked for it, or was refused without a possible reply.
    Close,
}

/// Position in the handshake.
enum State {
    ClientFlags,
    Option,
    /// Skip the remaining `left` bytes of an answered option.
    Skip {
        left: u32,
    },
}

/// Server side of a handshake.
pub(super) struct Handshake {
    terms: Terms,
    state: State,
    has_no_zeroes: bool,
    is_structured: bool,
    /// Export for which `base:allocation` was selected.
    allocation_of: Option<Arc<ServedExport>>,
}

impl Handshake {
    /// Creates a handshake at its start.
    pub(super) fn new(terms: Terms) -> Self {
        let state = State::ClientFlags;
        Self { terms, state, has_no_zeroes: false, is_structured: false, allocation_of: None }
    }

    /// Returns the server's first message.
    pub(super) fn greeting() -> [u8; ServerHello::BYTES] {
        let flags = HandshakeFlags::FIXED_NEWSTYLE.with(HandshakeFlags::NO_ZEROES);
        ServerHello { flags }.encode()
    }

    /// Records that the connection is encrypted, and discards earlier negotiation, which anyone could have
    /// sent.
    pub(super) fn encrypted(&mut self) {
        self.terms.encryption = Encryption::Established;
        self.is_structured = false;
        self.allocation_of = None;
    }

    /// Consumes data from the front of `input`, and appends output. Returns the number of consumed bytes.
    ///
    /// # Errors
    /// If the client violates the protocol; then close.
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
            // EXPORT_NAME has no error reply; the server can only disconnect.
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

/// Sends an error reply with a message for users.
fn refuse(code: OptionCode, kind: OptionReplyKind, why: &str, output: &mut Vec<u8>) {
    encode_option_reply(code, kind, why.as_bytes(), output);
}
