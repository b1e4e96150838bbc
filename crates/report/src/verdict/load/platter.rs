//! Durable writes faster than a platter can turn.

use plumb_path::{Finding, Severity};

use super::super::Verdict;
use super::super::platter::{OPERATIONS_MIN, TURN_PART};
use super::targets;
use crate::document::RunDocument;
use crate::quantity::duration;

/// `faster-than-the-platter`: half of the durable writes to a drive that turns by its own word took less than a quarter
/// turn.
pub(in super::super) fn faster_than_the_platter(document: &RunDocument) -> Option<Finding> {
    let fast: Vec<(String, f64, f64)> = targets(document)
        .filter_map(|(label, target, _)| {
            let turn = target.device.revolution_seconds.filter(|turn| *turn > 0.0)?;
            let latency = target.sides.durable_latency.as_ref()?;
            let too_fast = latency.count >= OPERATIONS_MIN && latency.p50 < TURN_PART * turn;
            too_fast.then_some((label, latency.p50, turn))
        })
        .collect();
    let (label, median, turn) = fast.first()?;
    Some(
        Verdict {
            id: "faster-than-the-platter",
            severity: Severity::Warning,
            sentence: format!(
                "Half of the durable writes to {label} took {} or less, but one turn of the drive takes {}: what was synced \
                 is not on the platter yet.",
                duration(*median),
                duration(*turn)
            ),
            evidence: fast
                .iter()
                .map(|(label, median, turn)| {
                    format!("{label}: p50 {}, one turn {}", duration(*median), duration(*turn))
                })
                .collect(),
            remedy: super::super::platter::REMEDY,
        }
        .into(),
    )
}
