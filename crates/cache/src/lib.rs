//! The write-back cache: a log on one or more fast devices in front of a slower one.
//!
//! ```text
//!   submit, completed, advance ──► Cache ──► actions for the legs and the backing device, each with its Purpose
//!                                    └─────► answers for the client
//! ```
//!
//! [`Cache`] is a state machine. It does no I/O and has no clock: it is told of requests, of completions and
//! of the time, and answers with actions. The same events give the same actions. Whoever carries it does the
//! actions on devices that keep the contract of [`plumb_block::device`], and hands back their completions.
//!
//! - **Write**: in a record of the log, together with what came while the record before was in flight;
//!   acknowledged when that record and all before it are complete on every leg that counts.
//! - **Flush**: a flush of the legs; of the backing device only if something went past the log.
//! - **Read**: from the log what is there, checked against its checksum, from the backing device the rest.
//! - **Destage**: the oldest segments, in the order of their addresses, merged with their neighbours; then a
//!   flush of the backing device, then the tail, then the segments are free.
//! - **Recovery**: from the tail on to the first gap.
//!
//! Inside, `base` holds the state that all parts share: the members, the log, the index, the superblock.
//! Over it stand the parts, each a value with methods: `flush`, `mark`, `gather`, `destage`, `resilver`,
//! `write`. `core` owns them, hands each event to its part, and advances them in one order.
//!
//! `docs/ON_DISK_FORMAT.md` draws the bytes and enumerates what a crash may leave.

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
