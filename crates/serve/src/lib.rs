//! Serves any [`Device`](plumb_block::Device) to other programs over NBD, through FUSE and loop, or through
//! ublk, and opens an NBD export as a device. Pages of text it serves over HTTP.

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
