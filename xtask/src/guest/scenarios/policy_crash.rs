//! What survives: an apply that is killed is rolled back or brought to its end, and a policy that is to last is there again
//! after a power cycle, which is a QEMU that ends and another that starts with the same drives.

use crate::guest::disk::{Bus, Disk};
use crate::guest::scenario::Scenario;

/// In the order of the run.
pub(super) const ALL: &[Scenario] = &[
    Scenario {
        name: "policy-killed",
        about: "apply is killed at many records of its journal; rollback and resume put things right",
        disks: &[
            Disk::new(Bus::Ahci, "k-sata").wwn(0x5000_c500_0000_2001),
            Disk::new(Bus::VirtioScsi, "k-scsi").wwn(0x5000_c500_0000_2002),
            Disk::new(Bus::UsbStorage, "k-usb"),
            Disk::new(Bus::VirtioBlk, "k-vblk"),
            Disk::new(Bus::Nvme, "k-nvme"),
            Disk::new(Bus::VirtioScsi, "k-journal"),
        ],
        program: r#"
            # The journal is on a disk, so that each record takes its time.
            mkdir -p /mnt/journal
            ext4_on $D6 /mnt/journal
            all="$D1 $D2 $D3 $D4 $D5"
            policy 0 plan off $all --out /tmp/plan
            views() { for disk in $all; do view $disk; done | tr '\n' ' '; }
            caches() {
                for name in k-sata k-scsi k-usb k-vblk k-nvme; do drive_cache "$1" $2 $name; done
            }
            # Counts the records of a journal without starting anything.
            records() {
                found=0
                for log in /mnt/journal/*/journal.log; do
                    [ -e "$log" ] && while read -r line; do found=$((found + 1)); done <"$log"
                done
                return 0
            }
            before=$(views)
            killed=
            # Up to the record $1.
            kill_at() {
                rm -rf /mnt/journal/*-*
                plumb policy apply /tmp/plan --journal /mnt/journal >/tmp/out 2>/tmp/err &
                pid=$!
                records
                while [ $found -lt $1 ] && [ -d /proc/$pid ]; do records; done
                kill -KILL $pid 2>/dev/null
                wait $pid
                records
                killed="$killed $found"
            }
            for record in 1 2 4 7 11 16 22 29 37 46; do
                kill_at $record
                if [ $found -gt 0 ]; then
                    policy 0 rollback /mnt/journal/*-* --json
                    is "rolled back after $found records" '.ended == "complete"'
                fi
                same "after $found records and a rollback the kernel's views" "$before" "$(views)"
                caches "after $found records and a rollback" on
            done
            info "killed after these many records:$killed"
            differ "it was killed at different records" 1 "$(echo $killed | tr ' ' '\n' | sort -u | wc -l)"
            for record in 5 20 35; do
                kill_at $record
                policy 0 apply --resume /mnt/journal/*-* --json
                is "resumed after $found records" '.ended == "complete"'
                caches "after $found records and a resume" off
                policy 0 rollback /mnt/journal/*-*
                same "and after the rollback" "$before" "$(views)"
            done
            # Killed while it goes back: another rollback ends it.
            kill_at 24
            plumb policy rollback /mnt/journal/*-* >/tmp/out 2>/tmp/err &
            pid=$!
            goal=$((found + 4))
            while [ $found -lt $goal ] && [ -d /proc/$pid ]; do records; done
            kill -KILL $pid 2>/dev/null
            wait $pid
            policy 0 rollback /mnt/journal/*-*
            same "after a rollback that was killed and another" "$before" "$(views)"
            caches "after a rollback that was killed and another" on
        "#,
        ..Scenario::PLAIN
    },
    Scenario {
        name: "policy-persist",
        about: "what is to last: requested, and after power cycles set by the udev rule, by the unit alone, and never called proven",
        disks: &[
            Disk::new(Bus::Ahci, "p-sata").wwn(0x5000_c500_0000_3001),
            Disk::new(Bus::VirtioScsi, "p-scsi").wwn(0x5000_c500_0000_3002),
            Disk::new(Bus::VirtioScsi, "p-plain"),
            Disk::new(Bus::UsbStorage, "p-usb"),
            Disk::new(Bus::VirtioBlk, "p-vblk"),
            Disk::new(Bus::Nvme, "p-nvme"),
            Disk::new(Bus::VirtioBlk, "p-root"),
        ],
        modules: &["ext4", "sd_mod", "scsi_debug add_host=0 num_tgts=26 dev_size_mb=8"],
        program: include_str!("../script/policy_persist.sh"),
        after: "umount /etc/plumb /etc/udev /etc/systemd /var/lib/plumb 2>/dev/null; umount /mnt/root; rmmod scsi_debug",
        ..Scenario::PLAIN
    },
];
