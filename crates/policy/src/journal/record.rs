//! Records of a journal.

use serde::{Deserialize, Serialize};

/// A line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Number of the record, from 0 without a gap.
    pub n: u64,
    /// Time of writing: RFC 3339.
    pub at: String,
    /// Content of the record.
    #[serde(flatten)]
    pub record: Record,
}

/// Direction: forward to the plan, or back to the snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Towards the requested state.
    Apply,
    /// Back to the snapshot.
    Rollback,
}

/// A journal record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub enum Record {
    /// The snapshot is durable; changes may follow.
    Begun {
        /// The hash of the plan.
        plan: String,
        /// SHA-256 of the snapshot's file.
        snapshot: String,
    },
    /// A resume or rollback continues this journal.
    Reopened {
        /// Phase of the run that starts.
        phase: Phase,
        /// Identifier of the boot of that run.
        boot_id: String,
    },
    /// A step is about to be executed.
    Intent {
        /// Phase of the step.
        phase: Phase,
        /// The disk's name.
        disk: String,
        /// The step's number for this disk, from 0.
        step: usize,
        /// The step in words.
        words: String,
        /// Bytes sent or written.
        bytes: Vec<String>,
    },
    /// The step was executed, and the device or the kernel accepted it.
    Done {
        /// Phase of the step.
        phase: Phase,
        /// The disk's name.
        disk: String,
        /// The step's number.
        step: usize,
    },
    /// The step was refused or failed.
    StepFailed {
        /// Phase of the step.
        phase: Phase,
        /// The disk's name.
        disk: String,
        /// The step's number.
        step: usize,
        /// Error.
        error: String,
    },
    /// The device and the kernel were read back and match the goal.
    Verified {
        /// Phase of the disk's change.
        phase: Phase,
        /// The disk's name.
        disk: String,
    },
    /// The device or the kernel does not match the goal.
    Mismatch {
        /// Phase of the disk's change.
        phase: Phase,
        /// The disk's name.
        disk: String,
        /// Difference: what was expected and what was found.
        found: String,
    },
    /// The run ended early.
    Stopped {
        /// Phase of the run.
        phase: Phase,
        /// Reason.
        why: String,
    },
    /// Everything was done and verified.
    Complete {
        /// Phase of the run.
        phase: Phase,
    },
}
