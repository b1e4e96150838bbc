//! Plan of what would be changed, in which order, and what is refused and why: a document with a hash.
//!
//! A plan changes nothing. It is written down, looked at, and applied later: so it names disks by what stays
//! the same (WWN, EUI, serial), says what each was like, and is refused when it was altered, when the machine
//! was booted anew, or when a disk is no longer what it was.

mod document;
mod error;
mod file;
mod hash;
mod make;
mod obstacle;
mod once;
mod route;
pub(crate) mod siblings;
mod step;

pub use document::{Plan, PlanRequest, PlannedChange, PlannedStep, RefusedDisk, SharedCache, UnchangedDisk};
pub use error::PlanError;
pub use file::load;
pub use make::{Ask, DiskSelection, make};

pub(crate) use make::{boot_id, kernel_release};
pub(crate) use obstacle::judge;
pub(crate) use route::{route, to_goal};
pub(crate) use step::planned;
