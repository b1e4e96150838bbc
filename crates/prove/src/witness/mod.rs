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
//! A message is a sealed line of JSON (`plumb_state::sealed_lines`), the same between the processes and in
//! the record. What is written follows from the [`Plan`] alone; each block carries (seed of the run, address,
//! number of the write) and is known to the last byte. The writer issues no write beyond what the witness has
//! confirmed, so that at most a window of acknowledgements is unknown to it. Why a loss is never claimed that
//! is none, and a known one never hidden:
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
pub mod ledger;
mod link;
mod plan;
pub mod power;
pub mod record;
mod target;
mod verify;
mod writer;

use plumb_block::{Bytes, Nanos};
use plumb_report::document::power::VerifyDocument;
use plumb_targets::OpenedTarget;
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

pub use link::{Link, Peer, Witness};
pub use plan::Plan;
pub use record::{serve, serve_at};
pub use target::{name_of, open_target};
pub use verify::{fetch, verify};
pub use writer::{Until, WriterEnd, write};

/// Facts of a run that do not change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// Plan of what is written.
    pub plan: Plan,
    /// The target as it was typed.
    pub target: String,
    /// The serial of the drive or what else names it for good; none of a file.
    pub identity: Option<String>,
    /// Capacity of the target.
    pub size: Bytes,
}

impl RunFacts {
    /// Checks the plan against its target, and makes the name of the target durable before anything is
    /// written to it.
    ///
    /// # Errors
    /// As [`Plan::check`], and if the directory of the target cannot be synced.
    pub fn begin(plan: Plan, opened: &mut OpenedTarget) -> Result<Self> {
        let info = opened.device.info();
        plan.check(&info)?;
        target::keep_name(opened)?;
        Ok(Self { plan, target: name_of(opened), identity: opened.identity.clone(), size: info.size })
    }

    /// Returns the name by which the drive is known: its identity, or the target if it has none.
    pub fn drive(&self) -> &str {
        self.identity.as_deref().unwrap_or(&self.target)
    }
}

/// Event that the writer saw. The order of events is that in which it saw them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// This write was answered as done; durable by itself if it had FUA.
    Written {
        /// Number of the write in the plan.
        write: u64,
        /// The first write that was not issued yet.
        next: u64,
        /// When, since the run began.
        at: Nanos,
    },
    /// A flush was answered as done.
    Flushed {
        /// Number of writes that had been answered when it was submitted: those it covers.
        covers: u64,
        /// The first write that was not issued yet when it was answered.
        next: u64,
        /// When, since the run began.
        at: Nanos,
    },
}

/// Events that are recorded together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Number of the batch in the run, from 1.
    pub number: u64,
    /// Once it is confirmed, writes below this number may be issued.
    pub lease: u64,
    /// Events that were seen since the batch before.
    pub events: Vec<Event>,
    /// Reason why the writer ended, if it did: no write was issued afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// Message that a witness receives, sends or records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// A run begins, or goes on after the connection was lost. The first line of each file of the record.
    Run(RunFacts),
    /// Record this.
    Batch(Batch),
    /// Send the newest run on this drive, by its identity if it has one, else by the name of the target. The
    /// answer is [`Message::Run`], its batches, and [`Message::Confirmed`].
    Fetch {
        /// The target as it was typed.
        target: String,
        /// Identity that names the drive.
        identity: Option<String>,
    },
    /// Result of a verification, to be recorded.
    Verified(Box<VerifyDocument>),
    /// The answer: all batches to this number are durable at the witness, and so is what was said last.
    Confirmed(u64),
    /// The answer: it cannot be done, and nothing more is answered.
    Refused(String),
}

/// Returns the error for a refusal, by this side or the other, with the reason.
pub(super) fn refused(why: impl Into<String>) -> Error {
    Error::new(ErrorKind::NotMeasured, why)
}
