//! The transmission phase, client to server.

use super::cursor::Cursor;
use super::error::WireError;
use super::numbers::{codes, flags};

const REQUEST_MAGIC: u32 = 0x2560_9513;

/// Identifier chosen by the client and returned in the reply. The server does not interpret it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cookie(pub u64);

codes! {
    /// Operation of a request ("Request types"). Others than those named here may arrive.
    Command, u16;
    READ = 0, "Read bytes.";
    WRITE = 1, "Write bytes; the payload follows the header.";
    DISC = 2, "Disconnect: no reply; requests in flight are finished.";
    FLUSH = 3, "Make durable every write that was answered before.";
    TRIM = 4, "Declare that the bytes are not needed.";
    CACHE = 5, "Read ahead into a cache.";
    WRITE_ZEROES = 6, "Write zeroes without sending them.";
    BLOCK_STATUS = 7, "Report the state of the bytes in the negotiated metadata contexts.";
}

flags! { CommandFlags, u16, "How to do it (\"Command flags\").";
    FUA = 1 << 0, "Durable when answered.";
    NO_HOLE = 1 << 1, "WRITE_ZEROES: keep the space.";
    DF = 1 << 2, "READ: do not fragment; the answer is one chunk.";
    REQ_ONE = 1 << 3, "BLOCK_STATUS: one descriptor.";
    FAST_ZERO = 1 << 4, "WRITE_ZEROES: fail with ENOTSUP rather than be as slow as a write.";
}

/// Header of a request; for a write, `length` bytes follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHeader {
    /// Flags of the command.
    pub flags: CommandFlags,
    /// Operation to carry out.
    pub command: Command,
    /// Identifier that the reply returns.
    pub cookie: Cookie,
    /// Offset in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
}

impl RequestHeader {
    /// The length of the header.
    pub const BYTES: usize = 28;

    /// Encodes the header.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flags.0.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.command.0.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.0.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_be_bytes());
        bytes[24..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    /// Reads a header.
    ///
    /// # Errors
    /// If the magic number is wrong; the connection cannot continue, since the start of the next request is
    /// unknown.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("a request", bytes);
        cursor.magic32(REQUEST_MAGIC)?;
        Ok(Self {
            flags: CommandFlags(cursor.u16()?),
            command: Command(cursor.u16()?),
            cookie: Cookie(cursor.u64()?),
            offset: cursor.u64()?,
            length: cursor.u32()?,
        })
    }
}
