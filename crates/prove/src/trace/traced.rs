//! Result of a trace.

use std::path::PathBuf;

use plumb_block::Nanos;

use super::Call;
use super::names::FileNames;

/// Calls of a program that has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TracedCalls {
    /// In the order in which they returned.
    pub calls: Vec<Call>,
    /// Number of sync calls made in the program's place, each after a call that succeeded.
    pub injected: u64,
    /// Number of sync calls made after a call that failed, whose result was not known yet. A program that is
    /// mended need not make these.
    pub injected_after_failures: u64,
    /// Directory that is audited and synced, by a path without links.
    pub root: PathBuf,
    /// Names that were beneath it before the program.
    pub names: FileNames,
    /// Start of the trace, by the clock of the calls: since 1970.
    pub began: Nanos,
    /// Names of the processes that the program left running in sessions or process groups of their own, and
    /// that were killed.
    pub left: Vec<String>,
    /// True if the program was started: strace wrote anything about it.
    pub is_started: bool,
}
