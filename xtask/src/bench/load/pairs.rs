//! plumb and fio in turn on the same blocks: 4 KiB random direct reads from one pinned thread.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::places::{NoiseFile, Zram};
use crate::bench::fio::{self, JobFigures, Place};
use crate::bench::machine::MEMORY;
use crate::bench::paired::{median, median_interval, verdict};
use crate::{packages, process};

/// Size of each place in MiB.
const MIB: u64 = 256;
/// Duration of each run.
const SECONDS: &str = "3s";
/// Processor to which both are pinned.
const PROCESSOR: &str = "1";
/// Limit for a place, relative to fio.
#[derive(Clone, Copy)]
enum Bar {
    /// Minimum ratio to fio's rate.
    Rate(f64),
    /// The rate of fio, and a maximum ratio to fio's processor time.
    SameRateCpu(f64),
}

/// Compares both on each kind of place.
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
            plain.push(fio_once(depth, "", target)?);
            let batches = "--iodepth_batch_submit=16 --iodepth_batch_complete_min=16";
            batched.push(fio_once(depth, batches, target)?);
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

fn plumb_once(plumb: &Path, depth: &str, target: &Path) -> Result<JobFigures> {
    let place = tempfile::tempdir().context("making a directory for the recording")?;
    let mut command = Command::new(plumb);
    command.args(["load", "--json", "--depth", depth, "--duration", SECONDS]);
    command.args(["--affinity", &format!("each:{PROCESSOR}"), "--out"]).arg(place.path().join("run"));
    let document = process::document(command.arg(target))?;
    let number = |pointer: &str| {
        document.pointer(pointer).and_then(Value::as_f64).with_context(|| format!("no {pointer}"))
    };
    let millions = number("/total/application/operations")? / 1e6;
    Ok(JobFigures {
        rate: number("/total/application/iops")?,
        user: number("/total/cpu/user")? / millions,
        system: number("/total/cpu/system")? / millions,
        p99: number("/total/application/latency/p99")?,
    })
}

/// Runs fio with one thread. Only the processor time of that thread counts, as for plumb.
fn fio_once(depth: &str, more: &str, target: &Path) -> Result<JobFigures> {
    let fixed = "--thread --ioengine=io_uring --rw=randread --bs=4k --direct=1 --time_based";
    let own = format!("--iodepth={depth} --runtime={SECONDS} --cpus_allowed={PROCESSOR}");
    fio::measured(Place::Path(target), &format!("{fixed} {own} {more}"))
}

fn collect(runs: &[JobFigures], figure: impl Fn(&JobFigures) -> f64) -> Vec<f64> {
    runs.iter().map(figure).collect()
}

fn line(name: &str, runs: &[JobFigures]) {
    println!(
        "  {name:<20} {:>9.0} IOPS, CPU s per million by ticks: user {:.3}, system {:.3}",
        median(&collect(runs, |run| run.rate)),
        median(&collect(runs, |run| run.user)),
        median(&collect(runs, |run| run.system)),
    );
}

/// Prints the ratio of the medians, the interval of the pairs' ratios, and whether the limit is met.
fn ratio(peer: &str, ours: &[JobFigures], theirs: &[JobFigures], bar: Option<Bar>) {
    let compared = |figure: fn(&JobFigures) -> f64| {
        let ratios: Vec<f64> =
            ours.iter().zip(theirs).map(|(our, their)| figure(our) / figure(their)).collect();
        (median(&collect(ours, figure)) / median(&collect(theirs, figure)), median_interval(&ratios))
    };
    let (rate, (low, high)) = compared(|run| run.rate);
    let (cpu, (cpu_low, cpu_high)) = compared(|run| run.user + run.system);
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
