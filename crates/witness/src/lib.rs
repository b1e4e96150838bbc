//! Real power: a writer on the machine under test, a witness elsewhere that records durably what was
//! acknowledged, and after the cut a comparison of what is there with what must be.
//!
//! ```text
//!   writer ── Run, Batch (events, how far writes may be issued) ──► witness ── append, fdatasync ──► DIR/NUMBER-RUN.log
//!     ▲                                                                │
//!     └──────────────────────── Confirmed ◄────────────────────────────┘
//!   verify ── Fetch ──► witness ── the record ──► Ledger ◄── every block of the region, read from the drive
//! ```
//!
//! A message is JSON: a frame between the processes (`plumb_state::frame`), a sealed line in the record
//! (`plumb_state::sealed_lines`). What is written follows from the [`Plan`] alone; each block carries (seed
//! of the run, address, number of the write) and is known to the last byte. The writer issues no write
//! beyond what the witness has confirmed, so that at most a window of acknowledgements is unknown to it. Why
//! a loss is never claimed that is none, and a known one never hidden:
//!
//! - Only what is in the record is required, and it is in the record only if the device had said so.
//! - A batch is confirmed when it is durable. The writer sends a batch again until it is confirmed, and goes
//!   on with no other before: so the batches of a record follow one another, and one that is there twice is
//!   the same one.
//! - A witness that was killed leaves a torn last line at most, which was never confirmed. Each session
//!   writes a file of its own, so that an older process which still has bytes in its pipe cannot spoil what a
//!   newer one appends.
//! - A batch that is missing, or a damaged line with others behind it, ends the verification: nothing is said
//!   then.
//! - Which version of a block may be there follows from the rules of `plumb-crash`: anything that no durable
//!   write has surely replaced ("surely": it was answered before that one was issued).
//!
//! # Limitations
//! The witness must not lose power with the drive. Blocks that somebody else writes between the cut and the
//! verification count as lost. A cut says something about the windows in which it was made, and nothing about
//! others.

pub mod campaign;
mod error;
pub mod ledger;
mod link;
mod message;
mod plan;
pub mod power;
pub mod record;
mod target;
mod verify;
mod writer;

pub use error::{Error, Result};
pub use link::{Link, Peer, Witness};
pub use message::{Batch, Event, Message, RunFacts};
pub use plan::Plan;
pub use record::{serve, serve_at};
pub use target::{name_of, open_target};
pub use verify::{fetch, verify};
pub use writer::{Until, WriterEnd, write};
