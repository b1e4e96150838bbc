//! What is beside a disk, or goes away beside it: a mirror that is written and seldom read, a drive that is pulled out between
//! plan and apply, a namespace behind two controllers.

use crate::guest::disk::{Bus, Disk};
use crate::guest::scenario::Scenario;

/// In the order of the run.
pub(super) const ALL: &[Scenario] = &[
    Scenario {
        name: "policy-write-mostly",
        about: "an array with a write-mostly member: both are switched, and flushes reach both",
        disks: &[
            Disk::new(Bus::VirtioScsi, "w-a").wwn(0x5000_c500_0000_4001),
            Disk::new(Bus::VirtioScsi, "w-b").wwn(0x5000_c500_0000_4002),
        ],
        modules: &["ext4", "raid1"],
        program: r#"
            must mdadm --create /dev/md0 --quiet --run --assume-clean --level=1 --raid-devices=2 $D1 --write-mostly $D2
            same "the second member is" write_mostly "$(grep -o write_mostly /sys/block/md0/md/dev-$(kname $D2)/state)"
            steady /dev/md0
            ext4_on /dev/md0
            same "flushes of the array at the member that is mostly written" $SYNCS "$(flushes w-b /mnt/t/before)"
            policy 0 plan off $D1 $D2 --out /tmp/plan --json
            is "no two members are in one wave" '[.changes[].wave] | (unique | length) == 2'
            policy 0 apply /tmp/plan --journal /tmp/journals --json
            is "both are verified" '.ended == "complete" and (.disks | length == 2 and all(.result == "verified"))'
            for name in w-a w-b; do drive_cache "after apply" off $name; done
            same "flushes once there is no cache" 0 "$(flushes w-b /mnt/t/off)"
            policy 0 rollback /tmp/journals/*-* --json
            for name in w-a w-b; do drive_cache "after rollback" on $name; done
            for name in w-a w-b; do
                same "flushes of the array at $name after the rollback" $SYNCS "$(flushes $name /mnt/t/after)"
            done
        "#,
        ..Scenario::PLAIN
    },
    Scenario {
        name: "policy-unplugged",
        about: "a drive is pulled out between plan and apply: nothing is changed on any",
        disks: &[
            Disk::new(Bus::VirtioScsi, "u-a").wwn(0x5000_c500_0000_4003),
            Disk::new(Bus::VirtioScsi, "u-b").wwn(0x5000_c500_0000_4004),
        ],
        program: r#"
            policy 0 plan off $D1 $D2 --out /tmp/plan
            unplug u-b || bad "the host did not pull u-b out"
            wait_for "its absence" [ ! -e /sys/block/$(basename $D2) ]
            refused "there is no $(basename $D2) any more" apply /tmp/plan --journal /tmp/journals
            policy 1 verify /tmp/plan --json
            drive_cache "nothing was changed" on u-a
            find /tmp/journals -mindepth 1 ! -name lock >/tmp/left 2>/dev/null
            same "no journal was begun" "" "$(tr '\n' ' ' </tmp/left)"
            refused "no block device" plan off $D2
        "#,
        ..Scenario::PLAIN
    },
    Scenario {
        name: "policy-two-controllers",
        about: "an NVMe namespace behind two controllers, each with a setting of its own, is refused",
        disks: &[Disk::new(Bus::Nvme, "n-two").two_controllers()],
        program: r#"
            policy 0 show $D1 --json
            is "one disk is seen, by its head" ".devices | length == 1 and .[0].name == \"$(basename $D1)\""
            refused "reached over several controllers" plan off $D1
            says "both are named" "nvme[0-9]*, nvme[0-9]*"
            policy 4 plan off --all --json
            is "and so of all" '.refused | any(.reason | test("several controllers"))'
        "#,
        ..Scenario::PLAIN
    },
];
