//! State that plumb leaves on a machine: its files, and the one place that writes them. And the messages that
//! plumbs send each other.
//!
//! - [`places`] lists every directory and file that plumb uses beside those that a user names.
//! - [`whole_file`] reads, replaces, lists and removes files so that each is whole at every moment, durable
//!   when the call returns unless the caller asks for less.
//! - [`LockedRecord`] is a file that a process keeps locked while it lives, so that what a killed process
//!   left is told from what a living one holds.
//! - [`sealed_lines`] are records in a file that is appended to, each with its [`digest`], of which a torn
//!   tail is told from damage.
//! - [`frame`] is the one format of what goes over a connection between two processes of plumb.
//! - [`output`] writes the files that a user names for a result: it never replaces what plumb did not write,
//!   unless the user says `--overwrite`, and never replaces what is not a regular file.

mod cache_record;
pub mod digest;
mod drive_record;
pub mod frame;
pub mod hex;
mod locked_record;
pub mod output;
mod own_results;
pub mod places;
pub mod sealed_lines;
mod ublk_record;
pub mod whole_file;

pub use cache_record::{CacheRecord, LegRecord};
pub use drive_record::DriveRecord;
pub use locked_record::{DirectoryLock, LockedRecord, Owner};
pub use output::{OutputError, OutputFile};
pub use ublk_record::UblkRecord;
