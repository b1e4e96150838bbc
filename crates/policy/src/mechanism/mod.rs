//! Switching of write caches, for each kind of disk: the steps in order, and the verification of their
//! effect.
//!
//! Planning is pure: [`Material`] holds the facts, and [`steps()`] and [`heal`] convert it to [`Step`]s,
//! which can be printed with their bytes ([`crate::explain`]), written into a plan, and executed one by one
//! by [`execute()`]. [`settle`] then reads the device and the kernel back until they match the [`Goal`].

mod execute;
mod material;
mod read_back;
mod steps;

pub use execute::{Execution, execute};
pub use material::{Above, Kind, Material};
pub use read_back::{Disagreement, Outcome, ReadBack, disagreements, read_back, settle};
pub(crate) use read_back::{SETTLE_MAX, settle_until};
pub use steps::{heal, needs_healing, release_sct, steps};

use crate::gateway::{Change, Disk};
use crate::state::State;

/// Goal for a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Goal {
    /// State of the cache.
    pub state: State,
    /// State of the cache after a power cut; `None`: unchanged. Only for drives that can save it. An ATA
    /// drive can only save the value of `state`.
    pub saved: Option<bool>,
}

/// A step of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Disk, or dm device above it.
    pub disk: Disk,
    /// Change that the step makes.
    pub change: Change,
    /// Purpose of the step, in a few words.
    pub why: String,
    /// Condition to wait for, at most two seconds, before the step: libata notices a change with a delay.
    pub after: Option<Condition>,
    /// Condition under which the step is skipped.
    pub only_unless: Option<Condition>,
    /// True if EINVAL is acceptable; reading back shows the effect.
    pub may_be_refused: bool,
}

impl Step {
    /// Creates an unconditional step whose failure counts.
    pub(crate) fn new(disk: &Disk, change: Change, why: &str) -> Self {
        let (disk, why) = (disk.clone(), why.to_owned());
        Self { disk, change, why, after: None, only_unless: None, may_be_refused: false }
    }
}

/// Required contents of a file of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Absolute path of the file.
    pub path: String,
    /// Text of the file.
    pub says: String,
}
