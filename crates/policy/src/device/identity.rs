//! Identity of a disk, which survives a change of its name.

use plumb_linux::probe::wire::{ata_identify, inquiry};
use plumb_linux::probe::{Probe, ProbedDevice, Request};
use plumb_linux::tree::Tree;

use crate::gateway::{Disk, Gateway, Query};
use crate::wire::designator;
use plumb_linux::inventory::{Block, BlockKind};

/// Names that a disk reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Identity of the disk, in the form of [`Disk::identity`].
    pub identity: Option<String>,
    /// Vendor; `ATA` for a SATA disk behind a translation layer.
    pub vendor: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The serial number.
    pub serial: Option<String>,
}

/// Converts `block` to the gateway's type, without an identity, for queries.
pub fn unnamed(block: &Block) -> Disk {
    Disk { name: block.name.clone(), number: block.number, identity: String::new() }
}

/// Reads the names of `block`: from /sys, which every user may read, then from the drive.
pub fn read(gateway: &dyn Gateway, block: &Block) -> Names {
    match block.kind {
        BlockKind::DeviceMapper => {
            let uuid = text(gateway.tree(), &format!("{}/dm/uuid", block.sysfs));
            Names { identity: uuid.map(|uuid| format!("dm.{uuid}")), ..Names::default() }
        }
        BlockKind::Disk if block.name.starts_with("nvme") => nvme(gateway.tree(), block),
        BlockKind::Disk if block.name.starts_with("vd") => {
            let serial = text(gateway.tree(), &format!("{}/serial", block.sysfs));
            Names {
                identity: serial.as_ref().map(|serial| format!("serial.{serial}")),
                serial,
                ..Names::default()
            }
        }
        BlockKind::Disk => scsi(gateway, block),
        _ => Names::default(),
    }
}

fn nvme(tree: &dyn Tree, block: &Block) -> Names {
    let controllers = plumb_path::nvme_controllers(tree, &block.sysfs);
    let read = |name: &str| controllers.first().and_then(|dir| text(tree, &format!("{dir}/{name}")));
    let serial = read("serial");
    let wwid = text(tree, &format!("{}/wwid", block.sysfs));
    let identity = wwid.or_else(|| serial.as_ref().map(|serial| format!("serial.{serial}")));
    Names { identity, vendor: None, model: read("model"), serial }
}

fn scsi(gateway: &dyn Gateway, block: &Block) -> Names {
    let tree = gateway.tree();
    let read = |name: &str| text(tree, &format!("{}/device/{name}", block.sysfs));
    let mut names =
        Names { identity: read("wwid"), vendor: read("vendor"), model: read("model"), serial: None };
    let page = |page: u8| {
        let file = format!("{}/device/vpd_pg{page:02x}", block.sysfs);
        tree.read(&file).ok().or_else(|| {
            let query = Query::Scsi { cdb: vec![0x12, 1, page, 0, 252, 0], length: 252 };
            gateway.ask(&unnamed(block), &query).ok()
        })
    };
    names.serial = page(0x80).and_then(|page| designator::serial(&page));
    if names.identity.is_none() {
        let designators = page(0x83).map(|page| designator::parse(&page)).unwrap_or_default();
        names.identity =
            designators.into_iter().max_by_key(|designator| designator.rank).map(|best| best.text);
    }
    let asked = ProbedDevice { name: &block.name, number: block.number };
    if names.identity.is_none() && names.serial.is_none() {
        names.serial = ata_serial(gateway.probe(), asked);
    }
    if names.model.is_none() {
        let answer = gateway.probe().ask(asked, Request::Inquiry).ok();
        if let Some(inquiry) = answer.and_then(|bytes| inquiry::parse(&bytes)) {
            names.vendor = names.vendor.or(inquiry.vendor);
            names.model = inquiry.product;
        }
    }
    names.identity =
        names.identity.or_else(|| names.serial.as_ref().map(|serial| format!("serial.{serial}")));
    names
}

fn ata_serial(probe: &dyn Probe, device: ProbedDevice<'_>) -> Option<String> {
    let bytes = probe.ask(device, Request::AtaIdentify).ok()?;
    ata_identify::parse(&bytes)?.serial
}

/// Returns the text at `path`; `None` if it is empty or missing.
pub(super) fn text(tree: &dyn Tree, path: &str) -> Option<String> {
    tree.text(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}
