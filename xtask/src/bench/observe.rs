//! Cost of observing: fio on a loop device on a file in memory, with and without `plumb observe`, in turn,
//! once for a recording and once for the metrics of `--serve`.
//!
//! The cost of plumb itself is its processor time while fio keeps a fixed rate, as a share of one processor.
//! The kernel records events in the time of the load, so its cost is the loss of fio's rate on a fully used
//! processor.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;
use tempfile::TempDir;

use super::attach::LoopedFile;
use super::fio::{self, Place};
use super::paired::{Pairs, Side, median, median_interval, verdict};
use crate::packages;

/// Duration of each run of fio, in seconds.
const SECONDS: f64 = 4.0;
/// Requests per second for the cost of plumb itself.
const RATE: u32 = 20_000;
/// Maximum share of one processor that plumb takes at that rate.
const BAR: f64 = 0.04;
/// Time after the load until its last events are read, with a margin.
const LAST_READ: Duration = Duration::from_millis(300);

/// Method of observing.
struct Case {
    name: &'static str,
    options: &'static [&'static str],
    /// True if metrics are served and nothing is recorded.
    is_served: bool,
}

const CASES: [Case; 3] = [
    Case { name: "block events", options: &["--no-syscalls"], is_served: false },
    Case { name: "and system calls", options: &[], is_served: false },
    Case { name: "metrics (--serve)", options: &[], is_served: true },
];

/// Prints the costs.
pub(super) fn run(plumb: &Path, pairs: usize) -> Result<()> {
    if !packages::are_there("fio losetup=mount")? {
        return Ok(());
    }
    let Some(looped) = LoopedFile::new()? else { return Ok(()) };
    let device = looped.device();
    load(device, "--rw=write --bs=1M")?;
    println!("4 KiB random reads of a loop device in memory, IOPS observed / alone ({pairs} pairs)");
    for case in &CASES {
        let (mut rates, mut shares) = (Pairs::default(), Vec::new());
        for pair in 1..=pairs {
            eprintln!("{}: pair {pair} of {pairs}", case.name);
            let observer = Observer::start(plumb, device, case)?;
            shares.push(observer.share_during(|| timed(device, Some(RATE)))?);
            observer.end()?;
            rates.measure(|side| match side {
                Side::Theirs => timed(device, None),
                Side::Ours => {
                    let observer = Observer::start(plumb, device, case)?;
                    let rate = timed(device, None)?;
                    observer.end()?;
                    Ok(rate)
                }
            })?;
        }
        rates.print(case.name, None);
        let (share, (low, high)) = (median(&shares), median_interval(&shares));
        let verdict = verdict(share <= BAR);
        println!(
            "  plumb's share of one processor at {RATE} requests/s: {share:.4} ({low:.4} to {high:.4}) (bar {BAR}): {verdict}"
        );
    }
    Ok(())
}

/// Runs fio for [`SECONDS`], at most at `rate`. Returns its rate.
fn timed(device: &Path, rate: Option<u32>) -> Result<f64> {
    let limit = rate.map_or_else(String::new, |rate| format!("--rate_iops={rate}"));
    load(device, &format!("--rw=randread --bs=4k --time_based --runtime={SECONDS} {limit}"))
}

/// Runs fio on one processor. Returns its rate.
fn load(device: &Path, words: &str) -> Result<f64> {
    let common = "--direct=1 --size=256M --ioengine=io_uring --iodepth=16 --cpus_allowed=0";
    fio::rate(Place::Path(device), &format!("{common} {words}"))
}

/// `plumb observe`, after its first event.
struct Observer {
    child: Child,
    /// Socket of the metrics; `None` for a recording.
    socket: Option<PathBuf>,
    /// Kept open, since plumb writes more messages.
    _said: BufReader<ChildStderr>,
    _place: TempDir,
}

impl Observer {
    fn start(plumb: &Path, device: &Path, case: &Case) -> Result<Self> {
        let place = tempfile::tempdir().context("making a directory for a socket")?;
        let socket = case.is_served.then(|| place.path().join("metrics"));
        let mut command = Command::new(plumb);
        command.arg("observe").args(case.options).arg(device);
        match &socket {
            Some(socket) => command.arg("--serve").arg(socket),
            None => command.args(["--json", "--no-record", "--duration", "5m"]),
        };
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().context("starting plumb")?;
        let mut said = BufReader::new(child.stderr.take().context("its stderr")?);
        let mut line = String::new();
        while !line.contains("observing") {
            line.clear();
            let length = said.read_line(&mut line).context("reading what plumb says")?;
            anyhow::ensure!(length > 0, "plumb ended before it observed");
        }
        Ok(Self { child, socket, _said: said, _place: place })
    }

    /// Returns the share of one processor that plumb uses during a load.
    fn share_during(&self, load: impl FnOnce() -> Result<f64>) -> Result<f64> {
        let before = self.cpu_seconds()?;
        load()?;
        std::thread::sleep(LAST_READ);
        Ok((self.cpu_seconds()? - before) / SECONDS)
    }

    /// Returns the total processor time of all its threads in seconds
    /// (Documentation/scheduler/sched-stats.rst, `/proc/<pid>/schedstat`).
    fn cpu_seconds(&self) -> Result<f64> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).context("its threads")?;
        let spent = |task: std::io::Result<std::fs::DirEntry>| {
            let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
            Ok(text.split(' ').next().and_then(|spent| spent.parse::<f64>().ok()).unwrap_or(0.0) / 1e9)
        };
        tasks.map(spent).sum::<std::io::Result<f64>>().context("reading its processor time")
    }

    /// Ends the observer, and prints the number of lost events, if any.
    fn end(self) -> Result<()> {
        let served = self.socket.as_deref().map(metrics).transpose()?;
        let asked = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        asked.context("ending plumb")?;
        let output = self.child.wait_with_output().context("waiting for plumb")?;
        let (events, lost) = match &served {
            Some(metrics) => {
                let sample = |name: &str| {
                    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
                    value.with_context(|| format!("no {name} in the metrics"))
                };
                (sample("plumb_observe_events_total ")?, sample("plumb_observe_events_lost_total ")?)
            }
            None => {
                let document: Value =
                    serde_json::from_slice(&output.stdout).context("understanding what plumb saw")?;
                let count = |key: &str| document["cost"][key].as_f64().unwrap_or(0.0);
                (count("events"), count("events_lost"))
            }
        };
        anyhow::ensure!(events > 0.0, "plumb saw no events");
        if lost > 0.0 {
            println!("  {lost} of {} events were lost", events + lost);
        }
        Ok(())
    }
}

/// Returns the metrics served at a socket.
fn metrics(socket: &Path) -> Result<String> {
    let mut stream = UnixStream::connect(socket).context("asking for the metrics")?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: plumb\r\n\r\n").context("asking for the metrics")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("reading the metrics")?;
    Ok(answer)
}
