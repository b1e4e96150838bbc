//! Result of a trace.

use std::path::PathBuf;

use plumb_block::Nanos;

use super::Call;

/// Calls of a program that has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traced {
    /// In the order in which they returned.
    pub calls: Vec<Call>,
    /// How many sync calls were made in the program's place, each after a call that succeeded.
    pub injected: u64,
    /// How many were made after a call that failed, whose result was not known yet. A program that is mended
    /// need not make these.
    pub injected_after_failures: u64,
    /// Where what is audited or synced lies: a directory, by a path without links.
    pub root: PathBuf,
    /// When the trace was begun, by the clock of the calls: since 1970.
    pub began: Nanos,
}
