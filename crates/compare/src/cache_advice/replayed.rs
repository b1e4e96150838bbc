//! Replay of a recording in simulated time.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::{Bytes, FailureKind, Nanos, Time};
use plumb_linux::FileOptions;
use plumb_load::{Ending, LoadOutcome, RunOptions, Team, Worker, WorkerOptions, run_teams};
use plumb_measure::Histogram;
use plumb_report::document::cache::{CacheSize, WaitTimes};
use plumb_targets::{Intent, Name, Permission, Scheme, TargetRequest, open_all};
use plumb_trial::TrialError;
use plumb_workload::{ByteRange, RecordedEvents, Stop, Workload};

use crate::setting::failed;

/// Maximum number of requests in flight, as for a trace of `plumb load`.
const DEPTH: u32 = 64;

/// Outcome of a replay.
pub(super) struct Replay {
    outcome: LoadOutcome,
    /// Figures of the cache; all zero without one.
    figures: plumb_cache::Figures,
}

/// Replays `recorded` on a new device called `name`, in a separate simulated world.
pub(super) fn over(name: &Name, recorded: &RecordedEvents, stop: &AtomicBool) -> Result<Replay, TrialError> {
    let time = Time::Virtual(Arc::default());
    let (device, cache) = match name {
        Name::Scheme { scheme: Scheme::Cache, .. } => {
            let (opened, cache) = plumb_caches::open_simulated(name, &time)?;
            (opened.device, Some(cache))
        }
        Name::Scheme { scheme: Scheme::Sim, .. } => {
            let options = FileOptions::write_direct();
            let wanted = TargetRequest { name: name.clone(), intent: Intent::WRITE, options };
            let opened = open_all(&[wanted], &Permission::default(), &time)?.swap_remove(0);
            (opened.device, None)
        }
        _ => {
            let message = format!("{name}: expected a simulated drive, such as sim:nearline-4tb");
            return Err(TrialError::new(FailureKind::Usage, message));
        }
    };
    let range = ByteRange { offset: Bytes(0), length: device.info().size };
    // The replay ends with the recording, not after a time.
    let stop_at = Stop::operations(recorded.events().len() as u64);
    let workload = Workload { stop: stop_at, ..Workload::over(range, Bytes::kib(4)) };
    let workload = Workload { range, depth: DEPTH, ..recorded.stand_in(&workload) };
    let options = WorkerOptions {
        replay: Some(recorded.clone()),
        // A slow device may answer minutes late, which is a valid result.
        answer_within: Nanos::secs(86_400),
        ..WorkerOptions::default()
    };
    let worker = Worker::new(&*device, &workload, options).map_err(|error| failed(&error))?;
    let teams = run_teams(vec![Team::single(worker)], &RunOptions::whole(time, stop), &mut ());
    let teams = teams.map_err(|error| failed(&error))?;
    let workers = teams.iter().flat_map(|team| &team.workers);
    let outcome = LoadOutcome::together(workers.map(|worker| &worker.outcome));
    if outcome.ending == Ending::Interrupted {
        return Err(TrialError::new(FailureKind::NotMeasured, "interrupted: nothing is advised"));
    }
    let figures = cache.and_then(|cache| cache.look(plumb_cache::Cache::status)).map(|status| status.figures);
    Ok(Replay { outcome, figures: figures.unwrap_or_default() })
}

impl Replay {
    /// Returns the latencies of all writes, each since its time in the recording.
    fn writes(&self) -> &Histogram {
        self.outcome.write.operation_latency()
    }

    /// Returns the total time that clients waited for writes and flushes, in seconds.
    fn seconds(&self) -> f64 {
        (self.writes().sum_ns() + self.outcome.flush.latency.sum_ns()) as f64 / 1e9
    }
}

/// Returns the times that clients waited in a replay.
pub(super) fn waiting(replayed: &Replay) -> WaitTimes {
    let writes = replayed.writes();
    let seconds = |time: Option<Nanos>| time.unwrap_or_default().as_secs_f64();
    WaitTimes {
        seconds: replayed.seconds(),
        write_mean: writes.mean().unwrap_or_default(),
        write_p99: seconds(writes.at_per_mille(990)),
        write_max: seconds(writes.max()),
    }
}

/// Compares a log of this size with no cache and with a log that never fills.
pub(super) fn tried(size: Bytes, tried: &Replay, uncached: &Replay, fastest: &Replay) -> CacheSize {
    // A latency that is longer by up to a tenth does not count as a stall.
    let limit = Nanos(fastest.writes().max().unwrap_or_default().0 / 10 * 11);
    let (all, quick) = tried.writes().bins().fold((0, 0), |(all, quick), (upper, count)| {
        (all + count, if upper <= limit { quick + count } else { quick })
    });
    CacheSize {
        size: size.0,
        absorbed: if all == 0 { 1.0 } else { quick as f64 / all as f64 },
        stall_seconds: (tried.seconds() - fastest.seconds()).max(0.0),
        speed_up: uncached.seconds() / tried.seconds().max(1e-9),
        waiting: waiting(tried),
        destaged_bytes: tried.figures.destaged.0,
        bypassed_bytes: tried.figures.bypassed.0,
        log_written_bytes: tried.figures.leg_written.0,
        log_lifetime: None,
    }
}
