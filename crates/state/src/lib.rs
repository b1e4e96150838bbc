//! State that plumb keeps on a machine, and the messages that plumb processes exchange.
//!
//! - [`places`] lists every directory and file that plumb uses beside those that a user names.
//! - [`whole_file`] reads, replaces, lists and removes files atomically, and durably unless the caller asks
//!   for less.
//! - [`LockedRecord`] is a file that a process keeps locked while it lives, which distinguishes leftovers of
//!   a killed process from files in use.
//! - [`sealed_lines`] are records of an append-only file, each with its [`digest`], which distinguishes a
//!   torn tail from damage.
//! - [`frame`] is the message format on connections between two plumb processes.
//! - [`output`] writes result files that a user names. It never replaces a file that plumb did not write,
//!   unless the user says `--overwrite`, and never anything but a regular file.

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
