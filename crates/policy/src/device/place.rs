//! Connection of a disk: its transport and its port, from its path in /sys.

use plumb_linux::inventory::{Block, BlockKind};
use plumb_linux::tree::Tree;
use plumb_path::{is_numbered, nvme_controllers};

/// Returns the transport of a disk.
pub fn transport(tree: &dyn Tree, block: &Block) -> String {
    let parts: Vec<&str> = block.sysfs.split('/').collect();
    let any = |test: &dyn Fn(&str) -> bool| parts.iter().any(|part| test(part));
    let word = match block.kind {
        BlockKind::Partition => "partition",
        BlockKind::DeviceMapper => "device-mapper",
        BlockKind::Md => "md",
        BlockKind::Bcache => "bcache",
        BlockKind::Loop => "loop",
        BlockKind::Memory | BlockKind::Remote => {
            return block.name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
        }
        BlockKind::Removable => "removable",
        BlockKind::Disk if block.name.starts_with("nvme") => {
            let controllers = nvme_controllers(tree, &block.sysfs);
            let fabric = controllers.first().and_then(|dir| tree.text(&format!("{dir}/transport")).ok());
            return match fabric.as_deref() {
                Some("tcp" | "rdma" | "fc") => "nvme-fabrics".to_owned(),
                _ => "nvme".to_owned(),
            };
        }
        BlockKind::Disk if block.name.starts_with("vd") => "virtio",
        BlockKind::Disk if block.name.starts_with("mmcblk") => "mmc",
        BlockKind::Disk if block.name.starts_with("xvd") => "xen",
        BlockKind::Disk if block.name.starts_with("pmem") => "pmem",
        BlockKind::Disk if any(&|part| is_numbered(part, "session")) => "iscsi",
        BlockKind::Disk if any(&|part| part.starts_with("rport-")) => "fc",
        BlockKind::Disk if any(&|part| is_numbered(part, "ata")) => "ata",
        BlockKind::Disk if any(&|part| is_numbered(part, "usb")) => "usb",
        // A SATA disk behind a SAS adapter uses SAS as its transport and ATA as its command set.
        BlockKind::Disk if any(&|part| part.starts_with("end_device-")) => "sas",
        BlockKind::Disk => "scsi",
    };
    word.to_owned()
}

/// Returns the port that a change may stall: error handling and revalidation stop everything on it.
pub fn port(tree: &dyn Tree, block: &Block) -> String {
    let parts: Vec<&str> = block.sysfs.split('/').collect();
    let find =
        |test: &dyn Fn(&str) -> bool| parts.iter().find(|part| test(part)).map(|part| (*part).to_owned());
    if block.name.starts_with("nvme") {
        let controllers = nvme_controllers(tree, &block.sysfs);
        let last = controllers.first().and_then(|dir| dir.rsplit('/').next());
        return last.unwrap_or(&block.name).to_owned();
    }
    if let Some(ata) = find(&|part| is_numbered(part, "ata")) {
        return ata;
    }
    let host = find(&|part| is_numbered(part, "host"));
    // The first port on the path is that of the adapter, shared by everything behind an expander.
    if let (Some(host), Some(port)) = (&host, find(&|part| part.starts_with("port-"))) {
        return format!("{host}/{port}");
    }
    if let Some(usb) = parts.iter().rfind(|part| is_usb_device(part)) {
        return format!("usb {usb}");
    }
    if let (Some(host), Some(target)) = (&host, find(&|part| part.starts_with("target"))) {
        return format!("{host}/{target}");
    }
    find(&|part| is_numbered(part, "virtio")).or(host).unwrap_or_else(|| block.name.clone())
}

/// Returns the name of the SCSI host's driver.
pub(crate) fn host_driver(tree: &dyn Tree, block: &Block) -> Option<String> {
    let parts: Vec<&str> = block.sysfs.split('/').collect();
    let at = parts.iter().rposition(|part| is_numbered(part, "host"))?;
    let (dir, host) = (parts[..=at].join("/"), parts[at]);
    super::identity::text(tree, &format!("{dir}/scsi_host/{host}/proc_name"))
}

/// Returns true for `1-2` and `2-1.4`: bus and ports.
fn is_usb_device(part: &str) -> bool {
    let Some((bus, ports)) = part.split_once('-') else { return false };
    let digits =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    digits(bus) && digits(ports)
}
