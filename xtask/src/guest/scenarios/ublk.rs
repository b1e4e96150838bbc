//! Drives of `plumb drive serve --ublk` inside the guest: what reaches the drive, and what becomes of a block device whose
//! server is killed. The guest judges by itself; a check that fails ends the scenario.

use crate::guest::scenario::{Expected, Scenario};

/// What the scenarios share. `serve NAME ARGUMENTS` sets `server` and `device`; a plumb without ublk is no failure.
macro_rules! with_server {
    ($script:literal) => {
        concat!(
            r#"
            command -v plumb >/dev/null || skip "a plumb is needed: give --plumb"
            plumb drive serve --help | grep -q -e --ublk || skip "this plumb was built without ublk"

            serve() {
                name=$1
                shift
                : >"/tmp/$name.json"
                plumb drive serve consumer-nvme-ssd --size 64M --name "$name" --ublk --json "$@" \
                    >"/tmp/$name.json" 2>"/tmp/$name.err" &
                server=$!
                tries=0
                until grep -q '^}' "/tmp/$name.json"; do
                    tries=$((tries + 1))
                    if [ $tries -gt 400 ] || ! kill -0 $server; then
                        cat "/tmp/$name.err"
                        return 1
                    fi
                    usleep 50000
                done
                device=$(sed -n 's/.*"device": "\(.*\)".*/\1/p' "/tmp/$name.json")
                number=${device#/dev/ublkb}
                [ -b "$device" ]
            }
            count() { plumb drive status "$1" --json | sed -n "s/.*\"$2\": \([0-9a-z]*\).*/\1/p"; }
            # The flushes that the block layer counts as done.
            handed() { awk -v name="${device#/dev/}" '$3 == name { print $19 }' /proc/diskstats; }
            kill_server() {
                kill -9 $server
                wait $server || true
            }
            refused() {
                code=$1 word=$2
                shift 2
                status=0
                "$@" >/tmp/refused 2>&1 || status=$?
                cat /tmp/refused
                [ $status = "$code" ]
                grep -q -e "$word" /tmp/refused
            }
            nothing_left() { [ -z "$(ls /dev | grep '^ublk[bc]')" ] && [ -z "$(ls /run/plumb/ublk)" ]; }
            mkdir -p /mnt/t
            "#,
            $script
        )
    };
}

const PLAIN: Scenario = Scenario {
    modules: &["ext4", "ublk_drv"],
    // What a scenario that broke off has left is not the next one's.
    after: "killall -9 plumb; rm -f /tmp/*.medium; mkdir -p /mnt/t",
    target: "/tmp",
    syncs: 0,
    expected: Expected::NO_DRIVE,
    ..Scenario::PLAIN
};

/// In the order of the run.
pub(super) const ALL: &[Scenario] = &[
    Scenario {
        name: "ublk-flushes",
        about: "a simulated drive over ublk: each sync of the device is one flush at the drive, FUA arrives as such",
        setup: with_server!(
            r#"
            rmmod ublk_drv
            refused 5 'modprobe ublk_drv' plumb drive serve null --ublk
            insmod /modules/ublk_drv.ko
            serve a
            for at in 0 1 2 3 4 5 6 7; do
                [ "$at" != 0 ] || before=$(count a flushes)
                dd if=/dev/urandom of="$device" bs=4k count=1 seek=$at conv=fsync,notrunc
            done
            echo "8 syncs: $(($(count a flushes) - before)) flushes at the drive"
            [ $(($(count a flushes) - before)) = 8 ]
            [ "$(cat /sys/block/${device#/dev/}/queue/write_cache)" = "write back" ]
            [ "$(cat /sys/block/${device#/dev/}/queue/fua)" = 1 ]

            ext4_on "$device"
            written=/mnt/t/written
            write_synced
            sync
            at_drive=$(count a flushes) in_kernel=$(handed) fua=$(count a fua_writes)
            for at in 1 2 3 4 5 6 7 8; do write_synced; done
            at_drive=$(($(count a flushes) - at_drive)) in_kernel=$(($(handed) - in_kernel))
            echo "ext4, 8 syncs: $at_drive flushes at the drive, $in_kernel in the block layer," \
                "$(($(count a fua_writes) - fua)) FUA writes"
            [ $at_drive -ge 8 ] && [ $at_drive = $in_kernel ]

            refused 4 'mounted at /mnt/t' plumb drive detach a
            umount /mnt/t
            fsck.ext4 -fn "$device"
            plumb drive detach a
            wait $server
            nothing_left
            "#
        ),
        ..PLAIN
    },
    Scenario {
        name: "ublk-recovery",
        about: "the server is killed in the middle of writes, twice, and taken over: nothing acknowledged is lost",
        setup: with_server!(
            r#"
            serve b --wce off --backing /tmp/b.medium
            ext4_on "$device"
            mkdir -p /tmp/source
            rm -f /tmp/done /tmp/acknowledged
            writer() {
                file=0
                while [ ! -e /tmp/done ]; do
                    file=$((file + 1))
                    dd if=/dev/urandom of=/tmp/source/$1-$file bs=20k count=1 2>/dev/null
                    dd if=/tmp/source/$1-$file of=/mnt/t/$1-$file bs=20k conv=fsync 2>/dev/null
                    echo $1-$file >>/tmp/acknowledged
                done
            }
            writers=
            set +x
            for writer in 1 2 3; do
                writer $writer &
                writers="$writers $!"
            done
            set -x
            so_far() { wc -l </tmp/acknowledged; }
            more_than() {
                tries=0
                until [ "$(so_far)" -gt "$1" ]; do
                    tries=$((tries + 1))
                    [ $tries -lt 400 ] || return 1
                    usleep 50000
                done
            }
            : >>/tmp/acknowledged
            for death in 1 2; do
                more_than $(($(so_far) + 10))
                kill_server
                held=$(so_far)
                usleep 700000
                echo "death $death: $held acknowledged, $(cat /sys/block/${device#/dev/}/inflight) in flight"
                [ $(($(so_far) - held)) -le 3 ]
                refused 4 'taken over' plumb drive serve consumer-nvme-ssd --size 32M --backing /tmp/c.medium --ublk --recover $number
                serve b --wce off --backing /tmp/b.medium --recover $number
                cat /tmp/b.err
                [ "$(count b latched)" = false ]
            done
            more_than $(($(so_far) + 10))
            touch /tmp/done
            wait $writers
            umount /mnt/t
            fsck.ext4 -fn "$device"
            mount -t ext4 -o ro "$device" /mnt/t
            set +x
            for file in $(cat /tmp/acknowledged); do cmp /tmp/source/$file /mnt/t/$file; done
            set -x
            echo "$(so_far) files are as they were acknowledged"
            umount /mnt/t
            kill -TERM $server
            wait $server
            nothing_left
            rm -rf /tmp/source
            "#
        ),
        ..PLAIN
    },
    Scenario {
        name: "ublk-lost-cache",
        about: "the server is killed with acknowledged writes in its cache: the next one lets no flush succeed; orphans are swept",
        setup: with_server!(
            r#"
            sync_device() { dd if=/dev/urandom of="$device" bs=4k count=1 conv=fsync,notrunc; }
            serve d --backing /tmp/d.medium
            sync_device
            kill_server
            serve d --backing /tmp/d.medium --recover $number
            [ "$(count d latched)" = false ]
            sync_device
            # Written back when it is closed, and not flushed.
            dd if=/dev/urandom of="$device" bs=64k count=4 conv=notrunc
            kill_server
            serve d --backing /tmp/d.medium --recover $number
            grep 'no flush will succeed' /tmp/d.err
            [ "$(count d latched)" = true ]
            refused 1 . sync_device
            kill -TERM $server
            status=0
            wait $server || status=$?
            cat /tmp/d.err
            [ $status = 5 ]
            nothing_left

            # In memory: the block device ends with its server. On a file: it waits, and is swept when nobody has it.
            serve e
            kill_server
            refused 4 'went with the process' plumb drive serve consumer-nvme-ssd --size 64M --ublk --recover $number
            serve f --backing /tmp/f.medium
            kill_server
            serve g
            [ "$(ls /dev | grep -c '^ublkb')" = 1 ]
            [ "$(ls /dev | grep -c '^ublkc')" = 1 ]
            plumb drive detach f
            plumb drive detach g
            wait $server
            nothing_left
            "#
        ),
        ..PLAIN
    },
];
