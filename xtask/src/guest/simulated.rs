//! Simulated drives for guests: `plumb drive serve` outside the guest, over NBD, whose own counters are the
//! oracle.
//!
//! The drive is reached in one of two ways: QEMU's NBD client makes it a virtio disk, or the guest's own
//! nbd-client does, through QEMU's user network, of which one address leads to the drive's unix socket and
//! nothing else anywhere.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::disk::Disk;
use super::qmp::{DriveCounters, Sample};
use crate::process;
use crate::running::RunningProcess;

/// Model of a disk that names none: it has a volatile cache and native FUA.
const MODEL: &str = "consumer-nvme-ssd";

/// Served drive. Dropping it ends its process.
pub(crate) struct SimulatedDrive {
    disk: String,
    name: String,
    plumb: PathBuf,
    _server: RunningProcess,
    /// The last that a program in the guest has promised to be durable on it; 0 before the first. It outlives
    /// the guest.
    pub(crate) acknowledged: Cell<u64>,
}

/// Returns the drive of that disk.
///
/// # Errors
/// When no such disk is simulated.
pub(crate) fn find<'a>(drives: &'a [SimulatedDrive], disk: &str) -> Result<&'a SimulatedDrive> {
    drives.iter().find(|drive| drive.disk == disk).with_context(|| format!("{disk} is not a simulated drive"))
}

/// Returns where the socket of a disk is.
pub(crate) fn socket(directory: &Path, disk: &Disk) -> PathBuf {
    directory.join(format!("{}.nbd", disk.name))
}

/// Serves those of `disks` that are simulated, in `directory`.
///
/// # Errors
/// When one cannot be served.
pub(crate) fn serve(plumb: &Path, disks: &[Disk], directory: &Path) -> Result<Vec<SimulatedDrive>> {
    let simulated = disks.iter().filter(|disk| disk.is_simulated());
    simulated.map(|disk| SimulatedDrive::serve(plumb, disk, &socket(directory, disk))).collect()
}

impl SimulatedDrive {
    fn serve(plumb: &Path, disk: &Disk, socket: &Path) -> Result<Self> {
        let name = format!("guest-{}-{}", std::process::id(), disk.name);
        let mut command = Command::new(plumb);
        command.args(["drive", "serve", disk.model.as_deref().unwrap_or(MODEL), "--json", "--name", &name]);
        command.arg("--nbd").arg(socket).arg(format!("--size={}M", Disk::SIZE_MIB));
        // SIGTERM ends it, so that it takes its sockets away.
        let (server, _) = RunningProcess::announced(&mut command)?;
        let (disk, plumb) = (disk.name.clone(), plumb.to_owned());
        Ok(Self { disk, name, plumb, _server: server, acknowledged: Cell::new(0) })
    }

    fn order(&self, order: &str, arguments: &[&str]) -> Result<Value> {
        let mut command = Command::new(&self.plumb);
        process::document(command.args(["drive", order, "--json", &self.name]).args(arguments))
    }

    /// Has it lose its power when this says, in words of `plumb drive cut`; what was acknowledged before is
    /// settled.
    ///
    /// # Errors
    /// When it refuses.
    pub(crate) fn cut(&self, when: &str) -> Result<()> {
        self.acknowledged.set(0);
        self.order("cut", &when.split(' ').collect::<Vec<_>>()).map(drop)
    }

    /// Gives it power, if it has none.
    ///
    /// # Errors
    /// When it does not answer.
    pub(crate) fn power_on(&self) -> Result<()> {
        if self.order("status", &[])?["power"] == true {
            return Ok(());
        }
        self.order("power-on", &[]).map(drop)
    }

    fn counters(&self) -> Result<DriveCounters> {
        let status = self.order("status", &[])?;
        let count =
            |field: &str| status[field].as_u64().with_context(|| format!("a drive states no {field}"));
        Ok(DriveCounters {
            flushes: count("flushes")?,
            writes: count("writes")?,
            write_cache: status["wce"].as_bool().unwrap_or(false),
        })
    }
}

/// Adds what the simulated drives count; for a drive that QEMU has too, in place of what QEMU counts.
///
/// # Errors
/// When a drive does not answer.
pub(crate) fn complete(sample: &mut Sample, drives: &[SimulatedDrive]) -> Result<()> {
    for drive in drives {
        sample.insert(drive.disk.to_owned(), drive.counters()?);
    }
    Ok(())
}
