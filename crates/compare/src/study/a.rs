//! Field report A: the write cache turned off on an all-flash cluster.

use plumb_application::Limits;
use plumb_block::{Bytes, Nanos};
use plumb_report::document::ComparisonDocument;
use plumb_report::document::comparison::Outcome;
use plumb_report::document::study::{Expected, StudyRow, StudyUnit};
use plumb_report::quantity::{duration, ratio};
use plumb_sim::files::Host;

use super::bench::{Bench, StudyError};
use super::row::{Learn, row};
use super::steady_load::{SteadyLoad, Stretch};
use super::{Chapter, Found};

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
const WARM: &str = "Were they warm or cold?";
const LIVE: &str = "Is switching disruptive?";

pub(super) const CHAPTER: Chapter = Chapter {
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
            "{target} stays in the state that it is in; `plumb compare --factor policy=off,on` compares states where the drive can be switched"
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
        bench.compare("cache", &levels.map(|(name, target)| (name, target, words)), Nanos::millis(100))
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
    };
    let interval = contrast.ratio.and_then(|of| Some(format!("{} to {}", ratio(of.low?), ratio(of.high?))));
    row(question, figure, StudyUnit::Times).ours_or(contrast.ratio.map(|of| of.median), "too few blocks").why(
        format!(
            "{said}; interval {} over {} pairs of blocks",
            interval.unwrap_or_else(|| "not bounded".to_owned()),
            document.blocks
        ),
    )
}

/// The first block, which nothing went before, over the median of those that count.
fn first_block(figure: &str, document: &ComparisonDocument) -> StudyRow {
    let level = document.levels.first();
    let median = level.and_then(|level| level.figures.get("iops")).map(|of| of.median);
    let first = document.measured.iter().find(|block| block.level == 0 && block.round == 0);
    let first = first.and_then(|block| block.figures.get("iops")).copied();
    row(WARM, format!("{figure}: the first block over the later ones"), StudyUnit::Times)
        .ours_or(first.zip(median).map(|(first, median)| first / median), "too few blocks")
        .why("How much a run that is not warmed up tells: one that is run once, on one level first, takes this for a difference")
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
    let (opened, time) = bench.open(on, Bytes(0))?;
    let load = SteadyLoad { block: Bytes::kib(8), depth: 64, time: Nanos::millis(300), seed: bench.seed() };
    let stretches = load.run(&opened.device, &time, 2, bench.stop())?;
    bench.check()?;
    let longest = |of: &Stretch| of.writes.max().map(Nanos::as_secs_f64);
    let failed: u64 = stretches.iter().map(|stretch| stretch.failed).sum();
    let mut rows = vec![
        row(LIVE, "writes that failed while it was switched off and on", StudyUnit::Count)
            .ours(failed as f64)
            .expecting(Expected::between(0.0, 0.0))
            .why("Nothing is reset: the command goes beside the writes"),
    ];
    for (name, stretch) in
        ["before", "after it was switched off", "after it was switched on"].into_iter().zip(&stretches)
    {
        rows.push(
            row(LIVE, format!("longest write {name}"), StudyUnit::Seconds)
                .ours_or(longest(stretch), "nothing completed")
                .why("Turning it off empties it: writes wait for that, once"),
        );
    }
    Ok(rows)
}

/// What can be had without switching: rates, and the same level twice.
fn real(bench: &mut Bench<'_>, target: &str) -> Result<Found, StudyError> {
    const NOT_SWITCHED: &str =
        "the drive stays as it is; `plumb compare --factor policy=off,on` switches it where that is possible";
    let size = bench.size_on(target, Bytes::gib(1)).map_or_else(String::new, |_| " --size 1G".to_owned());
    let mut rows = vec![
        row(REPORT, "8 KiB random writes, 64 in flight", StudyUnit::Times)
            .reported(1.0)
            .ours_or(None, NOT_SWITCHED),
        row(REPORT, "8 KiB random reads, 64 in flight", StudyUnit::Times)
            .reported(1.0)
            .ours_or(None, NOT_SWITCHED),
    ];
    let reads = bench.load(&[target], &format!("{LARGE_READS} --duration 5s{size}"))?;
    rows.push(
        row(LARGE, "one virtual machine", StudyUnit::BytesPerSecond)
            .reported(REPORTED[0])
            .ours(reads.total().application.bytes_per_second)
            .why("In the state that the drive is in"),
    );
    let words = format!("{WRITES}{size}");
    let again = bench.compare(
        "cache",
        &[("as it is", target, &words), ("as it is, again", target, &words)],
        Nanos::secs(1),
    )?;
    rows.push(compared(REPEATED, "8 KiB random writes, the same level twice", &again));
    rows.push(first_block("8 KiB random writes", &again));
    Ok((rows, Vec::new(), format!("what can be had on {target} without switching its cache")))
}
