//! Errors of changing a policy, in the categories that callers must distinguish.

use plumb_block::FailureKind;

use crate::device::{ClaimsError, InventoryError, UnknownDevice};
use crate::file::FileError;
use crate::journal::JournalError;
use crate::light_load::LightLoadError;
use crate::persist::PersistError;
use crate::plan::PlanError;
use crate::select::SelectError;
use crate::view::Refusal;

/// Error of changing a policy.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The expression of `--where` is invalid.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// The plan is unusable.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The journal is unusable.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The claim is unusable.
    #[error(transparent)]
    Claim(#[from] ClaimsError),
    /// Persisting a setting failed.
    #[error(transparent)]
    Persist(#[from] PersistError),
    /// The light load failed.
    #[error(transparent)]
    LightLoad(#[from] LightLoadError),
    /// A name is unknown.
    #[error(transparent)]
    Unknown(#[from] UnknownDevice),
    /// The uses of the disks are unknown. Nothing further was changed.
    #[error(
        "what uses the disks of this machine cannot be seen: {0}; run where /proc and /sys are those of the machine"
    )]
    Inventory(#[from] InventoryError),
    /// A disk does not match the plan, or may not be changed now. Nothing was changed.
    #[error("{disk} is not changed, and no other disk: {reason}; {remedy}")]
    Refused {
        /// The disk.
        disk: String,
        /// Reason.
        reason: String,
        /// Remedy: what to do.
        remedy: String,
    },
    /// Only root may do this. Nothing was done.
    #[error("only root may {what}; nothing was done: run it again as root")]
    NotRoot {
        /// Action that is refused, as a verb.
        what: &'static str,
    },
    /// The name is not that of a disk.
    #[error(transparent)]
    NoDisk(UnknownDevice),
    /// The disk cannot be changed.
    #[error("{name} is refused: {}; {}", why.reason, why.remedy)]
    RefusedDisk {
        /// Name of the disk.
        name: String,
        /// Reason and remedy.
        why: Refusal,
    },
    /// The disk has no identity.
    #[error("{name} has no WWN and no serial number by which plumb could recognize it")]
    Unrecognizable {
        /// Name of the disk.
        name: String,
    },
    /// There is no persisted state for the disk.
    #[error("no state is kept for {identity}; `plumb policy persist` lists the kept states")]
    NotKept {
        /// Identity of the disk.
        identity: String,
    },
    /// The operation is not possible with this kind of journal. Nothing was changed.
    #[error("{reason}; {remedy}")]
    NotPossible {
        /// Reason.
        reason: String,
        /// Remedy: what to do.
        remedy: String,
    },
}

impl PolicyError {
    /// Creates the error for a refused disk.
    pub fn refused_disk(name: &str, why: &Refusal) -> Self {
        Self::RefusedDisk { name: name.to_owned(), why: why.clone() }
    }

    /// Returns the category of the failure.
    pub fn failure(&self) -> FailureKind {
        match self {
            // A missing plan is a typing error.
            Self::Plan(PlanError::File(FileError { operation: "read the plan", .. })) => FailureKind::Usage,
            Self::Select(_)
            | Self::Unknown(_)
            | Self::NotKept { .. }
            | Self::Claim(ClaimsError::Ended { .. }) => FailureKind::Usage,
            Self::Plan(PlanError::NotAPlan { .. }) | Self::Persist(PersistError::Program { .. }) => {
                FailureKind::Usage
            }
            Self::LightLoad(error) => error.failure(),
            Self::Plan(PlanError::Altered { .. } | PlanError::OtherBoot) => FailureKind::Refused,
            Self::Journal(error) => match error {
                JournalError::NotBegun { .. } => FailureKind::Usage,
                JournalError::Busy { .. } | JournalError::Corrupt { .. } => FailureKind::Refused,
                _ => FailureKind::Failed,
            },
            Self::Persist(PersistError::Nameless { .. }) => FailureKind::Refused,
            Self::Inventory(_)
            | Self::NotRoot { .. }
            | Self::NoDisk(_)
            | Self::RefusedDisk { .. }
            | Self::Unrecognizable { .. }
            | Self::Refused { .. }
            | Self::NotPossible { .. } => FailureKind::Refused,
            Self::Plan(PlanError::File(_)) | Self::Claim(_) | Self::Persist(_) => FailureKind::Failed,
        }
    }
}
