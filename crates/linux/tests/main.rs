//! The tests of this crate from outside. One program, so that it is linked once: a scenario a file, and what
//! they share.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod block_device_conforms;
mod blocks_of_any_length;
mod file_conforms;
mod flush_calls;
mod forbidden_io_uring;
mod frozen_file_system;
mod mapped;
mod queue_of_a_thread;
mod support;
mod uncached;
