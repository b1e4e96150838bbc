//! One file system on each kind of drive: paths that are as they should be, and what is peculiar to a bus.

use crate::guest::disk::{Bus, Disk};
use crate::guest::scenario::{Expected, Scenario};

const EXT4: &str = "ext4_on $D1";

/// In the order of the run.
pub(super) const ALL: &[Scenario] = &[
    Scenario {
        name: "ext4-ahci",
        about: "ext4 on a SATA disk",
        disks: &[Disk::new(Bus::Ahci, "sata")],
        setup: EXT4,
        expected: Expected::arrived(&["sata"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "ext4-ahci-cache-off",
        about: "ext4 on a SATA disk whose cache is off: nothing to flush",
        disks: &[Disk::new(Bus::Ahci, "sata-off").cache_off()],
        setup: EXT4,
        expected: Expected::none(&["sata-off"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "ext4-virtio-scsi",
        about: "ext4 on a SCSI disk",
        disks: &[Disk::new(Bus::VirtioScsi, "scsi")],
        setup: EXT4,
        expected: Expected::arrived(&["scsi"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "raw-virtio-scsi",
        about: "a SCSI disk without a file system, written through the page cache",
        disks: &[Disk::new(Bus::VirtioScsi, "scsi-raw").forgetful()],
        target: "$D1",
        expected: Expected::arrived(&["scsi-raw"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "ext4-virtio-blk",
        about: "ext4 on virtio-blk",
        disks: &[Disk::new(Bus::VirtioBlk, "vblk")],
        setup: EXT4,
        expected: Expected::arrived(&["vblk"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "ext4-virtio-blk-fixed",
        about: "ext4 on virtio-blk whose cache the guest cannot switch",
        disks: &[Disk::new(Bus::VirtioBlkFixed, "vblk-fixed")],
        setup: EXT4,
        expected: Expected::arrived(&["vblk-fixed"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "ext4-virtio-blk-switched-off",
        about: "ext4 on virtio-blk whose cache the guest has switched off: nothing to flush",
        disks: &[Disk::new(Bus::VirtioBlk, "vblk-switched")],
        setup: r#"
            ext4_on $D1
            echo "write through" >/sys/block/${D1#/dev/}/cache_type
        "#,
        expected: Expected::none(&["vblk-switched"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "ext4-nvme",
        about: "ext4 on NVMe",
        disks: &[Disk::new(Bus::Nvme, "nvme")],
        setup: EXT4,
        expected: Expected::arrived(&["nvme"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "ext4-usb-storage",
        about: "ext4 on a USB disk, bulk-only transport",
        disks: &[Disk::new(Bus::UsbStorage, "usb")],
        setup: EXT4,
        expected: Expected::arrived(&["usb"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "ext4-usb-uas",
        about: "ext4 on a USB disk, USB attached SCSI",
        disks: &[Disk::new(Bus::Uas, "uas")],
        setup: EXT4,
        expected: Expected::arrived(&["uas"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "h9-megasas",
        about: "H9: the MegaRAID driver completes flushes for a logical disk without sending them",
        disks: &[Disk::new(Bus::Megasas, "logical")],
        setup: EXT4,
        expected: Expected::none(&["logical"]),
        ..Scenario::PLAIN
    },
];
