//! A drive in memory as a loop device (FUSE below it) against a loop device over a file in memory: fio, in
//! turn.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::fio;
use super::machine::MEMORY;
use super::paired::Pairs;
use super::served::{ServedDrive, Way};
use crate::{packages, process};

/// The size of both.
const SIZE: &str = "256M";
/// How long fio runs each case.
const RUNTIME: &str = "--runtime=1.5";

/// Case of the bench: what fio does, and which part of the peer's rate is asked for, if any.
struct Case {
    name: &'static str,
    options: &'static [&'static str],
    bar: Option<f64>,
}

const CASES: [Case; 5] = [
    Case {
        name: "randread  depth 16",
        options: &["--rw=randread", "--ioengine=io_uring", "--iodepth=16"],
        bar: Some(0.5),
    },
    Case {
        name: "randwrite depth 16",
        options: &["--rw=randwrite", "--ioengine=io_uring", "--iodepth=16"],
        bar: Some(0.5),
    },
    Case { name: "randread  depth 1", options: &["--rw=randread", "--ioengine=psync"], bar: None },
    Case { name: "randwrite depth 1", options: &["--rw=randwrite", "--ioengine=psync"], bar: None },
    Case { name: "write + fsync", options: &["--rw=randwrite", "--ioengine=psync", "--fsync=1"], bar: None },
];

/// Prints the ratios.
pub(super) fn run(plumb: &Path, pairs: usize) -> Result<()> {
    if !packages::are_there("fio losetup=mount")? {
        return Ok(());
    }
    let needed = ["/dev/fuse", "/dev/loop-control", MEMORY];
    if let Some(missing) = needed.iter().find(|path| !Path::new(path).exists()) {
        println!("skipped: this machine has no {missing}");
        return Ok(());
    }
    let Some(theirs) = LoopedFile::new()? else { return Ok(()) };
    let ours = ServedDrive::start(plumb, "memory", "256MiB", Way::Attach)?;
    let devices = [ours.device()?, theirs.device.clone()];
    // Memory is had before it is timed.
    for device in &devices {
        load(device, &["--rw=write", "--bs=1M", "--ioengine=psync"])?;
    }
    let mut cases: Vec<Pairs> = CASES.iter().map(|_| Pairs::default()).collect();
    for pair in 1..=pairs {
        eprintln!("pair {pair} of {pairs}");
        for (case, rates) in CASES.iter().zip(&mut cases) {
            let timed = ["--bs=4k", "--time_based", RUNTIME];
            rates.measure(|side| load(&devices[side.index()], &[case.options, &timed].concat()))?;
        }
    }
    println!(
        "4 KiB direct, IOPS; ratios to a loop device over tmpfs and the interval of their median ({pairs} pairs)"
    );
    for (case, rates) in CASES.iter().zip(&cases) {
        rates.print(case.name, case.bar);
    }
    Ok(())
}

fn load(device: &Path, options: &[&str]) -> Result<f64> {
    let place = [format!("--filename={}", device.display()), format!("--size={SIZE}")];
    let all = ["--direct=1"].iter().chain(options).map(|option| (*option).to_owned());
    fio::rate(&all.chain(place).collect::<Vec<_>>())
}

/// A loop device of our own over a file in memory, gone when dropped.
pub(super) struct LoopedFile {
    device: PathBuf,
    _file: TempDir,
}

impl LoopedFile {
    /// Makes both; `None` with a reason on stdout where no loop device is ours to make.
    pub(super) fn new() -> Result<Option<Self>> {
        let directory = tempfile::tempdir_in(MEMORY).context("making a directory in memory")?;
        let path = directory.path().join("disk");
        let file = std::fs::File::create(&path).context("making a file in memory")?;
        file.set_len(256 << 20).context("sizing a file in memory")?;
        match process::text(Command::new("losetup").args(["--find", "--show"]).arg(&path)) {
            Ok(device) => Ok(Some(Self { device: device.trim().into(), _file: directory })),
            Err(error) => {
                println!("skipped: no loop device is ours to make: {error:#}");
                Ok(None)
            }
        }
    }

    /// Returns the block device.
    pub(super) fn device(&self) -> &Path {
        &self.device
    }
}

impl Drop for LoopedFile {
    fn drop(&mut self) {
        let ended = Command::new("losetup").arg("--detach").arg(&self.device).status();
        if !ended.is_ok_and(|status| status.success()) {
            eprintln!("{} is still there", self.device.display());
        }
    }
}
