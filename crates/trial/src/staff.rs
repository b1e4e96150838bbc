//! From a span's jobs to teams: one for each thread, with a worker for each target that the thread works on.

use std::num::NonZeroU32;

use plumb_linux::thread::{IoPriority, pin_to, processors, set_io_priority};
use plumb_load::{Prepare, SharedDepth, Team, Worker, WorkerOptions};
use plumb_workload::{Affinity, Cursor, Job, Priority, Share, Span, Workload};

use crate::cpu;
use crate::error::TrialError;
use crate::rounds;
use crate::targets::{Targets, Use};

/// One thread: of which job, and which uses its workers work on, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Post {
    pub(crate) job: usize,
    pub(crate) uses: Vec<usize>,
}

/// The teams of a span, and what each thread is for.
pub(crate) struct Staff {
    pub(crate) teams: Vec<Team>,
    pub(crate) posts: Vec<Post>,
}

/// How the staff of a span differs from what its jobs say, for a round of it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Variation {
    /// Another depth.
    pub(crate) depth: Option<u32>,
    /// Which round it is: each draws other places.
    pub(crate) round: u64,
    /// Whether latencies are shown while it runs.
    pub(crate) shows_latency: bool,
    /// Whether it only makes targets ready: traces are not replayed then.
    pub(crate) prepares: bool,
}

/// Makes the teams of a span.
///
/// # Errors
/// If a workload does not fit a target, or a processor does not exist.
pub(crate) fn staff(
    targets: &Targets,
    number: usize,
    span: &Span,
    variation: Variation,
) -> Result<Staff, TrialError> {
    let mut staff = Staff { teams: Vec::new(), posts: Vec::new() };
    for (job_number, job) in span.jobs.iter().enumerate() {
        let uses: Vec<(usize, &Use)> =
            targets.of_span(number).filter(|(_, one)| one.job == job_number).collect();
        let cursors: Vec<Cursor> = uses.iter().map(|_| Cursor::default()).collect();
        // With shared threads every thread works on all targets, otherwise each on one.
        let groups: Vec<Vec<usize>> = if job.threads_shared {
            vec![(0..uses.len()).collect()]
        } else {
            (0..uses.len()).map(|index| vec![index]).collect()
        };
        for group in groups {
            let of = NonZeroU32::new(job.threads).unwrap_or(NonZeroU32::MIN);
            for share in Share::all(of) {
                let mut workers = Vec::new();
                for index in &group {
                    let (_, one) = uses[*index];
                    let worker = worker(job, one, share, &cursors[*index], variation)?;
                    workers.push(worker);
                }
                let thread = staff.teams.len();
                staff.teams.push(Team {
                    workers,
                    shared_depth: shared_depth(job, variation),
                    prepare: Some(prepare(job, thread)?),
                    cpu: Some(cpu::of_this_thread),
                });
                let uses = group.iter().map(|index| uses[*index].0).collect();
                staff.posts.push(Post { job: job_number, uses });
            }
        }
    }
    Ok(staff)
}

/// The workload of a job on one of its targets.
pub(crate) fn workload_on(job: &Job, one: &Use, variation: Variation) -> Result<Workload, TrialError> {
    let range = |source| TrialError::Range { target: one.opened.shown.clone(), source };
    let asked = if variation.prepares {
        rounds::on_blocks(&job.workload, one.opened.device.info().logical_block)
    } else {
        one.workload_of(job)
    };
    let workload = one.within(&asked).map_err(range)?;
    let seed = workload.seed.wrapping_add(variation.round.wrapping_mul(0xa076_1d64_78bd_642f));
    Ok(Workload { depth: variation.depth.unwrap_or(workload.depth), seed, ..workload })
}

fn worker(
    job: &Job,
    one: &Use,
    share: Share,
    cursor: &Cursor,
    variation: Variation,
) -> Result<Worker, TrialError> {
    let options = WorkerOptions {
        share,
        cursor: cursor.clone(),
        continue_on_error: job.continue_on_error,
        start_delay: job.start_delay,
        replay: one.recorded.clone().filter(|_| !variation.prepares),
        ..WorkerOptions::default()
    };
    let workload = workload_on(job, one, variation)?;
    let unfit = |source| TrialError::Unfit { target: one.opened.shown.clone(), source };
    let mut worker = Worker::new(&*one.opened.device, &workload, options).map_err(unfit)?;
    if variation.shows_latency {
        worker.show_latency();
    }
    Ok(worker)
}

fn shared_depth(job: &Job, variation: Variation) -> Option<SharedDepth> {
    let weights = job.targets.iter().map(|target| target.weight).collect();
    let depth = variation.depth.unwrap_or(job.workload.depth);
    (job.depth_shared && job.targets.len() > 1).then(|| SharedDepth::new(depth, weights))
}

/// What makes the `thread`th thread of the span ready.
fn prepare(job: &Job, thread: usize) -> Result<Prepare, TrialError> {
    let pinned = match &job.affinity {
        Affinity::Any => Vec::new(),
        Affinity::Each(list) => list.get(thread % list.len().max(1)).copied().into_iter().collect(),
        Affinity::Shared(list) => list.clone(),
    };
    let allowed = processors();
    if let Some(missing) = pinned.iter().find(|processor| !allowed.contains(processor)) {
        return Err(TrialError::Processor { processor: *missing, allowed });
    }
    let priority = match job.priority {
        Priority::Idle => Some(IoPriority::Idle),
        Priority::Low => Some(IoPriority::Low),
        Priority::Normal => None,
    };
    Ok(Box::new(move || {
        if !pinned.is_empty() {
            pin_to(&pinned).map_err(|error| error.to_string())?;
        }
        priority.map_or(Ok(()), set_io_priority).map_err(|error| error.to_string())
    }))
}
