//! Simulated drives: their timing, their contents, their faults, and the effects of a power cut on writes.
//!
//! ```text
//!   Request ──► drive::Drive ──► timing::Timing      when: link, cache, mechanics     (knows no bytes)
//!                    │       └─► contents::Contents  what: visible, at risk, durable  (by plumb_crash; knows no time)
//!                    │       └─► fault, behaviour    lies and errors
//!                    ▼
//!               Completion      device::Handle: queues, in virtual or in real time
//! ```
//!
//! A [`Drive`](drive::Drive) is a state machine: submit(now), next_event, advance(now). It reads no clock,
//! and one seed determines everything random, so a run is reproducible on every machine. Mathematical
//! functions come from the `libm` crate, never from the system.

pub mod command;
pub mod contents;
pub mod cut;
pub mod device;
pub mod drive;
pub mod fault;
pub mod figures;
pub mod files;
pub mod kernel;
pub mod model;
mod timer;
pub mod timing;
mod wake_ahead;

pub use command::{Command, CommandId, Sectors};
pub use device::Handle;
