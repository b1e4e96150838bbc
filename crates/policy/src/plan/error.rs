//! Errors of a plan.

use std::path::PathBuf;

use crate::file::FileError;

/// Error of an unusable plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The file system refused or failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is not a plan, or of another version.
    #[error("{} is not a plan of schema {}", path.display(), super::Plan::SCHEMA)]
    NotAPlan {
        /// The file.
        path: PathBuf,
        /// Position and reason.
        source: serde_json::Error,
    },
    /// The plan was altered.
    #[error(
        "the plan was altered since it was made: its hash is {found}, but it says {written}; make a new plan"
    )]
    Altered {
        /// Hash of the contents.
        found: String,
        /// Hash recorded in the plan.
        written: String,
    },
    /// The plan was made in another boot, or on another machine.
    #[error(
        "the plan is of another boot of this machine or of another machine, where names may mean other \
         disks: make a new plan here"
    )]
    OtherBoot,
}
