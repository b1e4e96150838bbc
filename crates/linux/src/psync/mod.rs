//! The engine without io_uring: pread(2), pwrite(2) and their relatives, one call after the other.
//!
//! For kernels and containers that forbid io_uring. Each queue holds as many requests as asked but hands them
//! to the kernel one at a time, inside `poll`; a request counts as submitted when its first call is made, so
//! latencies are those of queue depth 1, whatever depth was asked for.
//! [`Engine::depth_max`](crate::Engine::depth_max) says so.

//!
//! The queue is that of the mapped engine, too, which makes its calls another [`Way`].

mod call;
mod queue;

pub(crate) use call::{Memory, make, part_of, part_of_mut};
pub(crate) use queue::{SerialQueue, Way};
