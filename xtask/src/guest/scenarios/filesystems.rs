//! File systems and mount options on a SCSI disk whose cache is on.

use crate::guest::disk::{Bus, Disk};
use crate::guest::scenario::{Expected, Scenario};

const A: Disk = Disk::new(Bus::VirtioScsi, "a");
const B: Disk = Disk::new(Bus::VirtioScsi, "b");

/// In the order of the run.
pub(super) const ALL: &[Scenario] = &[
    Scenario {
        name: "xfs",
        about: "xfs",
        disks: &[A],
        modules: &["xfs"],
        setup: "mkfs.xfs -q -f -K $D1; mkdir -p /mnt/t; mount -t xfs $D1 /mnt/t",
        expected: Expected::arrived(&["a"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "btrfs-two-disks",
        about: "btrfs over two disks",
        disks: &[A, B],
        modules: &["btrfs"],
        setup: "
            mkfs.btrfs -q -f -K $D1 $D2
            mkdir -p /mnt/t
            mount -t btrfs -o device=$D1,device=$D2 $D1 /mnt/t
        ",
        expected: Expected::arrived(&["a", "b"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "btrfs-nobarrier",
        about: "btrfs mounted nobarrier",
        disks: &[A],
        modules: &["btrfs"],
        setup: "mkfs.btrfs -q -f -K $D1; mkdir -p /mnt/t; mount -t btrfs -o nobarrier $D1 /mnt/t",
        expected: Expected::none(&["a"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "ext4-writeback",
        about: "ext4 mounted data=writeback,journal_async_commit: still flushes",
        disks: &[A],
        setup: "ext4_on $D1 /mnt/t data=writeback,journal_async_commit",
        expected: Expected::arrived(&["a"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "ext4-external-journal",
        about: "ext4 with its journal on another disk: only the journal's disk b is flushed, not the data's disk a",
        disks: &[A, B],
        setup: "
            mkfs.ext4 -q -F -b 4096 -O journal_dev $D2
            mkfs.ext4 -q -F -b 4096 -N 256 -E lazy_itable_init=0 -J device=$D2 $D1
            mkdir -p /mnt/t
            mount -t ext4 $D1 /mnt/t
        ",
        // Debian's 6.12 and 6.1 send the data's disk nothing, for overwrites and for appends: ext4 trusts
        // jbd2_trans_will_send_data_barrier (fs/jbd2/journal.c), which promises a flush that the commit then leaves out.
        // A kernel in which that is mended is as welcome, so nothing is expected of that disk.
        expected: Expected::arrived(&["b"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "overlay",
        about: "overlayfs over ext4",
        disks: &[A],
        modules: &["ext4", "overlay"],
        setup: "
            ext4_on $D1 /mnt/below
            mkdir -p /mnt/below/lower /mnt/below/upper /mnt/below/work /mnt/t
            options=lowerdir=/mnt/below/lower,upperdir=/mnt/below/upper,workdir=/mnt/below/work
            mount -t overlay -o $options overlay /mnt/t
        ",
        expected: Expected::arrived(&["a"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "overlay-volatile",
        about: "overlayfs mounted volatile over ext4: every sync is left out",
        disks: &[A],
        modules: &["ext4", "overlay"],
        setup: "
            ext4_on $D1 /mnt/below
            mkdir -p /mnt/below/lower /mnt/below/upper /mnt/below/work /mnt/t
            options=lowerdir=/mnt/below/lower,upperdir=/mnt/below/upper,workdir=/mnt/below/work
            mount -t overlay -o $options,volatile overlay /mnt/t
        ",
        expected: Expected::none(&["a"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "loop-on-nobarrier",
        about: "ext4 on a loop device over a file on ext4 mounted nobarrier",
        disks: &[A],
        modules: &["ext4", "loop"],
        setup: "
            ext4_on $D1 /mnt/below nobarrier
            truncate -s 200M /mnt/below/image
            losetup /dev/loop0 /mnt/below/image
            ext4_on /dev/loop0
        ",
        expected: Expected::none(&["a"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "loop-on-tmpfs",
        about: "ext4 on a loop device over a file in memory: flushed, and yet volatile",
        modules: &["ext4", "loop"],
        setup: "
            mkdir -p /mnt/below
            mount -t tmpfs tmpfs /mnt/below
            truncate -s 100M /mnt/below/image
            losetup /dev/loop0 /mnt/below/image
            ext4_on /dev/loop0
        ",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "ext4-zram",
        about: "ext4 on zram: the kernel says write through, and yet volatile",
        modules: &["ext4", "zram"],
        setup: "
            echo 100M >/sys/block/zram0/disksize
            ext4_on /dev/zram0
        ",
        after: "echo 1 >/sys/block/zram0/reset",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "tmpfs",
        about: "tmpfs: no drive at all",
        modules: &[],
        setup: "mkdir -p /mnt/t; mount -t tmpfs tmpfs /mnt/t",
        ..Scenario::PLAIN
    },
];
