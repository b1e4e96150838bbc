//! Negotiation: options, the replies to them, and what they carry.
//!
//! ```text
//! option  magic IHAVEOPT | option u32 | length u32 | length bytes
//! reply   magic 0x3e889045565a9 | option u32 | kind u32 | length u32 | length bytes
//! ```

use super::cursor::{Cursor, text};
use super::error::WireError;
use super::handshake::{OPTION_MAGIC, TransmissionFlags};
use super::numbers::codes;

const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;

/// The metadata context that says what is allocated.
pub const BASE_ALLOCATION: &str = "base:allocation";

codes! {
    /// Code of an option, which says what the client requests ("Option types"). Others than those named here
    /// may come.
    OptionCode, u32;
    EXPORT_NAME = 1, "Choose an export and start, the old way: no error can be answered.";
    ABORT = 2, "End the handshake.";
    LIST = 3, "Name all exports.";
    STARTTLS = 5, "Go on encrypted.";
    INFO = 6, "Tell about an export.";
    GO = 7, "Tell about an export and start.";
    STRUCTURED_REPLY = 8, "Replies may come in chunks.";
    LIST_META_CONTEXT = 9, "Name the metadata contexts of an export.";
    SET_META_CONTEXT = 10, "Choose metadata contexts.";
}

/// The header of an option; `length` bytes follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionHeader {
    /// Code of the option.
    pub code: OptionCode,
    /// Number of bytes that follow.
    pub length: u32,
}

impl OptionHeader {
    /// The length of the header.
    pub const BYTES: usize = 16;

    /// Reads a header.
    ///
    /// # Errors
    /// If it does not begin as an option: the connection cannot go on.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("an option", bytes);
        cursor.magic(OPTION_MAGIC)?;
        Ok(Self { code: OptionCode(cursor.u32()?), length: cursor.u32()? })
    }
}

/// Returns an option with its data, as it travels.
pub fn encode_option(code: OptionCode, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(OptionHeader::BYTES + data.len());
    bytes.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
    bytes.extend_from_slice(&code.0.to_be_bytes());
    bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
    bytes.extend_from_slice(data);
    bytes
}

codes! {
    /// Kind of a reply to an option ("Option reply types"). Bit 31 marks errors.
    OptionReplyKind, u32;
    ACK = 1, "Done; for GO: the transmission phase begins.";
    SERVER = 2, "One export.";
    INFO = 3, "A piece of information.";
    META_CONTEXT = 4, "A metadata context.";
    ERR_UNSUP = 1 << 31 | 1, "The server does not know the option.";
    ERR_POLICY = 1 << 31 | 2, "The server does not want to.";
    ERR_INVALID = 1 << 31 | 3, "The option makes no sense as it was sent, or at this point.";
    ERR_TLS_REQD = 1 << 31 | 5, "Only after STARTTLS.";
    ERR_UNKNOWN = 1 << 31 | 6, "There is no such export.";
    ERR_SHUTDOWN = 1 << 31 | 7, "The server is going away.";
    ERR_BLOCK_SIZE_REQD = 1 << 31 | 8, "Only for a client that asks for the block size.";
    ERR_TOO_BIG = 1 << 31 | 9, "The option is too large.";
}

impl OptionReplyKind {
    /// Returns true if the option failed, also of kinds that this version does not know.
    pub const fn is_error(self) -> bool {
        self.0 & (1 << 31) != 0
    }
}

/// The header of a reply to an option; `length` bytes follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionReplyHeader {
    /// Option that is answered.
    pub code: OptionCode,
    /// Kind of the reply.
    pub kind: OptionReplyKind,
    /// Number of bytes that follow.
    pub length: u32,
}

impl OptionReplyHeader {
    /// The length of the header.
    pub const BYTES: usize = 20;

    /// Reads a header.
    ///
    /// # Errors
    /// If it does not begin as a reply to an option: the connection cannot go on.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("the reply to an option", bytes);
        cursor.magic(REPLY_MAGIC)?;
        Ok(Self {
            code: OptionCode(cursor.u32()?),
            kind: OptionReplyKind(cursor.u32()?),
            length: cursor.u32()?,
        })
    }
}

/// Appends to `into` a reply to an option with its data, as it travels.
pub fn encode_option_reply(code: OptionCode, kind: OptionReplyKind, data: &[u8], into: &mut Vec<u8>) {
    into.extend_from_slice(&REPLY_MAGIC.to_be_bytes());
    into.extend_from_slice(&code.0.to_be_bytes());
    into.extend_from_slice(&kind.0.to_be_bytes());
    into.extend_from_slice(&(data.len() as u32).to_be_bytes());
    into.extend_from_slice(data);
}

codes! {
    /// Kind of information about an export ("NBD_REP_INFO").
    InfoKind, u16;
    EXPORT = 0, "Size and flags: always sent.";
    NAME = 1, "The name by which the server knows it.";
    DESCRIPTION = 2, "For people.";
    BLOCK_SIZE = 3, "What requests must be multiples of, and may be at most.";
}

/// A piece of information about an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Info {
    /// Size in bytes, and what it can do.
    Export {
        /// Size in bytes.
        size: u64,
        /// Capabilities of the export.
        flags: TransmissionFlags,
    },
    /// The name by which the server knows it.
    Name(String),
    /// Description for people.
    Description(String),
    /// Block size constraints, in bytes.
    BlockSize {
        /// Offsets and lengths must be multiples of this.
        minimum: u32,
        /// Smaller requests than this are slow.
        preferred: u32,
        /// No payload may be larger than this.
        maximum: u32,
    },
    /// One that this version does not know.
    Other(InfoKind),
}

impl Info {
    /// Returns the data of a reply of kind [`OptionReplyKind::INFO`].
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16);
        let mut put = |kind: InfoKind, rest: &[&[u8]]| {
            bytes.extend_from_slice(&kind.0.to_be_bytes());
            rest.iter().for_each(|part| bytes.extend_from_slice(part));
        };
        match self {
            Self::Export { size, flags } => {
                put(InfoKind::EXPORT, &[&size.to_be_bytes(), &flags.0.to_be_bytes()]);
            }
            Self::Name(name) => put(InfoKind::NAME, &[name.as_bytes()]),
            Self::Description(text) => put(InfoKind::DESCRIPTION, &[text.as_bytes()]),
            Self::BlockSize { minimum, preferred, maximum } => {
                let sizes = [minimum.to_be_bytes(), preferred.to_be_bytes(), maximum.to_be_bytes()];
                put(InfoKind::BLOCK_SIZE, &[&sizes.concat()]);
            }
            Self::Other(kind) => put(*kind, &[]),
        }
        bytes
    }

    /// Reads the data of a reply of kind [`OptionReplyKind::INFO`].
    ///
    /// # Errors
    /// If the bytes are not what their kind says.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("information about an export", bytes);
        let info = match InfoKind(cursor.u16()?) {
            InfoKind::EXPORT => Self::Export { size: cursor.u64()?, flags: TransmissionFlags(cursor.u16()?) },
            InfoKind::NAME => return text("the name of an export", cursor.rest()).map(Self::Name),
            InfoKind::DESCRIPTION => {
                return text("the description of an export", cursor.rest()).map(Self::Description);
            }
            InfoKind::BLOCK_SIZE => {
                Self::BlockSize { minimum: cursor.u32()?, preferred: cursor.u32()?, maximum: cursor.u32()? }
            }
            other => return Ok(Self::Other(other)),
        };
        cursor.end()?;
        Ok(info)
    }
}

/// Appends a string with its length before it.
fn put_counted(text: &str, into: &mut Vec<u8>) {
    into.extend_from_slice(&(text.len() as u32).to_be_bytes());
    into.extend_from_slice(text.as_bytes());
}

/// The data of INFO and GO.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoRequest {
    /// Name of the export; the empty string is the default one.
    pub name: String,
    /// Kinds of information that the client wants.
    pub wants: Vec<InfoKind>,
}

impl GoRequest {
    /// Encodes the request as it travels.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(6 + self.name.len() + 2 * self.wants.len());
        put_counted(&self.name, &mut bytes);
        bytes.extend_from_slice(&(self.wants.len() as u16).to_be_bytes());
        self.wants.iter().for_each(|kind| bytes.extend_from_slice(&kind.0.to_be_bytes()));
        bytes
    }

    /// Reads it.
    ///
    /// # Errors
    /// If the lengths in it do not fit together.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("INFO or GO", bytes);
        let name = cursor.counted_string()?;
        let count = cursor.u16()?;
        let wants = (0..count).map(|_| cursor.u16().map(InfoKind)).collect::<Result<_, _>>()?;
        cursor.end()?;
        Ok(Self { name, wants })
    }
}

/// The data of LIST_META_CONTEXT and SET_META_CONTEXT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaContextRequest {
    /// Name of the export.
    pub export: String,
    /// Contexts, `namespace:leaf`, or `namespace:` for all of it.
    pub queries: Vec<String>,
}

impl MetaContextRequest {
    /// Encodes the request as it travels.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_counted(&self.export, &mut bytes);
        bytes.extend_from_slice(&(self.queries.len() as u32).to_be_bytes());
        self.queries.iter().for_each(|query| put_counted(query, &mut bytes));
        bytes
    }

    /// Reads it.
    ///
    /// # Errors
    /// If the lengths in it do not fit together.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("a request for metadata contexts", bytes);
        let export = cursor.counted_string()?;
        let count = cursor.u32()?;
        // Not reserved by what the peer says: each query takes at least its length off the bytes that are
        // there.
        let mut queries = Vec::new();
        for _ in 0..count {
            queries.push(cursor.counted_string()?);
        }
        cursor.end()?;
        Ok(Self { export, queries })
    }
}

/// A metadata context that was listed or chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaContext {
    /// The number by which block status names it; no meaning when it was only listed.
    pub id: u32,
    /// `namespace:leaf`.
    pub name: String,
}

impl MetaContext {
    /// Returns the data of a reply of kind [`OptionReplyKind::META_CONTEXT`].
    pub fn encode(&self) -> Vec<u8> {
        [&self.id.to_be_bytes(), self.name.as_bytes()].concat()
    }

    /// Reads the data of a reply of kind [`OptionReplyKind::META_CONTEXT`].
    ///
    /// # Errors
    /// If it is too short, or the name is no string.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("a metadata context", bytes);
        Ok(Self { id: cursor.u32()?, name: text("a metadata context", cursor.rest())? })
    }
}

/// One export in the answer to LIST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEntry {
    /// Name of the export.
    pub name: String,
    /// Description for people; may be empty.
    pub description: String,
}

impl ServerEntry {
    /// Returns the data of a reply of kind [`OptionReplyKind::SERVER`].
    pub fn encode(&self) -> Vec<u8> {
        let length = (self.name.len() as u32).to_be_bytes();
        [&length, self.name.as_bytes(), self.description.as_bytes()].concat()
    }

    /// Reads the data of a reply of kind [`OptionReplyKind::SERVER`].
    ///
    /// # Errors
    /// If the lengths in it do not fit together.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("an export in a list", bytes);
        Ok(Self { name: cursor.counted_string()?, description: text("an export in a list", cursor.rest())? })
    }
}
