//! Running workers in virtual time: on one thread, in a fixed order, so that the same seed gives the same run.
//!
//! Workers never move the clock. When none of them can go on, the world is asked to move: to its next event, or to
//! the time at which a worker has something to do.

mod teams;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::{Nanos, VirtualClock};
use plumb_workload::Warmup;

use crate::fault::LoadFailure;
use crate::outcome::{Ending, LoadOutcome};
use crate::realtime::{Conduct, TeamsFailure, together};
use crate::team::Team;
use crate::worker::Worker;

pub use teams::{AdvanceWorld, run_teams_virtual};

/// So many steps without the clock moving mean that it never will: a device that takes no time at all.
const STEPS_PER_INSTANT_MAX: u64 = 1 << 24;

/// Runs the workers from `start` to the end of their workload, until `stop` is set, or until something fails.
///
/// `world` is given a deadline. It moves the clock that stamps completions to its next event, or to the deadline if
/// there is none before, and returns the time that it is then.
///
/// # Errors
/// The first fault, with all that was measured before it.
pub fn run_virtual(
    workers: Vec<Worker>,
    start: Nanos,
    stop: &AtomicBool,
    world: &mut AdvanceWorld<'_>,
) -> Result<LoadOutcome, LoadFailure> {
    let clock = VirtualClock::new();
    clock.advance_to(start);
    let conduct = Conduct {
        clock: Arc::new(clock),
        stop,
        warmup: Warmup::For(Nanos::ZERO),
        duration: None,
        cooldown: Nanos::ZERO,
    };
    match run_teams_virtual(workers.into_iter().map(Team::of).collect(), &conduct, &mut (), world) {
        Ok(teams) => Ok(together(teams)),
        Err(TeamsFailure { fault, teams }) => {
            let outcome = LoadOutcome { ending: Ending::Interrupted, ..together(teams) };
            Err(LoadFailure { fault, outcome: Box::new(outcome) })
        }
    }
}

#[cfg(test)]
mod tests;
