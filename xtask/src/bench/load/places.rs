//! Places to read and write: a file in memory, a file on disk, and an own compressed memory disk, all filled
//! with noise and removed afterwards.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::process;

/// Control directory of zram.
const ZRAM_CONTROL: &str = "/sys/class/zram-control";

/// File of noise, removed with its directory.
pub(super) struct NoiseFile {
    directory: TempDir,
}

impl NoiseFile {
    /// Creates a file with `mib` MiB of noise in a directory below `parent`, written to the medium.
    pub(super) fn new(parent: &Path, mib: u64) -> Result<Self> {
        let directory = tempfile::tempdir_in(parent).context("making a directory for a test file")?;
        let this = Self { directory };
        let file = File::create(this.path()).context("making a test file")?;
        fill(&file, mib)?;
        Ok(this)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.directory.path().join("noise")
    }
}

/// Own compressed memory disk.
pub(super) struct Zram {
    number: u32,
}

impl Zram {
    /// Creates a disk with `mib` MiB of noise. Prints a reason and returns `None` if this kernel or user
    /// cannot create one.
    pub(super) fn new(mib: u64) -> Result<Option<Self>> {
        if !Path::new(ZRAM_CONTROL).exists()
            && !Command::new("modprobe").arg("zram").status().is_ok_and(|s| s.success())
        {
            println!("skipped: no zram in this kernel");
            return Ok(None);
        }
        let added = fs::read_to_string(format!("{ZRAM_CONTROL}/hot_add"));
        let Ok(number) = added.map(|text| text.trim().to_owned()) else {
            println!("skipped: zram disks are not ours to make; run as root");
            return Ok(None);
        };
        let this = Self { number: number.parse().context("the number of a new zram disk")? };
        fs::write(this.attribute("disksize"), format!("{mib}M")).context("sizing a zram disk")?;
        let disk = OpenOptions::new().write(true).open(this.path()).context("opening a zram disk")?;
        fill(&disk, mib)?;
        Ok(Some(this))
    }

    pub(super) fn path(&self) -> PathBuf {
        format!("/dev/zram{}", self.number).into()
    }

    fn attribute(&self, name: &str) -> String {
        format!("/sys/block/zram{}/{name}", self.number)
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        let reset = fs::write(self.attribute("reset"), "1");
        let removed =
            reset.and_then(|()| fs::write(format!("{ZRAM_CONTROL}/hot_remove"), self.number.to_string()));
        if let Err(error) = removed {
            eprintln!("/dev/zram{} is still there: {error}", self.number);
        }
    }
}

/// File system on a disk, unmounted on drop.
pub(super) struct MountedDisk {
    at: TempDir,
}

impl MountedDisk {
    /// Creates ext4 on `disk` and mounts it.
    pub(super) fn ext4(disk: &Path) -> Result<Self> {
        let at = tempfile::tempdir().context("making a mount point")?;
        process::run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(disk))?;
        process::run(Command::new("mount").arg(disk).arg(at.path()))?;
        Ok(Self { at })
    }

    pub(super) fn path(&self) -> &Path {
        self.at.path()
    }
}

impl Drop for MountedDisk {
    fn drop(&mut self) {
        if let Err(error) = process::run(Command::new("umount").arg(self.at.path())) {
            eprintln!("{} is still mounted: {error:#}", self.at.path().display());
        }
    }
}

/// Writes incompressible noise to the medium, so that later reads reach it.
fn fill(mut into: &File, mib: u64) -> Result<()> {
    let mut noise = File::open("/dev/urandom").context("opening /dev/urandom")?.take(mib << 20);
    io::copy(&mut noise, &mut into).context("writing noise")?;
    into.sync_all().context("writing noise")
}
