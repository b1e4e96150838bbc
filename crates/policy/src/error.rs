//! Reasons why a policy was not changed, and by which of the ways that a caller must tell apart.

use plumb_block::FailureKind;

use crate::device::{ClaimsError, InventoryError, UnknownDevice};
use crate::journal::JournalError;
use crate::persist::PersistError;
use crate::plan::PlanError;
use crate::select::SelectError;

/// Reason why a policy was not changed.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The expression of `--where`.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// The plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// An administrator's word.
    #[error(transparent)]
    Claim(#[from] ClaimsError),
    /// Error of a setting that is to last.
    #[error(transparent)]
    Persist(#[from] PersistError),
    /// A name that a user gave stands for nothing.
    #[error(transparent)]
    Unknown(#[from] UnknownDevice),
    /// The users of the disks cannot be known. Nothing further was changed.
    #[error(
        "what uses the disks of this machine cannot be seen: {0}; run where /proc and /sys are those of the machine"
    )]
    Inventory(#[from] InventoryError),
    /// A disk is not what the plan was made for, or must not be changed now. Nothing was changed.
    #[error("{disk} is not changed, and no other disk: {reason}; {remedy}")]
    Refused {
        /// The disk.
        disk: String,
        /// Why.
        reason: String,
        /// Remedy: what to do.
        remedy: String,
    },
    /// The journal is of a kind with which this cannot be done. Nothing was changed.
    #[error("{reason}; {remedy}")]
    NotPossible {
        /// Why.
        reason: String,
        /// Remedy: what to do.
        remedy: String,
    },
}

impl PolicyError {
    /// Returns the way in which a command fails that ends with it.
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Select(_) | Self::Unknown(_) | Self::Claim(ClaimsError::Ended { .. }) => FailureKind::Usage,
            Self::Plan(PlanError::NotAPlan { .. }) => FailureKind::Usage,
            Self::Plan(PlanError::Altered { .. } | PlanError::OtherBoot) => FailureKind::Refused,
            Self::Journal(error) => match error {
                JournalError::NotBegun { .. } => FailureKind::Usage,
                JournalError::Busy { .. } | JournalError::Corrupt { .. } => FailureKind::Refused,
                _ => FailureKind::Failed,
            },
            Self::Persist(PersistError::Nameless { .. }) => FailureKind::Refused,
            Self::Inventory(_) | Self::Refused { .. } | Self::NotPossible { .. } => FailureKind::Refused,
            Self::Plan(PlanError::File(_)) | Self::Claim(_) | Self::Persist(_) => FailureKind::Failed,
        }
    }
}
