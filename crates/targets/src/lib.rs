//! Targets that a user can name, opened in one call: everything that [`plumb_guard`] opens, and write-back
//! caches ([`plumb_caches`]). Also the simulated drives that are served under a name, and the list of the
//! servers of this machine.

mod open;
pub mod served_drive;
mod servers;

pub use open::{open, open_all, open_foreign, open_to_read, seed_of, survey, time_of};
pub use plumb_block::Time;
pub use plumb_guard::{
    ByteExtent, Error, Intent, Kind, MADE, Medium, MediumWanted, Name, OpenedTarget, PendingMedium,
    Permission, Result, Route, Scheme, TargetKind, TargetRequest, mark_as_left, mark_as_made,
    may_be_replaced, open_simulated, overlap, size_of,
};
pub use servers::Servers;
