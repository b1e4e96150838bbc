//! A step as a plan says it.

use super::document::PlannedStep;
use crate::explain;
use crate::mechanism::Step;

/// The step in words and bytes.
pub(crate) fn planned(step: &Step) -> PlannedStep {
    PlannedStep {
        on: step.disk.name.clone(),
        words: step.why.clone(),
        bytes: explain::change(&step.change),
        left_out_if: step
            .only_unless
            .as_ref()
            .map(|condition| format!("{} says {}", condition.path, condition.says)),
    }
}
