//! The requests in flight, each with the pieces that are still out.
//!
//! The tag of a piece is the number of its command and the number of the piece, so that a completion finds both
//! without a search. Places are used again, and with them the memory of their lists.

use plumb_block::{BufferMut, Errno, Tag};

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
    /// Without; its failure latches the export.
    Flush,
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
    /// Answered before its time: a planted bug.
    pub(super) is_answered: bool,
}

/// The number of a command in [`Commands`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(pub(super) u32);

impl Place {
    /// The tag of a piece of the command.
    pub(super) const fn tag(self, piece: u32) -> Tag {
        Tag((self.0 as u64) << 32 | piece as u64)
    }

    /// Which command and which piece a tag is of.
    pub(super) const fn of(tag: Tag) -> (Self, u32) {
        (Self((tag.0 >> 32) as u32), tag.0 as u32)
    }
}

/// The commands of a connection.
#[derive(Default)]
pub(super) struct Commands {
    places: Vec<Command>,
    free: Vec<u32>,
}

impl Commands {
    /// A place for `command`; its list of buffers keeps the memory that it had.
    pub(super) fn add(&mut self, command: Command) -> Place {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Command::default());
            self.places.len() as u32 - 1
        });
        if let Some(place) = self.places.get_mut(index as usize) {
            let buffers = std::mem::take(&mut place.buffers);
            *place = Command { buffers, ..command };
        }
        Place(index)
    }

    /// The command at `place`; `None` if a device made the tag up.
    pub(super) fn get(&mut self, place: Place) -> Option<&mut Command> {
        self.places.get_mut(place.0 as usize)
    }

    /// Whether the bytes of a large read are being put together.
    pub(super) fn is_gathering(&self) -> bool {
        self.places.iter().any(|command| command.gathered.is_some())
    }

    /// The command is over.
    pub(super) fn remove(&mut self, place: Place) {
        if let Some(command) = self.get(place) {
            command.buffers.clear();
            command.gathered = None;
            self.free.push(place.0);
        }
    }
}
