//! Levels that no workload can bring about: they are set on the machine before each block, and what was there
//! is put back at the end.
//!
//! ```text
//! set(level) ──► promise: what puts it back, durable, under a lock ──► the change, read back ──► the block, its targets opened anew
//! restore   ──► every promise, the last first ──► the record goes
//! a record that nobody holds: its process was killed; the next command that changes something carries it out, or `plumb restore`
//! ```
//!
//! Invariant: whatever is changed was promised before.

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

/// Sets levels. Nothing of the experiment is open while it does.
pub trait Setting {
    /// Brings about the level with this number.
    ///
    /// # Errors
    /// If the machine refuses, or what was read back is something else.
    fn set(&mut self, level: usize) -> Result<(), TrialError>;

    /// Puts back what was there before the first level was set. Doing it twice does no more.
    ///
    /// # Errors
    /// Fails if something could not be put back; `plumb restore` tries again.
    fn restore(&mut self) -> Result<(), TrialError>;

    /// Returns what may be overwritten at a level, where `asked` is what the user allows.
    fn permission(&self, _level: usize, asked: &Permission) -> Permission {
        asked.clone()
    }
}

/// Nothing is set: targets are only opened again for each block, and simulated drives are as new in each.
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

/// Returns a setting that failed.
fn failed(error: &(dyn std::error::Error + 'static)) -> TrialError {
    TrialError::new(FailureKind::Failed, plumb_block::in_one_line(error))
}

/// Returns a setting that is refused.
fn refused(problem: String) -> TrialError {
    TrialError::new(FailureKind::Refused, problem)
}
