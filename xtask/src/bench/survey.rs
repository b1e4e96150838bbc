//! The survey of a recorded tree of a thousand disks under dm and md: time and memory.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::paired::median;
use crate::packages::{self, Program};

const RUNS: usize = 7;

/// Makes the tree, surveys it some times, prints the medians.
pub(super) fn run(root: &Path, plumb: &Path) -> Result<()> {
    packages::ensure_installed(&[Program { name: "time", package: "time" }])?;
    let tree = tempfile::tempdir().context("making a directory for the tree")?;
    let made = Command::new("cargo")
        .args(["run", "--release", "--quiet", "--package", "plumb-path", "--example", "thousand_disks"])
        .arg(tree.path())
        .current_dir(root)
        .status()
        .context("starting the example")?;
    ensure!(made.success(), "thousand_disks: {made}");
    let mut milliseconds = Vec::new();
    let mut megabytes = Vec::new();
    for run in 0..=RUNS {
        let began = Instant::now();
        let output = Command::new("time")
            .args(["--format", "%M"])
            .arg(plumb)
            .args(["survey", "--all", "--json", "--from"])
            .arg(tree.path())
            .stdout(Stdio::null())
            .output()
            .context("starting time")?;
        let took = began.elapsed().as_secs_f64() * 1e3;
        let said = String::from_utf8_lossy(&output.stderr);
        // The last line is the largest resident size in KiB; plumb may have said something before.
        let kib: f64 =
            said.lines().last().and_then(|line| line.trim().parse().ok()).context("time said nothing")?;
        if run > 0 {
            milliseconds.push(took);
            megabytes.push(kib * 1024.0 / 1e6);
        }
    }
    println!("survey --all of 1,000 disks   {:.0} ms (bar: 250)", median(&milliseconds));
    println!("largest resident size         {:.1} MB (bar: 50)", median(&megabytes));
    Ok(())
}
