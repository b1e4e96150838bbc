//! plumb and fio in turn on the same blocks: 4 KiB random reads past the page cache from one pinned thread.

use std::path::Path;

use anyhow::{Context, Result};

use super::figures::{Figures, of_fio, of_plumb, plumb_load};
use super::places::{NoiseFile, Zram};
use crate::bench::machine::MEMORY;
use crate::bench::paired::{median, median_interval, verdict};
use crate::packages;

/// The size of each place.
const MIB: u64 = 256;
/// Time that each of the two runs.
const SECONDS: &str = "3s";
/// The processor that both are pinned to.
const PROCESSOR: &str = "1";
/// Requirement of a place on the ratio to fio.
#[derive(Clone, Copy)]
enum Bar {
    /// Minimum ratio to fio's rate.
    Rate(f64),
    /// Rate of fio, and at most so much of fio's processor time.
    SameRateCpu(f64),
}

/// Compares on each kind of place.
pub(super) fn run(plumb: &Path, directory: &Path, pairs: usize) -> Result<()> {
    if !packages::are_there("fio")? {
        return Ok(());
    }
    if packages::find("t/io_uring").is_none() && packages::find("fio-t").is_none() {
        println!("fio's t/io_uring: Debian does not ship it, so it is not compared with");
    }
    let compare = |name: &str, target: &Path, bar| compare(plumb, name, target, bar, pairs);
    if let Some(zram) = Zram::new(MIB)? {
        compare("zram", &zram.path(), Bar::Rate(1.7))?;
    }
    compare("tmpfs", &NoiseFile::new(Path::new(MEMORY), MIB)?.path(), Bar::Rate(1.15))?;
    let directory = directory.canonicalize().context("finding the directory for test files")?;
    compare("disk file", &NoiseFile::new(&directory, MIB)?.path(), Bar::SameRateCpu(0.65))
}

/// Prints a block for each depth and each way of running fio.
fn compare(plumb: &Path, name: &str, target: &Path, bar: Bar, pairs: usize) -> Result<()> {
    for depth in ["32", "64"] {
        let (mut ours, mut plain, mut batched) = (Vec::new(), Vec::new(), Vec::new());
        for pair in 1..=pairs {
            eprintln!("{name}, depth {depth}, pair {pair} of {pairs}");
            ours.push(plumb_once(plumb, depth, target)?);
            plain.push(fio_once(depth, &[], target)?);
            batched.push(fio_once(
                depth,
                &["--iodepth_batch_submit=16", "--iodepth_batch_complete_min=16"],
                target,
            )?);
        }
        println!("{name}, depth {depth}, {pairs} pairs");
        line("plumb", &ours);
        line("fio", &plain);
        line("fio, batches of 16", &batched);
        ratio("fio", &ours, &plain, Some(bar));
        ratio("fio, batches of 16", &ours, &batched, None);
    }
    Ok(())
}

fn plumb_once(plumb: &Path, depth: &str, target: &Path) -> Result<Figures> {
    let affinity = format!("each:{PROCESSOR}");
    of_plumb(&plumb_load(plumb, &arguments(depth, &affinity), &[target])?)
}

fn arguments<'a>(depth: &'a str, affinity: &'a str) -> [&'a str; 6] {
    ["--depth", depth, "--duration", SECONDS, "--affinity", affinity]
}

fn fio_once(depth: &str, more: &[&str], target: &Path) -> Result<Figures> {
    let own =
        [format!("--iodepth={depth}"), format!("--runtime={SECONDS}"), format!("--cpus_allowed={PROCESSOR}")];
    let fixed = ["--ioengine=io_uring", "--rw=randread", "--bs=4k", "--direct=1", "--time_based"];
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    of_fio(&[&fixed, &own[..], more].concat(), target)
}

fn collect(runs: &[Figures], figure: impl Fn(&Figures) -> f64) -> Vec<f64> {
    runs.iter().map(figure).collect()
}

fn line(name: &str, runs: &[Figures]) {
    println!(
        "  {name:<20} {:>9.0} IOPS, CPU s per million by ticks: user {:.3}, system {:.3}",
        median(&collect(runs, |run| run.iops)),
        median(&collect(runs, |run| run.user)),
        median(&collect(runs, |run| run.system)),
    );
}

/// The ratio of the medians, the interval of the pairs' ratios, and whether the bar is met.
fn ratio(peer: &str, ours: &[Figures], theirs: &[Figures], bar: Option<Bar>) {
    let compared = |figure: fn(&Figures) -> f64| {
        let ratios: Vec<f64> =
            ours.iter().zip(theirs).map(|(our, their)| figure(our) / figure(their)).collect();
        (median(&collect(ours, figure)) / median(&collect(theirs, figure)), median_interval(&ratios))
    };
    let (rate, (low, high)) = compared(|run| run.iops);
    let (cpu, (cpu_low, cpu_high)) = compared(|run| run.cpu());
    let said = match bar {
        None => String::new(),
        Some(Bar::Rate(bar)) => format!(" (bar: rate {bar}): {}", verdict(rate >= bar)),
        Some(Bar::SameRateCpu(bar)) => {
            let met = low <= 1.0 && high >= 0.95 && cpu <= bar || low > 1.0 && cpu <= bar;
            format!(" (bar: the same rate, CPU {bar}): {}", verdict(met))
        }
    };
    println!(
        "  plumb / {peer}: rate {rate:.2} ({low:.2} to {high:.2}), CPU {cpu:.2} ({cpu_low:.2} to {cpu_high:.2}){said}"
    );
}
