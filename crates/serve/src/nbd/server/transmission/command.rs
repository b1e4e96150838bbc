//! The requests in flight, each with the pieces that are still out.
//!
//! A piece knows the number of its command and its own, so that both are found without a search when it has ended. Numbers
//! are used again, and with them the memory of their lists.

use plumb_block::{BufferMut, Errno};

use crate::nbd::server::buffers::Share;
use crate::nbd::wire::Cookie;

/// What kind of reply a command gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// With bytes.
    Read,
    /// Without.
    #[default]
    Plain,
}

/// The bytes of a large read, put together out of order.
pub(super) struct Gathered {
    pub(super) bytes: Vec<u8>,
    /// The share of the server's budget; it is given back when the bytes are on their way.
    pub(super) share: Share,
}

/// A request in flight.
#[derive(Default)]
pub(super) struct Command {
    pub(super) cookie: Cookie,
    pub(super) kind: Kind,
    pub(super) offset: u64,
    pub(super) length: u32,
    /// Pieces handed to the device that have not come back.
    pub(super) pieces_out: u32,
    /// Whether all of its pieces were handed to the device.
    pub(super) is_whole: bool,
    /// The first failure.
    pub(super) failure: Option<Errno>,
    /// A flush must follow before it is answered.
    pub(super) flush_after: bool,
    /// The bytes of a read, by piece.
    pub(super) buffers: Vec<Option<BufferMut>>,
    /// The bytes of a read in more pieces than may be held, and the size of a piece.
    pub(super) gathered: Option<Gathered>,
    pub(super) piece_bytes: u32,
}

/// A piece of a command at the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) command: CommandId,
    pub(super) number: u32,
}

/// The number of a command in [`Commands`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CommandId(u32);

/// The commands of a connection.
#[derive(Default)]
pub(super) struct Commands {
    slots: Vec<Command>,
    free: Vec<u32>,
}

impl Commands {
    /// A number for `command`; its list of buffers keeps the memory that it had.
    pub(super) fn add(&mut self, command: Command) -> CommandId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Command::default());
            self.slots.len() as u32 - 1
        });
        if let Some(slot) = self.slots.get_mut(index as usize) {
            let buffers = std::mem::take(&mut slot.buffers);
            *slot = Command { buffers, ..command };
        }
        CommandId(index)
    }

    /// The command `id`.
    pub(super) fn get(&mut self, id: CommandId) -> Option<&mut Command> {
        self.slots.get_mut(id.0 as usize)
    }

    /// Whether the bytes of a large read are being put together.
    pub(super) fn is_gathering(&self) -> bool {
        self.slots.iter().any(|command| command.gathered.is_some())
    }

    /// The command is over.
    pub(super) fn remove(&mut self, id: CommandId) {
        if let Some(command) = self.get(id) {
            command.buffers.clear();
            command.gathered = None;
            self.free.push(id.0);
        }
    }
}
