//! Use of the workers' time: waiting for syncs, the parts of a sync, or the load generator itself.

use plumb_block::Nanos;
use plumb_path::Severity;

use super::evidence::Evidence;
use super::outcome::Verdict;
use crate::document::{RunTarget, Sides};
use crate::figures::FlushCount;
use crate::quantity::{count, duration, percent};
use crate::wording;

/// Share of the workers' time from which they mainly wait for syncs.
const SHARE_FROM: f64 = 0.5;
/// Processor use below which it counts as idle.
const IDLE_BELOW: f64 = 0.5;
/// Mean time of a sync, in seconds, below which it is not a bottleneck.
const MEAN_FROM: f64 = 1e-3;
/// Processor use of a worker above which it cannot issue more requests.
const BUSY_ABOVE: f64 = 0.95;
/// Share of a sync below which a part is not reported.
const TOLD_FROM: f64 = 0.005;

/// Number of writes in a row that a sync waits for: the data, the journal and its commit.
const WRITES_OF_A_SYNC: f64 = 3.0;

/// Part of the time of a sync.
#[derive(Debug, Clone, PartialEq)]
struct Part {
    /// Seconds per sync.
    seconds: f64,
    what: String,
    advice: &'static str,
}

const COMMIT_FEWER: &str = "Commit several records with one sync (group commit: PostgreSQL commit_delay, MySQL \
    binlog_group_commit_sync_delay), which lets each wait for the others. Or give up the last transactions at a power cut, \
    and no consistency: PostgreSQL synchronous_commit=off, SQLite journal_mode=WAL with synchronous=NORMAL, InnoDB \
    innodb_flush_log_at_trx_commit=2. ";
const FLUSH_ADVICE: &str = "A drive with power-loss protection answers a flush at once and gives up nothing but its price; \
    `plumb policy show` says whether the drive's cache can be set otherwise.";
const TRANSFER_ADVICE: &str = "The device spends the time on the data itself, so a protected cache, which \
                               saves only flushes, changes little: write less with each sync, or use a \
                               faster device.";
const BETWEEN_ADVICE: &str = "The time is lost above the device: put the file system on the disk itself, or make the loop \
    device with direct I/O (`losetup --direct-io=on`), which takes its file's page cache out of the way.";
const JOURNAL_ADVICE: &str = "A faster flush would change little: the file system commits its journal, or waits for others who \
    do. Overwrite files that are laid out instead of making them longer, sync with fdatasync, and keep what others write \
    off this file system.";
const SCHEDULER_ADVICE: &str = "The storage is not what is slow: the worker was ready and waited for a processor. Give the \
    machine more processors or less other work, and measure again.";
const PROCESSOR_ADVICE: &str = "The storage is not what is slow: the worker was working. Look at what it does for each sync (perf), or use more workers.";

/// Judges `waiting-on-flushes`: the workers wait for one sync after another.
pub(super) fn waiting_on_flushes(evidence: &Evidence<'_>) -> Option<Verdict> {
    let mut waiting = Vec::new();
    for (label, target, job) in evidence.targets() {
        let sides = &target.sides;
        let (Some(sync), Some(busy)) = (&sides.sync.latency, sides.quality.worker_busy) else { continue };
        let time = sides.application.seconds * f64::from(job.threads.max(1));
        let share = if time > 0.0 { sync.mean * sync.count as f64 / time } else { 0.0 };
        if sync.mean >= MEAN_FROM && share >= SHARE_FROM && busy < IDLE_BELOW {
            let of_worker = time / sync.count.max(1) as f64;
            waiting.push((label, share.min(1.0), sync, parts(evidence, target, of_worker)));
        }
    }
    let (label, share, sync, parts) = waiting.first()?;
    let of_sync = |parts: &[Part], mean: f64| {
        let told = parts.iter().filter(|part| part.seconds >= TOLD_FROM * mean);
        told.map(|part| format!("{} {}", percent(part.seconds / mean), part.what))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let largest = parts.iter().max_by(|one, other| one.seconds.total_cmp(&other.seconds))?;
    let sentence = format!(
        "{} of the time on {label} was spent in {} syncs of {} each: {}.",
        percent(*share),
        count(sync.count),
        duration(sync.mean),
        of_sync(parts, sync.mean)
    );
    let line = |(label, share, sync, parts): &(&str, f64, &plumb_measure::Latency, Vec<Part>)| {
        let parts = of_sync(parts, sync.mean);
        format!(
            "{label}: {} syncs, mean {}, {} of the time; {parts}",
            count(sync.count),
            duration(sync.mean),
            percent(*share)
        )
    };
    let mut verdict = Verdict::new(Severity::Info, sentence, waiting.iter().map(line).collect());
    verdict.remedy = Some(match largest.advice {
        FLUSH_ADVICE | TRANSFER_ADVICE | JOURNAL_ADVICE => format!("{COMMIT_FEWER}{}", largest.advice),
        other => other.to_owned(),
    });
    Some(verdict)
}

/// Returns the parts of a sync of `target` by cause, from the device up. `of_worker` is the worker's time for
/// each sync. Every part is a mean and is limited to the rest of the sync, so that their sum is the whole.
/// The processor's part is known for the run only: all work of the worker other than syncs is assumed to come
/// first, and the remainder must have been in syncs.
fn parts(evidence: &Evidence<'_>, target: &RunTarget, of_worker: f64) -> Vec<Part> {
    let sides = &target.sides;
    let Some(sync) = &sides.sync.latency else { return Vec::new() };
    let mut left = sync.mean;
    let mut parts = Vec::new();
    let mut take = |seconds: f64, what: String, advice: &'static str| {
        let seconds = seconds.clamp(0.0, left);
        left -= seconds;
        parts.push(Part { seconds, what, advice });
    };
    let (flush, transfer, above) = device_times(sides);
    take(flush, "flushing at the device".to_owned(), FLUSH_ADVICE);
    take(transfer, "writing at the device".to_owned(), TRANSFER_ADVICE);
    if above > 0.0 {
        take(above - flush - transfer, between(evidence, target), BETWEEN_ADVICE);
    }
    let outside = (of_worker - sync.mean).max(0.0);
    let (or_more, or_less) =
        if outside < TOLD_FROM * sync.mean { ("", "") } else { ("or more ", "or less ") };
    let in_syncs = |share: Option<f64>| (share.unwrap_or(0.0) * of_worker - outside).max(0.0);
    let (waiting, busy) = (in_syncs(sides.quality.worker_waiting), in_syncs(sides.quality.worker_busy));
    take(waiting, format!("{or_more}waiting for a processor"), SCHEDULER_ADVICE);
    take(busy, format!("{or_more}the worker's own processor time"), PROCESSOR_ADVICE);
    let (rest, advice) = match sides.storage {
        Some(_) => ("in the journal and the file system", JOURNAL_ADVICE),
        None => ("below the sync, where nothing is counted", FLUSH_ADVICE),
    };
    take(f64::INFINITY, format!("{or_less}{rest}"), advice);
    parts
}

/// Returns the seconds of a sync that the lowest devices spend on flushes and on writes, and that the topmost
/// device above them spends on both; zero if unknown.
fn device_times(sides: &Sides) -> (f64, f64, f64) {
    let Some(storage) = &sides.storage else { return (0.0, 0.0, 0.0) };
    let syncs = sides.syncs().max(1) as f64;
    let flushes = FlushCount::from_storage(storage);
    // Devices side by side are flushed in parallel, and a sync waits for few of the flushes and writes of all
    // programs.
    let is_of_all = flushes.is_some_and(FlushCount::is_of_all);
    let most = |is_few: bool, most: f64| if is_few { most } else { f64::INFINITY };
    let each = flushes.map_or(0.0, |flushes| flushes.count as f64 / syncs);
    let flush =
        storage.flush_mean.unwrap_or(0.0) * each.min(most(is_of_all || storage.devices.len() > 1, 1.0));
    // Devices side by side write in parallel, so the mean of one write represents them.
    let writes: u64 = storage.devices.iter().map(|device| device.writes).sum();
    let time: u64 = storage.devices.iter().map(|device| device.write_time.0).sum();
    let busy =
        storage.devices.iter().map(|device| device.busy_time).max().unwrap_or(Nanos(0)).as_secs_f64() / syncs;
    let each = time.checked_div(writes).map_or(0.0, |time| Nanos(time).as_secs_f64());
    let writes = (storage.writes as f64 / syncs).min(most(is_of_all, WRITES_OF_A_SYNC));
    let transfer = (each * writes).min((busy - flush).max(0.0));
    let above =
        storage.above.first().map_or(0.0, |top| (top.flush_time.0 + top.write_time.0) as f64 / 1e9 / syncs);
    (flush, transfer, above)
}

/// Returns `in the loop device and what is between it and the device`.
fn between(evidence: &Evidence<'_>, target: &RunTarget) -> String {
    let top = target.sides.storage.as_ref().and_then(|storage| storage.above.first());
    let layer = top.and_then(|top| evidence.document.path_of(target)?.layer(&top.name));
    match layer.map(|layer| layer.kind) {
        Some(plumb_path::LayerKind::Loop) => {
            "in the loop device's thread and the file system below it".to_owned()
        }
        Some(kind) => format!("in layers between, from the {} down", wording::kind(kind)),
        None => "in layers between".to_owned(),
    }
}

/// Judges `generator-bound`: a direct load was limited by the worker instead of the storage. Cached loads
/// always are.
pub(super) fn generator_bound(evidence: &Evidence<'_>) -> Option<Verdict> {
    let bound: Vec<(&str, f64)> = evidence
        .phases
        .iter()
        .filter(|phase| phase.direct_load)
        .filter_map(|phase| Some((phase.name.as_str(), phase.quality.worker_busy?.min(1.0))))
        .filter(|(_, busy)| *busy > BUSY_ABOVE)
        .collect();
    let (name, busy) = *bound.first()?;
    let sentence = format!(
        "The worker of {name} was {} busy: the storage may be faster than this figure.",
        percent(busy)
    );
    let lines = bound.iter().map(|(name, busy)| format!("{name}: {} busy", percent(*busy)));
    Some(Verdict::new(Severity::Info, sentence, lines.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn slow_syncs_with_an_idle_processor_are_waiting() {
        let finding = waiting_on_flushes(&Evidence::new(&fixture::document("raid-eight-disks"))).unwrap();
        assert!(finding.sentence.contains("21.1 ms"), "{}", finding.sentence);
        assert!(
            waiting_on_flushes(&Evidence::new(&fixture::virtual_machine())).is_none(),
            "57 µs is nobody's bottleneck"
        );
    }

    #[test]
    fn the_processor_between_syncs_is_no_part_of_them() {
        let of_sync = |busy: f64| {
            let mut document = fixture::document("raid-eight-disks");
            document.targets.retain(|target| target.sides.sync.latency.is_some());
            document.targets.truncate(1);
            let sides = &mut document.targets[0].sides;
            let sync = sides.sync.latency.unwrap();
            sides.application.seconds = sync.mean * sync.count as f64 / 0.6;
            (sides.quality.worker_busy, sides.quality.worker_waiting) = (Some(busy), None);
            waiting_on_flushes(&Evidence::new(&document)).unwrap().sentence
        };
        assert!(!of_sync(0.39).contains("own processor time"), "{}", of_sync(0.39));
        // 46 of 100 parts, of which 40 may be outside: 6 of 60.
        let known = of_sync(0.46);
        assert!(known.contains("10% or more the worker's own processor time"), "{known}");
        assert!(known.contains("or less in the journal"), "{known}");
    }

    #[test]
    fn busy_workers_bound_direct_loads_only() {
        let mut document = fixture::virtual_machine();
        assert!(
            generator_bound(&Evidence::new(&document)).is_none(),
            "a cached load is always bound by its worker"
        );
        document.targets[4].sides.quality.worker_busy = Some(0.99);
        assert!(
            generator_bound(&Evidence::new(&document)).unwrap().sentence.contains("read-direct was 99% busy")
        );
    }
}
