//! Application profiles: workloads that reproduce SQLite, the log of PostgreSQL, mail servers and other
//! applications.
//!
//! A [`Profile`] states its pattern, the source of the pattern and what of it is estimated, what it does not
//! model, and the limits by which users of the application judge storage. Some profiles are plain block
//! workloads: [`scenario`] turns them into a scenario for the load generator. The others need file names,
//! appends and the different sync calls of a file system, or the real SQLite: [`run()`] executes these in a
//! new directory, which is always removed.
//!
//! - `catalogue`: the profiles, read from `profiles.toml`, and the programs of those that work on files.
//! - `engine`: runs a program over a [`FileStore`](plumb_block::FileStore), and times each call and each
//!   transaction.
//! - `sqlite`: runs the real SQLite.
//! - `criteria`: compares measurements with the limits of a profile.
//!
//! Invariants:
//! - All sizes, positions and choices follow from the seed, so each thread makes the same calls on every
//!   machine.
//! - A failed sync ends the run at once.
//! - Nothing outside the new directory is changed. Apart from creating and removing it, files are accessed
//!   only through a `FileStore` or by SQLite.

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
