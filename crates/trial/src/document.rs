//! From what was measured to the document that reports are made from.

use plumb_block::{Lba, LbaRange, Nanos, VolatileCache, written_share};
use plumb_load::{CpuUse, Direction, Failure, LoadOutcome, SpanResult, WrongKind};
use plumb_measure::{Quality, StorageSide};
use plumb_report::document::{
    self, CpuSeconds, DeviceFacts, DirectionResult, ErrorCount, FoundStamp, RunTarget, ScheduleResult, Sides,
    Verified, WrongBlock,
};
use plumb_target::{Opened, TargetKind};
use plumb_workload::Job;

use crate::targets::Use;
use crate::words;

/// What is known of a target beside what the load measured.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Facts {
    /// The share of it that had been written before.
    pub(crate) written_share: Option<f64>,
    /// Bytes that were dirty in the page cache at the end.
    pub(crate) dirty_after: Option<u64>,
    /// The share of processor time that the hypervisor took away.
    pub(crate) steal: Option<f64>,
    /// Whether all its data goes to one device once.
    pub(crate) has_one_leaf: bool,
    /// The depth that was found to keep a latency, if one was looked for.
    pub(crate) depth_found: Option<u32>,
    /// Processor time of the threads that worked on it alone.
    pub(crate) cpu: Option<CpuUse>,
}

/// The share of a target that was written before, where that matters: a simulated drive reads what was never written
/// like anything else.
pub(crate) fn share_written(target: &Opened) -> Option<f64> {
    if target.kind == TargetKind::Simulated {
        return None;
    }
    let blocks = target.device.info().blocks();
    written_share(&target.device.extents(LbaRange::new(Lba(0), blocks)).ok()?)
}

/// One target of a span: `index` is its place in the result.
pub(crate) fn target(result: &SpanResult, index: usize, one: &Use, job: &Job, facts: Facts) -> RunTarget {
    let outcome = result.of_target(index);
    let info = one.opened.device.info();
    let workload = one.within(&one.workload_of(job));
    let mut sides = sides(&outcome, result.targets[index].storage.clone(), facts.cpu);
    sides.depth = words::depth_on_each(job, facts.depth_found.unwrap_or(job.workload.depth));
    sides.dirty_bytes_after = facts.dirty_after;
    sides.quality.steal = facts.steal;
    sides.quality.written_share = facts.written_share;
    sides.quality.foreign_bytes = foreign_bytes(&sides, job, facts);
    RunTarget {
        name: one.name.clone(),
        opened: one.opened.shown.clone(),
        span: one.span,
        job: one.job,
        size: one.opened.size.0,
        range_bytes: workload.map_or(0, |workload| workload.range.length.0),
        engine: one.opened.route.name().to_owned(),
        engine_because: one.opened.route.because().map(str::to_owned),
        failed_because: None,
        device: DeviceFacts {
            volatile_cache: match info.volatile_cache {
                VolatileCache::None => Some(false),
                VolatileCache::Enabled => Some(true),
                VolatileCache::Unknown => None,
            },
            fua_native: Some(info.fua_native),
            revolution_seconds: info.revolution.map(Nanos::as_secs_f64),
        },
        sides,
    }
}

/// Both sides of what `outcome` measured.
pub(crate) fn sides(
    outcome: &LoadOutcome,
    storage: Result<StorageSide, String>,
    cpu: Option<CpuUse>,
) -> Sides {
    let length = outcome.length;
    let of = |direction: &Direction| DirectionResult::of(&direction.application(length), errors(direction));
    let (storage, storage_unknown_because) = match storage {
        Ok(side) => (Some(side), None),
        Err(why) => (None, Some(why)),
    };
    let is_scheduled = outcome.read.latency_from_intended_start.is_some();
    Sides {
        read: of(&outcome.read),
        write: of(&outcome.write),
        trim: of(&outcome.trim),
        sync: of(&outcome.flush),
        durable_latency: outcome.durable.summary(),
        depth: None,
        in_flight_max: outcome.in_flight_max,
        storage,
        storage_unknown_because,
        schedule: is_scheduled.then(|| ScheduleResult {
            late_starts: outcome.late_starts,
            backlog_max: outcome.backlog_max.as_secs_f64(),
            unstarted: outcome.unstarted,
        }),
        verified: outcome.verified.as_ref().map(verified),
        cpu: cpu.map(cpu_seconds),
        cpu_unknown_because: cpu.is_none().then(|| "threads work on several targets".to_owned()),
        quality: outcome.quality(),
        ..Sides::of_application(outcome.application())
    }
}

/// For each target the processor time of the threads that worked on it and on no other; `None` where a thread worked on
/// others as well, or its time is not known.
pub(crate) fn cpu_by_target(result: &SpanResult) -> Vec<Option<CpuUse>> {
    let mut all = vec![Some(CpuUse::default()); result.targets.len()];
    for thread in &result.threads {
        for part in &thread.parts {
            let cpu = thread.cpu.filter(|_| thread.parts.len() == 1);
            all[part.target] = all[part.target].zip(cpu).map(|(sum, cpu)| sum.plus(cpu));
        }
    }
    all
}

/// Adds processor times up; `None` if one is not known.
trait SumOf {
    fn sum_of(self) -> Option<CpuUse>;
}

impl<I: Iterator<Item = Option<CpuUse>>> SumOf for I {
    fn sum_of(self) -> Option<CpuUse> {
        self.collect::<Option<Vec<_>>>().map(|all| all.into_iter().fold(CpuUse::default(), CpuUse::plus))
    }
}

/// The processor time of all threads; `None` if one is not known.
pub(crate) fn all_cpu(result: &SpanResult) -> Option<CpuUse> {
    result.threads.iter().map(|thread| thread.cpu).sum_of()
}

/// The same in seconds.
pub(crate) fn cpu_seconds(cpu: CpuUse) -> CpuSeconds {
    CpuSeconds { user: cpu.user.as_secs_f64(), system: cpu.system.as_secs_f64() }
}

/// Bytes that the devices beneath moved beyond what the load asked for: another's, unless the page cache stands
/// between.
fn foreign_bytes(sides: &Sides, job: &Job, facts: Facts) -> Option<u64> {
    let storage = sides.storage.as_ref().filter(|_| facts.has_one_leaf)?;
    let is_direct = job.opening.caching == plumb_workload::Caching::Direct;
    // A file system may write as much metadata as data (mounted with `sync`): that is not foreign.
    let factor = if job.workload.changes() { 2 } else { 1 };
    let own = factor * (sides.read.bytes + sides.write.bytes);
    is_direct.then(|| (storage.read_bytes + storage.write_bytes).saturating_sub(own))
}

fn errors(direction: &Direction) -> Vec<ErrorCount> {
    let count = |(failure, count): &(Failure, u64)| ErrorCount {
        error: match failure {
            Failure::Errno(errno) => errno.to_string(),
            Failure::Unknown => "no answer".to_owned(),
            Failure::PowerLost => "power lost".to_owned(),
        },
        count: *count,
    };
    direction.errors.iter().map(count).collect()
}

fn verified(found: &plumb_load::Verified) -> Verified {
    let example = |wrong: &plumb_load::Wrong| WrongBlock {
        lba: wrong.lba.0,
        kind: match wrong.kind {
            WrongKind::Lost => document::WrongKind::Lost,
            WrongKind::Torn => document::WrongKind::Torn,
            WrongKind::Misdirected => document::WrongKind::Misdirected,
            WrongKind::Stale => document::WrongKind::Stale,
        },
        expected: wrong.expected,
        found: wrong.found.map(|stamp| FoundStamp {
            seed: stamp.seed,
            lba: stamp.lba.0,
            generation: stamp.generation,
        }),
    };
    Verified {
        blocks: found.blocks,
        lost: found.lost,
        torn: found.torn,
        misdirected: found.misdirected,
        stale: found.stale,
        examples: found.examples.iter().map(example).collect(),
    }
}

/// The quality of several targets together: what the worst of them has.
pub(crate) fn worst(mut quality: Quality, targets: &[RunTarget]) -> Quality {
    let least = |one: Option<f64>, other: Option<f64>| match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    for target in targets {
        quality.steal = target.sides.quality.steal.or(quality.steal);
        quality.written_share = least(quality.written_share, target.sides.quality.written_share);
    }
    quality
}
