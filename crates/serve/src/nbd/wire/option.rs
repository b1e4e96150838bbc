//! Negotiation: options, their replies, and the data of both.
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

/// Metadata context for allocation.
pub const BASE_ALLOCATION: &str = "base:allocation";

codes! {
    /// Code of an option ("Option types"). Others than those named here may arrive.
    OptionCode, u32;
    EXPORT_NAME = 1, "Select an export and start the transmission; the server cannot answer with an error.";
    ABORT = 2, "End the handshake.";
    LIST = 3, "List all exports.";
    STARTTLS = 5, "Continue encrypted.";
    INFO = 6, "Describe an export.";
    GO = 7, "Describe an export and start the transmission.";
    STRUCTURED_REPLY = 8, "Replies may come in chunks.";
    LIST_META_CONTEXT = 9, "List the metadata contexts of an export.";
    SET_META_CONTEXT = 10, "Select metadata contexts.";
}

/// Header of an option; `length` bytes follow.
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
    /// If the magic number is wrong; the connection cannot continue.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("an option", bytes);
        cursor.magic(OPTION_MAGIC)?;
        Ok(Self { code: OptionCode(cursor.u32()?), length: cursor.u32()? })
    }
}

/// Encodes an option with its data.
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
    ERR_POLICY = 1 << 31 | 2, "The server refuses by its policy.";
    ERR_INVALID = 1 << 31 | 3, "The option is malformed, or not valid at this point.";
    ERR_TLS_REQD = 1 << 31 | 5, "The option requires encryption (STARTTLS) first.";
    ERR_UNKNOWN = 1 << 31 | 6, "There is no such export.";
    ERR_SHUTDOWN = 1 << 31 | 7, "The server is shutting down.";
    ERR_BLOCK_SIZE_REQD = 1 << 31 | 8, "The client must ask for the block size.";
    ERR_TOO_BIG = 1 << 31 | 9, "The option is too large.";
}

impl OptionReplyKind {
    /// Returns true if the option failed, including unknown kinds of errors.
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
    /// If the magic number is wrong; the connection cannot continue.
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

/// Appends an encoded reply to an option to `into`.
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
    NAME = 1, "Name of the export at the server.";
    DESCRIPTION = 2, "Description for people.";
    BLOCK_SIZE = 3, "Block size constraints of requests.";
}

/// Information about an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Info {
    /// Size and capabilities.
    Export {
        /// Size in bytes.
        size: u64,
        /// Capabilities of the export.
        flags: TransmissionFlags,
    },
    /// Name of the export at the server.
    Name(String),
    /// Description for people.
    Description(String),
    /// Block size constraints, in bytes.
    BlockSize {
        /// Offsets and lengths must be multiples of this.
        minimum: u32,
        /// Size below which requests are slow.
        preferred: u32,
        /// Maximum payload.
        maximum: u32,
    },
    /// Information of an unknown kind.
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
    /// If the bytes do not match their kind.
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

/// Appends a string preceded by its length.
fn put_counted(text: &str, into: &mut Vec<u8>) {
    into.extend_from_slice(&(text.len() as u32).to_be_bytes());
    into.extend_from_slice(text.as_bytes());
}

/// Data of INFO and GO.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoRequest {
    /// Name of the export; the empty string means the default.
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

    /// Decodes the request.
    ///
    /// # Errors
    /// If its lengths are inconsistent.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("INFO or GO", bytes);
        let name = cursor.counted_string()?;
        let count = cursor.u16()?;
        let wants = (0..count).map(|_| cursor.u16().map(InfoKind)).collect::<Result<_, _>>()?;
        cursor.end()?;
        Ok(Self { name, wants })
    }
}

/// Data of LIST_META_CONTEXT and SET_META_CONTEXT.
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

    /// Decodes the request.
    ///
    /// # Errors
    /// If its lengths are inconsistent.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("a request for metadata contexts", bytes);
        let export = cursor.counted_string()?;
        let count = cursor.u32()?;
        // Not preallocated by the peer's count: each query consumes at least its length field.
        let mut queries = Vec::new();
        for _ in 0..count {
            queries.push(cursor.counted_string()?);
        }
        cursor.end()?;
        Ok(Self { export, queries })
    }
}

/// A listed or selected metadata context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaContext {
    /// Number of the context in block status; meaningless if only listed.
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
    /// If it is too short, or the name is not a valid string.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("a metadata context", bytes);
        Ok(Self { id: cursor.u32()?, name: text("a metadata context", cursor.rest())? })
    }
}

/// An export in the answer to LIST.
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
    /// If its lengths are inconsistent.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("an export in a list", bytes);
        Ok(Self { name: cursor.counted_string()?, description: text("an export in a list", cursor.rest())? })
    }
}
