//! Client side of the negotiation: fixed newstyle with all useful options, falling back to EXPORT_NAME for
//! servers that support nothing else.
//!
//! The negotiation is written as one asynchronous function, which the compiler turns into a state machine.
//! Nothing wakes it: the owner of a [`Negotiation`] calls it again when the transport may have made progress.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice, IoSliceMut};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use plumb_block::in_one_line;

use super::error::ConnectError;
use super::export::{BlockSizes, Export};
use crate::nbd::tls;
use crate::nbd::transport::Transport;
use crate::nbd::uri::Uri;
use crate::nbd::wire::{
    BASE_ALLOCATION, ClientFlags, GoRequest, HandshakeFlags, Info, InfoKind, MetaContext, MetaContextRequest,
    OPTION_MAX_BYTES, OptionCode, OptionReplyHeader, OptionReplyKind, ServerHello, TransmissionFlags,
    WireError, encode_option,
};

/// Maximum number of replies to one option; more indicate a malicious server.
const REPLIES_MAX: usize = 1024;
/// Length of the zeroes after the answer to EXPORT_NAME, unless both sides agreed to omit them.
const ZEROES_BYTES: usize = 124;

/// A connection in negotiation, as a step function.
pub struct Negotiation {
    steps: Pin<Box<dyn Future<Output = Result<NegotiatedConnection, ConnectError>>>>,
    to_write: Rc<Cell<bool>>,
}

/// A negotiated connection.
pub struct NegotiatedConnection {
    pub(super) transport: Box<dyn Transport>,
    pub(super) export: Export,
}

impl Negotiation {
    /// Starts to negotiate the export of `uri` over `transport`, which is connected to its server.
    pub fn new(uri: Uri, transport: Box<dyn Transport>) -> Self {
        let to_write = Rc::new(Cell::new(false));
        let handshake = Handshake { transport, uri, to_write: Rc::clone(&to_write) };
        Self { steps: Box::pin(handshake.negotiate()), to_write }
    }

    /// Proceeds as far as possible without waiting. `None` while the server must send or accept something;
    /// must not be called again afterwards.
    ///
    /// # Errors
    /// If the transport breaks, the server violates the protocol, or it does not offer the export.
    pub fn advance(&mut self) -> Option<Result<NegotiatedConnection, ConnectError>> {
        self.to_write.set(false);
        match self.steps.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        }
    }

    /// Returns true if the transport must accept data first.
    pub(super) fn wants_write(&self) -> bool {
        self.to_write.get()
    }
}

/// A connection in the handshake phase.
struct Handshake {
    transport: Box<dyn Transport>,
    uri: Uri,
    /// Set while the transport must accept data.
    to_write: Rc<Cell<bool>>,
}

/// Replies to an option: the data of all but the last, and the last.
struct Replies {
    before: Vec<(OptionReplyKind, Vec<u8>)>,
    last: OptionReplyKind,
    message: String,
}

impl Handshake {
    /// Negotiates the export of the URI.
    async fn negotiate(mut self) -> Result<NegotiatedConnection, ConnectError> {
        let mut hello = [0; ServerHello::BYTES];
        self.receive(&mut hello).await?;
        let hello = self.decoded(ServerHello::decode(&hello))?;
        let is_fixed = hello.flags.has(HandshakeFlags::FIXED_NEWSTYLE);
        let no_zeroes = hello.flags.has(HandshakeFlags::NO_ZEROES);
        let mut flags = ClientFlags::default();
        flags.0 |= if is_fixed { ClientFlags::FIXED_NEWSTYLE.0 } else { 0 };
        flags.0 |= if no_zeroes { ClientFlags::NO_ZEROES.0 } else { 0 };
        self.send(&flags.encode()).await?;
        if self.uri.tls.is_some() {
            if !is_fixed {
                return Err(self.refused("the server is too old for TLS; use nbd:// without it"));
            }
            self.encrypt().await?;
        }
        let mut negotiated = None;
        let (mut is_structured, mut context) = (false, None);
        if is_fixed {
            is_structured = self.ask(OptionCode::STRUCTURED_REPLY, &[]).await?.last == OptionReplyKind::ACK;
            context = if is_structured { self.choose_context().await? } else { None };
            negotiated = self.go().await?;
        }
        let (size, flags, sizes) = match negotiated {
            Some(negotiated) => negotiated,
            None => self.export_name(no_zeroes).await?,
        };
        if !flags.has(TransmissionFlags::HAS_FLAGS) {
            return Err(self.refused("the server says nothing about what the export can do"));
        }
        let mut export = Export::new(size, flags, sizes).map_err(|because| self.refused(because))?;
        (export.is_structured, export.allocation_context) = (is_structured, context);
        Ok(NegotiatedConnection { transport: self.transport, export })
    }

    async fn encrypt(&mut self) -> Result<(), ConnectError> {
        let replies = self.ask(OptionCode::STARTTLS, &[]).await?;
        if replies.last != OptionReplyKind::ACK {
            return Err(
                self.refused(format!("the server does not do TLS{}; use nbd:// without it", replies.message))
            );
        }
        let failed = |because: String| ConnectError::Tls { place: self.uri.to_string(), because };
        let session = tls::client(&self.uri).map_err(|error| failed(in_one_line(&error)))?;
        let Self { transport, to_write, .. } = self;
        let encrypted = match transport.encrypt(session.into()) {
            Err(error) => Err(error),
            Ok(()) => {
                poll_fn(|_| match transport.is_encrypted() {
                    Ok(true) => Poll::Ready(Ok(())),
                    Ok(false) => {
                        to_write.set(!transport.hand_over()?);
                        Poll::Pending
                    }
                    Err(error) => Poll::Ready(Err(error)),
                })
                .await
            }
        };
        encrypted
            .map_err(|error| ConnectError::Tls { place: self.uri.to_string(), because: error.to_string() })
    }

    async fn choose_context(&mut self) -> Result<Option<u32>, ConnectError> {
        let request =
            MetaContextRequest { export: self.uri.export.clone(), queries: vec![BASE_ALLOCATION.to_owned()] };
        let replies = self.ask(OptionCode::SET_META_CONTEXT, &request.encode()).await?;
        if replies.last != OptionReplyKind::ACK {
            return Ok(None);
        }
        for (kind, bytes) in &replies.before {
            if *kind == OptionReplyKind::META_CONTEXT {
                let context = self.decoded(MetaContext::decode(bytes))?;
                if context.name == BASE_ALLOCATION {
                    return Ok(Some(context.id));
                }
            }
        }
        Ok(None)
    }

    /// Selects the export with GO; `None` if the server does not support it.
    async fn go(&mut self) -> Result<Option<(u64, TransmissionFlags, Option<BlockSizes>)>, ConnectError> {
        let request = GoRequest { name: self.uri.export.clone(), wants: vec![InfoKind::BLOCK_SIZE] };
        let replies = self.ask(OptionCode::GO, &request.encode()).await?;
        match replies.last {
            OptionReplyKind::ACK => {}
            OptionReplyKind::ERR_UNSUP => return Ok(None),
            OptionReplyKind::ERR_TLS_REQD => {
                return Err(self.refused(format!("the server demands TLS{}; use nbds", replies.message)));
            }
            OptionReplyKind::ERR_UNKNOWN => {
                let name = &self.uri.export;
                return Err(self.refused(format!("there is no export {name:?}{}", replies.message)));
            }
            OptionReplyKind::ERR_POLICY | OptionReplyKind::ERR_SHUTDOWN if !replies.message.is_empty() => {
                return Err(self.refused(format!("the server refuses{}", replies.message)));
            }
            OptionReplyKind(other) => {
                return Err(self.refused(format!("the server refuses with {other:#x}{}", replies.message)));
            }
        }
        let (mut export, mut sizes) = (None, None);
        for (kind, bytes) in &replies.before {
            if *kind != OptionReplyKind::INFO {
                continue;
            }
            match self.decoded(Info::decode(bytes))? {
                Info::Export { size, flags } => export = Some((size, flags)),
                Info::BlockSize { minimum, preferred, maximum } => {
                    sizes = Some(BlockSizes { minimum, preferred, maximum });
                }
                _ => {}
            }
        }
        let (size, flags) =
            export.ok_or_else(|| self.refused("the server does not say how large the export is"))?;
        Ok(Some((size, flags, sizes)))
    }

    /// Selects the export with EXPORT_NAME.
    async fn export_name(
        &mut self,
        no_zeroes: bool,
    ) -> Result<(u64, TransmissionFlags, Option<BlockSizes>), ConnectError> {
        self.send(&encode_option(OptionCode::EXPORT_NAME, self.uri.export.as_bytes())).await?;
        let mut answer = [0; 10 + ZEROES_BYTES];
        let length = if no_zeroes { 10 } else { answer.len() };
        self.receive(&mut answer[..length]).await.map_err(|error| match error {
            ConnectError::Io { source, .. } if source.kind() == io::ErrorKind::UnexpectedEof => {
                self.refused(format!("the server hung up: there may be no export {:?}", self.uri.export))
            }
            other => other,
        })?;
        let [size @ .., _, _] = &answer[..10] else { return Err(self.refused("too short an answer")) };
        let size = size.iter().fold(0, |size, byte| size << 8 | u64::from(*byte));
        Ok((size, TransmissionFlags(u16::from_be_bytes([answer[8], answer[9]])), None))
    }

    /// Sends an option and collects its replies.
    async fn ask(&mut self, code: OptionCode, bytes: &[u8]) -> Result<Replies, ConnectError> {
        self.send(&encode_option(code, bytes)).await?;
        let mut before = Vec::new();
        while before.len() < REPLIES_MAX {
            let mut header = [0; OptionReplyHeader::BYTES];
            self.receive(&mut header).await?;
            let header = self.decoded(OptionReplyHeader::decode(&header))?;
            if header.code != code || header.length > OPTION_MAX_BYTES {
                return Err(self.refused(format!("an answer of {} bytes to another option", header.length)));
            }
            let mut bytes = vec![0; header.length as usize];
            self.receive(&mut bytes).await?;
            if header.kind == OptionReplyKind::ACK || header.kind.is_error() {
                let text = String::from_utf8_lossy(&bytes);
                let message =
                    if text.is_empty() { String::new() } else { format!(" ({})", text.escape_debug()) };
                return Ok(Replies { before, last: header.kind, message });
            }
            before.push((header.kind, bytes));
        }
        Err(self.refused(format!("more than {REPLIES_MAX} replies to one option")))
    }

    async fn send(&mut self, mut bytes: &[u8]) -> Result<(), ConnectError> {
        let Self { transport, to_write, .. } = self;
        let sent = poll_fn(|_| {
            loop {
                let outcome = match bytes {
                    [] if transport.hand_over()? => return Poll::Ready(Ok(())),
                    [] => Err(io::ErrorKind::WouldBlock.into()),
                    _ => transport.send(&[IoSlice::new(bytes)]),
                };
                match outcome {
                    Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        to_write.set(true);
                        return Poll::Pending;
                    }
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
        });
        let sent: io::Result<()> = sent.await;
        sent.map_err(|error| self.io("send to", error))
    }

    async fn receive(&mut self, mut into: &mut [u8]) -> Result<(), ConnectError> {
        while !into.is_empty() {
            let transport = &mut self.transport;
            let received = poll_fn(|_| match transport.receive(&mut [IoSliceMut::new(into)]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
                outcome => Poll::Ready(outcome),
            });
            match received.await {
                Ok(0) => return Err(self.io("receive from", io::ErrorKind::UnexpectedEof.into())),
                Ok(received) => into = &mut into[received..],
                Err(error) => return Err(self.io("receive from", error)),
            }
        }
        Ok(())
    }

    fn decoded<T>(&self, decoded: Result<T, WireError>) -> Result<T, ConnectError> {
        decoded.map_err(|source| ConnectError::Protocol { place: self.uri.to_string(), source })
    }

    fn io(&self, operation: &'static str, source: io::Error) -> ConnectError {
        ConnectError::Io { operation, place: self.uri.to_string(), source }
    }

    fn refused(&self, because: impl Into<String>) -> ConnectError {
        ConnectError::Refused { place: self.uri.to_string(), because: because.into() }
    }
}
