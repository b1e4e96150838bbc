//! Field report C: a write-back cache in front of hard disks, seen from inside a virtual machine.

use plumb_report::document::study::{Expected, Study, StudyRow, StudySeries, StudyUnit};
use plumb_report::quantity::{rate, ratio};

use super::bench::{Bench, Loaded, StudyError};
use super::row::{Learn, row};

const SOURCE: &str =
    "Storage Spaces write-back cache (tiered space behind a file share, SQLIO in a virtual machine)";
/// How many times faster with the cache: in the virtual machine, and on the host.
const REPORTED: [f64; 2] = [6.27, 11.0];
/// Random 64 KiB writes, written through, as they come over a file share; 30 s.
const SQLIO: &str = "--random --write 100 --block-size 64k --depth 8 --dsync";
/// As long as both were driven side by side.
const MINUTE: &str = "--duration 60s";

/// Plain disks: 4 columns behind the share.
const PLAIN: &str = "sim:hdd-space";
/// The disks of the cached space: one column behind the same share.
const ONE_COLUMN: &str = "sim:hdd-space?array.columns=1&size=150GiB";
/// An SSD of the space behind the share.
const SSD: &str = "sim:hdd-space?array.member=enterprise-sata-ssd&array.columns=1&size=50GiB";
/// The same without the share: next to nothing between host and drives.
const LOCAL: &str = "array.round_trip=20us&array.jitter=0us&array.link=4000 MB/s";

const REPORT: &str = "The figures of the report";
const HOW_MANY: &str = "How many SSDs does it need? Is the cache striped over several?";
const HOW_LARGE: &str = "Does a larger cache than the default of 1 GB help?";
const NO_TIER: &str = "What does a hard disk and a cache without a tier give?";
const SUSTAINED: &str = "Spikes, or sustained load?";
const BESIDE: &str = "Both disks at the same time, 60 s";

/// The space with a cache of `size`, its log on these SSDs.
fn cached(backing: &str, logs: &[&str], size: &str, more: &str) -> String {
    let logs: Vec<String> = logs.iter().map(|log| format!("log={log}")).collect();
    format!("cache:backing={backing},{},size={size}{more}", logs.join(","))
}

pub(super) fn study(bench: &mut Bench<'_>) -> Result<Study, StudyError> {
    let (rows, series, answer) = match bench.on() {
        None => simulated(bench)?,
        Some(target) => real(bench, target)?,
    };
    Ok(Study {
        name: "C".to_owned(),
        title: "A write-back cache in front of hard disks".to_owned(),
        source: SOURCE.to_owned(),
        finding: "random 64 KiB writes in the virtual machine are 6.27 times as fast with 5 GB of write-back cache as on plain disks, 11 times on the \
                  host"
            .to_owned(),
        answer,
        rows,
        series,
        notes: notes(bench),
    })
}

fn notes(bench: &Bench<'_>) -> Vec<String> {
    match bench.on() {
        None => vec![
            "The cache is plumb's own (`plumb cache`), over models of the disks and SSDs behind a network; every write is written through, \
             as over a file share. Depth 8 is chosen: the report does not tell it"
                .to_owned(),
            "The report's cached space has a tier of 50 GB of SSD beside the cache, which is not modelled: reads, and what was moved to the \
             tier, would be faster"
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
    plain: Loaded,
    five: Loaded,
}

fn simulated(bench: &mut Bench<'_>) -> Result<(Vec<StudyRow>, Vec<StudySeries>, String), StudyError> {
    let spaces = Spaces {
        plain: run(bench, &[PLAIN], "--duration 30s")?,
        five: run(bench, &[&cached(ONE_COLUMN, &[SSD], "5GB", "")], "--duration 30s")?,
    };
    let mut rows = report(bench, &spaces)?;
    let (beside, mut series) = together(bench)?;
    rows.extend(beside);
    rows.extend(questions(bench, &spaces)?);
    let (sustained, over_time) = sustained(bench)?;
    rows.extend(sustained);
    series.extend(over_time);
    let answer = format!(
        "{} times as fast: a write is answered when it is in the log on the SSD, in sequence, and goes to the disk later, sorted. While the log \
         has room it absorbs spikes; once it is full, writes come in as fast as the disk takes them, sorted",
        ratio(spaces.five.iops() / spaces.plain.iops())
    );
    Ok((rows, series, answer))
}

fn run(bench: &mut Bench<'_>, targets: &[&str], words: &str) -> Result<Loaded, StudyError> {
    bench.say(&format!("study C: {SQLIO} {words} on {}", targets.join(" and ")));
    bench.load(targets, &format!("{SQLIO} {words}"))
}

fn report(bench: &mut Bench<'_>, spaces: &Spaces) -> Result<Vec<StudyRow>, StudyError> {
    let (with, without) = (spaces.five.iops(), spaces.plain.iops());
    let near = |target: &str| format!("{target}{}{LOCAL}", if target.contains('?') { '&' } else { '?' });
    let host_plain = run(bench, &[&near(PLAIN)], "--duration 30s")?.iops();
    let host = run(bench, &[&cached(&near(ONE_COLUMN), &[&near(SSD)], "5GB", "")], "--duration 30s")?.iops();
    Ok(vec![
        row(REPORT, "with 5 GB of cache over plain disks, in the virtual machine", StudyUnit::Times)
            .reported(REPORTED[0])
            .ours(with / without)
            .expecting(Expected::at_least(REPORTED[0]))
            .why(format!(
                "{} writes a second against {}: appended to a log on the SSD instead of four seeking disks",
                rate(with),
                rate(without)
            )),
        row(REPORT, "the same on the host, without the share", StudyUnit::Times)
            .reported(REPORTED[1])
            .ours(host / host_plain)
            .why(format!(
                "{} writes a second against {}: the share's round trips weigh on the SSD more than on disks",
                rate(host),
                rate(host_plain)
            )),
    ])
}

/// Both disks driven at the same time for 60 s, a line for each.
fn together(bench: &mut Bench<'_>) -> Result<(Vec<StudyRow>, Vec<StudySeries>), StudyError> {
    let with = cached(ONE_COLUMN, &[SSD], "5GB", "");
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

fn questions(bench: &mut Bench<'_>, spaces: &Spaces) -> Result<Vec<StudyRow>, StudyError> {
    let without = spaces.plain.iops();
    let mut rows = Vec::new();
    let mut times = |rows: &mut Vec<StudyRow>,
                     question: &str,
                     name: &str,
                     target: &str,
                     why: &str|
     -> Result<f64, StudyError> {
        let iops = run(bench, &[target], "--duration 30s")?.iops();
        rows.push(
            row(question, name, StudyUnit::Times)
                .ours(iops / without)
                .why(format!("{} writes a second: {why}", rate(iops))),
        );
        Ok(iops)
    };
    let other = format!("{SSD}&seed=2");
    times(
        &mut rows,
        HOW_MANY,
        "two SSDs, mirrored",
        &cached(ONE_COLUMN, &[SSD, &other], "5GB", ""),
        "each write goes to both; one may fail",
    )?;
    times(
        &mut rows,
        HOW_MANY,
        "two SSDs, striped",
        &cached(ONE_COLUMN, &[SSD, &other], "5GB", ",layout=stripe"),
        "the log alternates between them; if one fails, what only the log held is lost",
    )?;
    rows.push(row(HOW_MANY, "one SSD", StudyUnit::Times).ours(spaces.five.iops() / without).why(format!(
        "{} writes a second: one is enough; it is then as safe as that one SSD",
        rate(spaces.five.iops())
    )));
    for (name, size) in [("1 GB", "1GB"), ("10 GB", "10GB")] {
        times(
            &mut rows,
            HOW_LARGE,
            name,
            &cached(ONE_COLUMN, &[SSD], size, ""),
            "over 30 s; what does not fit goes as fast as the disk",
        )?;
    }
    rows.push(
        row(HOW_LARGE, "5 GB", StudyUnit::Times)
            .ours(spaces.five.iops() / without)
            .why(format!("{} writes a second over 30 s", rate(spaces.five.iops()))),
    );
    let disk = "sim:nearline-4tb?size=200GiB";
    let alone = run(bench, &[disk], "--duration 30s")?.iops();
    let behind =
        run(bench, &[&cached(disk, &["sim:enterprise-sata-ssd"], "5GB", "")], "--duration 30s")?.iops();
    rows.push(
        row(NO_TIER, "one disk with 5 GB of cache over the disk alone, in the machine", StudyUnit::Times)
            .ours(behind / alone)
            .why(format!(
                "{} writes a second against {}: the cache alone does it, no tier is needed for writes",
                rate(behind),
                rate(alone)
            )),
    );
    Ok(rows)
}

/// Five minutes without a pause, and bursts with pauses.
fn sustained(bench: &mut Bench<'_>) -> Result<(Vec<StudyRow>, Vec<StudySeries>), StudyError> {
    let target = cached(ONE_COLUMN, &[SSD], "1GB", "");
    let long = run(bench, &[&target], "--duration 180s")?;
    let spikes = run(bench, &[&target], "--burst 4000 --pause 30s --duration 180s")?;
    let disk = run(bench, &[ONE_COLUMN], "--duration 30s")?.iops();
    let chart = "1 GB of cache: writes a second";
    let series = vec![long.series(0, 1.0, chart, "sustained"), spikes.series(0, 1.0, chart, "spikes")];
    let at = |from: f64, until: f64| long.rate_between(0, from, until);
    let peak = |spikes: &StudySeries| spikes.points.iter().map(|point| point.per_second).fold(0.0, f64::max);
    let last = at(120.0, 180.0);
    let rows = vec![
        row(SUSTAINED, "sustained, first 3 s", StudyUnit::PerSecond)
            .ours_or(at(0.0, 3.0), "nothing completed")
            .why("The log takes it"),
        row(SUSTAINED, "sustained, third minute", StudyUnit::PerSecond)
            .ours_or(last, "nothing completed")
            .why("The log is full: the rate of the disk, which gets the writes sorted"),
        row(SUSTAINED, "third minute over the same disk alone", StudyUnit::Times)
            .ours_or(last.map(|last| last / disk), "nothing completed")
            .why(format!("The disk alone takes {} a second", rate(disk))),
        row(SUSTAINED, "spikes of 250 MB each 30 s, fullest second", StudyUnit::PerSecond)
            .ours(peak(&series[1]))
            .why("Each spike fits into the log, which is emptied in the pauses"),
    ];
    Ok((rows, series))
}

/// Plain disks alone: a cache has to be made first.
fn real(
    bench: &mut Bench<'_>,
    target: &str,
) -> Result<(Vec<StudyRow>, Vec<StudySeries>, String), StudyError> {
    const NO_CACHE: &str =
        "there is no cache in front of it; `plumb cache create` makes one, which empties or keeps as it says";
    let size = bench
        .size_on(target, plumb_block::Bytes::gib(4))
        .map_or_else(String::new, |_| "--size 4G".to_owned());
    let loaded = run(bench, &[target], &format!("--duration 30s {size}"))?;
    let chart = "Writes a second";
    let mut rows: Vec<StudyRow> = [
        "with 5 GB of cache over plain disks, in the virtual machine",
        "the same on the host, without the share",
    ]
    .into_iter()
    .zip(REPORTED)
    .map(|(name, reported)| row(REPORT, name, StudyUnit::Times).reported(reported).ours_or(None, NO_CACHE))
    .collect();
    rows.push(
        row(REPORT, "64 KiB random writes, written through", StudyUnit::PerSecond)
            .ours(loaded.iops())
            .why("Without a cache"),
    );
    let answer = format!("{} writes a second without a cache", rate(loaded.iops()));
    Ok((rows, vec![loaded.series(0, 0.5, chart, target)], answer))
}
