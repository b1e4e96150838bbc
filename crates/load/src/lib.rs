//! Workers that run a workload on devices, in real or in virtual time.
//!
//! A [`Worker`] is a state machine: each [`step`](Worker::step) submits what may start, polls its queue, and records
//! what completed. It owns no thread and reads no clock, so the same worker runs against a disk in real time
//! ([`run`]) and against a simulated one in virtual time ([`run_virtual`]). It knows no kind of device.
//!
//! What is promised to whoever reads the figures:
//!
//! - Every request that completed is counted, those after the end of the window too, and the window ends with the
//!   last of them: the slowest request is never cut off.
//! - With a rate limit both the service time and the time since the intended start are recorded; a backlog shows.
//! - A write is never reported as durable before the flush after it has succeeded, and writes, flushes and the two
//!   together are counted and timed apart.
//! - The first request that fails ends the run. No result of a flush is ignored.

mod batch;
pub mod fault;
pub mod in_flight;
pub mod outcome;
pub mod progress;
pub mod realtime;
mod recorder;
#[cfg(test)]
mod scripted;
pub mod virtual_time;
pub mod worker;

pub use fault::{Error, Fault, LoadFailure, Refused};
pub use in_flight::Kind;
pub use outcome::{Direction, Ending, Failure, LoadOutcome};
pub use progress::Progress;
pub use realtime::run;
pub use virtual_time::run_virtual;
pub use worker::{Step, Worker, WorkerOptions};
