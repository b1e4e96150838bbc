//! Schedules that the storage could not keep up with.

use plumb_path::Severity;

use super::evidence::Evidence;
use super::neighbours::Foreign;
use super::outcome::Verdict;
use crate::quantity::{count, duration, percent};

/// Share of operations that never started, from which the load exceeds what the storage can do.
const UNSTARTED_FROM: f64 = 0.01;
/// Share of operations that started late, from which it does if the backlog is long too.
const LATE_FROM: f64 = 0.1;
/// Share from which other programs count as the main users of the devices.
const MOSTLY_FROM: f64 = 0.5;
/// Backlog in seconds from which it is reported.
const BACKLOG_FROM: f64 = 0.1;

/// Judges `backlog`: operations started late or not at all, so latencies since the intended start grow with
/// the length of the run.
pub(super) fn backlog(evidence: &Evidence<'_>) -> Option<Verdict> {
    let mut behind = Vec::new();
    for (label, target, _) in evidence.targets() {
        let Some(schedule) = target.sides.schedule else { continue };
        let operations = target.sides.application.operations;
        let meant = operations.saturating_add(schedule.unstarted).max(1) as f64;
        let (unstarted, late) = (schedule.unstarted as f64 / meant, schedule.late_starts as f64 / meant);
        // The last operation of each thread may be due exactly at the end.
        let is_missed = schedule.unstarted > target.sides.threads.unwrap_or(1) && unstarted >= UNSTARTED_FROM;
        if is_missed || (late >= LATE_FROM && schedule.backlog_max >= BACKLOG_FROM) {
            let line = format!(
                "{label}: {} started late, {} did not start, at most {} behind",
                count(schedule.late_starts),
                count(schedule.unstarted),
                duration(schedule.backlog_max)
            );
            let storage = target.sides.storage.as_ref();
            let foreign = storage.and_then(|storage| Foreign::new(storage, &target.sides.quality));
            behind.push((label, unstarted, late, schedule.backlog_max, line, foreign));
        }
    }
    let (label, unstarted, late, backlog, _, foreign) = behind.first()?;
    let foreign = foreign.filter(|foreign| foreign.share > MOSTLY_FROM);
    let others = foreign.map_or_else(String::new, |foreign| {
        format!(" Others {} on its devices meanwhile, {} of all.", foreign.words(), percent(foreign.share))
    });
    let sentence = format!(
        "{label} could not keep the schedule: {} of the operations started late, {} not at all, and it fell {} behind.{others} \
         Latencies since the intended start grow for as long as this lasts.",
        percent(late.min(1.0)),
        percent(*unstarted),
        duration(*backlog)
    );
    let lines = behind.iter().map(|(.., line, _)| line.clone()).collect();
    let mut verdict = Verdict::new(Severity::Warning, sentence, lines);
    verdict.remedy = foreign.map(|_| {
        "Other programs keep the devices busy; the storage itself is not slow. Measure again when they are \
         idle, or lower the rate to what they leave."
            .to_owned()
    });
    Some(verdict)
}
