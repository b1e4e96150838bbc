//! Levels that are not part of a workload: they are set on the machine before each block, and the earlier
//! settings are restored at the end.
//!
//! ```text
//! set(level) ──► promise: how to undo the change, durable, under a lock ──► the change, read back
//!            ──► the block, its targets opened anew
//! restore    ──► every promise, the last first ──► the record is removed
//! a record without a lock: its process was killed; the next command that changes something, or
//!     `plumb restore`, executes it
//! ```
//!
//! Invariant: a change is made only after the promise to undo it is durable.

mod cache;
mod disks;
mod file_system;
mod policy;
mod record;
mod scheduler;
mod undo;

use plumb_block::FailureKind;
use plumb_targets::Permission;
use plumb_trial::TrialError;

pub use cache::{CacheLevel, CacheSetting, CacheWanted};
pub(crate) use disks::{need_root, of_all, paths};
pub use file_system::FileSystemSetting;
pub(crate) use file_system::mount_point;
pub use policy::PolicySetting;
pub use record::{Changes, LeftChanges, left_changes};
pub use scheduler::SchedulerSetting;
pub use undo::{Machine, Undo};

/// Setter of levels. The experiment has no targets open while a level is set.
pub trait Setting {
    /// Sets the level with this number.
    ///
    /// # Errors
    /// If the machine refuses, or a different state is read back.
    fn set(&mut self, level: usize) -> Result<(), TrialError>;

    /// Restores the state before the first level was set. A second call has no further effect.
    ///
    /// # Errors
    /// If something could not be restored; `plumb restore` tries again.
    fn restore(&mut self) -> Result<(), TrialError>;

    /// Returns the permission to overwrite at a level, given the permission `asked` of the user.
    fn permission(&self, _level: usize, asked: &Permission) -> Permission {
        asked.clone()
    }
}

/// Setting that sets nothing: targets are only opened again for each block, so simulated drives are new in
/// each.
#[derive(Debug, Clone, Copy)]
pub struct Anew;

impl Setting for Anew {
    fn set(&mut self, _level: usize) -> Result<(), TrialError> {
        Ok(())
    }

    fn restore(&mut self) -> Result<(), TrialError> {
        Ok(())
    }
}

/// Converts an error to a failure of a trial.
pub(crate) fn failed(error: &(dyn std::error::Error + 'static)) -> TrialError {
    TrialError::new(FailureKind::Failed, plumb_block::in_one_line(error))
}

/// Returns the refusal of a setting.
fn refused(problem: String) -> TrialError {
    TrialError::new(FailureKind::Refused, problem)
}
