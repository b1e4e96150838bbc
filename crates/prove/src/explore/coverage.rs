//! Limits of an exploration, set by the caller, and the coverage reached in each window.

pub use plumb_report::document::proof::Coverage;
use serde::Serialize;

/// Bounds of an exploration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// A window is explored exhaustively if its pieces at risk (blocks that differ, and atomic writes) allow
    /// at most two to the power of this number of choices. A block that was written n times allows n + 1.
    pub pieces: u32,
    /// Maximum number of commands at risk in a window for which all subsets of commands are explored.
    pub commands: u32,
    /// Maximum number of states to show.
    pub states: u64,
    /// A window beyond the other limits is also explored exhaustively if at most this many visits show all
    /// states that a check can distinguish by its reads. 0 if the reads of checks are not known.
    #[serde(default)]
    pub visits: u64,
}

impl Limits {
    /// Maximum number of visits, which take some minutes if each result is looked up.
    pub const VISITS_MAX: u64 = 1 << 22;
}

impl Default for Limits {
    fn default() -> Self {
        Self { pieces: 12, commands: 12, states: 1_000_000, visits: 0 }
    }
}

/// Extent to which one window was explored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WindowCoverage {
    /// Event of the recording before which the window ends.
    pub event: usize,
    /// Number of the last acknowledgement before the cut, which a checker must find.
    pub required: Option<u64>,
    /// Number of commands at risk.
    pub commands: usize,
    /// Number of pieces at risk: blocks that differ, and atomic writes.
    pub pieces: usize,
    /// Number of states that were enumerated, some of them more than once.
    pub enumerated: u64,
    /// Number of distinct states that were shown.
    pub states: u64,
    /// Class of this extent: exhaustive, bounded or sampled.
    pub coverage: Coverage,
}
