//! Result of judging: counts, windows, and failures.

use std::collections::BTreeMap;

use plumb_report::document::proof::{Coverage, FailureClass, StateCounts};
use plumb_report::quantity::counted;

use crate::explore::{Choice, Limits, WindowCoverage};

/// Result of judging a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeResult {
    /// Number of states.
    pub counts: StateCounts,
    /// Windows, each with its number of failing states.
    pub windows: Vec<(WindowCoverage, u64)>,
    /// Failing states by class.
    pub failing: BTreeMap<FailureClass, FailingStates>,
    /// Intact states whose checks wrote to the drive, up to some thousands.
    pub wrote: Vec<Choice>,
    /// Reason why some states were not judged. The rest of the result is valid.
    pub incomplete_because: Option<String>,
    /// True if the time limit ended judging before all states within the limits.
    pub out_of_time: bool,
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
    /// Returns true if every window was explored exhaustively and no state was left out.
    pub(crate) fn is_exhaustive(&self) -> bool {
        self.incomplete_because.is_none()
            && self.windows.iter().all(|(window, _)| window.coverage == Coverage::Exhaustive)
    }

    /// Describes the windows that were not explored exhaustively within these limits, and the remedy. Returns
    /// `None` if all were.
    pub(crate) fn not_exhaustive_because(&self, limits: Limits) -> Option<String> {
        let has = |coverage| self.windows.iter().filter(|(window, _)| window.coverage == coverage).count();
        let left = self.windows.iter().filter(|(window, _)| window.coverage != Coverage::Exhaustive);
        let (largest, _) = left.max_by_key(|(window, _)| window.pieces)?;
        let place = match largest.required {
            Some(number) => format!("after acknowledgement {number}"),
            None => "before the first acknowledgement".to_owned(),
        };
        let help = if self.out_of_time {
            "give more time with --budget"
        } else if self.counts.distinct >= limits.states {
            "allow more states with --states"
        } else {
            "no option allows for so many: sync more often, or cut the power in a part with --target"
        };
        let (all, whole) = (self.windows.len(), has(Coverage::Exhaustive));
        let bounded = match has(Coverage::Bounded) {
            0 => String::new(),
            bounded => format!(", {bounded} more in every subset of whole writes"),
        };
        Some(format!(
            "{whole} of {all} windows ({} %) were explored whole{bounded}; the largest of the rest is {place}, \
             with {} of {} at risk: {help}",
            whole * 100 / all.max(1),
            counted(largest.pieces as u64, "block"),
            counted(largest.commands as u64, "write")
        ))
    }
}
