//! Records of a journal.

use serde::{Deserialize, Serialize};

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Number of the record, from 0 without a gap.
    pub n: u64,
    /// When it was written: RFC 3339.
    pub at: String,
    /// Content of the record.
    #[serde(flatten)]
    pub record: Record,
}

/// Forwards to what was planned, or back to what was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Towards the state that was asked for.
    Apply,
    /// Back to the snapshot.
    Rollback,
}

/// One record.
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
    /// A resume or a rollback goes on with this journal.
    Reopened {
        /// Phase that begins: what the run is about to do.
        phase: Phase,
        /// The boot that it runs in.
        boot_id: String,
    },
    /// A step is about to be carried out.
    Intent {
        /// Phase that the record belongs to.
        phase: Phase,
        /// The disk's name.
        disk: String,
        /// The step's number for this disk, from 0.
        step: usize,
        /// The step in words.
        words: String,
        /// Bytes that are sent or written.
        bytes: Vec<String>,
    },
    /// The step before was carried out, and the device or the kernel took it.
    Done {
        /// Phase that the record belongs to.
        phase: Phase,
        /// The disk's name.
        disk: String,
        /// The step's number.
        step: usize,
    },
    /// The step before was refused, or failed.
    StepFailed {
        /// Phase that the record belongs to.
        phase: Phase,
        /// The disk's name.
        disk: String,
        /// The step's number.
        step: usize,
        /// Why.
        error: String,
    },
    /// The device and the kernel were read back and are as they should be.
    Verified {
        /// Phase that the record belongs to.
        phase: Phase,
        /// The disk's name.
        disk: String,
    },
    /// They are not.
    Mismatch {
        /// Phase that the record belongs to.
        phase: Phase,
        /// The disk's name.
        disk: String,
        /// Difference: what was expected and what was found.
        found: String,
    },
    /// The run ended before all was done.
    Stopped {
        /// Phase that the record belongs to.
        phase: Phase,
        /// Why.
        why: String,
    },
    /// All was done and verified.
    Complete {
        /// Phase that the record belongs to.
        phase: Phase,
    },
}
