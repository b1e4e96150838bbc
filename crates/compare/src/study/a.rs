//! Field report A: the write cache turned off on an all-flash cluster.

use plumb_application::Limits;
use plumb_block::{Bytes, FileStore as _, Nanos, OpenOptions};
use plumb_report::document::ComparisonDocument;
use plumb_report::document::comparison::Outcome;
use plumb_report::document::study::{Expected, StudyRow, StudyUnit};
use plumb_report::quantity::{duration, ratio};
use plumb_sim::files::Host;

use super::bench::{Bench, NOT_SWITCHED, SetBy, StudyError, is_file};
use super::live_switch::switched;
use super::row::row;
use super::{Chapter, Found};
use crate::explanation::main_cause;

const SOURCE: &str = "Turning the Windows disk write cache off (Quick Removal) on an all-flash cluster";
/// 8 KiB, 64 outstanding, for each of eight virtual machines.
const WRITES: &str = "--random --write 100 --block-size 8k --depth 64";
const READS: &str = "--random --write 0 --block-size 8k --depth 64";
const LARGE_READS: &str = "--random --write 0 --block-size 32k --depth 64";
/// Bytes a second of one virtual machine with 32 KiB reads, and of all eight.
const REPORTED: [f64; 2] = [2.25e9, 18e9];
/// The disk of a virtual machine on the cluster.
const DRIVE: &str = "sim:all-flash-cluster?size=8GiB";
/// A drive whose cache nothing protects, for the contrast.
const PLAIN: &str = "sim:consumer-sata-ssd?size=8GiB";
/// As fast or faster, which counts as so within this.
const AS_FAST: Expected = Expected::at_least(0.95);
const SAME: Expected = Expected::between(0.95, 1.05);

const REPORT: &str = "Cache off over cache on";
const LARGE: &str = "32 KiB random reads with the cache off";
const FLUSHES: &str = "Why: protected drives behind a network, where the flushes vanish";
const REPEATED: &str = "Were the runs repeated, on the same files?";
const WARM: &str = "Were they warmed up?";
const LIVE: &str = "Is switching disruptive?";

pub(super) static CHAPTER: Chapter = Chapter {
    name: "A",
    title: "The write cache turned off on an all-flash cluster",
    source: SOURCE,
    finding: "with the cache off it was as fast or faster, and the author does not know why",
    simulated,
    real,
    notes,
};

fn notes(bench: &Bench<'_>) -> Vec<String> {
    match bench.on() {
        None => vec![
            format!("One virtual machine's disk of the cluster is modelled ({DRIVE}): three copies over a network on drives with power-loss protection; the members are not named in the report"),
            "Levels are compared in interleaved blocks with the same offsets, as by `plumb compare`: a ratio is the median over pairs of blocks, with the interval that a permutation test does not reject".to_owned(),
        ],
        Some(target) => vec![format!(
            "{target} stays in the state that it is in unless --switch is typed"
        )],
    }
}

/// The drive in a state of its cache.
fn in_state(drive: &str, state: &str, seed: u64) -> String {
    format!("{drive}&seed={seed}&wce={state}")
}

fn simulated(bench: &mut Bench<'_>) -> Result<Found, StudyError> {
    let seed = bench.seed();
    let (on, off) = (in_state(DRIVE, "on", seed), in_state(DRIVE, "off", seed));
    let levels = |bench: &mut Bench<'_>, words: &str, levels: [(&str, &str); 2]| {
        bench.say(&format!("study A: {words}: {} against {}", levels[1].0, levels[0].0));
        let levels = levels.map(|(name, target)| (name, target, words));
        bench.compare("cache", &levels, Nanos::millis(60), SetBy::Nothing)
    };
    let writes = levels(bench, WRITES, [("on", &on), ("off", &off)])?;
    let reads = levels(bench, READS, [("on", &on), ("off", &off)])?;
    let again = levels(bench, WRITES, [("on", &on), ("on again", &on)])?;
    let mut rows = vec![
        compared(REPORT, "8 KiB random writes, 64 in flight", &writes).reported(1.0).expecting(AS_FAST),
        compared(REPORT, "8 KiB random reads, 64 in flight", &reads).reported(1.0).expecting(AS_FAST),
    ];
    rows.extend(large_reads(bench, &off)?);
    let (flushes, answer) = flushes(bench, &on, &off)?;
    rows.extend(flushes);
    let plain = [("on", in_state(PLAIN, "on", seed)), ("off", in_state(PLAIN, "off", seed))];
    let contrast = levels(bench, WRITES, [("on", &plain[0].1), ("off", &plain[1].1)])?;
    rows.push(compared(FLUSHES, "the same writes on a drive without protection, off over on", &contrast));
    rows.push(compared(REPEATED, "8 KiB random writes, cache on against cache on", &again).expecting(SAME));
    rows.push(first_block("8 KiB random writes", &writes));
    rows.push(first_block("8 KiB random reads", &reads));
    rows.extend(cold(bench, &on)?);
    rows.extend(live_switch(bench, &on)?);
    Ok((rows, Vec::new(), answer))
}

/// The ratio of the second level to the first.
fn compared(question: &str, figure: &str, document: &ComparisonDocument) -> StudyRow {
    let contrast = &document.contrast;
    let said = match contrast.outcome {
        Outcome::Different => "different",
        Outcome::Equivalent => "equivalent within 5%",
        Outcome::NoneSeen => "no difference that this experiment could see",
        Outcome::NotMeasured => "not measured",
    };
    let cause = main_cause(&contrast.explanation).filter(|_| contrast.outcome == Outcome::Different);
    let interval = contrast.ratio.and_then(|of| Some(format!("{} to {}", ratio(of.low?), ratio(of.high?))));
    row(question, figure, StudyUnit::Times).ours_or(contrast.ratio.map(|of| of.median), "too few blocks").why(
        format!(
            "{said}; interval {} over {} pairs of blocks{}",
            interval.unwrap_or_else(|| "not bounded".to_owned()),
            document.blocks,
            cause.map_or_else(String::new, |cause| format!("; {cause}"))
        ),
    )
}

/// The first block, which nothing went before, over the median of those that count.
fn first_block(figure: &str, document: &ComparisonDocument) -> StudyRow {
    let level = document.levels.first();
    let median = level.and_then(|level| level.figures.get("iops")).copied();
    let first = document.measured.iter().find(|block| block.level == 0 && block.round == 0);
    let first = first.and_then(|block| block.figures.get("iops")).copied();
    row(WARM, format!("{figure}: the first block over the later ones"), StudyUnit::Times)
        .ours_or(first.zip(median).map(|(first, median)| first / median), "too few blocks")
        .why("How much a run that is not warmed up tells: one that is run once, on one level first, takes this for a difference")
}

/// A file after the caches were dropped, and once more: every block is touched for the first time, and then again.
fn cold(bench: &mut Bench<'_>, drive: &str) -> Result<Vec<StudyRow>, StudyError> {
    /// Blocks of the file, and a step that visits each of them once.
    const BLOCKS: u64 = 8192;
    const STEP: u64 = 4099;
    bench.say("study A: a file that is read cold, and then warm");
    let place = bench.files(drive, Host { cold_after_syncfs: true, ..Host::SERVER })?;
    let file =
        place.files.open("cold.dat".as_ref(), OpenOptions { create: true, ..OpenOptions::default() })?;
    let mut block = vec![0_u8; 8 << 10];
    for number in 0..BLOCKS {
        place.files.write_at(file, Bytes(number << 13), &block)?;
    }
    place.files.syncfs()?;
    let mut passes = Vec::new();
    for _ in ["cold", "warm"] {
        bench.check()?;
        let (before, start) = (place.drive()?.reads, place.now());
        for number in 0..BLOCKS {
            place.files.read_at(file, Bytes((number * STEP % BLOCKS) << 13), &mut block)?;
        }
        passes.push((place.now().since(start).as_secs_f64(), place.drive()?.reads - before));
    }
    let [(cold, touched), (warm, again)] = passes[..] else { return Ok(Vec::new()) };
    Ok(vec![warm_over_cold(Some(cold / warm), "nothing was read").expecting(Expected::at_least(2.0)).why(
        format!("{touched} of {BLOCKS} reads reach the drive when it is cold, {again} when it is warm"),
    )])
}

fn warm_over_cold(ours: Option<f64>, because: &str) -> StudyRow {
    row(WARM, "8 KiB random reads of a file, warm over cold (caches dropped)", StudyUnit::Times)
        .ours_or(ours, because)
}

fn large_reads(bench: &mut Bench<'_>, off: &str) -> Result<Vec<StudyRow>, StudyError> {
    bench.say(&format!("study A: {LARGE_READS} on {off}"));
    let loaded = bench.load(&[off], &format!("{LARGE_READS} --duration 1s"))?;
    let rate = loaded.total().application.bytes_per_second;
    Ok(vec![
        row(LARGE, "one virtual machine", StudyUnit::BytesPerSecond)
            .reported(REPORTED[0])
            .ours(rate)
            .why("The link of the host is the limit; its rate in the model is taken from this very figure"),
        row(LARGE, "eight virtual machines on eight hosts", StudyUnit::BytesPerSecond)
            .reported(REPORTED[1])
            .ours(8.0 * rate)
            .why("Eight times one: each host has a link of its own, and the members are not the limit"),
    ])
}

/// A program that syncs, above a file system, in both states.
fn flushes(bench: &mut Bench<'_>, on: &str, off: &str) -> Result<(Vec<StudyRow>, String), StudyError> {
    bench.say("study A: a database log on the cluster, cache on and off");
    let limits = Limits { count: Some(1000), threads: Some(1), seed: bench.seed(), ..Limits::default() };
    let mut ran = Vec::new();
    for drive in [on, off] {
        ran.push(bench.profile(drive, Host::SERVER, "pg-wal:single", &limits)?);
    }
    let per_second = |at: usize| ran[at].measured.transactions_per_second();
    let each = |at: usize| ran[at].drive.flushes.map(|flushes| flushes as f64 / 1000.0);
    let faster = per_second(1).zip(per_second(0)).map(|(off, on)| off / on);
    let took = |at: usize| ran[at].measured.transactions.summary().map_or(0.0, |of| of.mean);
    let rows = vec![
        row(FLUSHES, "a database's commits (sync each), off over on", StudyUnit::Times)
            .unreported("the report has no load that syncs")
            .ours_or(faster, "nothing completed")
            .expecting(Expected::at_least(1.0))
            .why(format!("{} a commit against {}: what a flush over the network to every copy takes is saved", duration(took(1)), duration(took(0)))),
        row(FLUSHES, "flushes for each commit, cache on", StudyUnit::Times)
            .ours_or(each(0), "not counted")
            .expecting(Expected::at_least(1.0))
            .why("The kernel sees a volatile cache and sends a flush for each sync, although the drives are protected"),
        row(FLUSHES, "flushes for each commit, cache off", StudyUnit::Times)
            .ours_or(each(1), "not counted")
            .expecting(Expected::between(0.0, 0.0))
            .why("The kernel sees no volatile cache, and sends none"),
    ];
    let answer = format!(
        "with protected drives the cache is not what makes writes fast: without it each write is as fast, and no flush has to go over the \
         network to every copy, which makes what syncs {} times as fast. On a drive without protection it is the other way round",
        ratio(faster.unwrap_or(1.0))
    );
    Ok((rows, answer))
}

/// The cache switched off and on again under load.
fn live_switch(bench: &mut Bench<'_>, on: &str) -> Result<Vec<StudyRow>, StudyError> {
    bench.say("study A: the cache switched under load");
    bench.check()?;
    let switched = switched(bench, on)?;
    bench.check()?;
    let mut rows = vec![
        row(LIVE, "writes that failed while it was switched off and on", StudyUnit::Count)
            .ours(switched.failed as f64)
            .expecting(Expected::between(0.0, 0.0))
            .why("Nothing is reset: the command goes beside the writes"),
    ];
    let names = ["before", "after it was switched off", "after it was switched on"];
    for (number, (name, longest)) in names.into_iter().zip(&switched.longest).enumerate() {
        let why = match number {
            0 => "Without a switch, to compare with",
            _ if *longest <= switched.longest[0] => "No longer than before: no write waits for the switch",
            1 => "Turning it off empties it: writes wait for that, once",
            _ => "Longer than before",
        };
        rows.push(
            row(LIVE, format!("longest write {name}"), StudyUnit::Seconds)
                .ours(longest.as_secs_f64())
                .why(why),
        );
    }
    Ok(rows)
}

/// The states that the drive can be put into, and the same state twice.
fn real(bench: &mut Bench<'_>, target: &str) -> Result<Found, StudyError> {
    let size = bench.size_words(target, Bytes::gib(1));
    let mut rows = Vec::new();
    for (figure, words) in
        [("8 KiB random writes, 64 in flight", WRITES), ("8 KiB random reads, 64 in flight", READS)]
    {
        let words = format!("{words}{size}");
        let made = match bench.switches_policy() {
            true => {
                let levels = [("on", target, &*words), ("off", target, &*words)];
                compared(REPORT, figure, &bench.compare("policy", &levels, Nanos::secs(1), SetBy::Policy)?)
            }
            false => row(REPORT, figure, StudyUnit::Times).ours_or(None, NOT_SWITCHED),
        };
        rows.push(made.reported(1.0));
    }
    let reads = bench.load(&[target], &format!("{LARGE_READS} --duration 5s{size}"))?;
    rows.push(
        row(LARGE, "one virtual machine", StudyUnit::BytesPerSecond)
            .reported(REPORTED[0])
            .ours(reads.total().application.bytes_per_second)
            .why("In the state that the drive is in"),
    );
    let words = format!("{WRITES}{size}");
    let levels = [("as it is", target, &*words), ("as it is, again", target, &*words)];
    let again = bench.compare("cache", &levels, Nanos::secs(1), SetBy::Nothing)?;
    rows.push(compared(REPEATED, "8 KiB random writes, the same level twice", &again));
    rows.push(first_block("8 KiB random writes", &again));
    rows.push(match is_file(target) {
        true => {
            let mut read = |page_cache: &str| {
                let words = format!("{READS} --cached --page-cache {page_cache} --duration 4s{size}");
                bench.load(&[target], &words).map(|loaded| loaded.iops())
            };
            let (cold, warm) = (read("evicted")?, read("loaded")?);
            warm_over_cold(Some(warm / cold), "")
                .why("The file is dropped from the page cache, and read into it")
        }
        false => warm_over_cold(None, "it is a block device: name a directory or a file"),
    });
    Ok((rows, Vec::new(), format!("what can be had on {target}")))
}
