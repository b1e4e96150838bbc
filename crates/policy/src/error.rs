//! Reasons why a policy was not changed, and by which of the ways that a caller must tell apart.

use plumb_block::FailureKind;

use crate::device::{ClaimsError, InventoryError, UnknownDevice};
use crate::file::FileError;
use crate::journal::JournalError;
use crate::light_load::LightLoadError;
use crate::persist::PersistError;
use crate::plan::PlanError;
use crate::select::SelectError;
use crate::view::Refusal;

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
    /// The load beside a change.
    #[error(transparent)]
    LightLoad(#[from] LightLoadError),
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
    /// Refusal of everybody but root. Nothing was done.
    #[error("only root may {what}; nothing was done: run it again as root")]
    NotRoot {
        /// Action that is refused, as a verb.
        what: &'static str,
    },
    /// The name is not that of a disk.
    #[error(transparent)]
    NoDisk(UnknownDevice),
    /// The disk is not one that is changed.
    #[error("{name} is refused: {}; {}", why.reason, why.remedy)]
    RefusedDisk {
        /// Name of the disk.
        name: String,
        /// The reason and the remedy.
        why: Refusal,
    },
    /// The disk has no identity.
    #[error("{name} has no WWN and no serial number by which plumb could recognize it")]
    Unrecognizable {
        /// Name of the disk.
        name: String,
    },
    /// No state is kept for the disk.
    #[error("no state is kept for {identity}; `plumb policy persist` lists the kept states")]
    NotKept {
        /// Identity of the disk.
        identity: String,
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
    /// Refuses a disk for this reason.
    pub fn refused_disk(name: &str, why: &Refusal) -> Self {
        Self::RefusedDisk { name: name.to_owned(), why: why.clone() }
    }

    /// Returns the way in which a command fails that ends with it.
    pub fn failure(&self) -> FailureKind {
        match self {
            // A plan that is not there was not typed right.
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
