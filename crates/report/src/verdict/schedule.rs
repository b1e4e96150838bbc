//! Loads on a schedule that the storage could not keep.

use plumb_path::Severity;

use super::Verdict;
use super::evidence::Evidence;
use crate::quantity::{count, duration, percent};

/// The share of operations that never started from which the load is above what the storage can do.
const UNSTARTED_FROM: f64 = 0.01;
/// The share that started late from which it is, if the backlog was long too.
const LATE_FROM: f64 = 0.1;
/// A backlog of so many seconds is more than a hiccup.
const BACKLOG_FROM: f64 = 0.1;

/// `backlog`: operations started late or not at all, so latencies since the intended start grow with the length of the
/// run.
pub(super) fn backlog(evidence: &Evidence<'_>) -> Option<Verdict> {
    let mut behind = Vec::new();
    for (label, target, _) in evidence.targets() {
        let Some(schedule) = target.sides.schedule else { continue };
        let operations = target.sides.application.operations;
        let meant = operations.saturating_add(schedule.unstarted).max(1) as f64;
        let (unstarted, late) = (schedule.unstarted as f64 / meant, schedule.late_starts as f64 / meant);
        if unstarted >= UNSTARTED_FROM || (late >= LATE_FROM && schedule.backlog_max >= BACKLOG_FROM) {
            let line = format!(
                "{label}: {} started late, {} did not start, at most {} behind",
                count(schedule.late_starts),
                count(schedule.unstarted),
                duration(schedule.backlog_max)
            );
            behind.push((label, unstarted, late, schedule.backlog_max, line));
        }
    }
    let (label, unstarted, late, backlog, _) = behind.first()?;
    Some(Verdict {
        id: "backlog",
        severity: Severity::Warning,
        sentence: format!(
            "{label} could not keep the schedule: {} of the operations started late, {} not at all, and it fell {} \
                 behind. Latencies since the intended start grow for as long as this goes on.",
            percent(late.min(1.0)),
            percent(*unstarted),
            duration(*backlog)
        ),
        evidence: behind.iter().map(|(.., line)| line.clone()).collect(),
        remedy: "The rate is above what the storage can do. Lower it until nothing starts late, and take the latencies \
                     there; here they measure the length of the run.",
    })
}
