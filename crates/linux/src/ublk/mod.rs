//! The kernel side of ublk, block devices served by a process (include/uapi/linux/ublk_cmd.h): the control
//! device, and the queues of one device. Requests are interpreted elsewhere.
//!
//! ```text
//!   Control      /dev/ublk-control   commands on a ring with entries of 128 bytes: add, start, stop, take over
//!   CharDevice   /dev/ublkcN         opened by one process at a time
//!   UblkQueue    a ring              fetch and commit; one thread for as long as the device lives
//!   Descriptors  a mapping           requests by tag, written by the kernel and read here
//! ```
//! The kernel owns a tag, and the memory lent with it, while it has the tag's command. We own both from the
//! completion of the command to the next one.

mod command;
mod control;
mod descriptors;
mod queue;

pub use command::ControlOp;
pub use control::{CharDevice, Control};
pub use descriptors::DESCRIPTOR_BYTES;
pub use queue::{Event, UblkQueue};
