//! Simulated drive that is served under a name: the orders that only such a drive takes (power, cuts, faults,
//! its cache), and its status.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;

use plumb_block::{ErrorKind, Nanos, Time, in_one_line};
use plumb_serve::named::control::RefusedOrder;
use plumb_serve::named::{Controls, Exports, Service, ServiceDevice, ServiceError, ServiceOptions};
use plumb_sim::Handle;
use plumb_sim::contents::{Backing, CutReport, FlushKept, Promise};
use plumb_sim::cut::CutWhen;
use plumb_sim::drive::{self, Drive, DriveOptions};
use plumb_sim::fault::Fault;
use plumb_sim::model::Model;
use plumb_state::DriveRecord;
use serde::{Deserialize, Serialize};

/// Order that a simulated drive accepts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case", deny_unknown_fields)]
pub enum DriveOrder {
    /// Cut the power: now, or when this says ([`CutWhen`]).
    Cut {
        /// `now`, `write=7`, `flush:3:submitted..flush:3:completed`.
        when: String,
    },
    /// Take back a cut that waits for its moment; nothing is done if none does.
    Disarm,
    /// Turn the power on again.
    PowerOn,
    /// Switch the write cache.
    Set {
        /// True if the write cache is enabled.
        wce: bool,
    },
    /// Set a fault.
    Fault {
        /// The fault, as [`Fault`] is written.
        fault: String,
    },
    /// Take all faults away.
    ClearFaults,
}

/// How a drive is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DriveStatus {
    /// Always [`DriveStatus::SCHEMA`].
    pub schema: String,
    /// The name of the drive.
    pub name: String,
    /// Model of the drive.
    pub model: String,
    /// True if it has power.
    pub power: bool,
    /// True if the write cache is on; null if there is none to switch.
    pub wce: Option<bool>,
    /// Seconds since it was made.
    pub now: f64,
    /// Capacity in bytes.
    pub size: u64,
    /// Bytes that a power cut now would put at risk.
    pub dirty_bytes: u64,
    /// Reads done.
    pub reads: u64,
    /// Writes and write-zeroes done.
    pub writes: u64,
    /// Flushes that reached the drive and were answered.
    pub flushes: u64,
    /// Flushes that a driver in front of the drive answered itself.
    pub flushes_dropped: u64,
    /// Writes with FUA.
    pub fua_writes: u64,
    /// Discards done.
    pub discards: u64,
    /// Power cuts until now.
    pub cuts: u64,
    /// When the power will be cut, as it was asked for; null if no cut waits for its moment.
    pub cut_armed: Option<String>,
    /// Blocks whose acknowledged contents the last power cut took away; null before the first.
    pub lost_at_last_cut_blocks: Option<u64>,
    /// Blocks lost at the last power cut although the drive had said that they were durable: 0 for a drive
    /// that does not lie; null before the first power cut.
    pub lost_although_durable_blocks: Option<u64>,
    /// Other effects of the last power cut; null before the first.
    pub last_cut: Option<CutReport>,
    /// True if a flush has failed since the power came on, so that no later one succeeds.
    pub latched: bool,
    /// True if the file that is its medium was deleted: the contents go with the server.
    #[serde(default)]
    pub is_medium_deleted: bool,
    /// The faults that are set.
    pub faults: Vec<String>,
    /// The first NBD URI; null if it is not exported so.
    pub nbd: Option<String>,
    /// All of them.
    pub nbd_uris: Vec<String>,
    /// Number of NBD clients that are connected.
    pub nbd_clients: u64,
    /// The block device; null if it is not attached.
    pub device: Option<String>,
    /// Way by which the requests of the block device come to the server: `fuse`, `fuse-io-uring` or `ublk`.
    pub transport: Option<String>,
    /// Holders that have had that device open since before a loss of power, each in words: every request to
    /// it fails until they have closed it.
    pub device_open_across_cut: Vec<String>,
    /// The control socket.
    pub control: String,
    /// The process that holds it.
    pub pid: u32,
}

impl DriveStatus {
    /// The name and version of the document.
    pub const SCHEMA: &str = "plumb/drive-status/1";
    /// Name and version of the document with the status of a drive that has just been made.
    pub const SCHEMA_SERVE: &str = "plumb/drive-serve/1";
}

/// The controls of a simulated drive.
pub struct DriveControls {
    handle: Handle,
    /// The cut that was asked for last if it was for later, and how many there had been then.
    armed: Option<(String, u64)>,
    /// File that is its medium.
    medium: Option<File>,
}

/// Makes a drive and serves it. Faults are set last: they count from when it is ready for its users.
///
/// # Errors
/// See [`ServiceError`]; nothing is left behind.
pub fn serve_drive(
    model: &Model,
    mut options: DriveOptions,
    service: ServiceOptions,
) -> Result<Service<DriveControls>, ServiceError> {
    let faults = std::mem::take(&mut options.faults);
    let medium = match &options.backing {
        Backing::File(file) => file.try_clone().ok(),
        _ => None,
    };
    let mut made = None;
    let service = Service::open(service, |name| {
        let mut drive = Drive::new(model, options)?;
        drive.rename(name);
        let handle = Handle::new(drive, Time::real());
        made = Some(handle.clone());
        let device = handle.device();
        let description = format!("{} (simulated)", device.info().name);
        Ok(ServiceDevice { device, description, controls: DriveControls { handle, armed: None, medium } })
    })?;
    if let Some(handle) = made {
        handle.with(|drive, _| faults.into_iter().for_each(|fault| drive.set_fault(fault)));
    }
    Ok(service)
}

/// Describes the contents of a drive in one line, if what is durable of them outlives this process.
pub fn contents_of(model: &str, backing: &Backing) -> Option<String> {
    let Backing::File(file) = backing else { return None };
    let which = file.metadata().map(|found| format!("{}:{}", found.dev(), found.ino()));
    Some(format!("{model} on file {}", which.unwrap_or_default()))
}

/// Returns true if no name leads to the file any more.
fn is_deleted(file: &File) -> bool {
    file.metadata().is_ok_and(|found| found.nlink() == 0)
}

impl Controls for DriveControls {
    type Order = DriveOrder;
    type Status = DriveStatus;
    // Data that a simulated drive holds is gone with it in any case.
    const WAITS_FOR_HOLDERS: bool = false;

    fn status(&self, exports: &Exports<'_>) -> DriveStatus {
        // The call queries the drive, so it must not be made while the drive is locked.
        let has_failed_flush = exports.has_failed_flush();
        let mut status = self.handle.with(|drive, now| self.status_of(drive, now, exports));
        status.latched |= has_failed_flush;
        status
    }

    fn drive(&self) -> Option<DriveRecord> {
        Some(self.handle.with(|drive, _| record_of(drive)))
    }

    fn carry_out(&mut self, order: DriveOrder) -> Result<(), RefusedOrder> {
        self.handle.with(|drive, now| change(drive, now, &order))?;
        match order {
            DriveOrder::Cut { when } => {
                let cuts = self.handle.with(|drive, _| drive.counters().cuts);
                self.armed = Some((when, cuts)).filter(|(when, _)| when != "now");
            }
            DriveOrder::Disarm => self.armed = None,
            _ => {}
        }
        Ok(())
    }

    fn shut_down(&mut self, _is_forced: bool) -> plumb_block::Result<()> {
        self.handle.with(Drive::shut_down)
    }
}

impl DriveControls {
    fn status_of(&self, drive: &Drive, now: Nanos, exports: &Exports<'_>) -> DriveStatus {
        let drive::Counters { storage, fua_writes, flushes_dropped, cuts, .. } = drive.counters().clone();
        let armed = self.armed.as_ref().filter(|(_, before)| *before == cuts);
        DriveStatus {
            schema: DriveStatus::SCHEMA.to_owned(),
            name: exports.name().to_owned(),
            model: drive.model().to_owned(),
            power: drive.is_powered(),
            wce: drive.wce(),
            now: now.as_secs_f64(),
            size: drive.info().size.0,
            dirty_bytes: drive.at_risk().0,
            reads: storage.reads,
            writes: storage.writes,
            flushes: storage.flushes.unwrap_or(0),
            flushes_dropped,
            fua_writes,
            discards: storage.discards,
            cuts,
            cut_armed: armed.map(|(when, _)| when.clone()),
            lost_at_last_cut_blocks: drive.last_cut().map(|report| report.lost_blocks),
            lost_although_durable_blocks: drive.last_cut().map(|report| report.promised_lost_blocks),
            last_cut: drive.last_cut().copied(),
            latched: drive.latched().is_some(),
            is_medium_deleted: self.medium.as_ref().is_some_and(is_deleted),
            faults: drive.faults().iter().map(ToString::to_string).collect(),
            nbd: exports.nbd_uris().first().cloned(),
            nbd_uris: exports.nbd_uris().to_vec(),
            nbd_clients: exports.nbd_clients() as u64,
            device: exports.block_device(),
            transport: exports.transport(),
            device_open_across_cut: exports.awaited().to_vec(),
            control: exports.control().display().to_string(),
            pid: std::process::id(),
        }
    }
}

/// Describes a drive by what it keeps, which is not always what it says.
fn record_of(drive: &Drive) -> DriveRecord {
    let Promise { volatile, flush, .. } = drive.promise();
    DriveRecord {
        model: drive.model().to_owned(),
        keeps_nothing: drive.info().keeps_nothing,
        is_volatile: volatile,
        flush_lie: match flush {
            FlushKept::Always => None,
            FlushKept::Never => Some("is answered and not done".to_owned()),
            FlushKept::AllButLast(count) => {
                Some(format!("is answered before it is done: not until {count} more have followed"))
            }
        },
    }
}

/// Changes the drive as the order says.
fn change(drive: &mut Drive, now: Nanos, order: &DriveOrder) -> Result<(), RefusedOrder> {
    let invalid = |error: &dyn std::error::Error| RefusedOrder::invalid(in_one_line(error));
    match order {
        DriveOrder::Cut { when } => {
            let when: CutWhen = when.parse().map_err(|error| invalid(&error))?;
            if !drive.is_powered() {
                let why = "its power is off already; `plumb drive power-on` turns it on";
                return Err(RefusedOrder::unsafe_now(why.to_owned()));
            }
            drive.cut_when(now, when);
        }
        DriveOrder::Disarm => drive.disarm(),
        DriveOrder::PowerOn => drive.power_on(now),
        DriveOrder::Set { wce } => drive.set_wce(now, *wce).map_err(|error| {
            let why = in_one_line(&error);
            match error.kind {
                ErrorKind::Unsupported => RefusedOrder::invalid(why),
                ErrorKind::PowerLost => RefusedOrder::unsafe_now(why),
                _ => RefusedOrder::failed(why),
            }
        })?,
        DriveOrder::Fault { fault } => {
            let fault: Fault = fault.parse().map_err(|error| invalid(&error))?;
            fault.fits(drive.info().blocks()).map_err(|error| invalid(&error))?;
            drive.set_fault(fault);
        }
        DriveOrder::ClearFaults => drive.clear_faults(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_medium_is_deleted_once_its_last_name_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| directory.path().join(name));
        let file = File::create(&first).unwrap();
        std::fs::rename(&first, &second).unwrap();
        assert!(!is_deleted(&file));
        std::fs::remove_file(&second).unwrap();
        assert!(is_deleted(&file));
    }
}
