//! How a write cache is switched, for each kind of disk: which steps in which order, and how it is known that
//! they have done what they should.
//!
//! Planning is pure: [`Material`] holds what was read, [`steps()`] and [`heal`] turn it into [`Step`]s, which
//! can be printed with their bytes ([`crate::explain`]), written into a plan, and carried out one by one by
//! [`execute()`]. [`settle`] then reads the device and the kernel back until they agree with the [`Goal`].

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

/// State that a disk is to be brought to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Goal {
    /// The state.
    pub state: State,
    /// State that the drive itself is to start with after a power cut; `None`: whatever it started with until
    /// now. Only for drives that can save. An ATA drive can save the value of `state` alone.
    pub saved: Option<bool>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The disk, or the dm device above it.
    pub disk: Disk,
    /// Change that the step makes.
    pub change: Change,
    /// Purpose of the step, in a few words.
    pub why: String,
    /// Waited for, at most two seconds, before it is carried out: libata takes notice of a change only later.
    pub after: Option<Condition>,
    /// Left out if, when its turn comes, this holds already.
    pub only_unless: Option<Condition>,
    /// EINVAL is taken for an answer: what was achieved is seen when reading back.
    pub may_be_refused: bool,
}

impl Step {
    /// Creates a step that is always carried out, and whose failure is one.
    pub(crate) fn new(disk: &Disk, change: Change, why: &str) -> Self {
        let (disk, why) = (disk.clone(), why.to_owned());
        Self { disk, change, why, after: None, only_unless: None, may_be_refused: false }
    }
}

/// Content of a file of the kernel, as a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Absolute path of the file.
    pub path: String,
    /// Text of the file.
    pub says: String,
}
