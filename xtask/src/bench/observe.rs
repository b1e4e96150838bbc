//! Cost of observing: fio on a loop device over a file in memory, with `plumb observe` beside it and without,
//! in turn.
//!
//! The processor that the load has is saturated: fio and what it asks of the kernel run on one. The cost is
//! plumb's own processor time against the time that the load had, and the rate that the load loses, which
//! holds what the kernel needs to put events down.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use super::attach::LoopedFile;
use super::fio;
use super::paired::{Pairs, Side, median, median_interval, verdict};
use crate::packages;

/// How long fio runs each time, in seconds.
const SECONDS: f64 = 2.0;
/// plumb's share of the processor time that the load had, at most.
const BAR: f64 = 0.10;

/// Parts of the kernel that are traced.
const CASES: [(&str, &[&str]); 2] =
    [("block events", &["--no-syscalls"]), ("block events and system calls", &[])];

/// Prints the costs.
pub(super) fn run(plumb: &Path, pairs: usize) -> Result<()> {
    if !packages::are_there("fio losetup=mount")? {
        return Ok(());
    }
    let Some(looped) = LoopedFile::new()? else { return Ok(()) };
    let device = looped.device();
    load(device, &["--rw=write", "--bs=1M"])?;
    println!(
        "4 KiB random reads of a loop device in memory, IOPS observed / alone, and plumb's processor time ({pairs} pairs)"
    );
    for (name, options) in CASES {
        let (mut rates, mut shares) = (Pairs::default(), Vec::new());
        for pair in 1..=pairs {
            eprintln!("{name}: pair {pair} of {pairs}");
            rates.measure(|side| match side {
                Side::Theirs => timed(device),
                Side::Ours => {
                    let observer = Observer::start(plumb, device, options)?;
                    let rate = timed(device)?;
                    shares.push(observer.end()?);
                    Ok(rate)
                }
            })?;
        }
        rates.print(name, None);
        let (share, (low, high)) = (median(&shares), median_interval(&shares));
        let verdict = verdict(share <= BAR);
        println!(
            "  plumb's share of the load's processor time: {share:.3} ({low:.3} to {high:.3}) (bar {BAR}): {verdict}"
        );
    }
    Ok(())
}

fn timed(device: &Path) -> Result<f64> {
    let runtime = format!("--runtime={SECONDS}");
    load(device, &["--rw=randread", "--bs=4k", "--time_based", &runtime])
}

/// Runs fio on one processor; its rate.
fn load(device: &Path, options: &[&str]) -> Result<f64> {
    let place = [format!("--filename={}", device.display()), "--size=256M".to_owned()];
    let common = ["--direct=1", "--ioengine=io_uring", "--iodepth=16", "--cpus_allowed=0"];
    let all = common.iter().chain(options).map(|option| (*option).to_owned());
    fio::rate(&all.chain(place).collect::<Vec<_>>())
}

/// `plumb observe`, from its first event on.
struct Observer {
    child: std::process::Child,
    /// Kept open: plumb says more.
    _said: std::io::BufReader<std::process::ChildStderr>,
}

impl Observer {
    fn start(plumb: &Path, device: &Path, options: &[&str]) -> Result<Self> {
        let mut command = Command::new(plumb);
        command.args(["observe", "--json", "--no-record", "--duration", "5m"]).args(options).arg(device);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().context("starting plumb")?;
        let mut said = std::io::BufReader::new(child.stderr.take().context("its stderr")?);
        let mut line = String::new();
        while !line.contains("observing") {
            line.clear();
            let length =
                std::io::BufRead::read_line(&mut said, &mut line).context("reading what plumb says")?;
            anyhow::ensure!(length > 0, "plumb ended before it observed");
        }
        Ok(Self { child, _said: said })
    }

    /// Ends it: its processor time against that of the load.
    fn end(self) -> Result<f64> {
        let asked = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        asked.context("ending plumb")?;
        let output = self.child.wait_with_output().context("waiting for plumb")?;
        let document: Value =
            serde_json::from_slice(&output.stdout).context("understanding what plumb saw")?;
        anyhow::ensure!(document["source"] == "events", "no events: {}", document["source_because"]);
        let lost = document["cost"]["events_lost"].as_u64().unwrap_or(0);
        if lost > 0 {
            println!("  {lost} of {} events were lost", document["cost"]["events"]);
        }
        let spent = document["cost"]["cpu_seconds"].as_f64().context("the cost")?;
        Ok(spent / SECONDS)
    }
}
