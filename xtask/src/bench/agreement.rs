//! Test of the agreement between `plumb check` and fio: the same patterns in turn, compared by ratios.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::fio::{self, Place};
use super::paired::{median, median_interval};
use crate::{packages, process};

/// Size of both test files.
const SIZE: &str = "256M";
/// Option of fio for that size.
const SIZED: &str = "--size=256M";
/// Duration of a pattern in fio: that of a phase of plumb's check of [`CHECK_SECONDS`].
const TIMED: &str = "--time_based --runtime=1.5";
/// Duration of the check, of which a phase takes 12 or 13 hundredths.
const CHECK_SECONDS: &str = "12";

/// Patterns: the place of each rate in plumb's document, and the equivalent options of fio.
const PATTERNS: [(&str, &str); 6] = [
    ("overwrite-fdatasync", "--ioengine=psync --rw=randwrite --bs=4k --fdatasync=1"),
    ("direct-dsync", "--ioengine=psync --rw=randwrite --bs=4k --direct=1 --sync=dsync"),
    ("read-direct", "--ioengine=io_uring --rw=randread --bs=8k --direct=1 --iodepth=32"),
    ("write-direct", "--ioengine=io_uring --rw=randwrite --bs=8k --direct=1 --iodepth=32"),
    ("read-cached", "--ioengine=psync --rw=randread --bs=8k --pre_read=1 --invalidate=0"),
    ("write-cached", "--ioengine=psync --rw=randwrite --bs=8k"),
];

/// Prints the median ratio of plumb's rate to fio's for each pattern, with its interval.
pub(super) fn run(plumb: &Path, directory: &Path, pairs: usize) -> Result<()> {
    if !packages::are_there("fio")? {
        return Ok(());
    }
    let place = tempfile::tempdir_in(directory).context("making a directory for the test files")?;
    let peer = place.path().join("peer.dat");
    let mut ratios = vec![Vec::new(); PATTERNS.len()];
    for pair in 1..=pairs {
        eprintln!("pair {pair} of {pairs}");
        let document = check(plumb, place.path())?;
        // Storage may be faster on blocks that were written long ago, and reads of unwritten blocks do not
        // reach it, so both begin with a new, fully written file.
        remove_if_there(&peer)?;
        let fio = |words: &str| fio::rate(Place::Path(&peer), &format!("{words} {SIZED}"));
        fio("--rw=write --bs=1M --end_fsync=1")?;
        for ((name, words), ratios) in PATTERNS.iter().zip(&mut ratios) {
            ratios.push(rate(&document, name)? / fio(&format!("{words} {TIMED}"))?);
        }
    }
    println!("{:<20} {:>8}  interval of the median ({pairs} pairs, bar 0.9 to 1.1)", "plumb / fio", "median");
    for ((name, _), ratios) in PATTERNS.iter().zip(&ratios) {
        let (low, high) = median_interval(ratios);
        println!("{name:<20} {:>8.3}  {low:.3} to {high:.3}", median(ratios));
    }
    Ok(())
}

fn remove_if_there(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).context("removing fio's file")
        }
        _ => Ok(()),
    }
}

/// Runs one check, with or without a finding (exit 1).
fn check(plumb: &Path, place: &Path) -> Result<Value> {
    let run = place.join("run");
    let mut command = Command::new(plumb);
    command.args(["check", "--json", "--seconds", CHECK_SECONDS, "--size", SIZE, "--out"]);
    let document = process::document(command.arg(&run).arg(place))?;
    std::fs::remove_dir_all(&run).context("removing the run directory")?;
    Ok(document)
}

/// Returns the operations per second of one part of the document.
fn rate(document: &Value, name: &str) -> Result<f64> {
    let find = |list: &str, key: &str| {
        document[list].as_array().and_then(|items| items.iter().find(|item| item[key] == name)).cloned()
    };
    if let Some(io) = find("io", "name") {
        return io["application"]["iops"].as_f64().context("no application.iops");
    }
    if let Some(sync) = find("sync", "method") {
        let operations = sync["operations"].as_f64().context("no operations")?;
        return Ok(operations / sync["seconds"].as_f64().context("no seconds")?);
    }
    bail!("plumb check measured no {name}")
}
