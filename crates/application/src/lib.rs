//! Application profiles: workloads that do what SQLite, the log of PostgreSQL, mail servers and others do.
//!
//! A [`Profile`] says what it does, where that is known from and what of it is estimated, what it leaves out,
//! and which limits its users go by. Some profiles are plain block workloads: [`scenario`] writes them down
//! for the ordinary engine. The others need names, appends and the several kinds of sync of a file system, or
//! the real SQLite: [`run()`] runs those in a directory of their own, which is removed whatever happens.
//!
//! - `catalogue`: the profiles, read from `profiles.toml`; a program says what its threads do.
//! - `engine`: runs a program over a [`FileStore`](plumb_block::FileStore), and times each call and each
//!   transaction.
//! - `sqlite`: the real SQLite.
//! - `criteria`: holds what was measured against a profile's limits.
//!
//! Invariants: all sizes, places and choices follow from the seed, so that each thread makes the same calls
//! on every machine; a sync that fails ends the run at once; nothing outside of the directory that was made
//! is touched.

mod catalogue;
mod chance;
pub mod criteria;
mod engine;
pub mod error;
mod explain;
pub mod limits;
mod noise;
pub mod profile;
pub mod run;
mod sqlite;

pub use catalogue::{find, profiles};
pub use criteria::{Criterion, LimitResult, LimitVerdict, Quantity, Statistic, judge};
pub use error::Error;
pub use explain::explain;
pub use limits::{Directory, Limits, OpenStore};
pub use profile::{BlockWork, Extent, FileWork, Profile, Provenance, SqliteWork, Variant, Work};
pub use run::{run, scenario};
