//! Check of each state that a cut may leave.
//!
//! ```text
//!   Explorer ─► state ─► Observed ── known from the reads of earlier checks ─► result
//!                           │ not known
//!                           └─► worker: StateDevice, attached once ─► mount ─► check ─► unmount ─► reads, result
//!                               or a directory ─► tree of files ─► check ─► reads, result
//! ```
//!
//! Invariant: the result does not depend on the number of workers. The reads of a check become known after a
//! fixed number of later checks was submitted, not as soon as they are available.

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
