//! Measurements by fio, for benches that compare what serves, not what loads.

use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// Measurements of one job.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobFigures {
    /// Returns the operations per second.
    pub(super) rate: f64,
    /// The 99th percentile of the time that an operation took, and of the sync after it if there was one, in
    /// seconds.
    pub(super) p99: f64,
}

/// Returns the operations per second of one job with these options.
pub(super) fn rate(options: &[String]) -> Result<f64> {
    measured(options).map(|measured| measured.rate)
}

/// Runs one job with these options and returns its measurements.
pub(super) fn measured(options: &[String]) -> Result<JobFigures> {
    // In a file: engines print to stdout, too.
    let place = tempfile::tempdir().context("making a directory for what fio says")?;
    let said = place.path().join("fio.json");
    let mut command = Command::new("fio");
    command.args(["--name=bench", "--norandommap", "--randrepeat=0", "--output-format=json"]);
    command.arg(format!("--output={}", said.display())).args(options).stdout(Stdio::null());
    process::run(&mut command)?;
    let text = std::fs::read(&said).context("reading what fio said")?;
    let document: Value = serde_json::from_slice(&text).context("understanding what fio said")?;
    let job = &document["jobs"][0];
    let of = |direction: &str| job[direction]["iops"].as_f64().unwrap_or(0.0);
    let p99 = |pointer: &str| {
        let latency = job.pointer(pointer).and_then(|latency| latency["percentile"]["99.000000"].as_f64());
        latency.unwrap_or(0.0) / 1e9
    };
    let p99 = p99("/read/clat_ns") + p99("/write/clat_ns") + p99("/sync/lat_ns");
    Ok(JobFigures { rate: of("read") + of("write"), p99 })
}
