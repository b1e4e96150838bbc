//! Runs a program over a file store: threads in real time, each call and each transaction timed.
//!
//! - `program`: what a profile's program is.
//! - `hand`: the calls that it may make; every one is timed, recorded and may end the run.
//! - `recording`: what was recorded, and what becomes of it.
//! - `perform`: the threads.
//! - `scratch`: the directory that is made for a run and removed after it.
//! - `group_commit`: how clients share one flusher.

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
