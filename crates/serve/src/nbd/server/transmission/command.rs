//! The requests in flight, each with the pieces that are still out. A piece knows the number of its command
//! and its own, so that both are found without a search when it has ended.

use plumb_block::{BufferMut, Errno};

use crate::nbd::wire::Cookie;

/// A request in flight.
#[derive(Default)]
pub(super) struct Command {
    pub(super) cookie: Cookie,
    pub(super) offset: u64,
    pub(super) length: u32,
    /// Pieces handed to the device that have not come back.
    pub(super) pieces_out: u32,
    /// True if all of its pieces were handed to the device.
    pub(super) is_whole: bool,
    /// The first failure.
    pub(super) failure: Option<Errno>,
    /// A flush must follow before it is answered.
    pub(super) flush_after: bool,
    /// Bytes of the read, if the command is one.
    pub(super) read: Option<Read>,
}

/// The bytes of a read.
#[derive(Default)]
pub(super) struct Read {
    /// By piece, as far as they are there and not sent.
    pub(super) buffers: Vec<Option<BufferMut>>,
    /// Number of bytes that a piece has.
    pub(super) piece_bytes: u32,
    /// Number of pieces that were sent while others were out.
    pub(super) sent: u32,
    /// True if each piece is sent in a chunk of its own, so that a failure can still be told.
    pub(super) in_chunks: bool,
}

/// A piece of a command at the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// The number of the command.
    pub(super) command: u32,
    pub(super) number: u32,
}
