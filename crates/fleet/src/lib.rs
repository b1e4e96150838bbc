//! Runs of plumb on many hosts: a controller, and the agents that it starts there with a launcher (`ssh
//! {host}`).
//!
//! ```text
//!   controller ── launcher ── shell of the host ── plumb agent --stdio
//!        Hello, Ping, Here, Run, Start, Stop, Bye  ──►
//!        ◄──  Hello, Pong, Ready, Begun, Figures, Part
//! ```
//!
//! - [`message`] defines the messages, sent in frames ([`plumb_state::frame`]). Memory stays bounded whatever
//!   the peer sends.
//! - [`clock`] estimates the offset of a host's clock, with an error bound.
//! - [`Controller`] and [`Agent`] are state machines without I/O: they take received bytes and the time, and
//!   return bytes to send and a deadline. So tests run a thousand hosts in one process, in virtual time.
//! - [`processes`] drives a controller over launched processes, [`stdio`] an agent over its stdin and stdout.
//! - [`hosts`] and [`launcher`] parse user input. The name of a host is never interpreted by a shell.
//! - [`work`] runs the tasks of an agent: loads, which start together on all hosts, and commands of plumb.
//! - [`merge`] combines the answers of the hosts in one document.
//! - [`HostComparison`] compares levels in blocks, each of which is a load on all hosts.
//! - [`session`] runs a command on all hosts, and [`record`] stores the answers in one run directory.
//!
//! Invariants:
//! 1. A host that is silent for two heartbeats and a second is given up; an agent that hears nothing for as
//!    long stops its task.
//! 2. A failure of one host does not affect the others.
//! 3. A result that lacks a host says so.

pub mod agent;
pub mod clock;
mod comparison;
pub mod controller;
pub mod hosts;
pub mod launcher;
mod load;
mod machines;
pub mod merge;
pub mod message;
pub mod processes;
pub mod progress;
pub mod record;
pub mod session;
pub mod stdio;
pub mod work;

pub use agent::{Action, Agent};
pub use clock::{Estimate, MonotonicClock};
pub use comparison::HostComparison;
pub use controller::{Controller, HostNow, Settings};
pub use hosts::HostsError;
pub use launcher::Launcher;
pub use message::{Identity, Level, LoadTask, Task, TaskResult};
pub use processes::Processes;
pub use session::{Reach, Session, SessionError, Watch};
