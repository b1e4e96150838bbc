//! Errors of a plan.

use std::path::PathBuf;

use crate::file::FileError;

/// A plan that is not applied.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The file system refused or failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is no plan, or one of another version.
    #[error("{} is not a plan of schema {}", path.display(), super::Plan::SCHEMA)]
    NotAPlan {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// Somebody altered it.
    #[error(
        "the plan was altered since it was made: its hash is {found}, but it says {written}; make a new plan"
    )]
    Altered {
        /// The hash of what is there.
        found: String,
        /// The hash that is written in it.
        written: String,
    },
    /// The plan was made in another boot, or on another machine.
    #[error(
        "the plan is of another boot of this machine or of another machine, where names may mean other \
         disks: make a new plan here"
    )]
    OtherBoot,
}
