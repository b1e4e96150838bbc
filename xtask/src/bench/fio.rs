//! Measurements by fio, for benches that compare servers instead of load generators.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// Measurements of one job, of fio or of plumb.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobFigures {
    /// Operations per second.
    pub(super) rate: f64,
    /// Processor time in seconds for a million operations: user and system.
    pub(super) user: f64,
    pub(super) system: f64,
    /// 99th percentile of the time of an operation, and of the sync after it if there was one, in seconds.
    pub(super) p99: f64,
}

/// Target of a job.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'a> {
    /// File or device.
    Path(&'a Path),
    /// Export of an NBD server, by its URI.
    Nbd(&'a str),
}

/// Returns the operations per second of one job on `place`; see [`measured`].
pub(super) fn rate(place: Place<'_>, words: &str) -> Result<f64> {
    measured(place, words).map(|measured| measured.rate)
}

/// Runs one job on `place` and returns its measurements. `words` are its options, separated by blanks.
pub(super) fn measured(place: Place<'_>, words: &str) -> Result<JobFigures> {
    // The results go to a file, since engines also print to stdout.
    let directory = tempfile::tempdir().context("making a directory for what fio says")?;
    let said = directory.path().join("fio.json");
    let mut command = Command::new("fio");
    command.args(["--name=bench", "--norandommap", "--randrepeat=0", "--output-format=json"]);
    command.arg(format!("--output={}", said.display()));
    match place {
        Place::Path(path) => command.arg(format!("--filename={}", path.display())),
        Place::Nbd(uri) => command.arg("--ioengine=nbd").arg(format!("--uri={uri}")),
    };
    command.args(words.split_whitespace()).stdout(Stdio::null());
    process::run(&mut command)?;
    let text = std::fs::read(&said).context("reading what fio said")?;
    let document: Value = serde_json::from_slice(&text).context("understanding what fio said")?;
    let job = &document["jobs"][0];
    let both = |figure: &str| {
        ["read", "write"].iter().filter_map(|direction| job[*direction][figure].as_f64()).sum::<f64>()
    };
    let p99 = |pointer: &str| {
        let latency = job.pointer(pointer).and_then(|latency| latency["percentile"]["99.000000"].as_f64());
        latency.unwrap_or(0.0) / 1e9
    };
    let p99 = p99("/read/clat_ns") + p99("/write/clat_ns") + p99("/sync/lat_ns");
    let millions = both("total_ios") / 1e6;
    let seconds = job["job_runtime"].as_f64().unwrap_or(0.0) / 1e3;
    let cpu = |name: &str| job[name].as_f64().unwrap_or(0.0) / 100.0 * seconds / millions;
    Ok(JobFigures { rate: both("iops"), user: cpu("usr_cpu"), system: cpu("sys_cpu"), p99 })
}
