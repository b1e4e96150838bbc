//! The bytes of the protocol, both directions: what server and client say to each other, as types that encode
//! and decode themselves.
//!
//! Source: "The NBD protocol" (`doc/proto.md` of the NetworkBlockDevice project), the sections named at each
//! item. All integers are big-endian. Only the fixed newstyle handshake is here.
//!
//! - `handshake`: the greeting, and the flags of both phases.
//! - `option`: what is negotiated: options, their replies, information about an export, metadata contexts.
//! - `request`: the transmission phase, client to server.
//! - `reply`: the transmission phase, server to client: simple replies and structured chunks.
//! - `error`: error numbers as they travel.
//! - `numbers`: the other numbers and the flags as types.
//!
//! Invariant: decoding never panics and never allocates more than the bytes that it was given, whatever they
//! are. Numbers that this version does not know are kept as they are, so that a peer can answer "unsupported"
//! and go on.

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

/// The port that is assigned to the protocol.
pub const PORT: u16 = 10809;

/// The largest payload of a read or a write: what every peer may count on ("Block size constraints").
pub const PAYLOAD_MAX_BYTES: u32 = 32 << 20;

/// The longest string: names, descriptions, queries ("Values", string length).
pub const STRING_MAX_BYTES: usize = 4096;

/// The most data of one option, or of one reply to an option, that is looked at. The protocol sets no limit;
/// real ones stay far below.
pub const OPTION_MAX_BYTES: u32 = 64 << 10;
