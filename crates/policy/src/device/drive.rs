//! Queries to the drive itself: its cache and the means to change it, its protection and its counters.

use plumb_linux::command::sense;
use plumb_linux::probe::wire::{ata_identify, caching_page, extended_inquiry, nvme};
use plumb_linux::probe::{PageControl, ProbedDevice, Refusal, Reply, Request};

use super::identity::{Names, unnamed};
use super::kernel;
use super::refusal::denied;
use crate::gateway::{Gateway, Query};
use crate::view::{DeviceSide, HealthCounter};
use crate::wire::{ata, nvme_command, nvme_log, ocp_log, sct, smart};
use plumb_linux::inventory::Block;

/// Answers of a drive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drive {
    /// Write cache of the drive.
    pub side: DeviceSide,
    /// True if the medium is write-protected (trap H8).
    pub write_protected: bool,
    /// True if the drive has no caching mode page.
    pub no_caching_page: bool,
    /// True if only root may query the drive.
    pub denied: bool,
    /// The drive's declaration that nothing is lost, for display.
    pub declared: Option<String>,
    /// True if the drive reports that the protection of its cache has failed.
    pub backup_failed: bool,
    /// Energy of the protection in percent of the factory state, as reported by the drive.
    pub capacitor_health: Option<u64>,
    /// Counters of the drive.
    pub health: Vec<HealthCounter>,
    /// True if the drive reports that it rotates; `None` if it does not report it.
    pub rotational: Option<bool>,
    /// Number of hosts registered through persistent reservations.
    pub registrations: u32,
}

/// Queries the disk `block`, whose transport is known.
pub fn ask(gateway: &dyn Gateway, block: &Block, names: &Names, transport: &str) -> Drive {
    let asked = DriveQuery { gateway, block };
    match transport {
        "nvme" | "nvme-fabrics" => asked.nvme(),
        "virtio" => asked.virtio(),
        "ata" | "sas" | "scsi" | "usb" | "fc" | "iscsi" => asked.scsi(names, transport),
        _ => Drive { side: unknown("none", "this kind of device is not asked"), ..Drive::default() },
    }
}

/// Returns the number of power-ons of an ATA drive, from its SMART attributes.
pub(super) fn ata_power_cycles(gateway: &dyn Gateway, block: &Block) -> Option<u64> {
    let query = Query::Scsi { cdb: ata::SMART_READ_DATA.to_vec(), length: smart::BYTES };
    smart::power_cycles(&gateway.ask(&unnamed(block), &query).ok()?)
}

fn unknown(mechanism: &str, because: impl Into<String>) -> DeviceSide {
    DeviceSide {
        mechanism: mechanism.to_owned(),
        wce_unknown_because: Some(because.into()),
        ..DeviceSide::default()
    }
}

struct DriveQuery<'a> {
    gateway: &'a dyn Gateway,
    block: &'a Block,
}

impl DriveQuery<'_> {
    fn probe(&self, request: Request) -> Reply {
        let device = ProbedDevice { name: &self.block.name, number: self.block.number };
        self.gateway.probe().ask(device, request)
    }

    fn query(&self, query: &Query) -> Option<Vec<u8>> {
        self.gateway.ask(&unnamed(self.block), query).ok()
    }

    fn page(&self, control: PageControl) -> Option<caching_page::CachingPage> {
        caching_page::parse(&self.probe(Request::CachingPage(control)).ok()?)
    }

    fn scsi(&self, names: &Names, transport: &str) -> Drive {
        let mut drive = Drive { side: DeviceSide::default(), ..Drive::default() };
        drive.side.mechanism = "mode-page".to_owned();
        match self.probe(Request::CachingPage(PageControl::Current)) {
            Ok(bytes) => match caching_page::parse(&bytes) {
                Some(page) => self.caching_page(&mut drive, page),
                None => no_page(&mut drive),
            },
            Err(refusal) if refusal.is_unsupported_by_device() => no_page(&mut drive),
            Err(refusal) => {
                drive.denied = refusal == Refusal::Denied;
                drive.side.wce_unknown_because = Some(because(refusal));
            }
        }
        if transport == "ata" || names.vendor.as_deref() == Some("ATA") {
            self.ata(&mut drive);
        } else if !drive.denied {
            drive.rotational = self.rotation_page();
            if transport != "usb" {
                drive.registrations = self.registrations();
            }
        }
        drive
    }

    fn caching_page(&self, drive: &mut Drive, page: caching_page::CachingPage) {
        drive.write_protected = page.write_protected;
        drive.side.wce = Some(page.write_cache);
        drive.side.saveable = Some(page.saveable);
        drive.side.changeable = self.page(PageControl::Changeable).map(|page| page.write_cache);
        drive.side.default = self.page(PageControl::Default).map(|page| page.write_cache);
        drive.side.saved = self.page(PageControl::Saved).map(|page| page.write_cache);
        let extended = self.probe(Request::ExtendedInquiry).ok();
        if let Some(extended) = extended.and_then(|bytes| extended_inquiry::parse(&bytes))
            && extended.nonvolatile_cache
            && !extended.volatile_cache
            && page.nonvolatile_disabled != Some(true)
        {
            drive.declared = Some(
                "the drive declares its cache non-volatile (INQUIRY page 86h: NV_SUP=1, V_SUP=0)".to_owned(),
            );
        }
    }

    /// Reads an ATA drive, whose own registers take precedence over the page that a translation layer derives
    /// from them.
    fn ata(&self, drive: &mut Drive) {
        let bytes = match self.probe(Request::AtaIdentify) {
            Ok(bytes) => bytes,
            Err(refusal) => {
                // The page that libata derives from the same registers is kept, if there is one.
                if drive.side.wce.is_none() {
                    drive.denied |= refusal == Refusal::Denied;
                }
                return;
            }
        };
        let Some(identify) = ata_identify::parse(&bytes) else { return };
        drive.side.mechanism = "ata-identify".to_owned();
        drive.rotational = match identify.rotation {
            ata_identify::Rotation::Solid => Some(false),
            ata_identify::Rotation::Rpm(_) => Some(true),
            ata_identify::Rotation::NotReported => None,
        };
        match (identify.write_cache_supported, identify.write_cache_enabled) {
            (Some(false), _) => {
                drive.side.wce = Some(false);
                drive.side.is_absent = true;
                drive.side.changeable = Some(false);
                drive.no_caching_page = false;
                return;
            }
            (_, Some(enabled)) => {
                drive.side.wce = Some(enabled);
                drive.side.wce_unknown_because = None;
                drive.no_caching_page = false;
                drive.side.changeable = drive.side.changeable.or(Some(true));
            }
            (_, None) => {}
        }
        // Only SCT settings are saved by the drive; saved and default values of an emulated page are
        // fictitious.
        (drive.side.saved, drive.side.default) = (None, None);
        drive.side.saveable = ata::takes_sct_feature_control(&bytes);
        if drive.side.saveable == Some(true) {
            drive.side.sct = self.sct().map(|state| state.word().to_owned());
        }
    }

    fn sct(&self) -> Option<sct::WriteCache> {
        let cdb = ata::write_log(sct::LOG).to_vec();
        let sensed = self.query(&Query::ScsiSense { cdb, data: sct::ask_state() })?;
        sct::state(sense::ata_status(&sensed).filter(|status| status.is_success())?)
    }

    /// Reads the rotation from the block device characteristics, page B1h bytes 4-5. SBC-4 6.6.2.
    fn rotation_page(&self) -> Option<bool> {
        let query = Query::Scsi { cdb: vec![0x12, 1, 0xb1, 0, 64, 0], length: 64 };
        let page = self.query(&query)?;
        let rate = u16::from_be_bytes([*page.get(4)?, *page.get(5)?]);
        match (page.get(1)?, rate) {
            (0xb1, 1) => Some(false),
            (0xb1, 0x0401..=0xfffe) => Some(true),
            _ => None,
        }
    }

    /// Returns the number of registrations by PERSISTENT RESERVE IN, READ KEYS: eight bytes for each path.
    /// SPC-5 6.16.2.
    fn registrations(&self) -> u32 {
        let query = Query::Scsi { cdb: vec![0x5e, 0, 0, 0, 0, 0, 0, 0, 8, 0], length: 8 };
        let length = self.query(&query).and_then(|bytes| bytes.get(4..8)?.try_into().ok());
        length.map_or(0, |length| u32::from_be_bytes(length) / 8)
    }

    fn nvme(&self) -> Drive {
        let mut drive = Drive { rotational: Some(false), ..Drive::default() };
        drive.side.mechanism = "nvme-feature".to_owned();
        let has_cache = match self.probe(Request::NvmeIdentifyController) {
            Ok(bytes) => nvme::has_volatile_write_cache(&bytes),
            Err(refusal) => {
                drive.denied = refusal == Refusal::Denied;
                drive.side.wce_unknown_because = Some(because(refusal));
                return drive;
            }
        };
        let Some(has_cache) = has_cache else {
            drive.side.wce_unknown_because = Some(because(Refusal::Short));
            return drive;
        };
        self.nvme_health(&mut drive);
        if !has_cache {
            drive.side.wce = Some(false);
            drive.side.is_absent = true;
            drive.side.changeable = Some(false);
            drive.declared =
                Some("the drive declares no volatile write cache (NVMe Identify: VWC=0)".to_owned());
            return drive;
        }
        let feature = |control| self.probe(Request::NvmeWriteCache(control));
        match feature(PageControl::Current) {
            Ok(result) => drive.side.wce = nvme::write_cache_enabled(&result),
            Err(refusal) => drive.side.wce_unknown_because = Some(because(refusal)),
        }
        let value = |control| feature(control).ok().and_then(|result| nvme::write_cache_enabled(&result));
        drive.side.default = value(PageControl::Default);
        let capabilities =
            feature(PageControl::Changeable).ok().and_then(|result| nvme::capabilities(&result));
        if let Some(capabilities) = capabilities {
            drive.side.changeable = Some(capabilities.changeable);
            drive.side.saveable = Some(capabilities.saveable);
        }
        if drive.side.saveable == Some(true) {
            drive.side.saved = value(PageControl::Saved);
        }
        drive
    }

    fn log(&self, page: u8, bytes: u32) -> Option<Vec<u8>> {
        let command = nvme_command::log_page(page, bytes);
        self.query(&Query::NvmeAdmin { command, length: bytes as usize })
    }

    fn nvme_health(&self, drive: &mut Drive) {
        let mut count = |name: &str, value: u64, source: &str| {
            drive.health.push(HealthCounter { name: name.to_owned(), value, source: source.to_owned() });
        };
        let smart = self.log(nvme_log::PAGE, nvme_log::BYTES).and_then(|bytes| nvme_log::parse(&bytes));
        if let Some(smart) = smart {
            if let Some(cycles) = smart.power_cycles {
                count("power_cycles", cycles, "NVMe log 02h bytes 112-127");
            }
            count("unsafe_shutdowns", smart.unsafe_shutdowns, "NVMe log 02h bytes 144-159");
            let failed = u64::from(smart.backup_failed);
            count("volatile_memory_backup_failed", failed, "NVMe log 02h byte 0 bit 4");
            drive.backup_failed = smart.backup_failed;
        }
        if let Some(ocp) = self.log(ocp_log::PAGE, ocp_log::BYTES).and_then(|bytes| ocp_log::parse(&bytes)) {
            count("incomplete_shutdowns", ocp.incomplete_shutdowns, "OCP log C0h bytes 112-115");
            if let Some(health) = ocp.capacitor_health {
                count("capacitor_health_percent", health, "OCP log C0h bytes 128-129");
            }
            count("power_loss_protection_starts", ocp.starts, "OCP log C0h bytes 160-175");
            drive.capacitor_health = ocp.capacitor_health;
        }
    }

    /// Reads a virtio disk. The kernel reads the setting from the device's configuration with every access to
    /// `cache_type`. Feature bit 11, VIRTIO_BLK_F_CONFIG_WCE, makes the setting writable: Virtual I/O Device
    /// 1.2, 5.2.3.
    fn virtio(&self) -> Drive {
        const CONFIG_WCE: usize = 11;
        let tree = self.gateway.tree();
        let said = kernel::cache_type(tree, self.block).and_then(|path| tree.text(&path).ok());
        let mut side = match said.as_deref() {
            Some("write back") => DeviceSide { wce: Some(true), ..DeviceSide::default() },
            Some("write through") => DeviceSide { wce: Some(false), ..DeviceSide::default() },
            _ => unknown("virtio-config", "cache_type cannot be read"),
        };
        side.mechanism = "virtio-config".to_owned();
        let features = tree.text(&format!("{}/device/features", self.block.sysfs)).unwrap_or_default();
        side.changeable = features.as_bytes().get(CONFIG_WCE).map(|bit| *bit == b'1');
        Drive { side, ..Drive::default() }
    }
}

fn no_page(drive: &mut Drive) {
    drive.no_caching_page = true;
    drive.side.mechanism = "none".to_owned();
    drive.side.wce_unknown_because = Some("the drive has no caching mode page".to_owned());
}

fn because(refusal: Refusal) -> String {
    match refusal {
        Refusal::Denied => denied(rustix::process::geteuid().is_root()).to_owned(),
        other => format!("the drive was asked: {other}"),
    }
}
