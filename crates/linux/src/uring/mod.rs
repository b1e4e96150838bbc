//! The io_uring engine: one ring for each queue, owned by the polling thread.
//!
//! Sources of efficiency: one system call submits a batch of requests and fetches a batch of completions, the
//! clock is read once for each batch, the file and the pool's memory are registered, the kernel runs
//! completions only when this thread asks for them (SINGLE_ISSUER with DEFER_TASKRUN), and a request needs no
//! allocation.
//!
//! - `ring`: creation of a ring with the features that the kernel has; its thread.
//! - `entry`: encoding of a system call as a submission entry.
//! - `in_flight`: requests of a queue from submission to answer.
//! - `queue`: the [`Queue`](plumb_block::Queue).
//!
//! Invariant: memory that the kernel may access belongs to a slot of `in_flight` until the kernel has
//! answered, even after the request's deadline, and even when the queue is dropped.

mod entry;
mod in_flight;
mod queue;
mod ring;

pub(crate) use queue::UringQueue;
pub(crate) use ring::try_ring;
