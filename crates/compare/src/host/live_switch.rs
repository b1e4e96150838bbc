//! Random writes that stay in flight while the write cache of the drive is switched: no words of a load
//! describe that.

use std::sync::atomic::AtomicBool;

use plumb_block::{Bytes, Device, FailureKind, Nanos, Time, in_one_line};
use plumb_load::{Event, RunOptions, Team, Worker, WorkerOptions, run_teams};
use plumb_measure::SERIES_BUCKET;
use plumb_trial::TrialError;
use plumb_workload::{ByteRange, Stop, Workload};

/// The cache as it is, switched off, and switched on again; each lasts for a bucket of a time series.
const STRETCHES: u64 = 3;

/// Outcome of the writes.
pub(crate) struct SwitchResult {
    /// The longest write in each state of the cache; zero if none completed.
    pub(crate) longest: Vec<Nanos>,
    pub(crate) failed: u64,
}

/// Random writes of `block`, so many in flight.
pub(crate) struct Writes {
    pub(crate) block: Bytes,
    pub(crate) depth: u32,
    pub(crate) seed: u64,
}

/// Writes to `device`, whose cache is switched off and on again meanwhile.
///
/// # Errors
/// If the drive does not answer, or its cache cannot be switched.
pub(crate) fn switched(
    device: &dyn Device,
    time: Time,
    writes: &Writes,
    stop: &AtomicBool,
) -> Result<SwitchResult, TrialError> {
    let failed = |error: &dyn std::error::Error| TrialError::new(FailureKind::Failed, in_one_line(error));
    let range = ByteRange { offset: Bytes(0), length: device.info().size };
    let until = Stop::after(SERIES_BUCKET * STRETCHES);
    let all = Workload::over(range, writes.block);
    let writes = Workload { write_percent: 100, depth: writes.depth, stop: until, seed: writes.seed, ..all };
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
