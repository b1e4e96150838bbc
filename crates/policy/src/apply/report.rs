//! Report of an apply, a resume or a rollback.

use std::path::PathBuf;

use serde::Serialize;

use crate::journal::{Phase, Record};
use plumb_block::FailureKind;

/// Result of an apply, a resume or a rollback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Always [`Report::SCHEMA`].
    pub schema: String,
    /// Directory of the journal.
    pub journal: PathBuf,
    /// Result for each disk, in the planned order.
    pub disks: Vec<DiskReport>,
    /// End of the run.
    pub ended: ApplyEnd,
    /// Command to continue with; null if everything is done.
    pub go_on: Option<String>,
}

/// Result for one disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiskReport {
    /// Kernel name.
    pub name: String,
    /// WWN, EUI-64, NGUID or serial.
    pub identity: String,
    /// Result by the read-back.
    #[serde(flatten)]
    pub result: DiskResult,
}

/// Result for one disk, by the read-back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "result")]
pub enum DiskResult {
    /// The device and the kernel match the goal.
    Verified,
    /// The device or the kernel does not match the goal.
    Mismatch {
        /// Difference between the found and the expected state.
        found: String,
    },
    /// A step failed.
    Failed {
        /// Error, and the state read afterwards.
        error: String,
    },
    /// The disk may no longer be changed.
    Refused {
        /// Reason.
        reason: String,
        /// Remedy: what to do.
        remedy: String,
    },
    /// The disk was started and interrupted.
    Interrupted,
    /// The disk was not started.
    Untouched,
}

/// End of an apply, a resume or a rollback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApplyEnd {
    /// All disks were verified.
    Complete,
    /// The run was interrupted.
    Interrupted,
    /// A disk may no longer be changed. Earlier changes remain and are verified.
    Refused,
    /// A disk does not match its goal, or a step failed.
    Failed,
}

impl ApplyEnd {
    /// Returns the final journal record for this end.
    pub(crate) fn record(self, phase: Phase) -> Record {
        match self {
            Self::Complete => Record::Complete { phase },
            _ => Record::Stopped { phase, why: format!("{self:?}").to_lowercase() },
        }
    }
}

impl Report {
    /// Name and version of the document.
    pub const SCHEMA: &str = "plumb/policy-apply/1";

    /// Returns the category of the failure; `None` if all disks were verified.
    pub const fn failure(&self) -> Option<FailureKind> {
        match self.ended {
            ApplyEnd::Complete => None,
            ApplyEnd::Refused => Some(FailureKind::Refused),
            ApplyEnd::Interrupted | ApplyEnd::Failed => Some(FailureKind::Failed),
        }
    }

    /// Returns the result for the disk of this name.
    pub fn disk(&self, name: &str) -> Option<&DiskResult> {
        self.disks.iter().find(|disk| disk.name == name).map(|disk| &disk.result)
    }
}
