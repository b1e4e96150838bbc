//! Execution of a program over a file store, on threads in real time. Each call and each transaction is
//! timed.
//!
//! - `program`: the interface of a program.
//! - `hand`: the calls available to a program, each of which is timed and recorded.
//! - `recording`: the recorded calls, and the results from them.
//! - `perform`: the threads of a run.
//! - `scratch`: the directory that is created for a run and removed after it.
//! - `group_commit`: clients that share one flusher.

pub(crate) mod group_commit;
mod halt;
mod hand;
mod perform;
mod program;
mod recording;
mod scratch;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use halt::Step;
pub(crate) use hand::{Hand, Preparation};
pub(crate) use perform::{Conduct, perform, show};
pub(crate) use program::{Actor, Program, Setting};
pub(crate) use recording::{Book, Call, Took, lock};
pub(crate) use scratch::Scratch;
