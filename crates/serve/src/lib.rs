//! Servers for any [`Device`](plumb_block::Device). They know only the traits of `plumb-block`, not the kind
//! of device.
//!
//! - [`nbd`] is the network block device protocol: a server, and a client that opens an export as a device.
//! - [`attach`] makes a device appear as a loop device over a file that FUSE serves.
//! - [`ublk`] makes a device appear as a block device through the kernel's ublk driver.
//! - [`named`] serves a device under a name, with exports and a control socket.
//! - [`http`] serves text pages, such as metrics.

pub mod attach;
mod block_layer;
mod busy_poll;
mod claim;
mod error;
mod holders;
pub mod http;
mod name;
pub mod named;
pub mod nbd;
mod records;
mod requests;
mod served_device;
mod slab;
pub mod ublk;
mod unix_socket;

pub use error::ExportError;
