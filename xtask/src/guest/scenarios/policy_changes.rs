//! Every kind of drive is switched off and on by `plumb policy`, read back, and rolled back; and what must be refused is.
//! What plumb says is held against the drive's own word, the kernel's views, and the flushes that arrive.

use crate::guest::disk::{Bus, Disk};
use crate::guest::scenario::Scenario;

/// In the order of the run.
pub(super) const ALL: &[Scenario] = &[
    Scenario::running(
        "policy-ahci",
        "a SATA disk, off and on",
        &[Disk::new(Bus::Ahci, "c-sata").wwn(0x5000_c500_0000_1001)],
        "switched c-sata $D1",
    ),
    Scenario::running(
        "policy-virtio-scsi",
        "SCSI disks, one with a WWN, one with a serial number alone",
        &[
            Disk::new(Bus::VirtioScsi, "c-scsi").wwn(0x5000_c500_0000_1002),
            Disk::new(Bus::VirtioScsi, "c-scsi-plain"),
        ],
        "switched c-scsi $D1; switched c-scsi-plain $D2",
    ),
    Scenario::running(
        "policy-usb-storage",
        "a USB disk, bulk-only transport",
        &[Disk::new(Bus::UsbStorage, "c-usb")],
        "switched c-usb $D1",
    ),
    Scenario::running(
        "policy-usb-uas",
        "a USB disk, USB attached SCSI",
        &[Disk::new(Bus::Uas, "c-uas")],
        "switched c-uas $D1",
    ),
    Scenario::running(
        "policy-virtio-blk",
        "virtio-blk, off and on",
        &[Disk::new(Bus::VirtioBlk, "c-vblk")],
        "switched c-vblk $D1",
    ),
    Scenario::running(
        "policy-nvme",
        "NVMe, off and on; the kernel goes on flushing",
        &[Disk::new(Bus::Nvme, "c-nvme")],
        "switched c-nvme $D1 $SYNCS",
    ),
    Scenario {
        name: "policy-scsi-debug",
        about: "the kernel's own SCSI disk, which raises a unit attention after a change",
        modules: &["sd_mod", "scsi_debug dev_size_mb=8"],
        program: "switched - $(debug_disks)",
        after: "rmmod scsi_debug",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "policy-ignoring-drive",
        about: "a drive that says yes to every change and does none: never a success",
        modules: &["sd_mod", "scsi_debug opts=0x1000 dev_size_mb=8"],
        program: r#"
            disk=$(debug_disks)
            must plumb policy plan on $disk --out /tmp/on.plan
            policy 5 apply /tmp/on.plan --journal /tmp/journals --json
            is "it is a mismatch" '.ended == "failed" and (.disks | all(.result == "mismatch"))'
            drive_cache "as it was" off - $disk
            policy 0 rollback /tmp/journals/*-*
        "#,
        after: "rmmod scsi_debug",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "policy-under-load",
        about: "a file system, LVM and dm-crypt stay in use while the cache below is switched",
        disks: &[Disk::new(Bus::Ahci, "busy").wwn(0x5000_c500_0000_1003)],
        modules: &["ext4", "dm_crypt", "xts", "ecb"],
        program: r#"
            head -c 32 /dev/zero >/tmp/key
            must vgcreate --quiet --yes vg $D1
            must lvcreate --quiet --yes --wipesignatures n --zero n --extents 100%FREE --name data vg
            must cryptsetup open --type plain --cipher aes-xts-plain64 --key-size 256 --key-file /tmp/key /dev/vg/data secret
            must dmsetup mknodes
            ext4_on /dev/mapper/secret
            for state in off on off on; do
                rm -rf /tmp/journals
                policy 0 plan $state $D1 --out /tmp/plan
                policy 0 apply /tmp/plan --journal /tmp/journals --observe /mnt/t/load --json
                is "the load felt the switch and no error" \
                    '.ended == "complete" and (.observation.switches | length == 1 and all(.errors == []))'
                info "longest stall while switching $state: $(jq -c '.observation.switches' /tmp/out | head -c 200)"
                drive_cache "after apply" $state busy
            done
            differ "flushes of the file on top of it all" 0 "$(flushes busy /mnt/t/written)"
            sound $D1 on
        "#,
        ..Scenario::PLAIN
    },
    Scenario {
        name: "policy-array",
        about: "the members of an array are switched one after the other, each in a wave of its own",
        disks: &[
            Disk::new(Bus::VirtioScsi, "m-a").wwn(0x5000_c500_0000_1006),
            Disk::new(Bus::VirtioScsi, "m-b").wwn(0x5000_c500_0000_1007),
            Disk::new(Bus::Nvme, "m-c"),
        ],
        modules: &["ext4", "raid1"],
        program: r#"
            must mdadm --create /dev/md0 --quiet --run --assume-clean --level=1 --raid-devices=3 $D1 $D2 $D3
            steady /dev/md0
            ext4_on /dev/md0
            policy 0 plan off $D1 $D2 $D3 --out /tmp/plan --json
            is "no two members are in one wave" '[.changes[].wave] | (unique | length) == 3'
            is "the first is a canary" '.changes[0].canary'
            policy 0 apply /tmp/plan --journal /tmp/journals --json
            is "all are verified" '.ended == "complete" and (.disks | length == 3 and all(.result == "verified"))'
            for name in m-a m-b m-c; do drive_cache "after apply" off $name; done
            same "flushes of the array" 0 "$(flushes m-a /mnt/t/written)"
            # One of them is switched on behind plumb's back: that is drift, and the rollback does not mind.
            echo "write back" >$(cache_type $D2)
            policy 1 verify /tmp/plan --json
            policy 0 rollback /tmp/journals/*-* --json
            for name in m-a m-b m-c; do drive_cache "after rollback" on $name; done
            same "flushes of the array after the rollback" $SYNCS "$(flushes m-b /mnt/t/written)"
        "#,
        ..Scenario::PLAIN
    },
    Scenario {
        name: "policy-refusals",
        about: "what must not be changed is refused, with the reason and what to do",
        disks: &[
            Disk::new(Bus::VirtioScsi, "r-a").wwn(0x5000_c500_0000_1004),
            Disk::new(Bus::VirtioScsi, "r-b").wwn(0x5000_c500_0000_1005),
            Disk::new(Bus::VirtioScsi, "r-lun"),
            Disk::new(Bus::VirtioScsi, "r-lun-again").path_to("r-lun"),
            Disk::new(Bus::VirtioBlkFixed, "r-fixed"),
            Disk::new(Bus::Megasas, "r-raid"),
        ],
        modules: &["ext4", "loop", "zram", "raid1", "dm_multipath", "dm_round_robin"],
        program: r#"
            # Not a disk.
            truncate -s 16M /tmp/image
            loop=$(losetup -f)
            must losetup $loop /tmp/image
            refused "is a file" plan off $loop
            losetup -d $loop
            refused "is memory" plan off /dev/zram0
            printf 'n\np\n1\n\n\nw\n' | fdisk $D1 >/dev/null 2>&1
            wait_for "the partition" [ -b ${D1}1 ]
            refused "is a part of" plan off ${D1}1
            dd if=/dev/zero of=$D1 bs=512 count=1 conv=notrunc 2>/dev/null
            blockdev --rereadpt $D1
            # Not ours to change.
            refused "logical disk of a RAID controller" plan off $D6
            refused "hypervisor does not let" plan off $D5
            refused "same identity" plan off $D3
            refused "same identity" plan off $D4
            dm mpatha "0 $(sectors $D3) multipath 0 0 1 1 round-robin 0 2 1 $D3 1 $D4 1" mpath-lun
            refused "one path of the multipath device" plan off $D3
            must dmsetup remove --noudevsync mpatha

            # An array that is busy.
            echo 1 >/proc/sys/dev/raid/speed_limit_min
            echo 8 >/proc/sys/dev/raid/speed_limit_max
            must mdadm --create /dev/md0 --quiet --run --level=1 --raid-devices=2 $D1 $D2
            wait_for "the resync" grep -q resync /sys/block/md0/md/sync_action
            refused "busy: resync" plan off $D1
            refused "busy: resync" plan off $D2
            must mdadm --quiet --stop /dev/md0
            mdadm --quiet --zero-superblock $D1 $D2

            # A plan that somebody has touched.
            policy 0 plan off $D1 --out /tmp/a.plan
            sed 's/"to": *"off"/"to": "on"/' /tmp/a.plan >/tmp/altered.plan
            differ "the plan is another" "$(md5sum </tmp/a.plan)" "$(md5sum </tmp/altered.plan)"
            refused "altered" apply /tmp/altered.plan --journal /tmp/journals
            # What stands on it has changed.
            ext4_on $D1
            refused "what stands on it has changed" apply /tmp/a.plan --journal /tmp/journals
            must umount /mnt/t
            # Somebody was faster.
            echo "write through" >$(cache_type $D1)
            refused "settings have changed" apply /tmp/a.plan --journal /tmp/journals
            echo "write back" >$(cache_type $D1)

            # Without root nothing is seen of the drive, and nothing is done.
            chmod 644 /tmp/a.plan
            su -s /bin/sh nobody -c "plumb policy show ${D1}" >/tmp/out 2>/tmp/err
            says "show says what it cannot see" "without root"
            su -s /bin/sh nobody -c "plumb policy show ${D1} --json" >/tmp/out 2>/tmp/err
            is "whether its cache is on is unknown, with the reason" \
                '.devices[0].device.wce == null and (.devices[0].device.wce_unknown_because | test("root"))'
            su -s /bin/sh nobody -c "plumb policy apply /tmp/a.plan --journal /tmp/nobodys" >/tmp/out 2>/tmp/err
            same "apply without root ends with" 4 $?
            says "apply says why" "only root"
            su -s /bin/sh nobody -c "plumb policy heal ${D1} --journal /tmp/nobodys" >/tmp/out 2>/tmp/err
            info "heal without root ends with $?"
            su -s /bin/sh nobody -c "plumb policy plan off ${D1}" >/tmp/out 2>/tmp/err
            same "plan without root ends with" 4 $?

            # Another disk has the name now.
            host=$(basename $(readlink -f /sys/block/$(kname $D1)/device) | cut -d: -f1)
            target=$(basename $(readlink -f /sys/block/$(kname $D2)/device) | cut -d: -f3)
            first=$(basename $(readlink -f /sys/block/$(kname $D1)/device) | cut -d: -f3)
            detach $D1
            detach $D2
            echo "0 $target 0" >/sys/class/scsi_host/host$host/scan
            wait_for "the other disk" [ -b $D1 ]
            same "the name belongs to the other disk" r-b "$(serial_of $(kname $D1))"
            refused "has that name now" apply /tmp/a.plan --journal /tmp/journals
            # The disk is gone.
            detach $D1
            refused "there is no" apply /tmp/a.plan --journal /tmp/journals
            echo "0 $first 0" >/sys/class/scsi_host/host$host/scan
            echo "0 $target 0" >/sys/class/scsi_host/host$host/scan
            wait_for "both disks" [ -b $D2 ]
            find /tmp/journals /tmp/nobodys -mindepth 1 ! -name lock >/tmp/left 2>/dev/null
            same "no journal was begun" "" "$(tr '\n' ' ' </tmp/left)"
            for name in r-a r-b r-lun r-raid; do drive_cache "nothing was changed" on $name; done
        "#,
        ..Scenario::PLAIN
    },
];
