//! Messages between writer, witness and verification. The record of a witness consists of the same messages.

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
    /// Serial of the drive or another permanent identity; `None` for a file.
    pub identity: Option<String>,
    /// Capacity of the target.
    pub size: Bytes,
}

impl RunFacts {
    /// Checks the plan against its target, and makes the name of the target durable before anything is
    /// written to it.
    ///
    /// # Errors
    /// Those of [`Plan::check`], and a failure to sync the directory of the target.
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

/// Completion that the writer saw. Events are in the order in which it saw them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// A write completed successfully; with FUA it is durable.
    Written {
        /// Number of the write in the plan.
        write: u64,
        /// Number of the first write that was not issued yet.
        next: u64,
        /// Time since the run began.
        at: Nanos,
    },
    /// A flush completed successfully.
    Flushed {
        /// Number of writes that had completed when the flush was submitted: it covers these.
        covers: u64,
        /// Number of the first write that was not issued when the flush completed.
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
    /// Writes below this number may be issued once the batch is confirmed.
    pub lease: u64,
    /// Events since the previous batch.
    pub events: Vec<Event>,
    /// Reason for the writer's end, if it ended: no write was issued afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// Message that a witness receives, sends or records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// A run begins, or continues after a lost connection. The first line of each file of the record.
    Run(RunFacts),
    /// Request to record a batch.
    Batch(Batch),
    /// Request for the newest run on this drive, found by its identity, or by the name of the target without
    /// one. The answers are [`Message::Run`], the batches of the run, and [`Message::Confirmed`].
    Fetch {
        /// The target as it was typed.
        target: String,
        /// Identity of the drive.
        identity: Option<String>,
    },
    /// Result of a verification, to be recorded.
    Verified(Box<VerifyDocument>),
    /// Answer: all batches up to this number are durable at the witness, and so is the last message.
    Confirmed(u64),
    /// Answer: the request cannot be carried out. No more answers follow.
    Refused(String),
}
