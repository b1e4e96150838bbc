//! Random writes that stay in flight while the write cache of the drive is switched: what no words of a load say.

use plumb_block::{Bytes, Device, Nanos};
use plumb_load::{Observer, Progress, RunOptions, Team, Worker, WorkerOptions, run_teams};
use plumb_measure::SERIES_BUCKET;
use plumb_workload::{ByteRange, Stop, Workload};

use super::bench::{Bench, StudyError};

/// The cache as it is, switched off, and switched on again; each lasts for a bucket of a time series.
const STRETCHES: u64 = 3;

/// What became of the writes.
pub(super) struct Switched {
    /// The longest in each state of the cache; of none that completed it is zero.
    pub(super) longest: Vec<Nanos>,
    pub(super) failed: u64,
}

/// Random writes of 8 KiB, 64 in flight, on `drive`, of which the cache is switched off and on again.
///
/// # Errors
/// If the drive does not answer, or its cache cannot be switched.
pub(super) fn switched(bench: &Bench<'_>, drive: &str) -> Result<Switched, StudyError> {
    let (opened, time) = bench.open(drive, Bytes(0))?;
    let device = &*opened.device;
    let range = ByteRange { offset: Bytes(0), length: device.info().size };
    let stop = Stop::after(SERIES_BUCKET * STRETCHES);
    let all = Workload::over(range, Bytes::kib(8));
    let writes = Workload { write_percent: 100, depth: 64, stop, seed: bench.seed(), ..all };
    let options = WorkerOptions { continue_on_error: true, ..WorkerOptions::default() };
    let worker = Worker::new(device, &writes, options).map_err(|error| StudyError::failed(&error))?;
    let mut switch = Switch { device, switched: Ok(()) };
    let ran = run_teams(vec![Team::of(worker)], &RunOptions::whole(time, bench.stop()), &mut switch);
    switch.switched?;
    let teams = ran.map_err(|failure| StudyError::failed(&failure))?;
    let writes = teams.iter().flat_map(|team| &team.workers).map(|worker| &worker.outcome.write);
    let mut switched = Switched { longest: Vec::new(), failed: 0 };
    for of in writes {
        let points = of.series.whole_points(SERIES_BUCKET * STRETCHES);
        switched.longest.extend(points.iter().map(|point| point.latency_max));
        switched.failed += of.errors.iter().map(|(_, count)| count).sum::<u64>();
    }
    Ok(switched)
}

/// Switches the cache whenever a bucket is over.
struct Switch<'a> {
    device: &'a dyn Device,
    switched: plumb_block::Result<()>,
}

impl Observer for Switch<'_> {
    fn sample(&mut self, progress: &Progress) {
        let over = progress.elapsed.0 / SERIES_BUCKET.0;
        if self.switched.is_ok() && (1..STRETCHES).contains(&over) {
            self.switched = self.device.set_wce(over.is_multiple_of(2));
        }
    }
}
