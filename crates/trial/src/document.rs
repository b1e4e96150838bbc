//! Builds the targets and totals of the document from the measurements.

use plumb_block::{Bytes, Caching, Errno, Extent, Nanos, VolatileCache, in_one_line, written_share};
use plumb_linux::pagecache;
use plumb_linux::tree::{LiveTree, ProcessorTimes};
use plumb_load::{CpuUse, Direction, Failure, LoadOutcome, SpanResult, ThreadResult};
use plumb_measure::{FlushesOf, Quality, StorageSide, VerifyResult};
use plumb_path::WritePath;
use plumb_report::document::{
    AtomicResult, CallLatency, CpuSeconds, DeviceFacts, DirectionResult, ErrorCount, RunSpan, RunTarget,
    ScheduleResult, Sides, Transactions,
};
use plumb_targets::{TargetKind, Time};
use plumb_workload::{Content, Job, Program, Scenario, Span};

use crate::program::ProgramUse;
use crate::span_run::{SpanEnd, SpanRun};
use crate::spans;
use crate::targets::{JobTarget, Targets};
use crate::wording;

/// Reason why a target of untorn writes was not measured.
const ALL_REFUSED: &str = "every untorn write was refused: the kernel cannot send them as one (see `plumb explain \
                           untorn-lost-above`); take a smaller --block-size, or align the range to it";

/// Facts about a target in addition to the measurements of the load.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Facts {
    /// Share of the range that had been written before.
    pub(crate) written_share: Option<f64>,
    /// Bytes that were dirty in the page cache at the end.
    pub(crate) dirty_after: Option<u64>,
    /// Share of the processor time that the hypervisor took.
    pub(crate) steal: Option<f64>,
    /// True if all data of the target goes to one device once, and that device has no other target of the
    /// span.
    pub(crate) is_alone: bool,
    /// Depth that met a latency target, if one was searched for.
    pub(crate) depth_found: Option<u32>,
    /// Processor time of the threads that worked only on this target.
    pub(crate) cpu: Option<CpuUse>,
}

/// Readings taken before a span.
pub(crate) struct Readings {
    /// State of the blocks of each target, where it matters: a simulated drive reads unwritten blocks like
    /// any others.
    extents: Vec<Vec<Extent>>,
    processors: Option<ProcessorTimes>,
}

impl Readings {
    /// Takes the readings before the span with this number.
    pub(crate) fn before(targets: &Targets, number: usize) -> Self {
        let extents = targets.of_span(number).map(|(_, one)| match one.opened.kind {
            TargetKind::Simulated => Vec::new(),
            _ => one.opened.extents(),
        });
        // In virtual time nothing waits for a processor.
        let is_real = matches!(targets.time, Time::Real(_));
        let processors = is_real.then(|| ProcessorTimes::read(&LiveTree)).flatten();
        Self { extents: extents.collect(), processors }
    }

    /// Describes the change of a file of the span that has fewer blocks now, unless the span itself may have
    /// made holes: by trims, or by zeroes, which some file systems do not store.
    pub(crate) fn blocks_lost(
        &self,
        targets: &Targets,
        number: usize,
        scenario: &Scenario,
    ) -> Option<String> {
        let makes_holes = |(_, one): (usize, &JobTarget)| {
            let workload = one.workload_of(&scenario.spans[one.span].jobs[one.job]);
            workload.trim_percent > 0 || workload.content == Content::Zeroes
        };
        if targets.of_span(number).any(makes_holes) {
            return None;
        }
        let mut opened = targets.of_span(number).zip(&self.extents);
        opened.find_map(|((_, one), before)| one.opened.blocks_lost_since(before))
    }

    /// Returns the facts about each target after the span.
    pub(crate) fn facts_after(self, targets: &Targets, number: usize, scenario: &Scenario) -> Vec<Facts> {
        let steal = self
            .processors
            .zip(ProcessorTimes::read(&LiveTree))
            .and_then(|(before, now)| now.steal_since(&before));
        let open = targets.of_span(number).zip(self.extents);
        open.map(|((_, one), extents)| {
            let written_share = written_share(&extents);
            let job = &scenario.spans[one.span].jobs[one.job];
            let is_cached = matches!(job.opening.caching, Caching::Cached | Caching::Mapped);
            let dirty_after =
                (is_cached && one.workload_of(job).writes()).then(|| dirty_bytes(one)).flatten();
            let leaves = match one.opened.kind {
                TargetKind::Simulated => 1,
                _ => targets.beneath[one.beneath].devices.len(),
            };
            let is_alone = leaves == 1 && !targets.shares_devices(one.span, one.beneath);
            Facts { written_share, dirty_after, steal, is_alone, depth_found: None, cpu: None }
        })
        .collect()
    }
}

/// Returns the bytes of a file that are dirty in the page cache now.
fn dirty_bytes(one: &JobTarget) -> Option<u64> {
    if one.opened.kind != TargetKind::RegularFile {
        return None;
    }
    let file = std::fs::File::open(one.opened.path()?).ok()?;
    let residency = pagecache::residency(&file, Bytes(0), one.opened.size, &one.opened.shown).ok()?;
    residency.dirty.map(|bytes| bytes.0)
}

/// Returns all targets of a span. For a check, each phase has either all of its figures or a reason.
pub(crate) fn targets(
    run: &SpanRun,
    facts: &[Facts],
    opened: &[&JobTarget],
    asked: &Span,
    is_check: bool,
) -> Vec<RunTarget> {
    let result = &run.ran.result;
    let cpu = cpu_by_target(result);
    let failed_because = match &run.ran.ended {
        SpanEnd::Failed(fault) if is_check => Some(in_one_line(fault)),
        _ => None,
    };
    let described = opened.iter().zip(facts).enumerate().map(|(index, (one, facts))| {
        let facts = Facts { depth_found: run.depth_found, cpu: cpu[index], ..*facts };
        let job = &asked.jobs[one.job];
        let outcome = result.of_target(index);
        let mut target = target(result, index, one, asked, &outcome, facts);
        if job.role.method().is_some() {
            // Verdicts on unwritten blocks apply only to loads.
            target.sides.quality.written_share = None;
        }
        let failed_because = failed_because.clone().or(target.failed_because.take());
        RunTarget { failed_because, ..target }
    });
    described.collect()
}

/// Returns a span without figures, for this reason.
pub(crate) fn unmeasured(asked: &Span, why: &str) -> (RunSpan, Vec<RunTarget>) {
    let jobs = asked.jobs.iter().map(spans::job_asked).collect();
    let targets = asked.jobs.iter().enumerate().flat_map(|(number, job)| {
        job.targets.iter().map(move |target| RunTarget {
            name: target.name.clone(),
            opened: target.name.clone(),
            job: number,
            size: job.size.unwrap_or_default().0,
            range_bytes: job.size.unwrap_or_default().0,
            failed_because: Some(why.to_owned()),
            sides: Sides {
                depth: wording::depth_on_each(asked, number, job.workload.depth),
                storage_unknown_because: Some("it could not be measured".to_owned()),
                ..Sides::default()
            },
            ..RunTarget::default()
        })
    });
    (RunSpan { jobs, ..RunSpan::default() }, targets.collect())
}

/// Returns one target of a span; `index` is its index in the result.
fn target(
    result: &SpanResult,
    index: usize,
    one: &JobTarget,
    asked: &Span,
    outcome: &LoadOutcome,
    facts: Facts,
) -> RunTarget {
    let job = &asked.jobs[one.job];
    let info = one.opened.device.info();
    let workload = one.within(&one.workload_of(job));
    let mut sides = sides(outcome, result.targets[index].storage.clone(), facts.cpu);
    sides.depth = wording::depth_on_each(asked, one.job, facts.depth_found.unwrap_or(job.workload.depth));
    let works_here = |thread: &&ThreadResult| thread.parts.iter().any(|part| part.target == index);
    sides.threads = Some(result.threads.iter().filter(works_here).count() as u64);
    sides.dirty_bytes_after = facts.dirty_after;
    sides.quality.steal = facts.steal;
    sides.quality.written_share = facts.written_share;
    let attribution = sides.storage.as_ref().and_then(|storage| storage.attribution.as_ref());
    if attribution.is_some_and(|attribution| attribution.flushes == FlushesOf::OwnDevice) {
        // Only this run uses the device, so requests of other jobs are not foreign.
        sides.quality.foreign_bytes = Some(0);
    } else if facts.is_alone {
        sides.quality.foreign_bytes = foreign_bytes(&sides, one, job);
        estimate_foreign_flushes(&mut sides);
    }
    let atomic = job.opening.untorn.then(|| AtomicResult {
        unit_bytes: info.atomic_unit.0,
        refused: refused(&outcome.write),
        torn: sides.verified.as_ref().map(|verified| verified.torn),
    });
    let is_all_refused = atomic.is_some_and(|atomic| atomic.refused > 0) && sides.write.ios == 0;
    RunTarget {
        name: one.name.clone(),
        opened: one.opened.shown.clone(),
        span: one.span,
        job: one.job,
        size: one.opened.size.0,
        range_bytes: workload.map_or(0, |workload| workload.range.length.0),
        engine: one.opened.route.name().to_owned(),
        engine_because: one.opened.route.because().map(str::to_owned),
        failed_because: is_all_refused.then(|| ALL_REFUSED.to_owned()),
        atomic,
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

/// Returns the directory of a program as a target, with the measurements of a span.
pub(crate) fn program(result: &SpanResult, program: &ProgramUse) -> RunTarget {
    let storage = result.targets.first().map(|target| target.storage.clone());
    let storage = storage.unwrap_or_else(|| Err("nothing was measured".to_owned()));
    RunTarget {
        name: program.shown.clone(),
        opened: program.shown.clone(),
        engine: program.profile.name.clone(),
        sides: sides(&result.total(), storage, all_cpu([result])),
        ..RunTarget::default()
    }
}

/// Returns the transactions of programs; `None` without a program.
pub(crate) fn transactions(outcome: &LoadOutcome, program: &Program) -> Option<Transactions> {
    let measured = outcome.transactions.as_ref()?;
    let calls = measured.calls.iter().filter_map(|(name, histogram)| {
        Some(CallLatency { name: name.clone(), latency: histogram.summary()? })
    });
    Some(Transactions {
        count: outcome.transaction_count(),
        per_second: outcome.transactions_per_second().unwrap_or(0.0),
        syncs_each: outcome.syncs_per_transaction().filter(|_| shows_syncs(program)),
        latency: measured.latency.summary(),
        calls: calls.collect(),
    })
}

/// Returns true if the syncs of a program are visible: SQLite syncs by itself.
fn shows_syncs(program: &Program) -> bool {
    let found = plumb_application::find(&program.profile);
    !found.is_ok_and(|(profile, _)| matches!(profile.work, plumb_application::Work::Sqlite(_)))
}

/// Returns both sides for the measurements `outcome`, of one target or of a load on several hosts.
pub fn sides(outcome: &LoadOutcome, storage: Result<StorageSide, String>, cpu: Option<CpuUse>) -> Sides {
    let length = outcome.length;
    let of =
        |direction: &Direction| DirectionResult::from_side(&direction.application(length), errors(direction));
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

/// Returns for each target the processor time of the threads that worked only on it; `None` if a thread
/// worked on others too, or its time is unknown.
fn cpu_by_target(result: &SpanResult) -> Vec<Option<CpuUse>> {
    let mut all = vec![Some(CpuUse::default()); result.targets.len()];
    for thread in &result.threads {
        for part in &thread.parts {
            let cpu = thread.cpu.filter(|_| thread.parts.len() == 1);
            all[part.target] = all[part.target].zip(cpu).map(|(sum, cpu)| sum.plus(cpu));
        }
    }
    all
}

/// Returns the processor time of all threads; `None` if that of one is unknown.
pub(crate) fn all_cpu<'a>(results: impl IntoIterator<Item = &'a SpanResult>) -> Option<CpuUse> {
    let mut threads = results.into_iter().flat_map(|result| &result.threads);
    threads.try_fold(CpuUse::default(), |sum, thread| Some(sum.plus(thread.cpu?)))
}

/// Converts the use of processors to seconds.
pub(crate) fn cpu_seconds(cpu: CpuUse) -> CpuSeconds {
    CpuSeconds { user: cpu.user.as_secs_f64(), system: cpu.system.as_secs_f64() }
}

/// Maximum number of bytes that a file system writes to its journal for one sync: the descriptor of a
/// transaction, some blocks of metadata and the commit record.
const JOURNAL_BYTES_MAX: u64 = 32 << 10;
/// File systems that write new metadata trees of any size for a sync.
const COPY_ON_WRITE: [&str; 4] = ["btrfs", "zfs", "bcachefs", "nilfs2"];
/// Maximum number of flushes for one write or sync: before and after the commit record of a journal, and its
/// own.
const FLUSHES_EACH_MAX: u64 = 3;
/// Interval in seconds at which a journal commits its transaction (jbd2: `commit=5`), even without syncs.
const JOURNAL_SECONDS: f64 = 5.0;

/// Returns the bytes that the device moved beyond the load's maximum, which others must have moved. `None` if
/// the load's own share is unbounded, since the page cache or the file system writes at any time.
fn foreign_bytes(sides: &Sides, one: &JobTarget, job: &Job) -> Option<u64> {
    let storage = sides.storage.as_ref()?;
    let flushes = job.workload.durability.flush_every.is_some();
    let file_system = one.surveyed.as_ref().as_ref().ok().and_then(WritePath::file_system);
    let kind = file_system.and_then(|layer| layer.name.split(' ').next());
    let is_bounded = match job.opening.caching {
        Caching::Direct => true,
        _ => flushes && job.workload.write_percent == 100,
    };
    if !is_bounded || (flushes && kind.is_some_and(|kind| COPY_ON_WRITE.contains(&kind))) {
        return None;
    }
    // A file system may write as much metadata as data (mounted with `sync`), which is not foreign.
    let factor = if job.workload.changes() { 2 } else { 1 };
    let is_in_place = !job.append && sides.quality.written_share.is_none_or(|share| share >= 1.0);
    let journal = if is_in_place { 0 } else { JOURNAL_BYTES_MAX * sides.sync.ios };
    let own = factor * (sides.read.bytes + sides.write.bytes) + journal;
    Some((storage.read_bytes + storage.write_bytes).saturating_sub(own))
}

/// Attributes the flushes that the load cannot have requested to other programs, if flushes are not traced.
fn estimate_foreign_flushes(sides: &mut Sides) {
    let asked = sides.write.ios + sides.sync.ios;
    let commits = (sides.application.seconds / JOURNAL_SECONDS).ceil() as u64 + 1;
    let Some(storage) = &mut sides.storage else { return };
    let (Some(attribution), Some(flushes)) = (&mut storage.attribution, storage.flushes) else { return };
    if attribution.flushes == FlushesOf::AllPrograms {
        let own = FLUSHES_EACH_MAX * (asked + commits);
        attribution.foreign_flushes = Some(flushes.saturating_sub(own));
    }
}

/// Returns the number of writes that the kernel refused as a whole.
fn refused(writes: &Direction) -> u64 {
    let is_refusal = |failure: &Failure| matches!(failure, Failure::Errno(Errno::EINVAL | Errno::EOPNOTSUPP));
    writes.errors.iter().filter(|(failure, _)| is_refusal(failure)).map(|(_, count)| count).sum()
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

/// Returns the findings for the document. Blocks left undecided by a cut are described in a note.
fn verified(found: &VerifyResult) -> VerifyResult {
    VerifyResult { at_risk: 0, older: 0, unreached: 0, ..found.clone() }
}

/// Returns the combined quality of several targets: the worst value of each figure.
pub(crate) fn worst(mut quality: Quality, targets: &[RunTarget]) -> Quality {
    let least = |one: Option<f64>, other: Option<f64>| match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    for target in targets {
        quality.steal = target.sides.quality.steal.or(quality.steal);
        quality.foreign_bytes = target.sides.quality.foreign_bytes.max(quality.foreign_bytes);
        quality.written_share = least(quality.written_share, target.sides.quality.written_share);
    }
    quality
}

#[cfg(test)]
mod tests {
    use plumb_block::{DeviceCounters, StorageSnapshot};
    use plumb_measure::{Attribution, FlushWrites, storage_side};

    use super::*;

    /// 100 syncs of 100 writes, and `flushes` that were not traced.
    fn synced(flushes: u64, by: FlushesOf) -> Sides {
        let at = |seconds, flushes| {
            let device =
                DeviceCounters { name: "vda".into(), flushes: Some(flushes), ..DeviceCounters::default() };
            StorageSnapshot { at: Nanos::secs(seconds), devices: vec![device] }
        };
        let side = storage_side(&at(0, 0), &at(1, flushes), FlushWrites::Unknown).unwrap();
        let attribution = Attribution { flushes: by, foreign_flushes: None, ..Attribution::default() };
        let mut sides = Sides {
            storage: Some(StorageSide { attribution: Some(attribution), ..side }),
            ..Sides::default()
        };
        (sides.write.ios, sides.sync.ios) = (100, 100);
        estimate_foreign_flushes(&mut sides);
        sides
    }

    #[test]
    fn flushes_that_no_sync_explains_are_of_others() {
        let foreign = |sides: Sides| sides.storage.unwrap().attribution.unwrap().foreign_flushes;
        assert_eq!(foreign(synced(200, FlushesOf::AllPrograms)), Some(0), "two of each sync are a journal's");
        let others = foreign(synced(5000, FlushesOf::AllPrograms)).unwrap();
        assert!((4000..5000).contains(&others), "{others}");
        assert_eq!(foreign(synced(5000, FlushesOf::Traced)), None, "what was traced is not guessed");
    }
}
