//! The io_uring engine: one ring for each queue, owned by the thread that polls it.
//!
//! What makes it cheap: requests are handed over and completions fetched in batches with one system call, the
//! clock is read once for each batch, the file and the pool's memory are registered, the kernel runs
//! completions only when this thread asks for them (SINGLE_ISSUER with DEFER_TASKRUN), and nothing is
//! allocated for a request.
//!
//! - `ring`: setting a ring up, stepping down where the kernel has less; its thread.
//! - `entry`: a system call as a submission entry.
//! - `in_flight`: the requests that a queue holds, from submission to answer.
//! - `queue`: the [`Queue`](plumb_block::Queue).
//!
//! Invariant: memory that the kernel may touch belongs to a slot of `in_flight` until the kernel has
//! answered, also when the request's deadline has passed, and also when the queue is dropped.

mod entry;
mod in_flight;
mod queue;
mod ring;

pub(crate) use queue::UringQueue;
pub(crate) use ring::try_ring;
