//! Runs the workers of a span, as a trial would, on recording devices in virtual time, with warm-up,
//! cool-down and shared depths.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::{Bytes, Clock, Nanos, Op, Time, VirtualClock};
use plumb_load::{LoadOutcome, RunOptions, SharedDepth, Team, Worker, WorkerOptions, run_teams};
use plumb_workload::{Cursor, Job, Share, Span, Thread};

use crate::streams::recording::{Log, Recording, SeenRequest};

/// Duration of each request.
pub(crate) const LATENCY: Nanos = Nanos::millis(1);
/// Size of targets that the job does not extend.
pub(crate) const SIZE: Bytes = Bytes::mib(64);

/// Requests of a span, and its figures.
pub(crate) struct Stream {
    pub(crate) seen: Vec<SeenRequest>,
    /// Combined figures of the span's workers.
    pub(crate) outcome: LoadOutcome,
}

impl Stream {
    /// Returns reads, writes and trims.
    pub(crate) fn accesses(&self) -> Vec<&SeenRequest> {
        self.seen.iter().filter(|seen| seen.op != Op::Flush).collect()
    }

    /// Returns the offsets of the accesses in order.
    pub(crate) fn offsets(&self) -> Vec<u64> {
        self.accesses().iter().map(|seen| seen.offset).collect()
    }

    pub(crate) fn writes(&self) -> Vec<&SeenRequest> {
        self.seen.iter().filter(|seen| is_write(seen)).collect()
    }

    pub(crate) fn flushes(&self) -> usize {
        self.seen.iter().filter(|seen| seen.op == Op::Flush).count()
    }

    /// Returns the requests by worker.
    pub(crate) fn by_worker(&self) -> BTreeMap<usize, Vec<&SeenRequest>> {
        let mut workers: BTreeMap<usize, Vec<&SeenRequest>> = BTreeMap::new();
        for seen in &self.seen {
            workers.entry(seen.worker).or_default().push(seen);
        }
        workers
    }

    /// Returns the percentage of requests for which `holds` returns true.
    pub(crate) fn percent(&self, holds: impl Fn(&SeenRequest) -> bool) -> f64 {
        let all = self.accesses();
        assert!(!all.is_empty());
        all.iter().filter(|seen| holds(seen)).count() as f64 * 100.0 / all.len() as f64
    }

    /// Returns the maximum number of requests in flight on a queue.
    pub(crate) fn deepest(&self) -> usize {
        self.seen.iter().map(|seen| seen.in_flight).max().unwrap()
    }
}

pub(crate) fn is_write(seen: &SeenRequest) -> bool {
    matches!(seen.op, Op::Write { .. })
}

/// Devices of a run, by target name.
struct Devices {
    clock: Arc<dyn Clock>,
    log: Arc<Log>,
    latency: Nanos,
}

impl Devices {
    fn on(clock: Arc<dyn Clock>, latency: Nanos) -> Self {
        Self { clock, log: Arc::default(), latency }
    }

    fn device(&self, name: &str, size: Bytes) -> Recording {
        let (clock, log) = (Arc::clone(&self.clock), Arc::clone(&self.log));
        Recording { name: name.to_owned(), size, latency: self.latency, clock, log }
    }

    fn worker(&self, job: &Job, place: usize, share: Share, cursor: &Cursor) -> Worker {
        let size = job.size.unwrap_or(SIZE);
        let options = WorkerOptions {
            share,
            cursor: cursor.clone(),
            continue_on_error: job.continue_on_error,
            start_delay: job.start_delay,
            ..WorkerOptions::default()
        };
        let workload = job.workload_on(place, job.workload.within(size).unwrap());
        Worker::new(&self.device(&job.targets[place].name, size), &workload, options).unwrap()
    }

    fn take(self, outcomes: impl Iterator<Item = LoadOutcome>) -> Stream {
        let mut outcome = LoadOutcome::empty();
        outcomes.for_each(|more| outcome.merge(&more));
        let seen = std::mem::take(&mut self.log.lock().seen);
        Stream { seen, outcome }
    }
}

/// Runs a span in virtual time.
pub(crate) fn run(span: &Span) -> Stream {
    let clock = Arc::new(VirtualClock::new());
    let devices = Devices::on(Arc::clone(&clock) as Arc<dyn Clock>, LATENCY);
    let log = Arc::downgrade(&devices.log);
    clock.register(log);
    let mut teams = Vec::new();
    let mut cursors: BTreeMap<(usize, usize), Cursor> = BTreeMap::new();
    for Thread { share, targets, shared_depth } in span.threads() {
        let worker = |place: (usize, usize)| {
            let cursor = cursors.entry(place).or_default();
            devices.worker(&span.jobs[place.0], place.1, share, cursor)
        };
        let workers = targets.into_iter().map(worker).collect();
        let shared_depth = shared_depth.map(|(depth, weights)| SharedDepth::new(depth, weights));
        teams.push(Team { workers, shared_depth, prepare: None, cpu: None });
    }
    let options = RunOptions {
        time: Time::Virtual(clock),
        stop: &AtomicBool::new(false),
        warmup: span.warmup,
        duration: None,
        cooldown: span.cooldown,
    };
    let teams = run_teams(teams, &options, &mut ()).unwrap();
    let workers = teams.into_iter().flat_map(|team| team.workers);
    devices.take(workers.map(|worker| worker.outcome))
}
