//! A bay holds one simulated drive in real time: it exports the drive to other programs, and has its power switch.
//!
//! ```text
//!   plumb drive serve ──► Bay ──► sim::Handle ──► export: NBD socket, loop device
//!                          ▲
//!   plumb drive cut ··· ───┘ control socket: one order and one answer, each a line of JSON
//! ```
//!
//! A bay is found by the name of its drive: its control socket is in a directory of this user, so that nobody else may cut
//! the power. The socket of a bay that was killed is replaced.

pub mod control;
pub mod place;

mod bay;
mod socket;

pub use bay::{Bay, BayError, BayOptions};
pub use plumb_export::attach::AttachError;
pub use plumb_export::nbd::server::ServeError;
pub use socket::forget;

/// Takes away what attachments of killed processes have left: dead mounts and loop devices.
///
/// # Errors
/// If the directory of attachments cannot be used.
pub fn sweep() -> Result<plumb_export::attach::Swept, AttachError> {
    plumb_export::attach::sweep(None)
}
