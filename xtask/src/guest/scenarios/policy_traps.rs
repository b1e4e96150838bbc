//! The traps, sprung on purpose, found by `plumb policy show` and healed by `plumb policy heal`. The drives count the
//! flushes of the same synced writes before the trap, in it, and after the heal.

use crate::guest::disk::{Bus, Disk};
use crate::guest::scenario::Scenario;

/// In the order of the run.
pub(super) const ALL: &[Scenario] = &[
    Scenario::running(
        "policy-h1",
        "H1 on SCSI and on SATA: cache_type \"temporary write through\"",
        &[Disk::new(Bus::VirtioScsi, "h1").wwn(0x5000_c500_0000_0001), Disk::new(Bus::Ahci, "h1-sata")],
        r#"
            spring() { echo "temporary write through" >$(cache_type $D1); }
            # On SCSI the kernel shows no difference between H1 and H3.
            trap_at h1 $D1 $D1 h3-stale-kernel-view $(kname $D1)
            spring() { echo "temporary write through" >$(cache_type $D2); }
            trap_at h1-sata $D2 $D2 h1-temporary-write-through $(kname $D2)
        "#,
    ),
    Scenario::running(
        "policy-h2",
        "H2 on SCSI, NVMe and virtio-blk: the queue says write through",
        &[
            Disk::new(Bus::VirtioScsi, "h2"),
            Disk::new(Bus::Nvme, "h2-nvme"),
            Disk::new(Bus::VirtioBlk, "h2-vblk"),
        ],
        r#"
            spring() { echo "write through" >$(queue $D1); }
            trap_at h2 $D1 $D1 h2-queue-write-through $(kname $D1)
            # What a rescan and cache_type leave behind; 6.1 takes the queue's view back with them.
            spring() {
                echo "write through" >$(queue $D1)
                echo 1 >/sys/block/$(kname $D1)/device/rescan
                echo "write back" >$(cache_type $D1)
            }
            case $(uname -r) in
            6.1.*) ;;
            *) trap_at h2 $D1 $D1 h2-queue-write-through $(kname $D1) ;;
            esac
            spring() { echo "write through" >$(queue $D2); }
            trap_at h2-nvme $D2 $D2 h2-queue-write-through $(kname $D2)
            spring() { echo "write through" >$(queue $D3); }
            trap_at h2-vblk $D3 $D3 h2-queue-write-through $(kname $D3)
        "#,
    ),
    Scenario::running(
        "policy-h3",
        "H3: MODE SELECT switches the cache on, unseen by the kernel",
        &[Disk::new(Bus::VirtioScsi, "h3").wwn(0x5000_c500_0000_0003)],
        r#"
            spring() {
                echo "write through" >$(cache_type $D1)
                must sdparm --quiet --set=WCE $D1
            }
            trap_at h3 $D1 $D1 h3-stale-kernel-view $(kname $D1)
        "#,
    ),
    Scenario {
        name: "policy-h4",
        about: "H4: tables of dm that were loaded while the cache was off, under LVM, dm-crypt, a file system, and md",
        disks: &[
            Disk::new(Bus::VirtioScsi, "h4"),
            Disk::new(Bus::VirtioScsi, "h4-a"),
            Disk::new(Bus::VirtioScsi, "h4-b"),
        ],
        modules: &["ext4", "dm_crypt", "xts", "ecb", "raid1"],
        program: r#"
            build() {
                head -c 32 /dev/zero >/tmp/key
                must vgcreate --quiet --yes vg $D1
                must lvcreate --quiet --yes --wipesignatures n --zero n --extents 100%FREE --name data vg
                must cryptsetup open --type plain --cipher aes-xts-plain64 --key-size 256 --key-file /tmp/key /dev/vg/data secret
                must dmsetup mknodes
                ext4_on /dev/mapper/secret
            }
            build
            lv=$(kname /dev/vg/data)
            crypt=$(kname /dev/mapper/secret)
            echo hello >/mnt/t/hello
            spring() {
                must umount /mnt/t
                must cryptsetup close secret
                must vgchange --quiet -an vg
                echo "write through" >$(cache_type $D1)
                must vgchange --quiet -ay vg
                must cryptsetup open --type plain --cipher aes-xts-plain64 --key-size 256 --key-file /tmp/key /dev/vg/data secret
                must dmsetup mknodes
                lv=$(kname /dev/vg/data)
                crypt=$(kname /dev/mapper/secret)
                must mount -t ext4 /dev/mapper/secret /mnt/t
                echo "write back" >$(cache_type $D1)
            }
            # Both are found; the lower one by its name.
            trap_at h4 $D1 /mnt/t/written h4-stale-dm-table $lv
            same "the dm-crypt device says" "write back" "$(cat $(queue $crypt))"
            dmsetup table --showkeys secret >/tmp/table
            same "the key is still in the table of dm-crypt" 1 "$(grep -c "$(head -c 32 /dev/zero | od -An -v -tx1 | tr -d ' \n')" /tmp/table)"
            must umount /mnt/t
            must mount -t ext4 /dev/mapper/secret /mnt/t
            same "the file system is whole" hello "$(cat /mnt/t/hello)"
            must umount /mnt/t

            # An array over two dm devices: both are loaded again, and flushes reach both drives.
            for one in "$D2 a" "$D3 b"; do
                set -- $one
                dm leg-$2 "0 $(sectors $1) linear $1 0"
            done
            must mdadm --create /dev/md0 --quiet --run --assume-clean --level=1 --raid-devices=2 /dev/mapper/leg-a /dev/mapper/leg-b
            steady /dev/md0
            before_a=$(flushes h4-a /dev/md0)
            before_b=$(flushes h4-b /dev/md0)
            must mdadm --quiet --stop /dev/md0
            must dmsetup remove --noudevsync leg-a
            must dmsetup remove --noudevsync leg-b
            for one in "$D2 a" "$D3 b"; do
                set -- $one
                echo "write through" >$(cache_type $1)
                dm leg-$2 "0 $(sectors $1) linear $1 0"
            done
            must mdadm --assemble --quiet --run /dev/md0 /dev/mapper/leg-a /dev/mapper/leg-b
            steady /dev/md0
            for disk in $D2 $D3; do echo "write back" >$(cache_type $disk); done
            same "flushes at the first member in the trap" 0 "$(flushes h4-a /dev/md0)"
            trapped h4-stale-dm-table $D2 $(kname /dev/mapper/leg-a)
            trapped h4-stale-dm-table $D3 $(kname /dev/mapper/leg-b)
            policy 0 heal --all --journal /tmp/journals
            same "flushes at the first member after the heal" "$before_a" "$(flushes h4-a /dev/md0)"
            same "flushes at the second member after the heal" "$before_b" "$(flushes h4-b /dev/md0)"
            policy 0 heal --all --journal /tmp/journals
        "#,
        ..Scenario::PLAIN
    },
    Scenario {
        name: "policy-h5",
        about: "H5: dm over a disk whose queue is set to write through",
        disks: &[Disk::new(Bus::VirtioScsi, "h5")],
        modules: &["dm_mod"],
        program: r#"
            dm h5 "0 $(sectors $D1) linear $D1 0"
            spring() {
                must dmsetup remove --noudevsync h5
                echo "write through" >$(queue $D1)
                dm h5 "0 $(sectors $D1) linear $D1 0"
            }
            # On 6.1 the dm device says write through like its disk, and what is wrong is the disk alone.
            case $(uname -r) in
            6.1.*) set -- h2-queue-write-through $(kname $D1) ;;
            *) set -- h5-dm-over-disabled-queue $(kname /dev/mapper/h5) ;;
            esac
            trap_at h5 $D1 /dev/mapper/h5 $1 $2
        "#,
        ..Scenario::PLAIN
    },
    Scenario::running(
        "policy-h7",
        "H7: NVMe feature 06h off; flushes go on, in vain",
        &[Disk::new(Bus::Nvme, "h7")],
        r#"
            before=$(flushes h7 $D1)
            must nvme set-feature ${D1%n1} --feature-id=6 --value=0
            policy 0 show $D1 --json
            is "h7-nvme-feature-hidden is found, and $(kname $D1) is named" \
                ".devices[0].findings | any(.id == \"h7-nvme-feature-hidden\" and (.sentence | contains(\"$(kname $D1)\")))"
            is "its state is off" '.devices[0].state == "off"'
            same "the kernel goes on flushing" "$before" "$(flushes h7 $D1)"
            policy 0 heal $D1 --journal /tmp/journals
            must nvme set-feature ${D1%n1} --feature-id=6 --value=1
            sound $D1 on
        "#,
    ),
    Scenario {
        name: "policy-h8",
        about: "H8: a write-protected disk, where the kernel would turn the cache off when told to turn it on",
        modules: &["sd_mod", "scsi_debug wp=1 dev_size_mb=8"],
        program: r#"
            disk=$(debug_disks)
            policy 1 show $disk --json
            is "h8-write-protected is found, and $(kname $disk) is named" \
                ".devices[0].findings | any(.id == \"h8-write-protected\" and (.sentence | contains(\"$(kname $disk)\")))"
            for state in on off; do
                refused "write-protected" plan $state $disk --out /tmp/wp-$state.plan
                refused "write-protected" apply /tmp/wp-$state.plan --journal /tmp/journals
            done
            plumb policy heal $disk --journal /tmp/journals >/tmp/out 2>/tmp/err
            info "heal of a write-protected disk ends with $?"
            policy 1 show $disk --json
            is "its cache is still on" '.devices[0].device.wce'
        "#,
        after: "rmmod scsi_debug",
        ..Scenario::PLAIN
    },
    Scenario::running(
        "policy-h9",
        "H9: a MegaRAID logical disk, whose driver keeps flushes",
        &[Disk::new(Bus::Megasas, "h9")],
        r#"
            same "flushes that arrive" 0 "$(flushes h9 $D1)"
            trapped h9-driver-swallows-flush $D1 megaraid_sas
            is "its transport is raid" '.devices[0].transport == "raid"'
            for state in on off; do
                refused "logical disk of a RAID controller" plan $state $D1 --out /tmp/raid-$state.plan
                refused "logical disk of a RAID controller" apply /tmp/raid-$state.plan --journal /tmp/journals
            done
            refused "RAID" persist $D1
            drive_cache "nothing was changed" on h9
        "#,
    ),
    Scenario::running(
        "policy-protected",
        "the state protected: only on somebody's word, and no trap while that counts",
        &[Disk::new(Bus::VirtioScsi, "word").wwn(0x5000_c500_0000_0009)],
        r#"
            refused "survives a power cut" plan protected $D1
            policy 0 claim $D1 --by "the laboratory" --until 2099-01-01 --reason "there is no power to fail" --claims /tmp/claims.json
            policy 0 plan protected $D1 --out /tmp/protected.plan --claims /tmp/claims.json
            policy 0 apply /tmp/protected.plan --journal /tmp/journals --claims /tmp/claims.json
            same "flushes are suppressed" 0 "$(flushes word $D1)"
            drive_cache "its cache stays on" on word
            plumb policy show $D1 --json --claims /tmp/claims.json >/tmp/out 2>/tmp/err
            is "it is protected" '.devices[0].state == "protected" and .devices[0].protection.rank == "administrators-word"'
            policy 0 heal $D1 --journal /tmp/journals --claims /tmp/claims.json
            same "what is meant is not healed" 0 "$(flushes word $D1)"
            policy 0 rollback /tmp/journals/*-* --claims /tmp/claims.json
            same "flushes after the rollback" $SYNCS "$(flushes word $D1)"
            sound $D1 on
        "#,
    ),
];
