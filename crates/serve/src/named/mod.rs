//! Any device served under a name: its exports, its entry in the registry, and the control socket on which it
//! takes orders.
//!
//! ```text
//!   plumb drive serve ──► Service ──► Device: NBD on sockets and TCP, loop device or ublk
//!                            ▲
//!   plumb drive cut ··· ─────┘ control socket: one order and one answer, each a frame
//! ```
//!
//! A service is found by its name: its control socket is in a directory of this user, so that nobody else may
//! give orders. The socket of a service that was killed is replaced. Every service tells its status and can
//! be detached; what else can be ordered is its device's own: its [`Controls`].

pub mod control;
pub mod registry;

mod block_device;
mod error;
mod nbd;
mod service;
mod socket;

pub use block_device::UblkExport;
pub use error::ServiceError;
pub use nbd::{NbdAddress, Say, connections_max};
pub use service::{Controls, Ending, Exports, Service, ServiceDevice, ServiceOptions};
pub use socket::forget;
