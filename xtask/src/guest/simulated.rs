//! Simulated drives for guests: `plumb drive serve` outside the guest, over NBD, with its own counters as the
//! oracle.
//!
//! The drive is attached in one of two ways: QEMU's NBD client makes it a virtio disk, or the guest's own
//! nbd-client uses it through QEMU's user network, in which one address leads to the drive's unix socket, and
//! no other address leads anywhere.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::disk::Disk;
use super::qmp::{DriveCounters, Sample};
use crate::process;
use crate::running::RunningProcess;

/// Default model of a disk: it has a volatile cache and native FUA.
const MODEL: &str = "consumer-nvme-ssd";

/// Served drive. Dropping it ends its process.
pub(crate) struct SimulatedDrive {
    disk: String,
    name: String,
    plumb: PathBuf,
    _server: RunningProcess,
    /// Last acknowledgement of a program in the guest about this drive; 0 before the first. It outlives the
    /// guest.
    pub(crate) acknowledged: Cell<u64>,
}

/// Returns the drive of a disk.
///
/// # Errors
/// If the disk is not simulated.
pub(crate) fn find<'a>(drives: &'a [SimulatedDrive], disk: &str) -> Result<&'a SimulatedDrive> {
    drives.iter().find(|drive| drive.disk == disk).with_context(|| format!("{disk} is not a simulated drive"))
}

/// Returns the path of the socket of a disk.
pub(crate) fn socket(directory: &Path, disk: &Disk) -> PathBuf {
    directory.join(format!("{}.nbd", disk.name))
}

/// Serves the simulated drives among `disks` in `directory`.
///
/// # Errors
/// If one cannot be served.
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
        // SIGTERM ends the server, so that it removes its sockets.
        let (server, _) = RunningProcess::announced(&mut command)?;
        let (disk, plumb) = (disk.name.clone(), plumb.to_owned());
        Ok(Self { disk, name, plumb, _server: server, acknowledged: Cell::new(0) })
    }

    fn order(&self, order: &str, arguments: &[&str]) -> Result<Value> {
        let mut command = Command::new(&self.plumb);
        process::document(command.args(["drive", order, "--json", &self.name]).args(arguments))
    }

    /// Cuts the power at the moment `when`, in the syntax of `plumb drive cut`. Acknowledgements before that
    /// are settled.
    ///
    /// # Errors
    /// If the drive refuses.
    pub(crate) fn cut(&self, when: &str) -> Result<()> {
        self.acknowledged.set(0);
        self.order("cut", &when.split(' ').collect::<Vec<_>>()).map(drop)
    }

    /// Restores the power, if it is off.
    ///
    /// # Errors
    /// If the drive does not answer.
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

/// Adds the counters of the simulated drives, which replace those of QEMU for a drive that it has as well.
///
/// # Errors
/// If a drive does not answer.
pub(crate) fn complete(sample: &mut Sample, drives: &[SimulatedDrive]) -> Result<()> {
    for drive in drives {
        sample.insert(drive.disk.to_owned(), drive.counters()?);
    }
    Ok(())
}
