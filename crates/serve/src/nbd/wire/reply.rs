//! The transmission phase, server to client.
//!
//! ```text
//! simple reply      magic 0x67446698 | errno u32 | cookie u64 | the bytes of a read, if errno is 0
//! structured chunk  magic 0x668e33ef | flags u16 | kind u16 | cookie u64 | length u32 | length bytes
//! ```
//!
//! The reply to a request is a simple reply, or a series of chunks, the last of which has the flag DONE. Once
//! structured replies are negotiated, a read must be answered by chunks.

use super::cursor::{Cursor, text};
use super::error::{WireErrno, WireError};
use super::numbers::codes;
use super::request::Cookie;

const SIMPLE_MAGIC: u32 = 0x6744_6698;
const CHUNK_MAGIC: u32 = 0x668e_33ef;
/// Flag of the last chunk of a reply.
const FLAG_DONE: u16 = 1;

/// A reply without chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimpleReply {
    /// Result of the request.
    pub errno: WireErrno,
    /// Cookie of the request.
    pub cookie: Cookie,
}

impl SimpleReply {
    /// The length of the header.
    pub const BYTES: usize = 16;

    /// Encodes the header.
    pub fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&SIMPLE_MAGIC.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.errno.0.to_be_bytes());
        bytes[8..].copy_from_slice(&self.cookie.0.to_be_bytes());
        bytes
    }
}

codes! {
    /// Content of a chunk ("Structured reply types"). Bit 15 marks errors.
    ChunkKind, u16;
    NONE = 0, "No content: the reply is complete.";
    OFFSET_DATA = 1, "An offset and the bytes there.";
    OFFSET_HOLE = 2, "An offset and the number of zeroes there.";
    BLOCK_STATUS = 5, "State of the bytes.";
    ERROR = 1 << 15 | 1, "An error without an offset.";
    ERROR_OFFSET = 1 << 15 | 2, "An error with its offset.";
}

impl ChunkKind {
    /// Returns true if it reports a failure, including unknown kinds of errors.
    pub const fn is_error(self) -> bool {
        self.0 & (1 << 15) != 0
    }
}

/// The header of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkHeader {
    /// True if this is the last chunk of the reply.
    pub is_last: bool,
    /// Kind of content.
    pub kind: ChunkKind,
    /// Cookie of the request.
    pub cookie: Cookie,
    /// Number of bytes that follow.
    pub length: u32,
}

impl ChunkHeader {
    /// The length of the header.
    pub const BYTES: usize = 20;

    /// Encodes the header.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&CHUNK_MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&u16::from(self.is_last).to_be_bytes());
        bytes[6..8].copy_from_slice(&self.kind.0.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.0.to_be_bytes());
        bytes[16..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    /// Encodes the header of a chunk of read data with its offset; the data follows.
    pub fn encode_offset_data(cookie: Cookie, offset: u64, bytes: u32, is_last: bool) -> [u8; 28] {
        let length = bytes.saturating_add(8);
        let header = Self { is_last, kind: ChunkKind::OFFSET_DATA, cookie, length };
        let mut all = [0; 28];
        all[..20].copy_from_slice(&header.encode());
        all[20..].copy_from_slice(&offset.to_be_bytes());
        all
    }
}

/// Start of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyHead {
    /// A simple reply; the data of a read follows.
    Simple(SimpleReply),
    /// A chunk; its content follows.
    Chunk(ChunkHeader),
}

impl ReplyHead {
    /// Parses the start of a reply from `bytes`. Returns it with its length; `None` if more data is needed.
    ///
    /// # Errors
    /// If the magic number is wrong; the connection cannot continue.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, WireError> {
        let mut cursor = Cursor::new("a reply", bytes);
        let Ok(magic) = cursor.u32() else { return Ok(None) };
        match magic {
            SIMPLE_MAGIC if bytes.len() >= SimpleReply::BYTES => {
                let reply = SimpleReply { errno: WireErrno(cursor.u32()?), cookie: Cookie(cursor.u64()?) };
                Ok(Some((Self::Simple(reply), SimpleReply::BYTES)))
            }
            CHUNK_MAGIC if bytes.len() >= ChunkHeader::BYTES => {
                let header = ChunkHeader {
                    is_last: cursor.u16()? & FLAG_DONE != 0,
                    kind: ChunkKind(cursor.u16()?),
                    cookie: Cookie(cursor.u64()?),
                    length: cursor.u32()?,
                };
                Ok(Some((Self::Chunk(header), ChunkHeader::BYTES)))
            }
            SIMPLE_MAGIC | CHUNK_MAGIC => Ok(None),
            found => Err(WireError::Magic {
                what: "a reply",
                expected: u64::from(SIMPLE_MAGIC),
                found: u64::from(found),
            }),
        }
    }
}

/// A run of zeroes that is not transferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetHole {
    /// Offset in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
}

/// Failure of a command, with its offset if the server knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorChunk {
    /// Error number. Never [`WireErrno::NONE`].
    pub errno: WireErrno,
    /// Message for people; may be empty.
    pub message: String,
    /// Offset of the failure in bytes.
    pub offset: Option<u64>,
}

/// A run of bytes in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockDescriptor {
    /// Number of bytes.
    pub length: u32,
    /// State of the bytes: see [`BlockDescriptor::HOLE`] and [`BlockDescriptor::ZERO`] for `base:allocation`.
    pub flags: u32,
}

impl BlockDescriptor {
    /// Flag in `base:allocation`: not allocated.
    pub(crate) const HOLE: u32 = 1;
    /// Flag in `base:allocation`: reads return zeroes.
    pub const ZERO: u32 = 2;
}

/// Block status from the offset of the request on, in one metadata context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockStatus {
    /// Number of the context.
    pub context: u32,
    /// Descriptors in order, without gaps.
    pub descriptors: Vec<BlockDescriptor>,
}

impl BlockStatus {
    /// Encodes the status as the last chunk of its reply.
    pub fn encode(&self, cookie: Cookie) -> Vec<u8> {
        let length = 4 + 8 * self.descriptors.len() as u32;
        let header = ChunkHeader { is_last: true, kind: ChunkKind::BLOCK_STATUS, cookie, length };
        let mut bytes = Vec::with_capacity(ChunkHeader::BYTES + length as usize);
        bytes.extend_from_slice(&header.encode());
        bytes.extend_from_slice(&self.context.to_be_bytes());
        for descriptor in &self.descriptors {
            bytes.extend_from_slice(&descriptor.length.to_be_bytes());
            bytes.extend_from_slice(&descriptor.flags.to_be_bytes());
        }
        bytes
    }
}

/// The content of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// Nothing.
    None,
    /// Zeroes.
    Hole(OffsetHole),
    /// The state of the bytes.
    Status(BlockStatus),
    /// A failure.
    Error(ErrorChunk),
}

impl Chunk {
    /// Decodes the content of a chunk of `kind`, except read data ([`ChunkKind::OFFSET_DATA`]), which starts
    /// with the offset, a `u64`.
    ///
    /// # Errors
    /// If the bytes do not match the kind, or the kind is unknown and not an error.
    pub fn decode(kind: ChunkKind, bytes: &[u8]) -> Result<Self, WireError> {
        match kind {
            ChunkKind::NONE => Cursor::new("an empty chunk", bytes).end().map(|()| Self::None),
            ChunkKind::OFFSET_HOLE => decode_hole(bytes),
            ChunkKind::BLOCK_STATUS => decode_status(bytes),
            kind if kind.is_error() => decode_error(kind, bytes),
            kind => Err(WireError::Value { what: "the kind of a chunk", found: u64::from(kind.0) }),
        }
    }
}

fn decode_hole(bytes: &[u8]) -> Result<Chunk, WireError> {
    let mut cursor = Cursor::new("a hole chunk", bytes);
    let hole = OffsetHole { offset: cursor.u64()?, length: cursor.u32()? };
    cursor.end()?;
    Ok(Chunk::Hole(hole))
}

fn decode_status(bytes: &[u8]) -> Result<Chunk, WireError> {
    let mut cursor = Cursor::new("a block status chunk", bytes);
    let context = cursor.u32()?;
    let mut descriptors = Vec::with_capacity(bytes.len() / 8);
    while !cursor.is_empty() {
        let descriptor = BlockDescriptor { length: cursor.u32()?, flags: cursor.u32()? };
        if descriptor.length == 0 {
            return Err(WireError::Value { what: "the length of a block descriptor", found: 0 });
        }
        descriptors.push(descriptor);
    }
    if descriptors.is_empty() {
        return Err(WireError::Short { what: "a block status chunk", length: 0 });
    }
    Ok(Chunk::Status(BlockStatus { context, descriptors }))
}

fn decode_error(kind: ChunkKind, bytes: &[u8]) -> Result<Chunk, WireError> {
    let mut cursor = Cursor::new("an error chunk", bytes);
    let errno = WireErrno(cursor.u32()?);
    if errno == WireErrno::NONE {
        return Err(WireError::Value { what: "the error of an error chunk", found: 0 });
    }
    let length = usize::from(cursor.u16()?);
    let message = cursor.bytes(length)?;
    // The message is only for users: invalid text does not invalidate the error.
    let message = text("an error chunk", message).unwrap_or_default();
    let offset = if kind == ChunkKind::ERROR_OFFSET { Some(cursor.u64()?) } else { None };
    Ok(Chunk::Error(ErrorChunk { errno, message, offset }))
}

/// Encodes an error as the last chunk of its reply. A message longer than 4096 bytes is omitted.
pub fn encode_error_chunk(cookie: Cookie, error: &ErrorChunk) -> Vec<u8> {
    let message = if error.message.len() > super::STRING_MAX_BYTES { "" } else { &error.message };
    let kind = if error.offset.is_some() { ChunkKind::ERROR_OFFSET } else { ChunkKind::ERROR };
    let length = 6 + message.len() as u32 + if error.offset.is_some() { 8 } else { 0 };
    let mut bytes = Vec::with_capacity(ChunkHeader::BYTES + length as usize);
    bytes.extend_from_slice(&ChunkHeader { is_last: true, kind, cookie, length }.encode());
    bytes.extend_from_slice(&error.errno.0.to_be_bytes());
    bytes.extend_from_slice(&(message.len() as u16).to_be_bytes());
    bytes.extend_from_slice(message.as_bytes());
    if let Some(offset) = error.offset {
        bytes.extend_from_slice(&offset.to_be_bytes());
    }
    bytes
}
