//! Requests in flight with their outstanding pieces. A piece has the number of its command and its own, so
//! both are found directly when it ends.

use plumb_block::{BufferMut, Errno};

use crate::nbd::wire::Cookie;

/// A request in flight.
#[derive(Default)]
pub(super) struct Command {
    pub(super) cookie: Cookie,
    pub(super) offset: u64,
    pub(super) length: u32,
    /// Number of outstanding pieces.
    pub(super) pieces_out: u32,
    /// True if all of its pieces were submitted.
    pub(super) is_whole: bool,
    /// The first failure.
    pub(super) failure: Option<Errno>,
    /// True if a flush must follow before the answer.
    pub(super) flush_after: bool,
    /// Data of the command if it is a read.
    pub(super) read: Option<Read>,
}

/// The bytes of a read.
#[derive(Default)]
pub(super) struct Read {
    /// Buffers by piece, if available and not sent.
    pub(super) buffers: Vec<Option<BufferMut>>,
    /// Number of bytes in a piece.
    pub(super) piece_bytes: u32,
    /// Number of pieces sent while others were outstanding.
    pub(super) sent: u32,
    /// True if each piece is sent in a separate chunk, so that a failure can still be reported.
    pub(super) in_chunks: bool,
}

/// A piece of a command at the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// The number of the command.
    pub(super) command: u32,
    pub(super) number: u32,
}
