//! Running teams: in real time on threads, one for each team, or in virtual time on the calling thread alone.
//!
//! In real time the calling thread starts all teams at one moment, says when measuring begins and ends, watches the flag to
//! stop, shows progress, and collects what the workers measured. In virtual time it does the same between the steps of the
//! workers, in a fixed order, so that the same seed gives the same run. The first fault stops all of them.
//!
//! Nothing a device does can keep [`run_teams`] from returning. A request without an answer ends its worker by
//! deadline; a team that does not come back from a queue at all is given up, and its thread is left behind. The queues
//! of a team whose device fell silent are not dropped, since dropping would wait for the device: their memory stays
//! allocated, for the device may still write there.

mod simulated;
mod steps;
mod thread;
mod threads;

use std::sync::atomic::AtomicBool;

use plumb_block::{Nanos, Time};
use plumb_workload::Warmup;

use self::threads::Threads;
use crate::fault::Fault;
use crate::ledger::Ledger;
use crate::observer::Observer;
use crate::outcome::{Ending, LoadOutcome};
use crate::span::CpuUse;
use crate::team::Team;

/// How a run goes, apart from what its workers do.
pub struct RunOptions<'a> {
    /// What the devices' queues stamp completions with.
    pub time: Time,
    /// Becomes true when the run shall end early.
    pub stop: &'a AtomicBool,
    /// How long the teams run before they are measured.
    pub warmup: Warmup,
    /// How long they are measured, if time ends it; workers have their own end in their workloads.
    pub duration: Option<Nanos>,
    /// How long they go on after that.
    pub cooldown: Nanos,
}

impl<'a> RunOptions<'a> {
    /// Teams are measured from the start to the end of their workloads.
    pub const fn whole(time: Time, stop: &'a AtomicBool) -> Self {
        Self { time, stop, warmup: Warmup::For(Nanos::ZERO), duration: None, cooldown: Nanos::ZERO }
    }
}

/// What a team measured.
#[derive(Debug)]
pub struct TeamOutcome {
    /// Processor time of its thread while it was measured; `None` if nobody asked or it is not kept, and in virtual time.
    pub cpu: Option<CpuUse>,
    /// One for each worker, in order.
    pub workers: Vec<WorkerOutcome>,
}

impl TeamOutcome {
    /// Of workers that are not done, or whose ledgers are nobody's business now.
    fn of_figures(figures: impl IntoIterator<Item = LoadOutcome>) -> Self {
        let workers = figures.into_iter().map(|outcome| WorkerOutcome { outcome, ledger: None });
        Self { cpu: None, workers: workers.collect() }
    }
}

/// What a worker measured.
#[derive(Debug)]
pub struct WorkerOutcome {
    /// Its figures.
    pub outcome: LoadOutcome,
    /// What its blocks must hold, if that was verified.
    pub ledger: Option<Ledger>,
}

/// A run that ended with a fault, and what was measured until then.
#[derive(Debug, thiserror::Error)]
#[error("the load stopped at its first failure")]
pub struct TeamsFailure {
    /// What went wrong first.
    #[source]
    pub fault: Fault,
    /// What each team measured, in order; a team that was given up has no workers here.
    pub teams: Vec<TeamOutcome>,
}

/// Runs the teams to the end of their workloads, until told to stop, or until something fails. In virtual time there are no
/// processors and no threads: no team is prepared, and no processor time is told.
///
/// # Errors
/// The first fault, with all that was measured before it.
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
