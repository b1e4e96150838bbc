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
    /// Where all is written down.
    pub journal: PathBuf,
    /// One for each disk, in the order in which they were to be changed.
    pub disks: Vec<DiskReport>,
    /// How it ended.
    pub ended: ApplyEnd,
    /// Next thing to do; null if nothing is left to do.
    pub go_on: Option<String>,
}

/// Result for one disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiskReport {
    /// The kernel's name.
    pub name: String,
    /// WWN, EUI-64, NGUID or serial.
    pub identity: String,
    /// Result that was read back.
    #[serde(flatten)]
    pub result: DiskResult,
}

/// Result that was read back of one disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "result")]
pub enum DiskResult {
    /// The device and the kernel are as they should be.
    Verified,
    /// They are not.
    Mismatch {
        /// Difference: what was found, and what was expected.
        found: String,
    },
    /// A step failed; what is now is written behind it.
    Failed {
        /// Why, and what was read afterwards.
        error: String,
    },
    /// The disk must no longer be changed.
    Refused {
        /// Why.
        reason: String,
        /// Remedy: what to do.
        remedy: String,
    },
    /// The disk was begun and interrupted.
    Interrupted,
    /// The disk was not begun.
    Untouched,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApplyEnd {
    /// All disks were verified.
    Complete,
    /// The run was told to stop.
    Interrupted,
    /// A disk must no longer be changed. What was changed before it stays and is verified.
    Refused,
    /// A disk is not as it should be, or a step failed.
    Failed,
}

impl ApplyEnd {
    /// Returns the last record of a journal that ended so.
    pub(crate) fn record(self, phase: Phase) -> Record {
        match self {
            Self::Complete => Record::Complete { phase },
            _ => Record::Stopped { phase, why: format!("{self:?}").to_lowercase() },
        }
    }
}

impl Report {
    /// The name and version of the document.
    pub const SCHEMA: &str = "plumb/policy-apply/1";

    /// Returns the way in which the run failed; `None` if all disks were verified.
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
