//! Field report C: a write-back cache in front of hard disks, seen from inside a virtual machine.

use std::rc::Rc;

use plumb_report::document::study::{Expected, StudyRow, StudySeries, StudyUnit};
use plumb_report::quantity::{rate, ratio};

use super::bench::{Bench, Loaded, SetBy, StudyError, Switches};
use super::row::row;
use super::{Chapter, Found};

const SOURCE: &str =
    "Storage Spaces write-back cache (tiered space behind a file share, SQLIO in a virtual machine)";
/// How many times faster with the cache: in the virtual machine, and on the host.
const REPORTED: [f64; 2] = [6.27, 11.0];
/// Random 64 KiB writes, written through, as they come over a file share; 30 s. Of zeroes, which take no memory in a simulated log of 5 GB.
const SQLIO: &str = "--random --write 100 --block-size 64k --depth 8 --dsync --content zeroes";
/// Sizes and times of all but the report's own figures are divided by this: what a log holds, the memory of this machine holds.
const SCALE: u64 = 5;
/// 30 s, and 60 s, so divided.
const SHORT: &str = "--duration 6s";
const MINUTE: &str = "--duration 12s";

/// Plain disks: 4 columns behind the share.
const PLAIN: &str = "sim:hdd-space";
/// The disks of the cached space: one column behind the same share.
const ONE_COLUMN: &str = "sim:hdd-space?array.columns=1&size=150GiB";
/// An SSD of the space behind the share.
const SSD: &str = "sim:hdd-space?array.member=enterprise-sata-ssd&array.columns=1&size=50GiB";
/// A faster one, on NVMe and with power-loss protection: the report does not name its SSDs.
const FAST_SSD: &str = "sim:hdd-space?array.member=plp-nvme-ssd&array.columns=1&size=50GiB";
/// The SSDs of the tier, of the kind of [`SSD`].
const TIER: &str = "sim:hdd-space?array.member=enterprise-sata-ssd&array.columns=1&size=50GiB&seed=3";
/// The same without the share: next to nothing between host and drives.
const LOCAL: &str = "array.round_trip=20us&array.jitter=0us&array.link=4000 MB/s";

const REPORT: &str = "The figures of the report";
const IN_THE_MACHINE: &str = "with 5 GB of cache over plain disks, in the virtual machine";
const IN_THE_TIER: &str = "with 5 GB of cache over the tier of 50 GB of SSD, in the virtual machine";
const ON_THE_HOST: &str = "the same on the host, without the share";
const HOW_MANY: &str = "How many SSDs does it need? Is the cache striped over several?";
const HOW_LARGE: &str = "Does a larger cache than the default of 1 GB help?";
const NO_TIER: &str = "What does a hard disk and a cache without a tier give?";
const SUSTAINED: &str = "Spikes, or sustained load?";
const BESIDE: &str = "Both disks at the same time";

/// So many GB of cache, divided.
fn scaled(gigabytes: u64) -> String {
    format!("{}MB", gigabytes * 1024 / SCALE)
}

/// The space with a cache of `size`, its log on these SSDs.
fn cached(backing: &str, logs: &[&str], size: &str, more: &str) -> String {
    let logs: Vec<String> = logs.iter().map(|log| format!("log={log}")).collect();
    format!("cache:backing={backing},{},size={size}{more}", logs.join(","))
}

pub(super) static CHAPTER: Chapter = Chapter {
    name: "C",
    title: "A write-back cache in front of hard disks",
    source: SOURCE,
    finding: "random 64 KiB writes in the virtual machine are 6.27 times as fast with 5 GB of write-back cache as on plain disks, 11 times on the \
                  host",
    simulated,
    real,
    notes,
};

fn notes(bench: &Bench<'_>) -> Vec<String> {
    match bench.on() {
        None => vec![
            format!("All but the first three figures are measured with sizes and times divided by {SCALE}"),
            "How many SSDs and how large a cache are asked of the space of the third figure: one column, its log on SATA SSDs. It is slower than that \
             of the first, with the same size of cache".to_owned(),
            "The cache is plumb's own (`plumb cache`), over models of the disks and SSDs behind a network; every write is written through, \
             as over a file share. Depth 8 is chosen: the report does not tell it"
                .to_owned(),
            "The report's cached space has a tier of 50 GB of SSD, and does not tell how much of the file was in it: two figures are with all of it \
             there, all others with none. Nothing is moved between the tiers here"
                .to_owned(),
        ],
        Some(target) => vec![format!(
            "{target} is measured without a cache; `plumb cache create --backing {target} --log SSD --size 5G` puts one in front, and \
             `plumb load cache:NAME` measures it"
        )],
    }
}

/// What simulated spaces gave.
struct Spaces {
    plain: Rc<Loaded>,
    /// The same with a cache in front, its log on a fast SSD, and on one of the report's time.
    fast: Rc<Loaded>,
    five: Rc<Loaded>,
    /// As the report has it: one column behind the cache.
    one_column: Rc<Loaded>,
}

fn simulated(bench: &mut Bench<'_>) -> Result<Found, StudyError> {
    let spaces = Spaces {
        plain: run(bench, &[PLAIN], "--duration 30s")?,
        fast: run(bench, &[&cached(PLAIN, &[FAST_SSD], "5GB", "")], "--duration 30s")?,
        five: run(bench, &[&cached(PLAIN, &[SSD], "5GB", "")], "--duration 30s")?,
        one_column: run(bench, &[&cached(ONE_COLUMN, &[SSD], "5GB", "")], "--duration 30s")?,
    };
    let mut rows = report(bench, &spaces)?;
    let (beside, mut series) = together(bench)?;
    rows.extend(beside);
    rows.extend(questions(bench)?);
    let (sustained, over_time) = sustained(bench)?;
    rows.extend(sustained);
    series.extend(over_time);
    let answer = format!(
        "{} times as fast: a write is answered when it is in the log on the SSD, in sequence, and goes to the disk later, sorted. While the log \
         has room it absorbs spikes; once it is full, writes come in as fast as the disk takes them, sorted",
        ratio(spaces.fast.iops() / spaces.plain.iops())
    );
    Ok((rows, series, answer))
}

fn run(bench: &mut Bench<'_>, targets: &[&str], words: &str) -> Result<Rc<Loaded>, StudyError> {
    bench.say(&format!("study C: {SQLIO} {words} on {}", targets.join(" and ")));
    bench.load(targets, &format!("{SQLIO} {words}"))
}

fn report(bench: &mut Bench<'_>, spaces: &Spaces) -> Result<Vec<StudyRow>, StudyError> {
    let (with, sata, without) = (spaces.fast.iops(), spaces.five.iops(), spaces.plain.iops());
    let near = |target: &str| format!("{target}{}{LOCAL}", if target.contains('?') { '&' } else { '?' });
    let tier = run(bench, &[&cached(TIER, &[SSD], &scaled(5), "")], SHORT)?.iops();
    let host_plain = run(bench, &[&near(PLAIN)], SHORT)?.iops();
    let host = run(bench, &[&cached(&near(TIER), &[&near(SSD)], &scaled(5), "")], SHORT)?.iops();
    let one = spaces.one_column.iops();
    // What eleven times as many writes are in 30 s.
    let eleven = REPORTED[1] * host_plain * 30.0 * f64::from(64 << 10) / f64::from(1 << 30);
    Ok(vec![
        row(REPORT, IN_THE_MACHINE, StudyUnit::Times)
            .reported(REPORTED[0])
            .ours(with / without)
            .expecting(Expected::at_least(REPORTED[0]))
            .why(format!(
                "{} writes a second against {}: appended to a log on an NVMe SSD instead of four seeking disks, which are behind both",
                rate(with),
                rate(without)
            )),
        row(REPORT, "the same with the log on a SATA SSD of 2013", StudyUnit::Times)
            .reported(REPORTED[0])
            .ours(sata / without)
            .why(format!(
                "{} writes a second: a slower SSD, which nearly gives what was reported; the report does not name its SSDs",
                rate(sata)
            )),
        row(REPORT, "that with one column behind the cache, and no tier", StudyUnit::Times)
            .reported(REPORTED[0])
            .ours(one / without)
            .why(format!(
                "{} writes a second: the log is full before 30 s are over, and one disk empties it more slowly than four; the report's space \
                 has 50 GB of SSD beside that disk, which takes a part of this",
                rate(one)
            )),
        row(REPORT, IN_THE_TIER, StudyUnit::Times)
            .reported(REPORTED[0])
            .ours(tier / without)
            .why(format!(
                "{} writes a second: the log is emptied nearly as fast as it is filled, and the share of the model costs next to nothing",
                rate(tier)
            )),
        row(REPORT, ON_THE_HOST, StudyUnit::Times)
            .reported(REPORTED[1])
            .ours(host / host_plain)
            .why(format!(
                "{} writes a second against {}: 11 times as many are {eleven:.0} GB in 30 s, more than a cache of 5 GB takes without the tier behind it",
                rate(host),
                rate(host_plain)
            )),
    ])
}

/// Both disks driven at the same time, a line for each.
fn together(bench: &mut Bench<'_>) -> Result<(Vec<StudyRow>, Vec<StudySeries>), StudyError> {
    let with = cached(ONE_COLUMN, &[SSD], &scaled(5), "");
    let both = run(bench, &[&with, PLAIN], MINUTE)?;
    let rates = [both.iops_of(0), both.iops_of(1)];
    let chart = "Both disks at the same time: writes a second";
    let series = vec![both.series(0, 0.5, chart, "cached"), both.series(1, 0.5, chart, "plain")];
    let one = |name: &str, value: Option<f64>| {
        row(BESIDE, name, StudyUnit::PerSecond)
            .ours_or(value, "nothing completed")
            .why("See the chart: the report has no figures of it")
    };
    Ok((vec![one("with the cache", rates[0]), one("plain disks", rates[1])], series))
}

fn questions(bench: &mut Bench<'_>) -> Result<Vec<StudyRow>, StudyError> {
    let other = format!("{SSD}&seed=2");
    let (one, two) = (vec![SSD], vec![SSD, other.as_str()]);
    let disk = "sim:nearline-4tb?size=200GiB";
    let local = vec!["sim:enterprise-sata-ssd"];
    let cases = [
        (HOW_MANY, "one SSD", ONE_COLUMN, &one, 5, "", "it is as safe as that one SSD"),
        (
            HOW_MANY,
            "two SSDs, mirrored",
            ONE_COLUMN,
            &two,
            5,
            "",
            "each write goes to both, and one may fail",
        ),
        (
            HOW_MANY,
            "two SSDs, striped",
            ONE_COLUMN,
            &two,
            5,
            ",layout=stripe",
            "the log alternates between them; if one fails, what only the log held is lost",
        ),
        (HOW_LARGE, "1 GB", ONE_COLUMN, &one, 1, "", ""),
        (HOW_LARGE, "5 GB", ONE_COLUMN, &one, 5, "", ""),
        (HOW_LARGE, "10 GB", ONE_COLUMN, &one, 10, "", ""),
        (
            NO_TIER,
            "one disk in the machine, 5 GB of cache",
            disk,
            &local,
            5,
            "",
            "no tier is needed for writes",
        ),
    ];
    let mut rows = Vec::new();
    for (question, name, backing, logs, gigabytes, more, why) in cases {
        let without = run(bench, &[if backing == disk { disk } else { PLAIN }], SHORT)?.iops();
        let with = run(bench, &[&cached(backing, logs, &scaled(gigabytes), more)], SHORT)?;
        let iops = with.iops();
        let written = SCALE as f64 * with.total().write.bytes as f64 / (1_u64 << 30) as f64;
        let why = match why {
            "" if written <= gigabytes as f64 => {
                format!("all of the {written:.1} GB that are written fit: a larger log helps no more")
            }
            "" => format!("{written:.1} GB are written: what does not fit goes as fast as the disk takes it"),
            why => why.to_owned(),
        };
        rows.push(row(question, name, StudyUnit::Times).ours(iops / without).why(format!(
            "{} writes a second against {}: {why}",
            rate(iops),
            rate(without)
        )));
    }
    Ok(rows)
}

/// Three minutes without a pause, and bursts with pauses, so divided.
fn sustained(bench: &mut Bench<'_>) -> Result<(Vec<StudyRow>, Vec<StudySeries>), StudyError> {
    let target = cached(ONE_COLUMN, &[SSD], &scaled(1), "");
    let long = run(bench, &[&target], "--duration 36s")?;
    let spikes = run(bench, &[&target], "--burst 800 --pause 6s --duration 36s")?;
    let disk = run(bench, &[ONE_COLUMN], SHORT)?.iops();
    let chart = "1 GB of cache: writes a second";
    let series = vec![long.series(0, 0.5, chart, "sustained"), spikes.series(0, 0.5, chart, "spikes")];
    let last = long.rate_between(0, 24.0, 36.0);
    let peak = series[1].points.iter().map(|point| point.per_second).fold(0.0, f64::max);
    let rows = vec![
        row(SUSTAINED, "sustained, at first", StudyUnit::PerSecond)
            .ours_or(long.rate_between(0, 0.0, 0.5), "nothing completed")
            .why("The log takes it"),
        row(SUSTAINED, "sustained, last third", StudyUnit::PerSecond)
            .ours_or(last, "nothing completed")
            .why("The log is full: the rate of the disk, which gets the writes sorted"),
        row(SUSTAINED, "last third over the same disk alone", StudyUnit::Times)
            .ours_or(last.map(|last| last / disk), "nothing completed")
            .why(format!("The disk alone takes {} a second", rate(disk))),
        row(SUSTAINED, "spikes that fit into the log, fullest half second", StudyUnit::PerSecond)
            .ours(peak)
            .why("Each spike is absorbed, and the log is emptied in the pauses"),
    ];
    Ok((rows, series))
}

/// The target alone, and behind a cache where one can be put in front of it.
fn real(bench: &mut Bench<'_>, target: &str) -> Result<Found, StudyError> {
    const NO_CACHE: &str =
        "there is no cache in front of it: --cache-log names the place of its log, and it is gone at the end";
    let words = format!("{SQLIO}{}", bench.size_words(target, plumb_block::Bytes::gib(4)));
    let loaded = bench.load(&[target], &format!("{words} --duration 30s"))?;
    let compared = match bench.behind_cache() {
        Some(cached) => {
            let [none, cache] = Switches::CACHE;
            let levels = [(none, target, &*words), (cache, &cached, &*words)];
            Some(bench.compare("cache", &levels, plumb_block::Nanos::secs(5), SetBy::Cache)?)
        }
        None => None,
    };
    let times = compared.as_ref().and_then(|of| Some(of.contrast.ratio?.median));
    let chart = "Writes a second";
    let rows = vec![
        row(REPORT, IN_THE_MACHINE, StudyUnit::Times)
            .reported(REPORTED[0])
            .ours_or(times, NO_CACHE)
            .why(compared.as_ref().map_or_else(String::new, |of| of.headline.clone())),
        row(REPORT, ON_THE_HOST, StudyUnit::Times)
            .reported(REPORTED[1])
            .ours_or(None, "there is one machine here, and no share"),
        row(REPORT, "64 KiB random writes, written through", StudyUnit::PerSecond)
            .ours(loaded.iops())
            .why("Without a cache"),
    ];
    let answer = format!("{} writes a second without a cache", rate(loaded.iops()));
    Ok((rows, vec![loaded.series(0, 0.5, chart, target)], answer))
}
