//! Drives of `plumb drive serve` under a real kernel: flushes that the guest counts must be those that the drive counts.

use crate::guest::disk::{Bus, Disk};
use crate::guest::scenario::{Expected, Scenario};

/// Connects the guest's NBD client to the address behind which the drive is.
const CONNECT: &str = "\
ifconfig lo 127.0.0.1 up
ifconfig eth0 10.0.2.15 netmask 255.255.255.0 up
nbd-client -nonetlink 10.0.2.100 10809 /dev/nbd0 -block-size 512 || nbd-client 10.0.2.100 10809 /dev/nbd0
cat /sys/block/nbd0/queue/write_cache /sys/block/nbd0/queue/fua
tell disk nbd nbd0
ext4_on /dev/nbd0
";

/// In the order of the run.
pub(super) const ALL: &[Scenario] = &[
    Scenario {
        name: "ext4-simulated-virtio-blk",
        about: "ext4 on a simulated drive that QEMU reaches over NBD",
        disks: &[Disk::new(Bus::VirtioBlk, "sim-vblk").simulated()],
        setup: "ext4_on $D1",
        expected: Expected::exactly(&["sim-vblk"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "ext4-nbd-client",
        about: "ext4 on a simulated drive that the kernel's NBD client reaches",
        disks: &[Disk::new(Bus::NbdClient, "nbd").simulated()],
        modules: &["virtio_net", "nbd nbds_max=1", "ext4"],
        setup: CONNECT,
        after: "umount /mnt/t 2>/dev/null; nbd-client -d /dev/nbd0",
        expected: Expected::exactly(&["nbd"]),
        ..Scenario::PLAIN
    },
];
