//! Subjects under test: a program that works on the drive, and a checker that judges the state after a power
//! cut.

mod command;
mod files;
mod fsck;
mod history;
mod named;
mod options;
mod postgres;
mod process;
mod redb;
mod sqlite;
mod user;

use std::path::Path;
use std::process::ExitStatus;

use plumb_report::document::proof::FailureClass;
use serde::{Deserialize, Serialize};

pub(crate) use command::Lines;
pub use command::{AckBy, CheckBy, Program, Programs, work_by_file};
pub use named::{Kind, SUBJECTS, named};
pub use options::Values;
pub(crate) use process::{left_running, shown};
pub use user::User;

use crate::error::{Error, Result};

/// Result of a checker.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Everything required is present, and nothing else.
    Intact,
    /// Something is missing or wrong.
    Failed {
        /// Class of the failure.
        class: FailureClass,
        /// Words of the checker, cut to a length for reports.
        words: String,
    },
}

impl Outcome {
    /// Returns the class of a failure.
    pub const fn class(&self) -> Option<FailureClass> {
        match self {
            Self::Intact => None,
            Self::Failed { class, .. } => Some(*class),
        }
    }

    const fn failure(class: FailureClass, words: String) -> Self {
        Self::Failed { class, words }
    }
}

/// Output of a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Exit status.
    pub status: ExitStatus,
    /// Bytes written to stdout.
    pub stdout: Vec<u8>,
    /// End of the output on stderr.
    pub stderr: String,
}

/// Subject. `place` is the mount point, or the block device without a file system.
///
/// Checks run in parallel, each on its own place. Their results must depend on the place and the
/// acknowledgement alone: a state that is equal in all blocks that a check has read is not checked again.
pub trait Subject: Send + Sync {
    /// Returns the name of the subject in reports, as the user types it.
    fn name(&self) -> String;

    /// Creates the initial state of the work. It is synced afterwards, and no cut happens before.
    ///
    /// # Errors
    /// If the set-up fails.
    fn set_up(&self, place: &Path) -> Result<()>;

    /// Does the work, and passes each acknowledgement to `acknowledge` as soon as it is given. Numbers
    /// increase.
    ///
    /// # Errors
    /// If it fails, or a [program](Self::program) does the work.
    fn work(&self, _place: &Path, _acknowledge: &mut dyn FnMut(u64)) -> Result<()> {
        Err(Error::failed(self.name(), "its work is done by a program"))
    }

    /// Returns the program that does the work instead of [`work`](Self::work), if there is one.
    fn program(&self) -> Option<Program> {
        None
    }

    /// Returns the user who runs the programs and owns the place; `None` for the user who runs plumb.
    fn user(&self) -> Option<&User> {
        None
    }

    /// Returns true if the check gets the block device, after the file system was mounted, which replays its
    /// journal, and unmounted again.
    fn is_checked_unmounted(&self) -> bool {
        false
    }

    /// Returns true if there is no checker: states are compared with the moments of the work
    /// ([`Moments`](crate::oracle::Moments)), and the end counts as an acknowledgement if there is no other.
    fn is_judged_by_its_files(&self) -> bool {
        false
    }

    /// Returns true if the output of a reader is compared instead of the files.
    fn has_reader(&self) -> bool {
        false
    }

    /// Reads a place for that comparison. Returns `None` if the files themselves are compared.
    ///
    /// # Errors
    /// If the reader cannot be run, or does not end in time.
    fn read(&self, _place: &Path) -> Result<Option<Output>> {
        Ok(None)
    }

    /// Returns true if it [recovers](Self::recover) a place before the check. Only the recovery is cut again
    /// then.
    fn has_recovery(&self) -> bool {
        false
    }

    /// Recovers a place, so that it can be checked. A failed recovery is a failure of the state.
    ///
    /// # Errors
    /// If the recovery cannot be carried out.
    fn recover(&self, _place: &Path, _required: Option<u64>) -> Result<Outcome> {
        Ok(Outcome::Intact)
    }

    /// Judges a place. `required` is the last acknowledgement before the cut, if there was one; the work may
    /// have continued beyond it. The check may write to the place.
    ///
    /// # Errors
    /// If the check itself fails.
    fn check(&self, place: &Path, required: Option<u64>) -> Result<Outcome>;
}
