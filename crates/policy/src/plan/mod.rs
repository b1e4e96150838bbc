//! Plans: the intended changes in order, and the refused disks with reasons, as a document with a hash.
//!
//! A plan changes nothing. It is stored, reviewed, and applied later. So it identifies disks by permanent
//! properties (WWN, EUI, serial) and records the state of each. It is refused if it was altered, after a
//! reboot, or when a disk has changed.

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
