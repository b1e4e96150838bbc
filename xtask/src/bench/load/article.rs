//! The eight rows by which a test shows whether it reached the disk or the cache: a raw disk and a file,
//! direct and through the page cache, read and written, 8 KiB at random with 32 outstanding.
//!
//! With direct I/O both sides must agree. Through the page cache the storage receives almost no reads, and
//! the kernel's writeback in larger pieces.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::places::{MountedDisk, NoiseFile, Zram};
use crate::bench::paired::verdict;
use crate::process;

/// Size of the disk in MiB. The file takes half of it.
const MIB: u64 = 512;

/// One side of a row.
struct Side {
    rate: f64,
    mean: String,
}

/// Prints the rows: first the raw disk, then a file on it.
pub(super) fn run(plumb: &Path) -> Result<()> {
    println!("where I/O went: 8 KiB random, 32 outstanding, plumb diskspd");
    let Some(zram) = Zram::new(MIB)? else { return Ok(()) };
    println!("  {:<24} {:>12} {:>12} {:>12}", "", "application", "storage", "mean size");
    let disk = zram.path();
    rows(plumb, "raw disk", &disk)?;
    let mounted = MountedDisk::ext4(&disk)?;
    let file = NoiseFile::new(mounted.path(), MIB / 2)?;
    rows(plumb, "file", &file.path())
}

fn rows(plumb: &Path, name: &str, target: &Path) -> Result<()> {
    for writes in ["-w0", "-w100"] {
        for cache in ["-Su", "-Sb"] {
            let (application, storage) = row(plumb, &[cache, writes], target)?;
            let share = storage.rate / application.rate;
            let judged = match cache {
                "-Su" => format!("both alike: {}", verdict((0.95..=1.25).contains(&share))),
                _ => format!("{:.1} % reached the storage", share * 100.0),
            };
            println!(
                "  {:<24} {:>12.0} {:>12.0} {:>12}  {judged}",
                format!("{name} {cache} {writes}"),
                application.rate,
                storage.rate,
                storage.mean
            );
        }
    }
    Ok(())
}

/// Returns the two sides of one run.
fn row(plumb: &Path, switches: &[&str], target: &Path) -> Result<(Side, Side)> {
    let place = tempfile::tempdir().context("making a directory for the recording")?;
    let mut command = Command::new(plumb);
    command.args(["diskspd", "--overwrite", "-d3", "-W2", "-b8K", "-r", "-o32", "-t1", "-Zr"]);
    let said = process::text(command.args(switches).arg(target).current_dir(place.path()))?;
    let side = |name: &str| {
        let line =
            said.lines().rfind(|line| line.starts_with(name)).with_context(|| format!("no {name} side"))?;
        // Name and reads, writes, flushes, MiB/s, I/O per s, mean I/O, file.
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let rate =
            cells.get(5).and_then(|cell| cell.parse().ok()).with_context(|| format!("no rate: {line}"))?;
        Ok::<_, anyhow::Error>(Side { rate, mean: cells.get(6).copied().unwrap_or("-").to_owned() })
    };
    Ok((side("application")?, side("storage")?))
}
