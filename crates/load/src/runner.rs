//! Runs teams: in real time with one thread for each team, or in virtual time on the calling thread alone.
//!
//! In real time the calling thread starts all teams at one moment, sets the begin and end of the measurement,
//! watches the stop flag, shows progress, and collects the measurements. In virtual time it does the same
//! between the steps of the workers, in a fixed order, so that the same seed gives the same run. The first
//! fault stops all of them.
//!
//! No behaviour of a device can prevent [`run_teams`] from returning. A request without an answer ends its
//! worker by deadline; a team that does not return from a queue is abandoned with its thread. The queues of a
//! team whose device does not answer are not dropped, since a drop would wait for the device: their memory
//! stays allocated, because the device may still write to it.

mod simulated;
mod steps;
mod thread;
mod threads;

use plumb_block::Time;

use self::threads::Threads;
use crate::observer::Observer;
use crate::outcome::Ending;
use crate::run_options::RunOptions;
use crate::team::{Team, TeamOutcome, TeamsFailure};

/// Runs the teams to the end of their workloads, until they are stopped, or until a failure. In virtual time
/// there are no processors and no threads: no team is prepared, and no processor time is reported.
///
/// # Errors
/// Fails with the first fault and all measurements before it.
pub fn run_teams(
    teams: Vec<Team>,
    options: &RunOptions<'_>,
    observer: &mut dyn Observer,
) -> Result<Vec<TeamOutcome>, TeamsFailure> {
    let (fault, mut teams) = match &options.time {
        Time::Virtual(_) => simulated::run(teams, options, observer),
        Time::Real(clock) => {
            let mut threads = Threads::spawn(teams, options, &**clock);
            threads.start(observer);
            threads.supervise(observer);
            threads.join()
        }
    };
    let Some(fault) = fault else { return Ok(teams) };
    for worker in teams.iter_mut().flat_map(|team| &mut team.workers) {
        worker.outcome.ending = Ending::Interrupted;
    }
    Err(TeamsFailure { fault, teams })
}

#[cfg(test)]
mod tests;
