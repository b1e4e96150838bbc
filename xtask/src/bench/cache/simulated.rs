//! Cache on simulated disks with moving arms, in virtual time, so the figures are the same on every machine.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::bench::paired::verdict;
use crate::bench::served::SEED;
use crate::process;

/// Case of the bench: writes to a disk, and to the same disk with a cache.
struct Case {
    name: &'static str,
    disk: &'static str,
    log: &'static str,
    words: &'static str,
    bar: Option<f64>,
}

const CASES: [Case; 4] = [
    // Field report on the write-back cache of Storage Spaces: SQLIO in a virtual machine with its disk on a
    // file share, where all writes are write-through.
    Case {
        name: "four disks behind a share, 5 GB of log, 64 KiB writes, written through, depth 8, 30 s",
        disk: "sim:hdd-space",
        log: "5GB",
        words: "--block-size 64k --depth 8 --duration 30s --dsync",
        bar: Some(6.27),
    },
    Case {
        name: "one disk, 1 GiB of log, the same",
        disk: "sim:nearline-4tb?size=200GiB",
        log: "1GiB",
        words: "--block-size 64k --depth 8 --duration 30s --dsync",
        bar: None,
    },
    // Long after the log has filled, the rate is that of destaging.
    Case {
        name: "one disk, 4 KiB writes to 2 GiB, destaged from 256 MiB of log / unsorted",
        disk: "sim:nearline-4tb?size=200GiB",
        log: "256MiB",
        words: "--block-size 4k --depth 8 --length 2GiB --warmup 5m --duration 5m --dsync",
        bar: Some(5.0),
    },
    Case {
        name: "the same, sorted by the cache of the disk",
        disk: "sim:nearline-4tb?size=200GiB",
        log: "256MiB",
        words: "--block-size 4k --depth 8 --length 2GiB --warmup 5m --duration 5m",
        bar: None,
    },
];

/// Prints the rates and their ratios.
pub(super) fn run(plumb: &Path) -> Result<()> {
    println!(
        "simulated disks (nearline, 7200 rpm) and a log on a protected NVMe SSD, virtual time; IOPS with / without"
    );
    for case in &CASES {
        let cache = format!("cache:backing={},log=sim:plp-nvme-ssd?size=8GiB,size={}", case.disk, case.log);
        let (with, without) = (rate(plumb, &cache, case.words)?, rate(plumb, case.disk, case.words)?);
        let times = with / without;
        let said =
            case.bar.map_or_else(String::new, |bar| format!(" (bar {bar}): {}", verdict(times >= bar)));
        println!("{}: {with:.0} / {without:.0} = {times:.2}{said}", case.name);
    }
    Ok(())
}

/// Returns the random writes per second.
fn rate(plumb: &Path, target: &str, words: &str) -> Result<f64> {
    let place = tempfile::tempdir().context("making a directory for the recording")?;
    let mut command = Command::new(plumb);
    command.args(["load", "--json", "--overwrite", "--seed", SEED, "--random", "--write", "100"]);
    command.args(words.split_whitespace()).arg("--out").arg(place.path().join("run")).arg(target);
    let document = process::document(&mut command)?;
    document["total"]["write"]["iops"].as_f64().context("no rate of writes")
}
