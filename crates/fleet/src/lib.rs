//! Runs of plumb on many hosts: agents that a launcher starts there (`ssh {host}`), and the controller that
//! they answer to.
//!
//! ```text
//!   controller ── launcher ── shell of the host ── plumb agent --stdio
//!        Hello, Ping, Here, Run, Start, Stop, Bye  ──►
//!        ◄──  Hello, Pong, Ready, Begun, Figures, Part
//! ```
//!
//! - [`message`] is what goes over a connection, in frames ([`plumb_state::frame`]). Whatever the other side
//!   sends, memory stays bounded.
//! - [`clock`] estimates how far the clock of a host is from this one, with a bound of the error.
//! - [`Controller`] and [`Agent`] are state machines without I/O: bytes in with the time, bytes out, and when
//!   to look again. So a thousand hosts run in one process, in virtual time.
//! - [`processes`] drives a controller over launched processes, [`stdio`] an agent over its own stdin and
//!   stdout.
//! - [`hosts`] and [`launcher`] read what was typed; nothing in the name of a host is ever taken for a word
//!   of a shell.
//! - [`work`] is what an agent does: loads together with other hosts, and commands of the same program.
//! - [`merge`] makes one document of what the hosts answered.
//! - [`HostComparison`] compares levels in blocks, each of which is a load on all hosts.
//! - [`session`] runs a command on all hosts, and [`record`] keeps what they answer in one run directory.
//!
//! Invariants: a host that is silent for two heartbeats and a second is given up, and an agent that hears
//! nothing for as long stops what it does; whatever a host does, the others go on; a result that lacks a host
//! says so.

pub mod agent;
pub mod clock;
mod comparison;
pub mod controller;
pub mod hosts;
pub mod launcher;
mod load;
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
