//! Notes on a replayed trace: how much of it was replayed, its delay, and its speed.

use plumb_block::Nanos;
use plumb_load::LoadOutcome;
use plumb_workload::{Replay, Replays};

use crate::span_run::SpanRun;
use crate::targets::Targets;

/// Returns a line for each job of a span that replayed a trace.
pub(crate) fn notes(replays: &Replays, targets: &Targets, span: usize, run: &SpanRun) -> Vec<String> {
    let of_span = replays.iter().filter(|((number, _), _)| *number == span);
    let said = of_span.filter_map(|((_, job), replay)| {
        let opened = targets.of_span(span).enumerate().filter(|(_, (_, one))| one.job == *job);
        let outcomes: Vec<_> = opened.map(|(index, _)| run.ran.result.of_target(index)).collect();
        note(replay, &outcomes)
    });
    said.collect()
}

fn note(replay: &Replay, outcomes: &[LoadOutcome]) -> Option<String> {
    let how = replay.targets.first()?.how();
    let done: u64 =
        outcomes.iter().map(|one| one.operations().latency.count() + one.flush.latency.count()).sum();
    let (events, path) = (replay.events(), &how.path);
    let begun = format!("{done} of the {events} events of {path} were replayed");
    let took = outcomes.iter().map(|one| one.length).max().unwrap_or(Nanos::ZERO);
    let length = replay.length();
    if !how.is_paced() {
        return Some(format!(
            "{begun} as fast as the depth allows, in {took}: recorded in {length}{}",
            pace(length, took)
        ));
    }
    let late: u64 = outcomes.iter().map(|one| one.late_starts).sum();
    let unstarted: u64 = outcomes.iter().map(|one| one.unstarted).sum();
    let behind = outcomes.iter().map(|one| one.backlog_max).max().unwrap_or(Nanos::ZERO);
    Some(format!(
        "{begun} in {took}, meant for {length}: {late} started late by more than their mean interval, {unstarted} not \
         at all, at most {behind} behind"
    ))
}

/// Returns the ratio of the recorded duration to that of the replay, in words.
fn pace(recorded: Nanos, took: Nanos) -> String {
    if recorded == Nanos::ZERO || took == Nanos::ZERO {
        return String::new();
    }
    let times = recorded.as_secs_f64() / took.as_secs_f64();
    if times >= 1.0 {
        format!(", {times:.1} times as fast")
    } else {
        format!(", {:.1} times as slow", 1.0 / times)
    }
}
