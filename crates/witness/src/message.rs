//! Messages between writer, witness and verification, which are also what the record holds.

use plumb_block::{Bytes, Nanos};
use plumb_report::document::power::VerifyDocument;
use plumb_targets::OpenedTarget;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::plan::Plan;
use crate::target;

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
    pub fn begin(plan: Plan, opened: &OpenedTarget) -> Result<Self> {
        let info = opened.device.info();
        plan.check(&info)?;
        target::sync_name(opened)?;
        Ok(Self { plan, target: target::name_of(opened), identity: opened.identity.clone(), size: info.size })
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
    /// A write was answered as done; with FUA it is durable by itself.
    Written {
        /// Number of the write in the plan.
        write: u64,
        /// The first write that was not issued yet.
        next: u64,
        /// Time since the run began.
        at: Nanos,
    },
    /// A flush was answered as done.
    Flushed {
        /// Number of writes that had been answered when it was submitted: those it covers.
        covers: u64,
        /// The first write that was not issued yet when it was answered.
        next: u64,
        /// Time since the run began.
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
