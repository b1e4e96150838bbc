//! Subjects that are put to the test: what does the work on the drive, and what says after a power cut
//! whether all of it is there.

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
    /// All that had to be there is, and nothing else.
    Intact,
    /// Not so.
    Failed {
        /// Class of the failure.
        class: FailureClass,
        /// Words of the checker, cut to what a report can show.
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
    /// Bytes that it wrote to stdout.
    pub stdout: Vec<u8>,
    /// End of what it wrote to stderr.
    pub stderr: String,
}

/// A subject. `place` is the mount point, or the block device where there is no file system.
///
/// Checks run side by side, each on a place of its own, and what they find follows from the place and the
/// acknowledgement alone: a state that holds the same in all blocks that a check has read is not checked
/// again.
pub trait Subject: Send + Sync {
    /// Returns the name of the subject in reports, as it is typed.
    fn name(&self) -> String;

    /// Makes what the work begins with. It is synced afterwards, and no cut happens before.
    ///
    /// # Errors
    /// If it fails.
    fn set_up(&self, place: &Path) -> Result<()>;

    /// Does the work, and hands each acknowledgement to `acknowledge` as soon as what it stands for is
    /// promised. Numbers rise.
    ///
    /// # Errors
    /// If it fails, or a [program](Self::program) does the work.
    fn work(&self, _place: &Path, _acknowledge: &mut dyn FnMut(u64)) -> Result<()> {
        Err(Error::failed(self.name(), "its work is done by a program"))
    }

    /// Returns the program that does the work in place of [`work`](Self::work), if one does.
    fn program(&self) -> Option<Program> {
        None
    }

    /// Returns the user as whom its programs run, to whom the place belongs; `None` for the user who runs
    /// plumb.
    fn user(&self) -> Option<&User> {
        None
    }

    /// Returns true if its check is given the block device, after the file system was mounted, by which its
    /// journal is replayed, and unmounted again.
    fn is_checked_unmounted(&self) -> bool {
        false
    }

    /// Returns true if there is no checker: its states are compared with the moments of its work
    /// ([`Moments`](crate::oracle::Moments)), and its end is an acknowledgement if it gives no other.
    fn is_judged_by_its_files(&self) -> bool {
        false
    }

    /// Returns true if the output of a reader is compared, and not the files themselves.
    fn has_reader(&self) -> bool {
        false
    }

    /// Reads a place for that comparison; `None` if the files themselves are compared.
    ///
    /// # Errors
    /// If the reader cannot be run, or does not end in time.
    fn read(&self, _place: &Path) -> Result<Option<Output>> {
        Ok(None)
    }

    /// Returns true if it [recovers](Self::recover) a place before that is checked: this alone is cut again
    /// then, and not the check.
    fn has_recovery(&self) -> bool {
        false
    }

    /// Recovers a place, so that it can be checked. A failure is that of the state.
    ///
    /// # Errors
    /// If the recovery itself fails.
    fn recover(&self, _place: &Path, _required: Option<u64>) -> Result<Outcome> {
        Ok(Outcome::Intact)
    }

    /// Judges what is there. `required` is the last acknowledgement before the cut, if there was one; the
    /// work may have gone on beyond it. It may write to the place.
    ///
    /// # Errors
    /// If the check itself fails.
    fn check(&self, place: &Path, required: Option<u64>) -> Result<Outcome>;
}
