//! The traps: the kernel's view of a write cache and the drive's own disagree, and flushes are lost, or wasted.
//!
//! Each has drives of its own, because what a trap does to the kernel's view outlives its take-down: that is the trap.

use crate::guest::disk::{Bus, Disk};
use crate::guest::scenario::{Expected, Scenario};

/// In the order of the run.
pub(super) const ALL: &[Scenario] = &[
    Scenario {
        name: "h1-temporary",
        about: "H1: cache_type \"temporary write through\" changes the kernel's view alone",
        disks: &[Disk::new(Bus::VirtioScsi, "h1")],
        setup: r#"
            ext4_on $D1
            echo "temporary write through" >/sys/class/scsi_disk/$(scsi_address $D1)/cache_type
        "#,
        expected: Expected::none(&["h1"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "h1-temporary-ahci",
        about: "H1 on SATA",
        disks: &[Disk::new(Bus::Ahci, "h1-sata")],
        setup: r#"
            ext4_on $D1
            echo "temporary write through" >/sys/class/scsi_disk/$(scsi_address $D1)/cache_type
        "#,
        expected: Expected::none(&["h1-sata"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "h1-cleared",
        about: "H1 healed: an invalid string clears the override, a rescan reads the drive again",
        disks: &[Disk::new(Bus::VirtioScsi, "h1-cleared")],
        setup: r#"
            ext4_on $D1
            echo "temporary write through" >/sys/class/scsi_disk/$(scsi_address $D1)/cache_type
            echo "nothing" >/sys/class/scsi_disk/$(scsi_address $D1)/cache_type || true
            echo 1 >/sys/block/${D1#/dev/}/device/rescan
        "#,
        expected: Expected::arrived(&["h1-cleared"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "h2-queue",
        about: "H2: queue/write_cache \"write through\" while the drive's cache is on",
        disks: &[Disk::new(Bus::VirtioScsi, "h2")],
        setup: r#"
            ext4_on $D1
            echo "write through" >/sys/block/${D1#/dev/}/queue/write_cache
        "#,
        expected: Expected::none(&["h2"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "h2-queue-nvme",
        about: "H2 on NVMe",
        disks: &[Disk::new(Bus::Nvme, "h2-nvme")],
        setup: r#"
            ext4_on $D1
            echo "write through" >/sys/block/${D1#/dev/}/queue/write_cache
        "#,
        expected: Expected::none(&["h2-nvme"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "h2-queue-virtio-blk",
        about: "H2 on virtio-blk",
        disks: &[Disk::new(Bus::VirtioBlk, "h2-vblk")],
        setup: r#"
            ext4_on $D1
            echo "write through" >/sys/block/${D1#/dev/}/queue/write_cache
        "#,
        expected: Expected::none(&["h2-vblk"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "h2-one-leg",
        about: "H2 on one of two members of an md mirror",
        disks: &[Disk::new(Bus::VirtioScsi, "leg-good"), Disk::new(Bus::VirtioScsi, "leg-bad")],
        modules: &["ext4", "raid1"],
        setup: r#"
            mdadm --create /dev/md0 --quiet --run --assume-clean --level=1 --raid-devices=2 $D1 $D2
            ext4_on /dev/md0
            echo "write through" >/sys/block/${D2#/dev/}/queue/write_cache
        "#,
        expected: Expected { arrived: &["leg-good"], none: &["leg-bad"], ..Expected::NO_DRIVE },
        ..Scenario::PLAIN
    },
    Scenario {
        name: "h2-queue-masked",
        about: "H2, then cache_type \"write back\": the two views of the kernel differ",
        disks: &[Disk::new(Bus::VirtioScsi, "h2-masked")],
        setup: r#"
            case $(uname -r) in 6.1.*) skip "6.1 takes the queue's view back with cache_type" ;; esac
            ext4_on $D1
            echo "write through" >/sys/block/${D1#/dev/}/queue/write_cache
            echo "write back" >/sys/class/scsi_disk/$(scsi_address $D1)/cache_type
        "#,
        expected: Expected::none(&["h2-masked"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "h3-mode-select",
        about: "H3: the drive's cache switched on by MODE SELECT, unseen by the kernel",
        disks: &[Disk::new(Bus::VirtioScsi, "h3").cache_off()],
        setup: "
            ext4_on $D1
            sdparm --quiet --set=WCE $D1
        ",
        expected: Expected::none(&["h3"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "h3-rescanned",
        about: "H3 healed by a rescan",
        disks: &[Disk::new(Bus::VirtioScsi, "h3-rescanned").cache_off()],
        setup: "
            ext4_on $D1
            sdparm --quiet --set=WCE $D1
            echo 1 >/sys/block/${D1#/dev/}/device/rescan
        ",
        expected: Expected::arrived(&["h3-rescanned"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "h4-stale-dm",
        about: "H4: a dm table loaded while the cache was off, the cache switched on below",
        disks: &[Disk::new(Bus::VirtioScsi, "h4").cache_off()],
        modules: &["ext4", "dm_mod"],
        setup: r#"
            dm h4 "0 $(sectors $D1) linear $D1 0" LVM-h4
            ext4_on /dev/mapper/h4
            echo "write back" >/sys/class/scsi_disk/$(scsi_address $D1)/cache_type
        "#,
        expected: Expected::none(&["h4"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "h4-reloaded",
        about: "H4 healed: the table loaded again, then suspend and resume",
        disks: &[Disk::new(Bus::VirtioScsi, "h4-reloaded").cache_off()],
        modules: &["ext4", "dm_mod"],
        setup: r#"
            dm h4 "0 $(sectors $D1) linear $D1 0" LVM-h4
            ext4_on /dev/mapper/h4
            echo "write back" >/sys/class/scsi_disk/$(scsi_address $D1)/cache_type
            dmsetup load h4 --table "0 $(sectors $D1) linear $D1 0"
            dmsetup suspend h4
            dmsetup resume h4 --noudevsync
        "#,
        expected: Expected::arrived(&["h4-reloaded"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "h5-dm-over-queue",
        about: "H5: dm over a disk whose queue is set to write through (6.12: dm still says write back)",
        disks: &[Disk::new(Bus::VirtioScsi, "h5")],
        modules: &["ext4", "dm_mod"],
        setup: r#"
            echo "write through" >/sys/block/${D1#/dev/}/queue/write_cache
            dm h5 "0 $(sectors $D1) linear $D1 0"
            ext4_on /dev/mapper/h5
        "#,
        expected: Expected::none(&["h5"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "h7-nvme-feature",
        about: "H7: NVMe feature 06h off; the kernel goes on flushing, which is safe and wasteful",
        disks: &[Disk::new(Bus::Nvme, "h7")],
        setup: "
            ext4_on $D1
            nvme set-feature ${D1%n1} --feature-id=6 --value=0
        ",
        expected: Expected::arrived(&["h7"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "h8-write-protected",
        about: "H8: a write-protected SCSI disk; nothing is written, only the survey matters",
        modules: &["sd_mod", "scsi_debug wp=1 dev_size_mb=8"],
        setup: r#"
            D1=
            for node in /sys/block/sd*; do
                if [ "$(cat $node/device/model | tr -d ' ')" = scsi_debug ]; then D1=/dev/${node##*/}; fi
            done
            [ -n "$D1" ]
        "#,
        after: "rmmod scsi_debug",
        target: "$D1",
        syncs: 0,
        ..Scenario::PLAIN
    },
    Scenario {
        name: "nobarrier",
        about: "ext4 mounted nobarrier",
        disks: &[Disk::new(Bus::VirtioScsi, "nobarrier")],
        setup: "ext4_on $D1 /mnt/t nobarrier",
        expected: Expected::none(&["nobarrier"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "stale-safe",
        about: "the harmless half of H3: the cache switched off by MODE SELECT, the kernel goes on flushing",
        disks: &[Disk::new(Bus::VirtioScsi, "stale-safe")],
        setup: "
            ext4_on $D1
            sdparm --quiet --clear=WCE $D1
        ",
        expected: Expected::arrived(&["stale-safe"]),
        ..Scenario::PLAIN
    },
];
