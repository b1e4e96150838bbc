//! Steps in the form of a plan document.

use super::document::PlannedStep;
use crate::explain;
use crate::mechanism::{Condition, Step};

/// Describes the step and its bytes.
pub(crate) fn planned(step: &Step) -> PlannedStep {
    let says = |condition: &Condition| format!("{} says {}", condition.path, condition.says);
    PlannedStep {
        on: step.disk.name.clone(),
        words: step.why.clone(),
        bytes: explain::change(&step.change),
        waits_for: step.after.as_ref().map(says),
        left_out_if: step.only_unless.as_ref().map(says),
    }
}
