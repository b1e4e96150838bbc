//! Limits of an exploration, which a caller sets, and the coverage that was reached of each window.

pub use plumb_report::document::proof::Coverage;
use serde::Serialize;

/// Bounds of an exploration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// A window is explored whole if its pieces at risk (blocks that differ, and atomic writes) leave at most
    /// two to the power of this many choices. A block that was written n times leaves n + 1.
    pub pieces: u32,
    /// Largest number of commands at risk in a window for which all subsets of commands are explored.
    pub commands: u32,
    /// At most this many states are shown.
    pub states: u64,
    /// A window beyond the other limits is explored whole, too, if at most this many states have to be
    /// visited to show all that a check tells apart by what it reads. 0 where nobody says what a check read.
    #[serde(default)]
    pub visits: u64,
}

impl Limits {
    /// Largest number of visits: some minutes where each is looked up.
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
    /// Number of states that were shown, each once.
    pub states: u64,
    /// Class of this extent: exhaustive, bounded or sampled.
    pub coverage: Coverage,
}
