//! The bytes of the protocol in both directions: messages of server and client as types that encode and
//! decode themselves.
//!
//! Source: "The NBD protocol" (`doc/proto.md` of the NetworkBlockDevice project), the sections named at each
//! item. All integers are big-endian. Only the fixed newstyle handshake is here.
//!
//! - `handshake`: the greeting, and the flags of both phases.
//! - `option`: the negotiation: options, their replies, information about an export, metadata contexts.
//! - `request`: the transmission phase, client to server.
//! - `reply`: the transmission phase, server to client: simple replies and structured chunks.
//! - `error`: error numbers on the wire.
//! - `numbers`: the other numbers and the flags as types.
//!
//! Invariant: decoding never panics, and never allocates more than the size of its input. Unknown numbers are
//! preserved, so that a peer can answer "unsupported" and continue.

mod cursor;
mod error;
mod handshake;
mod numbers;
mod option;
mod reply;
mod request;
#[cfg(test)]
mod tests;

pub use error::{WireErrno, WireError};
pub use handshake::{ClientFlags, HandshakeFlags, ServerHello, TransmissionFlags};
pub use option::{
    BASE_ALLOCATION, GoRequest, Info, InfoKind, MetaContext, MetaContextRequest, OptionCode, OptionHeader,
    OptionReplyHeader, OptionReplyKind, ServerEntry, encode_option, encode_option_reply,
};
pub use reply::{
    BlockDescriptor, BlockStatus, Chunk, ChunkHeader, ChunkKind, ErrorChunk, OffsetHole, ReplyHead,
    SimpleReply, encode_error_chunk,
};
pub use request::{Command, CommandFlags, Cookie, RequestHeader};

/// Port assigned to the protocol.
pub const PORT: u16 = 10809;

/// Maximum payload of a read or write that every peer supports ("Block size constraints").
pub(crate) const PAYLOAD_MAX_BYTES: u32 = 32 << 20;

/// Maximum length of a string: names, descriptions, queries ("Values", string length).
pub(crate) const STRING_MAX_BYTES: usize = 4096;

/// Maximum data of an option or option reply that is processed. The protocol has no limit; real ones are far
/// smaller.
pub(crate) const OPTION_MAX_BYTES: u32 = 64 << 10;
