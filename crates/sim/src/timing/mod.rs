//! Times of events inside a drive: the link, the write cache, the mechanics. Independent of data and
//! promises.
//!
//! ```text
//!   Command ──► Controller (link, queue, cache) ──Job──► Mechanics (platter, flash, network) ──► done
//!                 │                                                                          │
//!                 └──────────────── Event::{Completed, Persisted} ◄──────────────────────────┘
//! ```

mod agenda;
pub mod array;
pub mod controller;
pub mod flash;
pub mod hdd;
mod link;
pub mod mechanics;
pub mod null;

use plumb_block::{Bytes, Nanos};

use crate::command::{Command, CommandId};

/// Event in the course of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The drive answers the command.
    Completed {
        /// Command that is answered.
        id: CommandId,
        /// Time of the answer.
        at: Nanos,
    },
    /// All data of an answered write, discard or write-zeroes has left the volatile cache for good. Comes at
    /// or after its `Completed`, and only with an enabled volatile cache; a flush is answered after the
    /// `Persisted` of everything that it covers.
    Persisted {
        /// Command that is persisted.
        id: CommandId,
        /// Time at which it is persisted.
        at: Nanos,
    },
}

/// The timing side of a drive, as a state machine.
pub trait Timing: Send {
    /// Accepts a command at `now`, which must not be before an earlier call's time.
    fn submit(&mut self, now: Nanos, command: Command);

    /// Returns the time of the next event; `None` if there is none.
    fn next_event(&self) -> Option<Nanos>;

    /// Processes everything due at `now`, and appends events in order of time.
    fn advance(&mut self, now: Nanos, events: &mut Vec<Event>);

    /// Enables or disables the volatile write cache. When disabled, its contents are destaged first (SBC-4
    /// MODE SELECT, ATA SET FEATURES 82h); commands meanwhile are treated as with a disabled cache.
    fn set_wce(&mut self, now: Nanos, enabled: bool);

    /// Drops everything in progress after a power cut. Nothing happens until a later submit.
    fn power_cut(&mut self, now: Nanos);

    /// Returns the amount of dirty data in the volatile cache.
    fn dirty(&self) -> Bytes;
}
