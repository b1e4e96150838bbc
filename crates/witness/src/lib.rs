//! Real power cuts: a writer on the machine under test, a witness on another machine that durably records
//! what was acknowledged, and after the cut a comparison of the drive's contents with the record.
//!
//! ```text
//!   writer ── Run, Batch (events, how far writes may be issued) ──► witness ── append, fdatasync ──► DIR/NUMBER-RUN.log
//!     ▲                                                                │
//!     └──────────────────────── Confirmed ◄────────────────────────────┘
//!   verify ── Fetch ──► witness ── the record ──► Ledger ◄── every block of the region, read from the drive
//! ```
//!
//! A message is JSON: a frame between the processes (`plumb_state::frame`), a sealed line in the record
//! (`plumb_state::sealed_lines`). All writes follow from the [`Plan`]. Each block carries the seed of the
//! run, its address and the number of the write, and every byte of it is known. The writer issues no write
//! beyond the lease that the witness has confirmed, so the witness misses at most a window of
//! acknowledgements. Every reported loss is real, and every loss that the record shows is reported:
//!
//! - Only recorded completions are required, and a completion is recorded only after the device reported
//!   success.
//! - A batch is confirmed once it is durable. The writer resends a batch until it is confirmed, before it
//!   sends the next. So the batches of a record are consecutive, and a duplicate is identical to the
//!   original.
//! - A killed witness leaves at most a torn last line, which was never confirmed. Each session writes its own
//!   file, so an older process with bytes left in its pipe cannot damage the file of a newer one.
//! - A missing batch, or a damaged line with others after it, ends the verification without a result.
//! - The versions that a block may hold follow from the rules of `plumb-crash`: any version that no durable
//!   write is certain to have replaced. Certain means that the older write completed before the newer one was
//!   issued.
//!
//! # Limitations
//! The witness must not lose power with the drive. Blocks that other programs write between the cut and the
//! verification count as lost. A cut tells something only about the windows in which it was made.

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
