//! The experiments that a study file can name, and the figures that each gives. Rates are per second, times
//! seconds, sizes bytes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_application::Limits;
use plumb_block::{
    Bytes, DeviceCounters, Error, ErrorKind, FileStore as _, Nanos, OpenOptions, VolatileCache,
};
use plumb_linux::Filling;
use plumb_measure::Latency;
use plumb_report::document::ComparisonDocument;
use plumb_report::document::comparison::{Counts, Outcome};
use plumb_report::document::study::StudyPoint;
use plumb_report::outcome_words;
use plumb_report::quantity::ratio;
use plumb_sim::files::Host;
use plumb_trial::TrialError;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::bench::{Bench, LoadRun, SimulatedPlace, failed};
use super::file::{Compare, HostName, LiveSwitch, Load, Osd, PassChoice, Passes, Profile};
use crate::explanation::main_cause;
use crate::host::live_switch::{Writes, switched};
use crate::host::object_store::{ObjectStore, StoreFigures};

/// Outcome of one experiment.
#[derive(Debug, Default)]
pub(super) struct ExperimentResult {
    /// Figures by name; one that is not known is absent.
    pub(super) figures: BTreeMap<String, f64>,
    /// A comparison in words.
    pub(super) said: String,
    pub(super) counts: Counts,
    pub(super) loaded: Option<LoadRun>,
}

impl ExperimentResult {
    fn new(figures: impl IntoIterator<Item = (&'static str, Option<f64>)>) -> Self {
        let known = figures.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Self { figures: known.collect(), ..Self::default() }
    }

    /// Returns a target over time, in steps of so many seconds.
    pub(super) fn series(&self, target: usize, step: f64) -> Vec<StudyPoint> {
        let mut points: Vec<StudyPoint> = Vec::new();
        let series = self.loaded.as_ref().and_then(|loaded| loaded.series.get(target));
        for point in series.into_iter().flatten() {
            let at = (point.at.as_secs_f64() / step).floor() * step;
            match points.last_mut() {
                Some(last) if last.at >= at => last.per_second += point.operations as f64 / step,
                _ => points.push(StudyPoint { at, per_second: point.operations as f64 / step }),
            }
        }
        points
    }
}

/// Runs a load.
pub(super) fn load(
    bench: &mut Bench<'_>,
    of: &Load,
    targets: &[String],
) -> Result<ExperimentResult, TrialError> {
    let file = size_words(bench, targets.first(), of.file_mib);
    let loaded = bench.load(targets, &format!("{} {}{file}", of.words, of.chosen))?;
    let total = &loaded.document.total;
    let (application, counts) = (&total.application, Counts::from_sides(total));
    let rate = |of: Option<u64>| of.map(|of| of as f64 / counts.seconds);
    let waited = total.sync.latency.map(|of| of.mean * of.count as f64);
    let of_target = |target: usize| Some(loaded.document.targets.get(target)?.sides.application.iops);
    let mut measured = ExperimentResult::new([
        ("iops", Some(application.iops)),
        ("iops_0", of_target(0)),
        ("iops_1", of_target(1)),
        ("application_iops", (counts.operations > 0).then_some(counts.operations as f64 / counts.seconds)),
        ("device_iops", rate(counts.device_ios)),
        ("bytes_per_second", Some(application.bytes_per_second)),
        ("written_bytes", Some(total.write.bytes as f64)),
        ("sync_share", waited.map(|waited| waited / application.seconds)),
    ]);
    for (name, [from, until]) in &of.between {
        let points = loaded.series.first().into_iter().flatten();
        let within = points.filter(|point| (*from..*until).contains(&point.at.as_secs_f64()));
        let rate = within.map(|point| point.operations).sum::<u64>() as f64 / (until - from);
        measured.figures.insert(name.clone(), rate);
    }
    measured = ExperimentResult { counts, loaded: Some(loaded), ..measured };
    let peak = measured.series(0, of.step).iter().map(|point| point.per_second).fold(0.0, f64::max);
    measured.figures.insert("peak".to_owned(), peak);
    Ok(measured)
}

fn size_words(bench: &Bench<'_>, target: Option<&String>, mib: u64) -> String {
    let size = target.and_then(|target| bench.size_on(target, Bytes::mib(mib)));
    size.map_or_else(String::new, |size| format!(" --size {}", size.0))
}

/// Compares two levels.
pub(super) fn compare(
    bench: &mut Bench<'_>,
    of: &Compare,
    levels: &[[String; 2]; 2],
) -> Result<ExperimentResult, TrialError> {
    let words = format!("{}{}", of.words, size_words(bench, Some(&levels[0][1]), of.file_mib));
    let document = bench.compare(&of.factor, levels, &words, Nanos::millis(of.block_ms), of.set_by)?;
    let contrast = &document.contrast;
    let outcome = outcome_words(contrast.outcome, document.design.equivalent);
    let cause = main_cause(&contrast.explanation).filter(|_| contrast.outcome == Outcome::Different);
    let interval = contrast.ratio.and_then(|of| Some(format!("{} to {}", ratio(of.low?), ratio(of.high?))));
    let said = format!(
        "{outcome}; interval {} over {} pairs of blocks{}",
        interval.unwrap_or_else(|| "not bounded".to_owned()),
        document.blocks,
        cause.map_or_else(String::new, |cause| format!("; {cause}"))
    );
    let figures =
        [("ratio", contrast.ratio.map(|of| of.median)), ("first_over_later", first_block(&document))];
    Ok(ExperimentResult { said, ..ExperimentResult::new(figures) })
}

/// Returns the rate of the first block, which nothing went before, over the median of those that count.
fn first_block(document: &ComparisonDocument) -> Option<f64> {
    let median = document.levels.first()?.figures.get("iops")?;
    let first = document.measured.iter().find(|block| block.level == 0 && block.round == 0)?;
    Some(first.figures.get("iops")? / median)
}

fn host(name: HostName, cold_after_syncfs: bool) -> Host {
    let host = match name {
        HostName::Server => Host::SERVER,
        HostName::Desktop2002 => Host::DESKTOP_2002,
    };
    Host { cold_after_syncfs, ..host }
}

/// Runs an application profile: on a simulated file system, or in a directory of this machine.
pub(super) fn profile(
    bench: &mut Bench<'_>,
    of: &Profile,
    drive: &str,
) -> Result<ExperimentResult, TrialError> {
    let chosen = &of.chosen;
    let (count, threads, seed) = (Some(chosen.transactions), Some(chosen.threads), bench.seed);
    let limits = Limits { duration: None, count, threads, scale: Some(chosen.scale), seed };
    if let Some(directory) = bench.on {
        let scale = Some(chosen.scale.min(of.real.scale));
        let limits = Limits { duration: Some(Nanos::secs(of.real.seconds)), scale, ..limits };
        let document = bench.profile_in(directory, &of.profile, &limits)?.document;
        let transactions = document.transactions.as_ref();
        return Ok(ExperimentResult::new([
            ("per_second", transactions.map(|of| of.per_second)),
            ("syncs_each", transactions.and_then(|of| of.syncs_each)),
        ]));
    }
    let place = bench.files(drive, host(chosen.host, chosen.cold))?;
    let (measured, drive) = bench.profile(&place, &of.profile, &limits)?;
    let flushes = drive.flushes.map(|flushes| flushes as f64);
    Ok(ExperimentResult::new([
        ("per_second", measured.transactions_per_second()),
        ("syncs_each", measured.syncs_per_transaction()),
        ("mean", measured.transactions.as_ref().and_then(|of| of.latency.summary()).map(|of| of.mean)),
        ("flushes", flushes),
        ("flushes_each", flushes.map(|flushes| flushes / chosen.transactions as f64)),
        // The cut comes last: it ends the drive.
        ("synced_blocks_lost", Some(place.synced_blocks_lost_by_cut() as f64)),
    ]))
}

/// Passes over a file of a simulated file system; each pass is returned by name.
pub(super) fn passes(
    bench: &Bench<'_>,
    of: &Passes,
    drive: &str,
) -> Result<Vec<(String, ExperimentResult)>, TrialError> {
    let place = bench.files(drive, host(of.host, of.cold))?;
    let passed = over_file(&place, of, bench.seed, bench.stop()).map_err(|error| failed(&error))?;
    bench.check()?;
    Ok(passed)
}

/// Makes one call after the other: memory answers before the next of several would have its turn.
fn over_file(
    place: &SimulatedPlace,
    of: &Passes,
    seed: u64,
    stop: &AtomicBool,
) -> plumb_block::Result<Vec<(String, ExperimentResult)>> {
    let (files, mut chance) = (&place.files, Xoshiro256PlusPlus::seed_from_u64(seed));
    let (size, piece, length) = (of.file_mib << 20, of.piece_kib << 10, of.block_kib << 10);
    let create = OpenOptions { create: true, ..OpenOptions::default() };
    let file = files.open("study.dat".as_ref(), create)?;
    for offset in (0..size).step_by(piece as usize) {
        files.write_at(file, Bytes(offset), &vec![0; piece as usize])?;
    }
    files.syncfs()?;
    let (blocks, mut block) = (size / length, vec![0_u8; length as usize]);
    let mut passed = Vec::new();
    for pass in &of.pass {
        let (before, start, mut operations) = (place.drive()?, place.now(), 0_u64);
        while !(operations.is_multiple_of(1 << 20) && stop.load(Ordering::Relaxed)) {
            let number = match pass.chosen {
                PassChoice::RandomSeconds(seconds) if place.now().since(start) >= Nanos::secs(seconds) => {
                    break;
                }
                PassChoice::EachOnceInSteps(_) if operations == blocks => break,
                PassChoice::RandomSeconds(_) => chance.next_u64() % blocks,
                PassChoice::EachOnceInSteps(step) => operations * step % blocks,
            };
            match pass.write {
                true => drop(files.write_at(file, Bytes(number * length), &block)?),
                false => drop(files.read_at(file, Bytes(number * length), &mut block)?),
            }
            operations += 1;
        }
        let counts = counted(&before, &place.drive()?, place.now().since(start), operations, of.depth);
        passed.push((pass.name.clone(), counts));
    }
    let (before, dirty) = (place.drive()?.write_bytes.0, files.dirty_bytes());
    if dirty.0 > size {
        let found = format!("{dirty} dirty pages of a file of {}", Bytes(size));
        return Err(Error::new(ErrorKind::Invalid, "count", "the simulated page cache").because(found));
    }
    files.syncfs()?;
    let unwritten = place.drive()?.write_bytes.0 - before;
    let left = Left { dirty: dirty.0 as f64, under_way: unwritten.saturating_sub(dirty.0) as f64 };
    Ok(passed.into_iter().map(|(name, counts)| (name, of_pass(counts, length, left))).collect())
}

/// Bytes that are not on the drive when the passes are over.
#[derive(Clone, Copy)]
struct Left {
    /// Bytes of dirty pages: at most those of the file.
    dirty: f64,
    /// Bytes that write-back had handed on. A page among them may be dirty again.
    under_way: f64,
}

/// Returns the figures of a pass, after which `left` is still to be written.
fn of_pass(counts: Counts, length: u64, left: Left) -> ExperimentResult {
    let Left { dirty, under_way } = left;
    let (operations, ios) = (counts.operations as f64, counts.device_ios.unwrap_or(0) as f64);
    let (application, stored) = (operations * length as f64, counts.device_bytes.unwrap_or(0) as f64);
    let figures = [
        ("seconds", counts.seconds),
        ("operations", operations),
        ("application_iops", operations / counts.seconds),
        ("device_ios", ios),
        ("device_iops", ios / counts.seconds),
        ("device_io_bytes", stored / ios.max(1.0)),
        ("application_bytes", application),
        ("device_bytes", stored),
        ("dirty_bytes", dirty),
        ("under_way_bytes", under_way),
        ("absorbed_bytes", application - dirty - under_way - stored),
    ];
    ExperimentResult { counts, ..ExperimentResult::new(figures.map(|(name, value)| (name, Some(value)))) }
}

/// Returns the counts of what one thread and the drive did between two readings of its counters.
fn counted(
    before: &DeviceCounters,
    after: &DeviceCounters,
    time: Nanos,
    operations: u64,
    depth: u32,
) -> Counts {
    let seconds = time.as_secs_f64();
    let took = |of: fn(&DeviceCounters) -> Nanos| Some(of(after).since(of(before)).as_secs_f64());
    let count = |of: fn(&DeviceCounters) -> u64| Some(of(after) - of(before));
    Counts {
        seconds,
        operations,
        slot_seconds: f64::from(depth) * seconds,
        thread_seconds: Some(seconds),
        page_cache: true,
        operation_seconds: seconds,
        device_ios: count(|of| of.reads + of.writes),
        device_bytes: count(|of| of.read_bytes.0 + of.write_bytes.0),
        device_seconds: took(|of| of.read_time + of.write_time),
        device_busy_seconds: took(|of| of.busy_time),
        flushes: after.flushes.zip(before.flushes).map(|(after, before)| after - before),
        flush_seconds: took(|of| of.flush_time),
        cpu_seconds: Some(seconds),
        ..Counts::default()
    }
}

/// Runs a Ceph OSD on `target`. Of a real one whose drive could not be put into `state`, the error inside
/// says why, unless the drive is in that state anyway.
pub(super) fn object_store(
    bench: &mut Bench<'_>,
    of: &Osd,
    target: &str,
    state: &str,
) -> Result<Result<ExperimentResult, String>, TrialError> {
    bench.check()?;
    let put = if bench.on.is_some() { bench.put(state) } else { Ok(()) };
    let (mut opened, time) = bench.open(target, Bytes::mib(of.file_mib))?;
    let is_on = opened.device.info().volatile_cache != VolatileCache::None;
    if let Err(because) = put.or_else(|because| if is_on == (state == "on") { Ok(()) } else { Err(because) })
    {
        opened.remove_if_ours()?;
        return Ok(Err(because));
    }
    if opened.needs_layout.is_some() {
        let filling = Filling { seed: bench.seed, stop: bench.stop(), progress: &mut |_| {} };
        opened.lay_out(filling)?;
    }
    let load = of.load(bench.on.is_none());
    let store = ObjectStore::new(opened.device.clone(), &time, load, bench.seed);
    let served = store.and_then(|store| store.serve(bench.stop())).map_err(|error| failed(&error))?;
    bench.check()?;
    let counted = opened.counters.as_ref().map(|counters| counters.read()).transpose();
    let drive = counted.map_err(|error| failed(&error))?.and_then(|read| read.devices.into_iter().next());
    opened.mark_as_left();
    opened.remove_if_ours()?;
    Ok(Ok(of_store(&served, drive.as_ref())))
}

fn of_store(served: &StoreFigures, drive: Option<&DeviceCounters>) -> ExperimentResult {
    let syncs = served.syncs.count();
    let seconds = served.syncs.sum_ns() as f64 / 1e9;
    let latency = served.syncs.summary();
    let figure = |read: fn(&Latency) -> Option<f64>| latency.as_ref().and_then(read);
    let flushes = drive.and_then(|drive| drive.flushes);
    let flush_seconds = drive.map(|drive| drive.flush_time.as_secs_f64());
    let each = |seconds: f64| flushes.filter(|of| *of > 0).map(|flushes| seconds / flushes as f64);
    let counts = Counts {
        seconds,
        operations: syncs,
        slot_seconds: seconds,
        thread_seconds: Some(seconds),
        syncs,
        sync_seconds: seconds,
        flushes,
        flush_seconds,
        ..Counts::default()
    };
    let figures = [
        ("syncs", Some(syncs as f64)),
        ("mean", figure(|of| Some(of.mean))),
        ("std", figure(|of| Some(of.std))),
        ("min", figure(|of| Some(of.min))),
        ("p25", figure(|of| of.p25)),
        ("p50", figure(|of| of.p50)),
        ("p75", figure(|of| of.p75)),
        ("max", figure(|of| Some(of.max))),
        ("write_mean", served.writes.summary().map(|of| of.mean)),
        ("flushes", flushes.map(|flushes| flushes as f64)),
        ("flushes_each", flushes.map(|flushes| flushes as f64 / syncs.max(1) as f64)),
        ("flush_mean", flush_seconds.and_then(each)),
    ];
    ExperimentResult { counts, ..ExperimentResult::new(figures) }
}

/// Switches the cache of a drive under load.
pub(super) fn live_switch(
    bench: &Bench<'_>,
    of: &LiveSwitch,
    drive: &str,
) -> Result<ExperimentResult, TrialError> {
    bench.check()?;
    let (opened, time) = bench.open(drive, Bytes(0))?;
    let writes = Writes { block: Bytes::kib(of.block_kib), depth: of.depth, seed: bench.seed };
    let switched = switched(&*opened.device, time, &writes, bench.stop())?;
    let longest = |of: usize| switched.longest.get(of).map(|longest| longest.as_secs_f64());
    Ok(ExperimentResult::new([
        ("failed", Some(switched.failed as f64)),
        ("longest_before", longest(0)),
        ("longest_off", longest(1)),
        ("longest_on", longest(2)),
    ]))
}
