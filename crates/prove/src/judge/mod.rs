//! Each state that a cut may leave, put before a checker.
//!
//! ```text
//!   Explorer ─► state ─► Observed ── known by what earlier checks have read ─► its result
//!                           │ not known
//!                           └─► worker: StateDevice, attached once ─► mount ─► check ─► unmount ─► what was read, result
//!                               or a directory ─► tree of files ─► check ─► what was looked up, result
//! ```
//!
//! Invariant: what comes out does not depend on how many workers there are. What a check has read becomes
//! known when a fixed number of later checks was given out, never as soon as it is there.

mod attached;
mod checker;
mod directory;
mod judged;
mod parameters;
mod recorded_check;
mod results;
mod run;
mod single;
mod switched;
mod workers;

pub use attached::MountedState;
pub use judged::{FailingStates, JudgeResult};
pub use parameters::Judge;
