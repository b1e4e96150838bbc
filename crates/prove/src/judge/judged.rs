//! The result of judging: counts, windows, and what fails.

use std::collections::BTreeMap;

use plumb_report::document::proof::{Coverage, FailureClass, StateCounts};

use crate::explore::{Choice, WindowCoverage};

/// Result of judging a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeResult {
    /// Number of states.
    pub counts: StateCounts,
    /// Each window with its number of failing states.
    pub windows: Vec<(WindowCoverage, u64)>,
    /// Failing states by class.
    pub failing: BTreeMap<FailureClass, FailingStates>,
    /// Intact states whose checks wrote to the drive, up to some thousands.
    pub wrote: Vec<Choice>,
    /// Reason why some states were not judged; the rest of the result is valid all the same.
    pub incomplete_because: Option<String>,
    /// Further remarks for the report.
    pub notes: Vec<String>,
}

/// States that fail in one class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailingStates {
    /// Number of states.
    pub count: u64,
    /// State among them with the fewest lost commands; among equals the one with the fewest lost blocks, then
    /// the first.
    pub example: Choice,
    /// Checker's words about the example.
    pub words: String,
}

impl JudgeResult {
    /// Returns true if every window was explored whole and no state was left out.
    pub(crate) fn is_exhaustive(&self) -> bool {
        self.incomplete_because.is_none()
            && self.windows.iter().all(|(window, _)| window.coverage == Coverage::Exhaustive)
    }
}
