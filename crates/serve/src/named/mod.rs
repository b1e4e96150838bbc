//! Serving a device under a name: its exports, its entry in the registry, and the control socket for orders.
//!
//! ```text
//!   plumb drive serve ──► Service ──► Device: NBD on sockets and TCP, loop device or ublk
//!                            ▲
//!   plumb drive cut ··· ─────┘ control socket: one order and one answer, each a frame
//! ```
//!
//! A service is found by its name: the control socket is in a private directory of this user, so that nobody
//! else can give orders. The socket of a killed service is replaced. Every service reports its status and can
//! be detached; further orders are defined by the [`Controls`] of its device.

pub mod control;
pub mod registry;

mod block_device;
mod error;
mod nbd;
mod service;
mod socket;

pub use block_device::UblkExport;
pub use error::ServiceError;
pub use nbd::{Say, connections_max};
pub use service::{Controls, Ending, Exports, Service, ServiceDevice, ServiceOptions, Stay};
pub use socket::forget;
