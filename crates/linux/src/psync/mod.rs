//! The engine without io_uring: pread(2), pwrite(2) and related calls, one at a time.
//!
//! For kernels and containers that forbid io_uring. A queue holds as many requests as requested, but hands
//! them to the kernel one at a time inside `poll`. A request counts as submitted at its first call, so
//! latencies are those of queue depth 1 at any requested depth, as
//! [`Engine::depth_max`](crate::Engine::depth_max) reports.

//!
//! The mapped engine uses the same queue, with its calls as another [`Way`].

mod call;
mod queue;

pub(crate) use call::{Memory, make, part_of, part_of_mut};
pub(crate) use queue::{SerialQueue, Way};
