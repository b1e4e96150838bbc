//! Memory use of a load on many targets, and its growth.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::places::NoiseFile;
use crate::bench::machine::MEMORY;
use crate::bench::paired::verdict;
use crate::{packages, process};

/// Number of targets.
const TARGETS: usize = 16;
/// Limit of the resident set size, in MB.
const BAR: f64 = 64.0;
/// Limit of the additional memory of a run of 20 s compared with one of 3 s, in MB: a longer time series, and
/// noise.
const GROWTH_BAR: f64 = 1.0;

/// Prints the maximum resident set size of reads and of a mix, short and long.
pub(super) fn run(plumb: &Path) -> Result<()> {
    if !packages::are_there("time")? {
        return Ok(());
    }
    println!("largest resident size, {TARGETS} targets, depth 256, 4 KiB");
    let files: Vec<NoiseFile> =
        (0..TARGETS).map(|_| NoiseFile::new(Path::new(MEMORY), 4)).collect::<Result<_>>()?;
    let paths: Vec<PathBuf> = files.iter().map(NoiseFile::path).collect();
    for (name, more) in [("reads", &["--write", "0"][..]), ("70/30 mix", &["--write", "30", "--overwrite"])] {
        let short = peak(plumb, "3s", more, &paths)?;
        let long = peak(plumb, "20s", more, &paths)?;
        println!(
            "  {name:<10} {short:.1} MB after 3 s (bar {BAR}): {}; {long:.1} MB after 20 s (bar +{GROWTH_BAR}): {}",
            verdict(short <= BAR && long <= BAR),
            verdict(long - short <= GROWTH_BAR)
        );
    }
    Ok(())
}

/// Returns the maximum resident set size of one load, in MB.
fn peak(plumb: &Path, duration: &str, more: &[&str], targets: &[PathBuf]) -> Result<f64> {
    let place = tempfile::tempdir().context("making a directory for the recording")?;
    let mut command = Command::new("time");
    command.args(["--format", "%M"]).arg(plumb).args([
        "load",
        "--json",
        "--depth",
        "256",
        "--duration",
        duration,
    ]);
    peak_megabytes(command.args(more).arg("--out").arg(place.path().join("run")).args(targets))
}

/// Returns the maximum resident set size of a command run by `time --format %M`, in MB.
fn peak_megabytes(command: &mut Command) -> Result<f64> {
    let output = process::captured(command.stdout(Stdio::null()), &[0, 1])?;
    let said = String::from_utf8_lossy(&output.stderr);
    // The last line is the maximum resident set size in KiB, after possible messages of plumb.
    let kib: f64 =
        said.lines().last().and_then(|line| line.trim().parse().ok()).context("time said nothing")?;
    Ok(kib * 1024.0 / 1e6)
}
