//! The NBD server through its socket: what clients are promised, what hostile ones get, and whether the tests
//! of the promises notice when they are broken.

mod client;
mod connections;
mod hostile;
mod interop;
mod judge;
mod memory;
mod power;
mod running;
pub(crate) mod staged;
mod tls;
mod wrong;
