//! Exploration of what survives a power cut: the commands that a device was given are recorded, every state
//! that a cut may leave is explored, and each is put before a checker.
//!
//! ```text
//!   Device ─► Recorder ─► Recording ─► Explorer ─► State ─► checker
//!                (block events and acknowledgements in one order)   (what a cut leaves, each once)
//! ```
//!
//! - [`recording`]: commands, acknowledgements, contents; taken at the waist, kept in a file.
//! - [`explore`]: the states, in an order that finds failures early; which of them a cut may leave is for
//!   `plumb-crash` to say.
//! - [`session`]: a subject recorded at its work, on a [`file_system`].
//! - [`drives`]: several drives that lose their power at one moment.
//! - [`profile`]: kinds of drives by name; [`subject`]: what is put to the test, and its checker.
//! - [`state_device`]: a state as a device, which a file system can be mounted on.
//! - [`judge`]: each state mounted and put before the checker.
//! - [`observed`]: results of checks by what the checks have read, so that most states need none.
//! - [`oracle`]: a state compared with what the program made visible, where there is no checker.
//! - [`proof`]: all of it put together, and what to change.
//! - [`posix`]: a file system that promises only what POSIX does, recorded from system calls.
//! - [`trace`]: the system calls of a program, and what it leaves unsynced.
//! - [`roles`]: what the blocks of a drive are for.
//!
//! Invariant: a recording is explored the same way wherever and however often it is: the
//! order of states follows from recording, profile, limits and seed alone.

mod change;
pub mod drives;
mod error;
pub mod explore;
pub mod file_system;
pub mod judge;
mod mount_point;
pub mod observed;
pub mod oracle;
pub mod posix;
pub mod profile;
pub mod proof;
pub mod recording;
pub mod roles;
pub mod session;
pub mod state_device;
pub mod subject;
pub mod trace;

pub use error::{Error, ErrorKind, Result};
