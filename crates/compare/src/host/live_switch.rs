//! Random writes that stay in flight while the write cache of the drive is switched, which no words of a load
//! can describe.

use std::sync::atomic::AtomicBool;

use plumb_block::{Device, Nanos, Time};
use plumb_load::{Event, RunOptions, Team, Worker, WorkerOptions, run_teams};
use plumb_measure::SERIES_BUCKET;
use plumb_trial::TrialError;
use plumb_workload::{Stop, Workload};

use crate::setting::failed;

/// Number of states: the cache unchanged, switched off, and switched on again, each for one bucket of a time
/// series.
const STRETCHES: u64 = 3;

/// Outcome of the writes.
pub(crate) struct SwitchResult {
    /// Longest write in each state of the cache; zero if none completed.
    pub(crate) longest: Vec<Nanos>,
    pub(crate) failed: u64,
}

/// Runs `writes` on `device` while its cache is switched off and on again.
///
/// # Errors
/// If the drive does not answer, or its cache cannot be switched.
pub(crate) fn switched(
    device: &dyn Device,
    time: Time,
    writes: Workload,
    stop: &AtomicBool,
) -> Result<SwitchResult, TrialError> {
    let writes = Workload { stop: Stop::after(SERIES_BUCKET * STRETCHES), ..writes };
    let options = WorkerOptions { continue_on_error: true, ..WorkerOptions::default() };
    let worker = Worker::new(device, &writes, options).map_err(|error| failed(&error))?;
    // The cache is switched whenever a bucket is over.
    let mut outcome = Ok(());
    let mut switch = |event: &Event<'_>| {
        let Event::Sample(progress) = event else { return };
        let over = progress.elapsed.0 / SERIES_BUCKET.0;
        if outcome.is_ok() && (1..STRETCHES).contains(&over) {
            outcome = device.set_wce(over.is_multiple_of(2));
        }
    };
    let ran = run_teams(vec![Team::single(worker)], &RunOptions::whole(time, stop), &mut switch);
    outcome.map_err(|error| failed(&error))?;
    let teams = ran.map_err(|failure| failed(&failure))?;
    let writes = teams.iter().flat_map(|team| &team.workers).map(|worker| &worker.outcome.write);
    let mut switched = SwitchResult { longest: Vec::new(), failed: 0 };
    for of in writes {
        let points = of.series.whole_points(SERIES_BUCKET * STRETCHES);
        switched.longest.extend(points.iter().map(|point| point.latency_max));
        switched.failed += of.errors.iter().map(|(_, count)| count).sum::<u64>();
    }
    Ok(switched)
}
