//! SCSI disks and similar ones: SAS, SATA through libata, USB. Reads the kernel's record and the drive's own
//! report.

use plumb_linux::probe::wire::{ata_identify, caching_page, extended_inquiry};
use plumb_linux::probe::{PageControl, Refusal, Request};

use super::block_device::Place;
use super::controller::is_numbered;
use super::surveyor::Surveyor;
use crate::facts::{DriveCache, KernelView, Mark, Node};
use crate::model::{Cache, LayerKind};

impl Surveyor<'_> {
    /// Fills in a disk of the driver sd (or sr): the kernel's view, the drive's report, then the layers
    /// below.
    pub(super) fn scsi_disk(&mut self, node: &mut Node, place: &Place) {
        node.kind = kind_of(&node.name, &place.sysfs);
        self.names(node, place);
        if node.kind == LayerKind::OpticalDrive {
            node.cache = Cache::Unknown;
            node.saw(
                "sr(4)",
                node.name.clone(),
                "an optical drive: plumb does not ask whether it has a write cache",
            );
            node.below = self.way(node, place);
            return;
        }
        self.shingled(node, place);
        self.cache_type(node, place);
        let vendor = self.tree.text(&format!("{}/device/vendor", place.sysfs)).unwrap_or_default();
        self.ask_caching_page(node, place);
        if node.kind == LayerKind::AtaDisk || vendor == "ATA" {
            self.ask_identify(node, place);
        }
        node.cache = cache_of(node);
        node.below = self.way(node, place);
    }

    fn names(&self, node: &mut Node, place: &Place) {
        let read = |name: &str| self.tree.text(&format!("{}/device/{name}", place.sysfs)).unwrap_or_default();
        let (vendor, model, wwid) = (read("vendor"), read("model"), read("wwid"));
        if !model.is_empty() {
            node.saw(
                format!("{}/device/{{vendor,model}}", place.sysfs),
                format!("{vendor} {model}"),
                "the drive",
            );
        }
        node.identity = Some(wwid).filter(|wwid| !wwid.is_empty());
    }

    /// Records shingled drives: SBC-4, Block Device Characteristics, byte 8 bits 5 and 4, ZONED. To the
    /// kernel, a drive that manages its zones itself looks like any other.
    fn shingled(&self, node: &mut Node, place: &Place) {
        let file = format!("{}/device/vpd_pgb1", place.sysfs);
        let page = self.tree.read(&file).unwrap_or_default();
        let zoned = page.get(8).map(|byte| byte >> 4 & 0b11);
        if page.get(1) == Some(&0xb1) && zoned == Some(0b10) {
            node.saw(file, "byte 8 bits 5:4 = 10b", "a shingled disk that hides its zones (drive-managed)");
            node.mark(Mark::Shingled { what: "drive-managed".to_owned() });
        }
    }

    /// Records the cache type that the kernel last read from the drive, or was told to assume:
    /// drivers/scsi/sd.c (cache_type_show).
    fn cache_type(&self, node: &mut Node, place: &Place) {
        let list = format!("{}/device/scsi_disk", place.sysfs);
        let Some(address) = self.tree.list(&list).ok().and_then(|names| names.into_iter().next()) else {
            return;
        };
        let file = format!("{list}/{address}/cache_type");
        let Ok(text) = self.tree.text(&file) else { return };
        node.cache_type = KernelView::parse(&text);
        node.saw(file, text, "what the kernel last read from the drive, or was told to believe");
    }

    fn ask_caching_page(&self, node: &mut Node, place: &Place) {
        let request = Request::CachingPage(PageControl::Current);
        let reply = self.ask(node, place.number, request, "MODE SENSE(10) page 08h");
        let mut nonvolatile_disabled = None;
        match reply {
            Ok(bytes) => match caching_page::parse(&bytes) {
                Some(page) => {
                    nonvolatile_disabled = page.nonvolatile_disabled;
                    let (value, means) = if page.write_cache {
                        ("WCE=1", "the drive's volatile write cache is on")
                    } else {
                        ("WCE=0", "the drive's write cache is off")
                    };
                    node.saw("MODE SENSE(10) page 08h byte 2 bit 2", value, means);
                    node.drive = if page.write_cache { DriveCache::On } else { DriveCache::Off };
                    if page.write_protected {
                        node.saw(
                            "MODE SENSE(10) device-specific bit 7",
                            "WP=1",
                            "the medium is write-protected",
                        );
                        node.mark(Mark::WriteProtected);
                    }
                }
                None => no_caching_page(node),
            },
            Err(refusal) if refusal.is_unsupported_by_device() => no_caching_page(node),
            Err(Refusal::Denied | Refusal::NotRecorded | Refusal::NoNode | Refusal::OtherDevice) => {}
            Err(_) => node.drive = DriveCache::Silent,
        }
        if node.drive == DriveCache::On {
            let extended = self.ask(node, place.number, Request::ExtendedInquiry, "INQUIRY page 86h");
            if let Some(page) = extended.ok().and_then(|bytes| extended_inquiry::parse(&bytes))
                && page.nonvolatile_cache
                && !page.volatile_cache
            {
                declared_nonvolatile(node, nonvolatile_disabled);
            }
        }
    }

    fn ask_identify(&self, node: &mut Node, place: &Place) {
        let reply = self.ask(node, place.number, Request::AtaIdentify, "ATA IDENTIFY DEVICE");
        let Some(identify) = reply.ok().and_then(|bytes| ata_identify::parse(&bytes)) else { return };
        if let Some(serial) = identify.serial
            && node.identity.is_none()
        {
            node.identity = Some(serial);
        }
        let said = match (identify.write_cache_supported, identify.write_cache_enabled) {
            (Some(false), _) => {
                Some(("word 82 bit 5 = 0", "the drive has no volatile write cache", DriveCache::Absent))
            }
            (_, Some(true)) => {
                Some(("word 85 bit 5 = 1", "the drive's volatile write cache is on", DriveCache::On))
            }
            (_, Some(false)) => {
                Some(("word 85 bit 5 = 0", "the drive's write cache is off", DriveCache::Off))
            }
            (_, None) => None,
        };
        if let Some((value, means, drive)) = said {
            node.saw("ATA IDENTIFY DEVICE", value, means);
            // The drive's own registers take precedence over the page that a translation layer derives from
            // them.
            node.drive = drive;
            node.marks.retain(|mark| *mark != Mark::NoCachingPage);
        }
        if let ata_identify::Rotation::Rpm(rpm) = identify.rotation {
            node.saw(
                "ATA IDENTIFY DEVICE word 217",
                rpm.to_string(),
                "revolutions per minute, by the drive itself",
            );
        }
    }

    /// Returns the names of the layers between the kernel and the drive: an adapter, a network, a hypervisor.
    fn way(&mut self, node: &mut Node, place: &Place) -> Vec<String> {
        let parts: Vec<&str> = place.sysfs.split('/').collect();
        let remote = if parts.iter().any(|part| is_numbered(part, "session")) {
            Some("the iSCSI target")
        } else if parts.iter().any(|part| part.starts_with("rport-")) {
            Some("the Fibre Channel target")
        } else {
            None
        };
        let mut below = Vec::new();
        if let Some(what) = remote {
            below.push(
                self.remote(format!("remote end of {}", node.name), format!("{what} of {}", node.name)),
            );
            return below;
        }
        let controller = self.controller(node, place);
        let is_virtual = self.guest().name.is_some();
        if is_virtual && (controller.is_none() || self.host.is_some()) {
            let identity = node.identity.clone().unwrap_or_default();
            below.push(self.provider(node, &[&identity]));
        }
        below.extend(controller);
        below
    }
}

/// Records a declared non-volatile cache: SBC-4 6.5.6, NV_DIS disables the one declared in INQUIRY. Pages too
/// short for the bit cannot disable it.
fn declared_nonvolatile(node: &mut Node, disabled: Option<bool>) {
    node.saw("INQUIRY page 86h byte 6", "NV_SUP=1 V_SUP=0", "the drive declares its cache non-volatile");
    if disabled == Some(true) {
        node.saw(
            "MODE SENSE(10) page 08h byte 12 bit 0",
            "NV_DIS=1",
            "the drive's non-volatile cache is switched off, so the declaration protects nothing",
        );
    } else {
        node.drive = DriveCache::Protected;
    }
}

fn no_caching_page(node: &mut Node) {
    node.saw(
        "MODE SENSE(10) page 08h",
        "no such page",
        "the kernel assumes write-through and sends no flush",
    );
    node.drive = DriveCache::Silent;
    node.mark(Mark::NoCachingPage);
}

fn kind_of(name: &str, sysfs: &str) -> LayerKind {
    let mut parts = sysfs.split('/');
    if name.starts_with("sr") {
        LayerKind::OpticalDrive
    } else if sysfs.split('/').any(|part| is_numbered(part, "ata")) {
        LayerKind::AtaDisk
    } else if parts.any(|part| is_numbered(part, "usb")) {
        LayerKind::UsbDisk
    } else {
        LayerKind::ScsiDisk
    }
}

/// Returns the cache by the drive's report, or else by the kernel's last reading if that is reliable.
fn cache_of(node: &Node) -> Cache {
    match (node.drive, node.cache_type) {
        (DriveCache::On, _) => Cache::Volatile,
        (DriveCache::Off | DriveCache::Absent, _) => Cache::None,
        (DriveCache::Protected, _) => Cache::Protected,
        (DriveCache::Silent | DriveCache::NotAsked, KernelView::WriteBack) => Cache::Volatile,
        // libata reads IDENTIFY again after every command that changes it, so its record is reliable; that of
        // other drives may be stale (trap H3).
        (DriveCache::NotAsked, KernelView::WriteThrough) if node.kind == LayerKind::AtaDisk => Cache::None,
        _ => Cache::Unknown,
    }
}
