//! The tree of /sys: the place of a disk of each kind, and the contents of its files.

use super::disk::{MockDisk, MockKind};
use super::encode;
use super::files::Files;

/// Number of SAS disks on one adapter.
const DISKS_PER_ADAPTER: usize = 24;

/// Returns the kernel's name of the disk with this number in its series: `sda`, `sdaa`, `nvme0n1`, `vda`.
pub(super) fn name(kind: MockKind, number: usize) -> String {
    match kind {
        MockKind::Nvme => format!("nvme{number}n1"),
        MockKind::Virtio => format!("vd{}", letters(number)),
        _ => format!("sd{}", letters(number)),
    }
}

/// drivers/scsi/sd.c, sd_format_disk_name: bijective base 26.
fn letters(number: usize) -> String {
    let mut text = Vec::new();
    let mut rest = number + 1;
    while rest > 0 {
        rest -= 1;
        text.push(b'a' + (rest % 26) as u8);
        rest /= 26;
    }
    text.iter().rev().map(|letter| char::from(*letter)).collect()
}

/// Puts the constant files of the disk with this index into the tree. Returns its directory.
pub(super) fn build(tree: &mut Files, disk: &MockDisk, index: usize) -> String {
    let sysfs = match disk.kind {
        MockKind::Nvme => nvme(tree, disk),
        MockKind::Virtio => virtio(tree, disk, index),
        _ => scsi(tree, disk, index),
    };
    tree.put_text(&format!("{sysfs}/dev"), &format!("{}\n", disk.number));
    tree.put_text(&format!("{sysfs}/size"), &format!("{}\n", disk.sectors));
    tree.put_text(&format!("{sysfs}/queue/fua"), "1\n");
    tree.put_link(&format!("/sys/class/block/{}", disk.name), &sysfs);
    tree.put_link(&format!("/sys/block/{}", disk.name), &sysfs);
    tree.put_link(&format!("/sys/dev/block/{}", disk.number), &sysfs);
    let placed = MockDisk { sysfs: sysfs.clone(), ..disk.clone() };
    identify(tree, &placed);
    sysfs
}

/// Returns the directory of the SCSI device, `H:C:T:L`.
fn scsi_device(disk: &MockDisk, index: usize) -> (String, String, String) {
    let pci = "/sys/devices/pci0000:00";
    let (host, unit) = match disk.kind {
        MockKind::Sas => (index / DISKS_PER_ADAPTER, index % DISKS_PER_ADAPTER),
        _ => (1000 + index, 0),
    };
    let channel = if disk.kind == MockKind::Raid { 2 } else { 0 };
    let target = format!("target{host}:{channel}:{unit}");
    let address = format!("{host}:{channel}:{unit}:0");
    let host_dir = match disk.kind {
        MockKind::Sata => format!("{pci}/0000:00:1f.2/ata{host}/host{host}"),
        MockKind::Usb => format!("{pci}/0000:00:14.0/usb1/1-{host}/1-{host}:1.0/host{host}"),
        _ => format!("{pci}/0000:{:02x}:00.0/host{host}", host % 256),
    };
    let way = match disk.kind {
        MockKind::Sas => {
            format!(
                "{host_dir}/port-{host}:0/expander-{host}:0/port-{host}:0:{unit}/end_device-{host}:0:{unit}"
            )
        }
        _ => host_dir.clone(),
    };
    (format!("{way}/{target}/{address}"), host_dir, format!("host{host}"))
}

fn scsi(tree: &mut Files, disk: &MockDisk, index: usize) -> String {
    let (device, host_dir, host) = scsi_device(disk, index);
    let sysfs = format!("{device}/block/{}", disk.name);
    tree.put_text(&format!("{host_dir}/scsi_host/{host}/proc_name"), &format!("{}\n", disk.driver));
    tree.put_link(&format!("{sysfs}/device"), "../..");
    tree.put_text(&format!("{device}/vendor"), &format!("{}\n", disk.vendor));
    tree.put_text(&format!("{device}/model"), &format!("{}\n", disk.model));
    tree.put_text(&format!("{device}/rescan"), "");
    sysfs
}

/// Returns the controller of an NVMe namespace: `nvme0` of `nvme0n1`.
pub(super) fn controller(disk: &MockDisk) -> &str {
    match disk.controller.as_str() {
        "" => disk.name.rsplit_once('n').map_or(disk.name.as_str(), |(controller, _)| controller),
        named => named,
    }
}

fn nvme(tree: &mut Files, disk: &MockDisk) -> String {
    let dir = put_controller(tree, disk, controller(disk));
    if !disk.in_subsystem {
        return format!("{dir}/{}", disk.name);
    }
    let subsystem = subsystem(disk);
    tree.put_link(&format!("{subsystem}/{}", controller(disk)), &dir);
    format!("{subsystem}/{}", disk.name)
}

/// Returns the subsystem of a namespace: nvme-subsys0 of nvme0n1.
fn subsystem(disk: &MockDisk) -> String {
    let number = controller(disk).trim_start_matches("nvme");
    format!("/sys/devices/virtual/nvme-subsystem/nvme-subsys{number}")
}

/// Adds a controller called `name` that leads to `disk`. Returns its directory.
fn put_controller(tree: &mut Files, disk: &MockDisk, name: &str) -> String {
    let number: usize = name.trim_start_matches("nvme").parse().unwrap_or(0);
    let dir = format!("/sys/devices/pci0000:00/0000:{:02x}:01.0/nvme/{name}", number % 256);
    tree.put_text(&format!("{dir}/model"), &format!("{}\n", disk.model));
    tree.put_text(&format!("{dir}/serial"), &format!("{}\n", disk.serial));
    tree.put_text(&format!("{dir}/transport"), "pcie\n");
    dir
}

/// Adds another controller that leads to the subsystem of `disk`.
pub(super) fn add_path(tree: &mut Files, disk: &MockDisk, controller: &str) {
    let dir = put_controller(tree, disk, controller);
    tree.put_link(&format!("{}/{controller}", subsystem(disk)), &dir);
}

fn virtio(tree: &mut Files, disk: &MockDisk, index: usize) -> String {
    let device = format!("/sys/devices/pci0000:00/0000:{:02x}:02.0/virtio{index}", index % 256);
    let sysfs = format!("{device}/block/{}", disk.name);
    tree.put_link(&format!("{sysfs}/device"), "../..");
    // Bits 9 (FLUSH) and 11 (CONFIG_WCE).
    let features = if disk.changeable { "000000000101" } else { "000000000100" };
    tree.put_text(&format!("{device}/features"), &format!("{features}\n"));
    sysfs
}

/// Writes the files with the identity of the disk.
pub(super) fn identify(tree: &mut Files, disk: &MockDisk) {
    let sysfs = &disk.sysfs;
    match disk.kind {
        MockKind::Virtio => tree.put_text(&format!("{sysfs}/serial"), &format!("{}\n", disk.serial)),
        MockKind::Nvme => {
            tree.put_text(&format!("{sysfs}/wwid"), &format!("{}\n", disk.identity()));
            put_controller(tree, disk, controller(disk));
        }
        _ => {
            let device = sysfs.split("/block/").next().unwrap_or_default();
            let (_, serial) = encode::identity(disk.world_wide_name(), &disk.serial);
            tree.put_text(&format!("{device}/wwid"), &format!("{}\n", disk.identity()));
            tree.put_bytes(&format!("{device}/vpd_pg80"), &serial);
        }
    }
}

/// Returns the path of `cache_type` of the disk, if it has one.
pub(super) fn cache_type(disk: &MockDisk) -> Option<String> {
    match disk.kind {
        MockKind::Nvme => None,
        MockKind::Virtio => Some(format!("{}/cache_type", disk.sysfs)),
        _ => {
            let device = disk.sysfs.split("/block/").next()?;
            let address = device.rsplit('/').next()?;
            Some(format!("{device}/scsi_disk/{address}/cache_type"))
        }
    }
}

/// Writes the files with the kernel's present view of the disk.
pub(super) fn show(tree: &mut Files, disk: &MockDisk) {
    let word = |back: bool| if back { "write back\n" } else { "write through\n" };
    tree.put_text(&format!("{}/queue/write_cache", disk.sysfs), word(disk.sends()));
    if let Some(path) = cache_type(disk) {
        tree.put_text(&path, word(disk.kernel.cache));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_on_after_z() {
        let sd = |number| name(MockKind::Sas, number);
        assert_eq!((sd(0), sd(25), sd(26)), ("sda".to_owned(), "sdz".to_owned(), "sdaa".to_owned()));
        assert_eq!((sd(701), sd(702)), ("sdzz".to_owned(), "sdaaa".to_owned()));
        assert_eq!(name(MockKind::Nvme, 3), "nvme3n1");
    }
}
