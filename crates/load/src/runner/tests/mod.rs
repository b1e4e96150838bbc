//! Tests of teams in real time on threads, and in virtual time without, and of open loops against queueing
//! theory.

mod real_time;
mod virtual_time;

use std::sync::atomic::AtomicBool;

use super::*;
use crate::fault::Fault;
use crate::progress::Progress;
use crate::worker::Worker;
use crate::{Event, LoadOutcome};

/// A load that ended with a fault, and its measurements until then.
#[derive(Debug)]
struct LoadFailure {
    fault: Fault,
    outcome: Box<LoadOutcome>,
}

/// Runs workers, each as a separate team. Returns the sum of their measurements.
fn run(
    workers: Vec<Worker>,
    time: &Time,
    stop: &AtomicBool,
    observer: &mut dyn FnMut(&Progress),
) -> Result<LoadOutcome, LoadFailure> {
    let teams = workers.into_iter().map(Team::single).collect();
    let mut looking = |event: &Event<'_>| {
        if let Event::Progress { progress, .. } = event {
            observer(progress);
        }
    };
    match run_teams(teams, &RunOptions::whole(time.clone(), stop), &mut looking) {
        Ok(teams) => Ok(merged(&teams)),
        Err(TeamsFailure { fault, teams }) => {
            let outcome = LoadOutcome { ending: Ending::Interrupted, ..merged(&teams) };
            Err(LoadFailure { fault, outcome: Box::new(outcome) })
        }
    }
}

fn merged(teams: &[TeamOutcome]) -> LoadOutcome {
    LoadOutcome::together(teams.iter().flat_map(|team| &team.workers).map(|worker| &worker.outcome))
}
