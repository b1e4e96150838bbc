//! Reading disks: from the [`Gateway`](crate::gateway::Gateway) to a [`DeviceView`](crate::view::DeviceView).
//!
//! The inventory of `plumb_linux` tells how devices are stacked; [`drive`] queries the drive itself;
//! [`standing`] runs the survey of `plumb_path` and keeps the findings about one disk; [`protection`] selects
//! a claim of power-loss protection; [`refusal`] determines why a disk cannot be changed. Nothing here
//! changes anything, and only an unknown name is an error: an unreadable value is null, with the reason next
//! to it.

mod attached_cache;
pub mod claims;
pub mod drive;
mod foreign;
pub mod identity;
mod kernel;
pub mod models;
pub mod place;
mod protection;
pub mod raid_tool;
mod reader;
mod refusal;
mod siblings;
mod standing;
mod target;

pub use claims::{Claim, Claims, ClaimsError};
pub use foreign::{foreign, surveyed_cache};
pub use kernel::{KernelPaths, kernel_paths};
pub use plumb_linux::inventory::{Block, BlockKind, Inventory, InventoryError};
pub use reader::Reader;
pub use refusal::refusal_for;
pub use siblings::siblings;
pub use target::UnknownDevice;
