//! Burst of random writes to a slow disk with and without a cache, and the performance of the disk right
//! after it.

use std::path::Path;

use anyhow::{Context, Result};

use super::setup::{Cache, CacheBench, WRITTEN, slow_disk};
use crate::bench::fio::{self, JobFigures, Place};
use crate::bench::paired::verdict;

const GIB: u64 = 1 << 30;
/// Size of the slow disk.
const DISK: u64 = 8 * GIB;
/// Duration of a burst in seconds. The jobs after it take a third of that.
const SECONDS: u64 = 30;
/// 4 KiB writes one at a time, each followed by a flush. (The engine knows no fdatasync; over NBD both are
/// the same.)
const SYNCED: &str = "--rw=randwrite --bs=4k --iodepth=1 --fsync=1";
/// 4 KiB reads, one at a time.
const READS: &str = "--rw=randread --bs=4k --iodepth=1";

/// Figures of one disk, with or without a cache.
struct Figures {
    /// Figures of 64 KiB random writes.
    burst: JobFigures,
    /// Rate of the burst in each second.
    curve: Vec<f64>,
    /// Figures of the synced writes alone that follow.
    synced: JobFigures,
    reads: JobFigures,
}

/// Prints the table. All sizes and times are divided by `divisor`.
pub(super) fn run(bench: &CacheBench<'_>, divisor: u64) -> Result<()> {
    println!(
        "64 KiB random writes at depth 8 for {} s; disk of {:.2} GiB with 150 operations and 150 MiB a second",
        SECONDS / divisor,
        (DISK / divisor) as f64 / GIB as f64
    );
    let raw = {
        let disk = slow_disk(part(DISK, divisor))?;
        figures(&disk.uri(), divisor)?
    };
    line("no cache", &raw, &raw, None);
    for (log, bar) in [(GIB, 4.0), (5 * GIB, 16.0)] {
        let disk = slow_disk(part(DISK, divisor))?;
        let mut cache = Cache::create(bench.plumb, bench.directory, &disk.uri(), part(log, divisor))?;
        cache.serve()?;
        let cached = figures(&cache.uri(), divisor)?;
        line(&format!("log of {:.2} GiB", (log / divisor) as f64 / GIB as f64), &cached, &raw, Some(bar));
        say(&cache)?;
    }
    synced(bench, &raw, divisor)
}

/// Measures 4 KiB writes, each synced, in an empty cache.
fn synced(bench: &CacheBench<'_>, raw: &Figures, divisor: u64) -> Result<()> {
    let disk = slow_disk(part(DISK, divisor))?;
    let mut cache = Cache::create(bench.plumb, bench.directory, &disk.uri(), part(5 * GIB, divisor))?;
    cache.serve()?;
    let words = format!("{SYNCED} {}", timed(SECONDS / divisor, divisor));
    let got = fio::measured(Place::Nbd(&cache.uri()), &words)?;
    let times = got.rate / raw.synced.rate;
    println!("4 KiB write + flush {:.0} /s, {times:.1} times (bar 20): {}", got.rate, verdict(times >= 20.0));
    say(&cache)
}

fn figures(uri: &str, divisor: u64) -> Result<Figures> {
    let place = tempfile::tempdir().context("making a directory for a curve")?;
    let curve = place.path().join("curve");
    let seconds = SECONDS / divisor;
    let logged = format!("--write_iops_log={} --log_avg_msec=1000", curve.display());
    let words = format!("--rw=randwrite --bs=64k --iodepth=8 {logged} {}", timed(seconds, divisor));
    let burst = fio::measured(Place::Nbd(uri), &words)?;
    let after =
        |words: &str| fio::measured(Place::Nbd(uri), &format!("{} {words}", timed(seconds / 3, divisor)));
    let (synced, reads) = (after(SYNCED)?, after(&format!("{READS} --size={WRITTEN}"))?);
    Ok(Figures { burst, curve: by_second(&curve.with_file_name("curve_iops.1.log"))?, synced, reads })
}

fn timed(seconds: u64, divisor: u64) -> String {
    format!("--time_based --runtime={seconds} --size={}", part(DISK, divisor))
}

/// Returns a part of a size in whole MiB.
const fn part(bytes: u64, divisor: u64) -> u64 {
    (bytes / divisor) & !((1 << 20) - 1)
}

/// Returns the rate in each second from a log of fio, which omits idle seconds.
fn by_second(path: &Path) -> Result<Vec<f64>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let (mut rates, mut last) = (Vec::new(), 0.0);
    for line in text.lines() {
        let mut values = line.split(',').map(|value| value.trim().parse::<f64>());
        let (Some(Ok(milliseconds)), Some(Ok(rate))) = (values.next(), values.next()) else { continue };
        let seconds = (milliseconds - last) / 1000.0;
        rates.extend(std::iter::repeat_n(0.0, (seconds.round() as usize).saturating_sub(1)));
        rates.push(rate);
        last = milliseconds;
    }
    Ok(rates)
}

fn line(name: &str, figures: &Figures, raw: &Figures, bar: Option<f64>) {
    let times = figures.burst.rate / raw.burst.rate;
    let said = bar.map_or_else(String::new, |bar| format!(" (bar {bar}): {}", verdict(times >= bar)));
    println!("{name:<18} {:>6.0} /s, {times:.1} times{said}", figures.burst.rate);
    let lowest = figures.curve.iter().copied().fold(f64::INFINITY, f64::min);
    let curve: Vec<String> = figures.curve.iter().map(|rate| format!("{rate:.0}")).collect();
    println!("  by the second: {}", curve.join(" "));
    if bar.is_some() {
        println!(
            "  lowest {lowest:.0}, the disk's own {:.0}: {}",
            raw.burst.rate,
            verdict(lowest >= 0.9 * raw.burst.rate)
        );
    }
    for (what, got, own) in
        [("synced 4 KiB writes", figures.synced, raw.synced), ("4 KiB reads", figures.reads, raw.reads)]
    {
        let (times, slower) = (got.rate / own.rate, got.p99 / own.p99);
        let said = if bar.is_some() {
            format!(
                " = {times:.2} (bar 0.9), p99 {slower:.1} times (bar 3): {}",
                verdict(times >= 0.9 && slower <= 3.0)
            )
        } else {
            String::new()
        };
        println!("  then {what}: {:.0} /s, p99 {:.1} ms{said}", got.rate, got.p99 * 1e3);
    }
}

/// Prints the counters of the cache.
fn say(cache: &Cache) -> Result<()> {
    let status = cache.status()?;
    let count = |name: &str| status["counts"][name].as_f64().unwrap_or(f64::NAN);
    println!(
        "  to the log {:.2} bytes for each byte; {:.0} MiB written back in {:.0} writes; {} flushes of the log, {} of the disk, for {}",
        status["write_amplification"].as_f64().unwrap_or(f64::NAN),
        count("destaged") / f64::from(1 << 20),
        count("destage_writes"),
        status["flushes"]["log"],
        status["flushes"]["backing"],
        status["flushes"]["front"]
    );
    Ok(())
}
