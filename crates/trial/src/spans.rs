//! Spans of the document: the requests and their results.

use plumb_block::Nanos;
use plumb_load::{LoadOutcome, SpanResult};
use plumb_measure::{StorageSide, storage};
use plumb_report::document::{
    DepthTried, FlushMethod, LatencyTargetResult, ProcessorSeconds, Round, RunJob, RunSpan, RunTarget, Sides,
    SteadyState,
};
use plumb_targets::TargetKind;
use plumb_workload::{Caching, FlushCall, Job, Program, Rate, Span, Warmup};

use crate::document::{all_cpu, cpu_seconds, sides, worst};
use crate::span_run::{Round as RoundRun, SpanRun};
use crate::targets::JobTarget;
use crate::wording;

/// Returns the span of the document; `targets` are its targets there.
pub(crate) fn span(run: &SpanRun, asked: &Span, opened: &[&JobTarget], targets: &[RunTarget]) -> RunSpan {
    let result = &run.ran.result;
    RunSpan {
        warmup: result.warmup.as_secs_f64(),
        settled: (asked.warmup == Warmup::Auto).then_some(run.ran.settled),
        duration: result.window.as_secs_f64(),
        cooldown: asked.cooldown.as_secs_f64(),
        jobs: asked.jobs.iter().enumerate().map(|(number, one)| job(result, number, one, opened)).collect(),
        steady: asked.steady.map(|_| SteadyState {
            rounds: run
                .rounds
                .iter()
                .map(|round| Round { seconds: round.window.as_secs_f64(), iops: round.iops })
                .collect(),
            steady: plumb_measure::steadiness::snia_steady(
                &run.rounds.iter().map(|round| round.iops).collect::<Vec<_>>(),
            ),
        }),
        latency_target: asked.latency_target.map(|target| LatencyTargetResult {
            latency: target.latency.as_secs_f64(),
            percentile: target.percentile,
            depth: run.depth_found.filter(|depth| *depth > 0),
            tried: run.rounds.iter().filter_map(tried).collect(),
        }),
        processors: result
            .processors
            .iter()
            .map(|one| ProcessorSeconds {
                number: one.number,
                user: one.user.as_secs_f64(),
                kernel: one.kernel.as_secs_f64(),
                idle: one.idle.as_secs_f64(),
            })
            .collect(),
        total: Sides {
            threads: Some(threads_of(result, asked)),
            ..total(&result.total(), all_storage(result), all_cpu([result]), targets)
        },
    }
}

/// Returns the number of threads of a span. A program determines its own.
fn threads_of(result: &SpanResult, asked: &Span) -> u64 {
    let of_programs = asked.jobs.iter().filter(|job| job.program.is_some()).map(|job| u64::from(job.threads));
    of_programs.reduce(|all, more| all + more).unwrap_or(result.threads.len() as u64)
}

/// Returns the combined sides of several targets.
pub(crate) fn total(
    outcome: &LoadOutcome,
    storage: Result<StorageSide, String>,
    cpu: Option<plumb_load::CpuUse>,
    targets: &[RunTarget],
) -> Sides {
    let mut total = sides(outcome, storage, cpu);
    total.depth = targets.iter().map(|target| target.sides.depth).sum();
    total.dirty_bytes_after =
        targets.iter().map(|target| target.sides.dirty_bytes_after).sum::<Option<u64>>();
    total.quality = worst(total.quality, targets);
    total
}

/// Returns the combined sides of all spans with the measurements `outcome`. Rates refer to the sum of their
/// windows.
pub(crate) fn whole(
    outcome: Option<LoadOutcome>,
    runs: &[&SpanRun],
    spans: &[RunSpan],
    targets: &[RunTarget],
) -> Sides {
    if let [span] = spans {
        return span.total.clone();
    }
    let mut side: Option<(StorageSide, f64)> = None;
    let mut unknown = None;
    for (_, span) in runs.iter().zip(spans) {
        match (&span.total.storage, side.take()) {
            (Some(next), Some((whole, seconds))) => {
                let seconds = seconds + span.duration;
                side = Some((storage::one_after_the_other(whole, next, seconds), seconds));
            }
            (Some(next), None) => side = Some((next.clone(), span.duration)),
            (None, _) => unknown = span.total.storage_unknown_because.clone(),
        }
    }
    let storage = match (side, unknown) {
        (Some((side, _)), None) => Ok(side),
        (_, why) => Err(why.unwrap_or_else(|| "nothing was measured".to_owned())),
    };
    let cpu = all_cpu(runs.iter().map(|run| &run.ran.result));
    total(&outcome.unwrap_or_else(LoadOutcome::empty), storage, cpu, targets)
}

/// Returns the storage side of all targets. Targets on the same devices count once.
pub(crate) fn all_storage(result: &SpanResult) -> Result<StorageSide, String> {
    let mut seen: Vec<Vec<String>> = Vec::new();
    let mut whole: Option<StorageSide> = None;
    for target in &result.targets {
        let side = target.storage.clone()?;
        let names: Vec<String> = side.devices.iter().map(|device| device.name.clone()).collect();
        if seen.contains(&names) {
            continue;
        }
        if seen.iter().flatten().any(|name| names.contains(name)) {
            return Err("the targets share some of their devices, but not all".to_owned());
        }
        seen.push(names);
        whole = Some(match whole {
            Some(whole) => storage::beside(whole, &side),
            None => side,
        });
    }
    whole.ok_or_else(|| "nothing was measured".to_owned())
}

fn tried(round: &RoundRun) -> Option<DepthTried> {
    let latency = round.latency.map(Nanos::as_secs_f64);
    Some(DepthTried { depth: round.depth?, iops: round.iops, latency })
}

/// Describes the requests of a job before its targets are known.
pub(crate) fn job_asked(job: &Job) -> RunJob {
    if let Some(program) = &job.program {
        return program_asked(job, program);
    }
    let workload = &job.workload;
    let durability = workload.durability;
    let flushes = durability.flush_every.is_some() || durability.flush_at_end;
    RunJob {
        name: job.name.clone(),
        description: wording::description(workload),
        method: job.role.method(),
        block_bytes: workload.blocks.only().map(|block| block.0),
        threads: job.threads,
        caching: job.opening.caching,
        scheduled: workload.rate != Rate::Unlimited,
        flush: flushes.then_some(match (job.opening.caching, job.opening.flush) {
            (Caching::Mapped, _) => FlushMethod::Msync,
            (_, FlushCall::Range) => FlushMethod::Range,
            (_, FlushCall::Fdatasync) => FlushMethod::Fdatasync,
            (_, FlushCall::Fsync) => FlushMethod::Fsync,
        }),
        durable_write_every: durability.fua_every.map(std::num::NonZeroU32::get),
        content: wording::content(&workload.content),
        reducible: workload.writes() && wording::is_reducible(&workload.content),
        ..RunJob::default()
    }
}

/// Describes the requests of a program.
fn program_asked(job: &Job, program: &Program) -> RunJob {
    let found = plumb_application::find(&program.profile);
    RunJob {
        name: job.name.clone(),
        description: found.map_or_else(|_| String::new(), |(profile, _)| profile.summary.clone()),
        threads: job.threads,
        caching: job.opening.caching,
        content: "what the application writes".to_owned(),
        ..RunJob::default()
    }
}

fn job(result: &SpanResult, number: usize, job: &Job, opened: &[&JobTarget]) -> RunJob {
    let of_job = || opened.iter().filter(|one| one.job == number);
    let is_disk = of_job().all(|one| one.opened.kind == TargetKind::BlockDevice);
    let recorded = of_job().find_map(|one| one.recorded.as_ref());
    let asked = job_asked(job);
    let flush = match asked.flush {
        Some(FlushMethod::Fdatasync | FlushMethod::Fsync) if is_disk => Some(FlushMethod::Device),
        other => other,
    };
    RunJob {
        description: recorded.map_or(asked.description, |one| wording::replay(one, &job.workload)),
        flush,
        // Shared threads are attributed to the first of their jobs.
        cpu: (!job.same_threads).then(|| cpu_seconds(result.cpu_of_job(number))),
        ..asked
    }
}
