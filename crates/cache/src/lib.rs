//! The write-back cache: a log on one or more fast devices in front of a slower one.
//!
//! ```text
//!   submit, completed, advance ──► Cache ──► actions for the legs and the backing device, each with its Purpose
//!                                    └─────► answers for the client
//! ```
//!
//! [`Cache`] is a state machine. It does no I/O and has no clock: it receives requests, completions and the
//! time, and returns actions. Equal events give equal actions. Its driver executes the actions on devices
//! that keep the contract of [`plumb_block::device`], and reports their completions.
//!
//! - **Write**: into a record of the log, together with other writes that arrived while the previous record
//!   was in flight; acknowledged when that record and all before it are complete on every counting leg.
//! - **Flush**: a flush of the legs; of the backing device only if a write bypassed the log.
//! - **Read**: from the log, verified by checksum, where it has the data; otherwise from the backing device.
//! - **Destage**: the oldest segments in order of addresses, merged with their neighbours; then a flush of
//!   the backing device, then the new tail, which frees the segments.
//! - **Recovery**: from the tail up to the first gap.
//!
//! Internally, `base` holds the state shared by all parts: the members, the log, the index, the superblock.
//! The parts are values with methods: `flush`, `mark`, `gather`, `destage`, `resilver`, `write`. `core` owns
//! them, dispatches events, and advances them in a fixed order.
//!
//! `docs/ON_DISK_FORMAT.md` shows the format and enumerates the possible states after a crash.

mod action;
mod base;
mod cache;
mod continuation;
mod core;
mod destage;
mod devices;
pub mod driver;
mod flush;
mod format;
mod gather;
mod geometry;
mod grow;
mod index;
mod io;
mod legs;
mod log;
mod mark;
mod pace;
mod recovery;
mod resilver;
mod seal;
mod settings;
mod status;
mod superblocks;
mod write;

pub use action::{Action, ActionId, Member, Purpose, Wait, Waits};
pub use cache::{Cache, InitialWrite, Leg};
pub use format::superblock::LegState;
pub use recovery::{Findings, LegFindings};
pub use seal::NewLog;
pub use settings::{
    BUFFER, BUFFERS_MIN, DestageOptions, Identity, LEGS_MAX, LOG_BLOCK, Layout, Mark, MissingLegs, Mode,
    Options, ParseUuidError, Settings, Uuid, WITNESSES_MAX,
};
pub use status::{Figures, State, Status};
