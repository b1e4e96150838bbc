//! fio's rate, for benches that compare what serves, not what loads.

use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// Operations per second of one job with these options.
pub(super) fn rate(options: &[String]) -> Result<f64> {
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
    Ok(of("read") + of("write"))
}
