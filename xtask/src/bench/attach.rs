//! Drive in memory as a loop device (with FUSE below it) compared with a loop device on a file in memory, by
//! fio in turn.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::fio::{self, Place};
use super::machine::MEMORY;
use super::paired::{Case, compare};
use super::served::{ServedDrive, Way};
use crate::{packages, process};

/// Size of both.
const SIZE: &str = "256M";
/// Options of fio that set the time and the size of the blocks of each case.
const TIMED: &str = "--bs=4k --time_based --runtime=1.5";

const CASES: [Case; 5] = [
    ("randread  depth 16", "--rw=randread --ioengine=io_uring --iodepth=16", Some(0.5)),
    ("randwrite depth 16", "--rw=randwrite --ioengine=io_uring --iodepth=16", Some(0.5)),
    ("randread  depth 1", "--rw=randread --ioengine=psync", None),
    ("randwrite depth 1", "--rw=randwrite --ioengine=psync", None),
    ("write + fsync", "--rw=randwrite --ioengine=psync --fsync=1", None),
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
    let load = |device: &Path, words: &str| {
        fio::rate(Place::Path(device), &format!("--direct=1 --size={SIZE} {words}"))
    };
    // Memory is allocated before the measurement.
    for device in &devices {
        load(device, "--rw=write --bs=1M --ioengine=psync")?;
    }
    println!(
        "4 KiB direct, IOPS; ratios to a loop device over tmpfs and the interval of their median ({pairs} pairs)"
    );
    compare("", &CASES, pairs, |words, side| load(&devices[side.index()], &format!("{words} {TIMED}")))
}

/// Own loop device on a file in memory, removed on drop.
pub(super) struct LoopedFile {
    device: PathBuf,
    _file: TempDir,
}

impl LoopedFile {
    /// Creates both. Prints a reason and returns `None` if loop devices are not available.
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
