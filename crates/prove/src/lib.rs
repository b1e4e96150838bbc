//! Exploration of what survives a power cut: the commands sent to a device are recorded, every state that a
//! cut may leave is explored, and a checker judges each state.
//!
//! ```text
//!   Device ─► Recorder ─► Recording ─► Explorer ─► State ─► checker
//!                (block events and acknowledgements in one order)   (what a cut leaves, each once)
//! ```
//!
//! - [`recording`]: commands, acknowledgements and contents, recorded at the waist and stored in a file.
//! - [`explore`]: the states, in an order that finds failures early. `plumb-crash` defines which states a cut
//!   may leave.
//! - [`session`]: a subject recorded at its work on a [`file_system`].
//! - [`drives`]: several drives that lose their power at the same moment.
//! - [`profile`]: kinds of drives by name; [`subject`]: programs under test, and their checkers.
//! - [`state_device`]: a state as a device, on which a file system can be mounted.
//! - [`judge`]: each state mounted and checked.
//! - [`observed`]: results of checks, indexed by the contents that the checks read, so that most states need
//!   no check of their own.
//! - [`oracle`]: comparison of a state with the files that the program made visible, for subjects without a
//!   checker.
//! - [`proof`]: a complete proof, and the proposed changes.
//! - [`posix`]: a file system that gives only the guarantees of POSIX, recorded from system calls.
//! - [`trace`]: the system calls of a program, and the operations that it leaves unsynced.
//! - [`roles`]: the use of each block of a drive.
//!
//! Invariant: every exploration of a recording is the same. The order of states follows from the recording,
//! the profile, the limits and the seed alone.

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
