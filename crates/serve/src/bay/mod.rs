//! A bay holds one simulated drive in real time: it exports the drive to other programs, and has its power switch.
//!
//! ```text
//!   plumb drive serve ──► Bay ──► sim::Handle ──► export: NBD on sockets and TCP, loop device or ublk
//!                          ▲
//!   plumb drive cut ··· ───┘ control socket: one order and one answer, each a line of JSON
//! ```
//!
//! A bay is found by the name of its drive: its control socket is in a directory of this user, so that nobody else may cut
//! the power. The socket of a bay that was killed is replaced.

pub mod control;
pub mod place;

mod attached;
mod bay;
mod clients;
mod error;
mod remains;
mod serving;
mod socket;

pub use crate::attach::AttachError;
pub use crate::nbd::server::ServeError;
pub use crate::nbd::tls::TlsError;
#[cfg(feature = "ublk")]
pub use crate::ublk::UblkError;
#[cfg(feature = "ublk")]
pub use attached::Ublk;
pub use bay::{Bay, BayOptions};
pub use error::BayError;
pub use remains::names_with_remains;
pub use serving::{Encryption, Place, Say};
pub use socket::forget;

/// Takes away what attachments of killed processes have left: dead mounts and loop devices.
///
/// # Errors
/// If the directory of attachments cannot be used.
pub fn sweep() -> Result<crate::attach::Swept, AttachError> {
    crate::attach::sweep(None)
}

/// Takes away what killed processes have left of ublk devices that nobody uses; the numbers of those that had to stay, each with
/// the reason.
///
/// # Errors
/// If the records or the driver cannot be used.
#[cfg(feature = "ublk")]
pub fn sweep_ublk() -> Result<Vec<(u32, String)>, UblkError> {
    crate::ublk::sweep(None).map(|swept| swept.kept)
}
