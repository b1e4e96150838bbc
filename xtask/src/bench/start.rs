//! How long plumb takes to start, against `true`, and how large it is.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};

use super::paired::median;
use crate::process;

const RUNS: usize = 41;

/// Prints the medians of both and the size of the binary.
pub(super) fn run(plumb: &Path) -> Result<()> {
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    for _ in 0..RUNS {
        ours.push(milliseconds(Command::new(plumb).arg("--version"))?);
        theirs.push(milliseconds(&mut Command::new("true"))?);
    }
    let size = std::fs::metadata(plumb).context("looking at the binary")?.len();
    println!("plumb --version   {:.2} ms (bar: 10)", median(&ours));
    println!("true              {:.2} ms", median(&theirs));
    println!("binary            {:.2} MB (bar: 12)", size as f64 / 1e6);
    Ok(())
}

/// The wall time of one run.
fn milliseconds(command: &mut Command) -> Result<f64> {
    let began = Instant::now();
    process::run(command.stdout(Stdio::null()))?;
    Ok(began.elapsed().as_secs_f64() * 1e3)
}
