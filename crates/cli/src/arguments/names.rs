//! Kinds of names that shell completions request from plumb, because only the machine or the program knows
//! them.

use clap::ValueEnum;

/// Kind of names that plumb completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Names {
    /// Application profiles of `plumb load`
    Profiles,
    /// Rules of reports
    Rules,
    /// Models of simulated drives
    Models,
    /// Built-in subjects of `plumb prove app`
    Subjects,
    /// Drives of `plumb prove app`
    ProofDrives,
    /// Caches on this machine
    Caches,
    /// Simulated drives that are being served
    Drives,
}
