//! Simulated drive served under a name: the control orders that only such a drive accepts (power, cuts,
//! faults, its write cache), and its status.

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
    /// Cut the power, now or at the moment `when` ([`CutWhen`]).
    Cut {
        /// Moment of the cut: `now`, `write=7`, `flush:3:submitted..flush:3:completed`.
        when: String,
    },
    /// Cancel a pending cut, if there is one.
    Disarm,
    /// Turn the power on again.
    PowerOn,
    /// Switch the write cache on or off.
    Set {
        /// True if the write cache is enabled.
        wce: bool,
    },
    /// Inject a fault.
    Fault {
        /// Fault in the text form of [`Fault`].
        fault: String,
    },
    /// Remove all faults.
    ClearFaults,
}

/// Status of a served drive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DriveStatus {
    /// Name and version of the document: [`DriveStatus::SCHEMA`].
    pub schema: String,
    /// Name of the drive.
    pub name: String,
    /// Model of the drive.
    pub model: String,
    /// True if the drive has power.
    pub power: bool,
    /// True if the write cache is enabled; null if the drive has none that can be switched.
    pub wce: Option<bool>,
    /// Seconds since the drive was created.
    pub now: f64,
    /// Capacity in bytes.
    pub size: u64,
    /// Bytes at risk if the power were cut now.
    pub dirty_bytes: u64,
    /// Completed reads.
    pub reads: u64,
    /// Completed writes and write-zeroes.
    pub writes: u64,
    /// Flushes that reached the drive and completed.
    pub flushes: u64,
    /// Flushes that a driver in front of the drive completed without forwarding them.
    pub flushes_dropped: u64,
    /// Completed writes with FUA.
    pub fua_writes: u64,
    /// Completed discards.
    pub discards: u64,
    /// Power cuts so far.
    pub cuts: u64,
    /// Moment of the pending power cut, as the user wrote it; null if none is pending.
    pub cut_armed: Option<String>,
    /// Blocks whose acknowledged contents were lost at the last power cut; null before the first.
    pub lost_at_last_cut_blocks: Option<u64>,
    /// Blocks lost at the last power cut although the drive had reported them durable: 0 for a drive that
    /// does not lie; null before the first power cut.
    pub lost_although_durable_blocks: Option<u64>,
    /// Other effects of the last power cut; null before the first.
    pub last_cut: Option<CutReport>,
    /// True if a flush has failed since power-on, so that all later ones fail too.
    pub latched: bool,
    /// True if the file that is the medium was deleted: the contents do not outlive the server.
    #[serde(default)]
    pub is_medium_deleted: bool,
    /// Faults in force.
    pub faults: Vec<String>,
    /// First NBD URI; null without an NBD export.
    pub nbd: Option<String>,
    /// All NBD URIs.
    pub nbd_uris: Vec<String>,
    /// Number of connected NBD clients.
    pub nbd_clients: u64,
    /// Path of the attached block device; null without one.
    pub device: Option<String>,
    /// Transport of the block device's requests to the server: `fuse`, `fuse-io-uring` or `ublk`.
    pub transport: Option<String>,
    /// Holders that have kept the block device open since before a power loss, each described in words. All
    /// their requests fail until they close it.
    pub device_open_across_cut: Vec<String>,
    /// Path of the control socket.
    pub control: String,
    /// Process ID of the server.
    pub pid: u32,
}

impl DriveStatus {
    /// Name and version of the document.
    pub const SCHEMA: &str = "plumb/drive-status/1";
    /// Name and version of the document that `serve` prints for a new drive.
    pub const SCHEMA_SERVE: &str = "plumb/drive-serve/1";
}

/// Control orders of a simulated drive.
pub struct DriveControls {
    handle: Handle,
    /// Latest cut armed for a later moment, and the number of cuts at that time.
    armed: Option<(String, u64)>,
    /// File that is the medium.
    medium: Option<File>,
}

/// Creates a drive and serves it. Faults are set last, so that they count from the moment at which the drive
/// is ready for clients.
///
/// # Errors
/// See [`ServiceError`]. Everything created is removed then.
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

/// Describes the contents of a drive in one line, if its durable contents outlive this process.
pub fn contents_of(model: &str, backing: &Backing) -> Option<String> {
    let Backing::File(file) = backing else { return None };
    let which = file.metadata().map(|found| format!("{}:{}", found.dev(), found.ino()));
    Some(format!("{model} on file {}", which.unwrap_or_default()))
}

/// Returns true if the file has no name any more.
fn is_deleted(file: &File) -> bool {
    file.metadata().is_ok_and(|found| found.nlink() == 0)
}

impl Controls for DriveControls {
    type Order = DriveOrder;
    type Status = DriveStatus;
    // The contents of a simulated drive end with this process in any case.
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

/// Describes a drive by its actual behaviour, which may differ from what it reports.
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

/// Applies an order to the drive.
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
