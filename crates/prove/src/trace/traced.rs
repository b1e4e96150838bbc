//! Result of a trace.

use std::path::PathBuf;

use plumb_block::Nanos;

use super::Call;
use super::names::FileNames;

/// Calls of a program that has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TracedCalls {
    /// Calls in the order of their returns.
    pub calls: Vec<Call>,
    /// Number of additional sync calls after successful calls.
    pub injected: u64,
    /// Number of additional sync calls after failed calls, whose results were not known yet. A corrected
    /// program need not make these.
    pub injected_after_failures: u64,
    /// Directory that is audited and synced, by a path without links.
    pub root: PathBuf,
    /// Names below the directory before the program ran.
    pub names: FileNames,
    /// Start of the trace, by the clock of the calls, since 1970.
    pub began: Nanos,
    /// Names of killed processes that the program left running in other sessions or process groups.
    pub left: Vec<String>,
    /// True if the program was started, so that strace reported something about it.
    pub is_started: bool,
}
