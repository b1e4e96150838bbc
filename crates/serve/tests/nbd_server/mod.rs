//! The NBD server through its socket: what clients are promised, what hostile ones get, and whether the tests of the
//! promises notice when they are broken.

mod client;
mod crowd;
mod hostile;
mod interop;
mod judge;
#[path = "../../examples/support/memory.rs"]
#[expect(dead_code, reason = "the example uses more of it")]
mod memory;
mod running;
pub(crate) mod staged;
mod tls;
mod wrong;
