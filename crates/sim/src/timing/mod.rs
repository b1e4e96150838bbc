//! When things happen inside a drive: the link, the write cache, the mechanics. Knows no bytes and no
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
    /// The drive answers it.
    Completed {
        /// Command that is answered.
        id: CommandId,
        /// When.
        at: Nanos,
    },
    /// All that an answered write, discard or write-zeroes carried has left the volatile cache for good: it
    /// was destaged. Comes at or after its `Completed`, and only where there is a volatile cache that is on;
    /// a flush is answered after the `Persisted` of all that it covers.
    Persisted {
        /// Command that is persisted.
        id: CommandId,
        /// When.
        at: Nanos,
    },
}

/// The timing side of a drive, as a state machine.
pub trait Timing: Send {
    /// Takes a command at `now`, which is never before an earlier call's.
    fn submit(&mut self, now: Nanos, command: Command);

    /// Returns when something happens next by itself; `None` if nothing will.
    fn next_event(&self) -> Option<Nanos>;

    /// Lets everything happen that is due at `now`, and appends it in the order of time.
    fn advance(&mut self, now: Nanos, events: &mut Vec<Event>);

    /// Turns the volatile write cache on or off. What is in it when it is turned off is destaged first (SBC-4
    /// MODE SELECT, ATA SET FEATURES 82h); commands meanwhile are treated as with the cache off.
    fn set_wce(&mut self, now: Nanos, enabled: bool);

    /// Forgets everything that was going on: the power is gone. Nothing more happens until a submit at a
    /// later time.
    fn power_cut(&mut self, now: Nanos);

    /// Returns how much written data is in the volatile cache.
    fn dirty(&self) -> Bytes;
}
