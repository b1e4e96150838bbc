//! The kernel's side of ublk, block devices that a process serves (include/uapi/linux/ublk_cmd.h): the
//! control device, and the queues of one device. What requests mean is not decided here.
//!
//! ```text
//!   Control      /dev/ublk-control   commands on a ring with entries of 128 bytes: add, start, stop, take over
//!   CharDevice   /dev/ublkcN         opened by one process at a time
//!   UblkQueue    a ring              fetch and commit; one thread for as long as the device lives
//!   Descriptors  a mapping           what is asked, by tag; the kernel writes, we read
//! ```
//! A tag is the kernel's while its command is with the kernel, and so is the memory that was lent with it. It
//! is ours from the completion of the command to the next one.

mod command;
mod control;
mod descriptors;
mod queue;

pub use command::ControlOp;
pub use control::{CharDevice, Control};
pub use descriptors::DESCRIPTOR_BYTES;
pub use queue::{Event, UblkQueue};
