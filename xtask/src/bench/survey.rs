//! The survey of a recorded tree of a thousand disks under dm and md: time and memory.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};

use super::load::peak_megabytes;
use super::paired::median;
use crate::{packages, process};

const RUNS: usize = 7;

/// Makes the tree, surveys it some times, prints the medians.
pub(super) fn run(root: &Path, plumb: &Path) -> Result<()> {
    if !packages::are_there("time")? {
        return Ok(());
    }
    let tree = tempfile::tempdir().context("making a directory for the tree")?;
    let example = ["run", "--release", "--quiet", "--package", "plumb-path", "--example", "thousand_disks"];
    process::run(Command::new("cargo").args(example).arg(tree.path()).current_dir(root))?;
    let mut milliseconds = Vec::new();
    let mut megabytes = Vec::new();
    for run in 0..=RUNS {
        let began = Instant::now();
        let mut command = Command::new("time");
        command.args(["--format", "%M"]).arg(plumb).args(["survey", "--all", "--json", "--from"]);
        let peak = peak_megabytes(command.arg(tree.path()))?;
        if run > 0 {
            milliseconds.push(began.elapsed().as_secs_f64() * 1e3);
            megabytes.push(peak);
        }
    }
    println!("survey --all of 1,000 disks   {:.0} ms (bar: 250)", median(&milliseconds));
    println!("largest resident size         {:.1} MB (bar: 50)", median(&megabytes));
    Ok(())
}
