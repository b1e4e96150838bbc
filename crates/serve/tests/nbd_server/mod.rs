//! Tests of the NBD server through its socket: its promises, hostile clients, and the ability of the tests to
//! notice broken promises.

mod client;
mod connections;
mod hostile;
mod interop;
mod judge;
mod memory;
mod power;
pub(crate) mod running;
pub(crate) mod staged;
mod tls;
mod wrong;
