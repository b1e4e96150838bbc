//! The greeting, and the flags of both phases.

use super::cursor::Cursor;
use super::error::WireError;
use super::numbers::flags;

/// ASCII `NBDMAGIC`.
const NBD_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// ASCII `IHAVEOPT`: the newstyle handshake, and the start of every option.
pub(super) const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;

flags! { HandshakeFlags, u16, "Capabilities of the server in the handshake (\"Handshake flags\").";
    FIXED_NEWSTYLE = 1 << 0, "The server answers unknown options, and the handshake continues.";
    NO_ZEROES = 1 << 1, "The 124 zero bytes after the answer to EXPORT_NAME are omitted if both agree.";
}

flags! { ClientFlags, u32, "Answer of the client to the server's flags (\"Client flags\").";
    FIXED_NEWSTYLE = 1 << 0, "The client uses the fixed newstyle handshake.";
    NO_ZEROES = 1 << 1, "The client agrees to omit the 124 zero bytes.";
}

flags! { TransmissionFlags, u16, "Capabilities of an export (\"Transmission flags\").";
    HAS_FLAGS = 1 << 0, "Always set.";
    READ_ONLY = 1 << 1, "Writes are refused.";
    SEND_FLUSH = 1 << 2, "FLUSH is understood.";
    SEND_FUA = 1 << 3, "The FUA flag is understood, on every command.";
    ROTATIONAL = 1 << 4, "The medium rotates: schedule for an elevator.";
    SEND_TRIM = 1 << 5, "TRIM is understood.";
    SEND_WRITE_ZEROES = 1 << 6, "WRITE_ZEROES is understood.";
    SEND_DF = 1 << 7, "The DF flag is understood: the answer to a read in one chunk.";
    CAN_MULTI_CONN = 1 << 8, "The effect of a flush or of FUA on one connection holds for all connections.";
    SEND_FAST_ZERO = 1 << 11, "The FAST_ZERO flag of WRITE_ZEROES is understood.";
}

/// First message of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerHello {
    /// Capabilities of the server.
    pub flags: HandshakeFlags,
}

impl ServerHello {
    /// The length of the greeting.
    pub const BYTES: usize = 18;

    /// Encodes the greeting.
    pub fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&NBD_MAGIC.to_be_bytes());
        bytes[8..16].copy_from_slice(&OPTION_MAGIC.to_be_bytes());
        bytes[16..].copy_from_slice(&self.flags.0.to_be_bytes());
        bytes
    }

    /// Decodes a greeting.
    ///
    /// # Errors
    /// If this is not a newstyle server.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("the server's greeting", bytes);
        cursor.magic(NBD_MAGIC)?;
        cursor.magic(OPTION_MAGIC)?;
        Ok(Self { flags: HandshakeFlags(cursor.u16()?) })
    }
}

impl ClientFlags {
    /// Length of the client's answer.
    pub const BYTES: usize = 4;

    /// Encodes the answer.
    pub const fn encode(self) -> [u8; Self::BYTES] {
        self.0.to_be_bytes()
    }

    /// Decodes the answer.
    pub const fn decode(bytes: [u8; Self::BYTES]) -> Self {
        Self(u32::from_be_bytes(bytes))
    }
}
