//! Teams of a span's jobs: one for each thread, with a worker for each target of the thread.

use std::collections::HashMap;

use plumb_block::{Bytes, FailureKind};
use plumb_linux::thread::{pin_to, processors, set_io_priority};
use plumb_load::{Prepare, SharedDepth, Team, Worker, WorkerOptions};
use plumb_workload::{Affinity, BlockSizes, Cursor, Job, Priority, Share, Span, Thread, Workload};

use crate::cpu;
use crate::error::TrialError;
use crate::targets::{JobTarget, Targets};

/// Block size of workload independent preconditioning, sequential writes (SNIA PTS 2.0.2).
pub(crate) const PRECONDITION_BLOCK: Bytes = Bytes::kib(128);

/// Thread: its job, and the targets of its workers as indices in [`Targets::job_targets`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThreadPlan {
    pub(crate) job: usize,
    pub(crate) targets: Vec<usize>,
}

/// Teams of a span, with the plan of each thread.
pub(crate) struct SpanTeams {
    pub(crate) teams: Vec<Team>,
    pub(crate) plans: Vec<ThreadPlan>,
}

impl SpanTeams {
    /// Returns the teams for the program whose directory has this index. It has its own threads.
    pub(crate) fn for_program(place: usize) -> Self {
        Self { teams: Vec::new(), plans: vec![ThreadPlan { job: 0, targets: vec![place] }] }
    }
}

/// Differences of one round of a span from its jobs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Variation {
    /// Depth, if it differs.
    pub(crate) depth: Option<u32>,
    /// Number of the round, which selects the random choices.
    pub(crate) round: u64,
    /// True if latencies are displayed during the run.
    pub(crate) shows_latency: bool,
    /// True if it only prepares targets, so that traces are not replayed.
    pub(crate) prepares: bool,
}

/// Target as used by the threads of a span.
struct UsedTarget<'a> {
    /// Index in [`Targets::job_targets`].
    index: usize,
    /// Index among the targets of its job.
    place: usize,
    one: &'a JobTarget,
    /// Sequential position of the workers that share the target.
    cursor: Cursor,
}

/// Creates the teams of a span.
///
/// # Errors
/// If a workload does not fit a target, or a processor does not exist.
pub(crate) fn make_teams(
    targets: &Targets,
    number: usize,
    span: &Span,
    variation: Variation,
) -> Result<SpanTeams, TrialError> {
    let mut made = SpanTeams { teams: Vec::new(), plans: Vec::new() };
    let mut seen = vec![0; span.jobs.len()];
    let opened: HashMap<(usize, usize), UsedTarget<'_>> = targets
        .of_span(number)
        .map(|(index, one)| {
            let place = seen[one.job];
            seen[one.job] += 1;
            ((one.job, place), UsedTarget { index, place, one, cursor: Cursor::default() })
        })
        .collect();
    for (number, Thread { share, targets, shared_depth }) in span.threads().into_iter().enumerate() {
        let used: Vec<_> = targets.iter().filter_map(|place| opened.get(place)).collect();
        let Some(first) = used.first() else { continue };
        let job = &span.jobs[first.one.job];
        let workers = used.iter().map(|used| worker(&span.jobs[used.one.job], used, share, variation));
        made.teams.push(Team {
            workers: workers.collect::<Result<_, _>>()?,
            shared_depth: shared_depth
                .map(|(depth, weights)| SharedDepth::new(variation.depth.unwrap_or(depth), weights)),
            prepare: Some(prepare(job, number)?),
            cpu: Some(cpu::of_this_thread),
        });
        let targets = used.iter().map(|used| used.index).collect();
        made.plans.push(ThreadPlan { job: first.one.job, targets });
    }
    Ok(made)
}

/// Returns the workload of a job on one of its targets.
pub(crate) fn workload_on(job: &Job, one: &JobTarget, variation: Variation) -> Result<Workload, TrialError> {
    let asked = if variation.prepares {
        on_blocks(&job.workload, one.opened.device.info().logical_block)
    } else {
        one.workload_of(job)
    };
    let workload = one.within(&asked)?;
    let seed = workload.seed.wrapping_add(variation.round.wrapping_mul(0xa076_1d64_78bd_642f));
    Ok(Workload { depth: variation.depth.unwrap_or(workload.depth), seed, ..workload })
}

fn worker(
    job: &Job,
    used: &UsedTarget<'_>,
    share: Share,
    variation: Variation,
) -> Result<Worker, TrialError> {
    let one = used.one;
    let options = WorkerOptions {
        share,
        cursor: used.cursor.clone(),
        continue_on_error: job.continue_on_error,
        counts_refusals: job.opening.untorn,
        start_delay: job.start_delay,
        replay: one.recorded.clone().filter(|_| !variation.prepares),
        ..WorkerOptions::default()
    };
    let workload = job.workload_on(used.place, workload_on(job, one, variation)?);
    let unfit = |source| TrialError::Unfit { target: one.opened.shown.clone(), source };
    let mut worker = Worker::new(&*one.opened.device, &workload, options).map_err(unfit)?;
    if variation.shows_latency {
        worker.show_latency();
    }
    Ok(worker)
}

/// Returns the preparation of the `thread`th thread of the span.
fn prepare(job: &Job, thread: usize) -> Result<Prepare, TrialError> {
    let pinned = match &job.affinity {
        Affinity::Any => Vec::new(),
        Affinity::Each(list) => list.get(thread % list.len().max(1)).copied().into_iter().collect(),
        Affinity::Shared(list) => list.clone(),
    };
    let allowed = processors();
    if let Some(missing) = pinned.iter().find(|processor| !allowed.contains(processor)) {
        let problem = format!("processor {missing} of affinity: expected one of {allowed:?}");
        return Err(TrialError::new(FailureKind::Usage, problem));
    }
    let priority = Some(job.priority).filter(|priority| *priority != Priority::Normal);
    Ok(Box::new(move || {
        if !pinned.is_empty() {
            pin_to(&pinned).map_err(|error| error.to_string())?;
        }
        priority.map_or(Ok(()), set_io_priority).map_err(|error| error.to_string())
    }))
}

/// Returns the workload of a preparing job for a target with blocks of `logical_block`.
fn on_blocks(workload: &Workload, logical_block: Bytes) -> Workload {
    let block = PRECONDITION_BLOCK.round_down(logical_block).max(logical_block);
    Workload { blocks: BlockSizes::one(block), ..workload.clone() }
}
