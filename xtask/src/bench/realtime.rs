//! Test of a drive in real time over NBD against its model in virtual time.
//!
//! The same load with the same seed runs on `sim:MODEL` in virtual time, and in turn on the null drive and on
//! the drive over NBD. The latencies of the null drive are those of the transport in the same run, which the
//! model lacks. So the expected latencies of the drive are those of the model, each with one of the transport
//! added.
//!
//! - Requests arrive at random intervals, as of many clients. At equal intervals they would synchronise with
//!   a rotating disk: requests at a fixed distance would find it at the same angle, which differs between
//!   real time and the model.
//! - For the same reason the model of such a disk is run from several angles.
//! - At low rates processors are kept awake, since the time in which a hypervisor wakes one is unpredictable.
//!   Two loads are also measured with sleeping processors.

mod answers;
mod processors;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow};
use serde_json::Value;

use super::paired::{median, median_interval, verdict};
use super::served::{SEED, ServedDrive, Way};
use answers::Answers;
use processors::{KeptAwake, Ticks};

use crate::process;

/// Size of every drive.
const SIZE: &str = "4GiB";
/// Maximum duration of the measurement of the null drive in seconds: its latencies vary less than those of a
/// disk.
const NULL_SECONDS_MAX: f64 = 1.0;
/// Number of angles from which a rotating disk is modelled, and their distance in microseconds: spread over a
/// revolution of 4 ms as well as of 8.3 ms.
const ANGLES: u32 = 5;
const ANGLE_MICROSECONDS: u32 = 3_200;
/// Rate from which no processor sleeps, so that keeping them awake would only disturb.
const BUSY_IOPS: u32 = 5_000;
/// Share of the processors used by others, in percent, above which it is reported.
const DISTURBANCE_PERCENT: f64 = 5.0;
/// Permitted deviation from the model: a share of the latency, and an absolute part.
const SHARE: f64 = 0.05;
const MORE_SECONDS: f64 = 50e-6;

/// Load on a drive, and the place of its latencies in the report.
struct DriveLoad {
    name: &'static str,
    arguments: &'static [&'static str],
    /// JSON pointer to the latencies in a report in the format of fio.
    pointer: &'static str,
}

const READ_BINS: &str = "/jobs/0/read/clat_ns/bins";
const RANDOM_READS: DriveLoad =
    DriveLoad { name: "random reads", arguments: &["--random"], pointer: READ_BINS };
const SEQUENTIAL_READS: DriveLoad =
    DriveLoad { name: "sequential reads", arguments: &["--sequential"], pointer: READ_BINS };
const RANDOM_WRITES: DriveLoad = DriveLoad {
    name: "random writes",
    arguments: &["--random", "--write", "100"],
    pointer: "/jobs/0/write/clat_ns/bins",
};
/// Writes, each followed by a flush whose latency is measured.
const FLUSHES: DriveLoad = DriveLoad {
    name: "flushes after writes",
    arguments: &["--random", "--write", "100", "--sync-every", "1"],
    pointer: "/jobs/0/sync/lat_ns/bins",
};

/// Load on drives of a model.
struct Case {
    model: &'static str,
    turns: bool,
    asked: DriveLoad,
    /// Requests per second to each drive.
    rate: u32,
    /// Number of drives in parallel: several for slow ones, to get enough answers.
    drives: u64,
    seconds: f64,
}

impl Case {
    const fn disk(model: &'static str, asked: DriveLoad, rate: u32, drives: u64, seconds: f64) -> Self {
        Self { model, turns: true, asked, rate, drives, seconds }
    }

    const fn ssd(model: &'static str, asked: DriveLoad, rate: u32, seconds: f64) -> Self {
        Self { model, turns: false, asked, rate, drives: 1, seconds }
    }

    fn name(&self) -> String {
        format!("{} {} {} IOPS", self.model, self.asked.name, self.rate)
    }
}

const CASES: [Case; 12] = [
    Case::disk("nearline-4tb", RANDOM_READS, 50, 8, 2.5),
    Case::disk("sas-15k", RANDOM_READS, 100, 8, 2.0),
    Case::disk("nearline-4tb", SEQUENTIAL_READS, 1_000, 1, 1.5),
    Case::disk("nearline-4tb", SEQUENTIAL_READS, 2_500, 1, 1.0),
    Case::ssd("consumer-nvme-ssd", RANDOM_READS, 100, 2.0),
    Case::ssd("consumer-nvme-ssd", RANDOM_READS, 1_000, 1.0),
    Case::ssd("consumer-nvme-ssd", RANDOM_READS, 5_000, 0.7),
    Case::ssd("consumer-nvme-ssd", RANDOM_READS, 20_000, 1.0),
    Case::ssd("plp-nvme-ssd", RANDOM_READS, 20_000, 1.0),
    Case::ssd("plp-nvme-ssd", RANDOM_WRITES, 20_000, 1.0),
    Case::ssd("consumer-nvme-ssd", FLUSHES, 500, 1.0),
    Case::ssd("plp-nvme-ssd", FLUSHES, 5_000, 0.7),
];

/// Cases in which sleeping processors matter most.
const CASES_ASLEEP: [Case; 2] = [
    Case::ssd("consumer-nvme-ssd", RANDOM_READS, 100, 2.0),
    Case::ssd("consumer-nvme-ssd", RANDOM_READS, 1_000, 1.0),
];

/// Prints two lines for each load.
pub(super) fn run(plumb: &Path, pairs: usize) -> Result<()> {
    println!(
        "4 KiB, microseconds; {pairs} pairs of null drive and drive over NBD; bar: the model's, 5 % and 50 µs more or less"
    );
    println!("{:<62} {:>7} {:>7} {:>8} {:>7}  real less expected", "", "model", "null", "expected", "real");
    for case in &CASES {
        let awake = (case.rate < BUSY_IOPS).then(KeptAwake::start).transpose()?;
        measure(plumb, case, pairs, awake)?;
    }
    println!("with processors that sleep when they can:");
    for case in &CASES_ASLEEP {
        measure(plumb, case, pairs, None)?;
    }
    Ok(())
}

/// Measures one load and prints its lines. Other activity of the machine is reported where it matters.
fn measure(plumb: &Path, case: &Case, pairs: usize, awake: Option<KeptAwake>) -> Result<()> {
    let name = case.name();
    eprintln!("{name}");
    let model = modelled(plumb, case)?;
    let before = Ticks::read()?;
    let pairs: Vec<Pair> = (0..pairs.max(1)).map(|_| pair(plumb, case)).collect::<Result<_>>()?;
    // The processor time of `awake` is known after it has ended.
    drop(awake);
    let (others, stolen) = Ticks::read()?.disturbance(before);
    line(&format!("{name} p50"), 0.5, &model, &pairs);
    line(&format!("{name} p90"), 0.9, &model, &pairs);
    if others + stolen > DISTURBANCE_PERCENT {
        println!(
            "  meanwhile other programs had {others:.0} % of the processors, the hypervisor {stolen:.0} %"
        );
    }
    Ok(())
}

/// Latencies of null drives and of drives, measured one after the other.
struct Pair {
    null: Answers,
    drive: Answers,
}

fn pair(plumb: &Path, case: &Case) -> Result<Pair> {
    Ok(Pair {
        null: over_nbd(plumb, case, "null", case.seconds.min(NULL_SECONDS_MAX))?,
        drive: over_nbd(plumb, case, case.model, case.seconds)?,
    })
}

fn line(name: &str, share: f64, model: &Answers, pairs: &[Pair]) {
    let us = |seconds: f64| seconds * 1e6;
    let of = |figure: &dyn Fn(&Pair) -> f64| -> Vec<f64> { pairs.iter().map(figure).collect() };
    let null = of(&|pair| us(pair.null.percentile(share)));
    let real = of(&|pair| us(pair.drive.percentile(share)));
    let expected = of(&|pair| us(model.after(&pair.null).percentile(share)));
    let off: Vec<f64> = real.iter().zip(&expected).map(|(real, expected)| real - expected).collect();
    let (middle, (low, high)) = (median(&off), median_interval(&off));
    let model = us(model.percentile(share));
    let bar = model * SHARE + us(MORE_SECONDS);
    println!(
        "{name:<62} {model:>7.0} {:>7.0} {:>8.0} {:>7.0}  {middle:.0} ({low:.0} to {high:.0}; bar {bar:.0}): {}",
        median(&null),
        median(&expected),
        median(&real),
        verdict(middle.abs() <= bar)
    );
}

/// Returns the latencies of the model, from several angles if it rotates.
fn modelled(plumb: &Path, case: &Case) -> Result<Answers> {
    let target = format!("sim:{}?seed={SEED}&size={SIZE}", case.model);
    let mut answers = Answers::default();
    for seed in 0..case.drives {
        for angle in 0..if case.turns { ANGLES } else { 1 } {
            let delay_microseconds = angle * ANGLE_MICROSECONDS;
            let run = Run { seed, seconds: case.seconds, delay_microseconds };
            answers.add(&load(plumb, case, &target, &run)?);
        }
    }
    Ok(answers)
}

/// Returns the latencies of new drives of `model` over NBD.
fn over_nbd(plumb: &Path, case: &Case, model: &str, seconds: f64) -> Result<Answers> {
    let mut drives = Vec::new();
    for _ in 0..case.drives {
        drives.push(ServedDrive::start(plumb, model, SIZE, Way::Nbd)?);
    }
    let mut together = Answers::default();
    std::thread::scope(|scope| {
        let loads: Vec<_> = (0..)
            .zip(&drives)
            .map(|(seed, drive)| {
                let run = Run { seed, seconds, delay_microseconds: 0 };
                scope.spawn(move || load(plumb, case, &drive.uri(), &run))
            })
            .collect();
        for load in loads {
            together.add(&load.join().map_err(|_| anyhow!("a load panicked"))??);
        }
        Ok(together)
    })
}

/// Parameters of a run of a load.
struct Run {
    seed: u64,
    seconds: f64,
    /// Delay of the start after that of the drive.
    delay_microseconds: u32,
}

/// Returns the latencies of a load on `target`.
fn load(plumb: &Path, case: &Case, target: &str, run: &Run) -> Result<Answers> {
    let place = tempfile::tempdir().context("making a directory for the recording")?;
    let recording = place.path().join("run");
    let seed = run.seed.to_string();
    let (duration, delay) = (format!("{}s", run.seconds), format!("{}us", run.delay_microseconds));
    let mut command = Command::new(plumb);
    command
        .args(["load", "--json", "--overwrite", "--depth", "64", "--seed", &seed])
        .args(["--duration", &duration, "--start-delay", &delay])
        .args(["--rate", &format!("{}iops", case.rate), "--arrival", "poisson"])
        .args(case.asked.arguments);
    process::captured(command.arg("--out").arg(&recording).arg(target), &[0, 1])?;
    let document =
        process::document(Command::new(plumb).args(["report", "--format", "fio"]).arg(&recording))?;
    Answers::of_fio(document.pointer(case.asked.pointer).unwrap_or(&Value::Null))
}
