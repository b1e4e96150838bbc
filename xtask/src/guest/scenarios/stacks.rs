//! Stacks of block devices on SCSI disks whose cache is on: dm, md, bcache, loop, multipath.

use crate::guest::disk::{Bus, Disk};
use crate::guest::scenario::{Expected, Scenario};

const A: Disk = Disk::new(Bus::VirtioScsi, "a");
const B: Disk = Disk::new(Bus::VirtioScsi, "b");
const C: Disk = Disk::new(Bus::VirtioScsi, "c");

/// In the order of the run.
pub(super) const ALL: &[Scenario] = &[
    Scenario {
        name: "dm-crypt",
        about: "ext4 on dm-crypt",
        disks: &[A],
        modules: &["ext4", "dm_crypt", "xts", "ecb"],
        setup: "
            head -c 32 /dev/zero >/tmp/key
            cryptsetup open --type plain --cipher aes-xts-plain64 --key-size 256 --key-file /tmp/key $D1 secret
            ext4_on /dev/mapper/secret
        ",
        expected: Expected::arrived(&["a"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "lvm-linear",
        about: "ext4 on a logical volume",
        disks: &[A],
        modules: &["ext4", "dm_mod"],
        setup: "
            vgcreate --quiet --yes vg $D1
            lvcreate --quiet --yes --wipesignatures n --zero n --extents 50%FREE --name data vg
            ext4_on /dev/vg/data
        ",
        expected: Expected::arrived(&["a"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "lvm-two-disks",
        about: "ext4 on a logical volume striped over two disks",
        disks: &[A, B],
        modules: &["ext4", "dm_mod"],
        setup: "
            vgcreate --quiet --yes vg $D1 $D2
            lvcreate --quiet --yes --wipesignatures n --zero n --stripes 2 --extents 100%FREE --name data vg
            ext4_on /dev/vg/data
        ",
        expected: Expected::arrived(&["a", "b"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "lvm-thin",
        about: "ext4 on a thin logical volume",
        disks: &[A],
        modules: &["ext4", "dm_mod", "dm_thin_pool"],
        setup: "
            vgcreate --quiet --yes vg $D1
            lvcreate --quiet --yes --type thin-pool --size 200M --name pool vg
            lvcreate --quiet --yes --virtualsize 150M --thinpool pool --name data vg
            ext4_on /dev/vg/data
        ",
        expected: Expected::arrived(&["a"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "md-raid1",
        about: "ext4 on an md mirror",
        disks: &[A, B],
        modules: &["ext4", "raid1"],
        setup: "
            mdadm --create /dev/md0 --quiet --run --assume-clean --level=1 --raid-devices=2 $D1 $D2
            ext4_on /dev/md0
        ",
        expected: Expected::arrived(&["a", "b"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "md-raid5",
        about: "ext4 on md RAID 5",
        disks: &[A, B, C],
        modules: &["ext4", "raid456"],
        setup: "
            mdadm --create /dev/md0 --quiet --run --assume-clean --level=5 --raid-devices=3 $D1 $D2 $D3
            ext4_on /dev/md0
        ",
        expected: Expected::arrived(&["a", "b", "c"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "md-raid1-partitions",
        about: "ext4 on an md mirror of partitions",
        disks: &[A, B],
        modules: &["ext4", "raid1"],
        setup: r"
            for disk in $D1 $D2; do printf 'n\np\n1\n\n+200M\nn\np\n2\n\n\nw\n' | fdisk $disk; done
            mdadm --create /dev/md0 --quiet --run --assume-clean --level=1 --raid-devices=2 ${D1}2 ${D2}2
            ext4_on /dev/md0
        ",
        expected: Expected::arrived(&["a", "b"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "lvm-on-crypt-on-md",
        about: "ext4 on a logical volume on dm-crypt on an md mirror: an ordinary server",
        disks: &[A, B],
        modules: &["ext4", "raid1", "dm_crypt", "xts", "ecb"],
        setup: "
            mdadm --create /dev/md0 --quiet --run --assume-clean --level=1 --raid-devices=2 $D1 $D2
            head -c 32 /dev/zero >/tmp/key
            cryptsetup open --type plain --cipher aes-xts-plain64 --key-size 256 --key-file /tmp/key /dev/md0 secret
            vgcreate --quiet --yes vg /dev/mapper/secret
            lvcreate --quiet --yes --wipesignatures n --zero n --extents 50%FREE --name data vg
            ext4_on /dev/vg/data
        ",
        expected: Expected::arrived(&["a", "b"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "lvm-snapshot",
        about: "ext4 on a logical volume that has a snapshot",
        disks: &[A],
        modules: &["ext4", "dm_mod", "dm_snapshot"],
        setup: "
            vgcreate --quiet --yes vg $D1
            lvcreate --quiet --yes --wipesignatures n --zero n --size 200M --name data vg
            lvcreate --quiet --yes --snapshot --size 50M --name before vg/data
            ext4_on /dev/vg/data
        ",
        expected: Expected::arrived(&["a"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "dm-cache",
        about: "ext4 on dm-cache, writethrough: origin a, cache b",
        disks: &[A, B],
        modules: &["ext4", "dm_mod", "dm_cache", "dm_cache_smq"],
        setup: r#"
            dm metadata "0 32768 linear $D2 0"
            dm fast "0 262144 linear $D2 32768"
            dd if=/dev/zero of=/dev/mapper/metadata bs=4k count=1 conv=fsync
            pair="/dev/mapper/metadata /dev/mapper/fast"
            dm cached "0 $(sectors $D1) cache $pair $D1 512 1 writethrough smq 0"
            ext4_on /dev/mapper/cached
        "#,
        expected: Expected::arrived(&["a"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "dm-cache-writeback",
        about: "ext4 on dm-cache, writeback: origin a, cache b",
        disks: &[A, B],
        modules: &["ext4", "dm_mod", "dm_cache", "dm_cache_smq"],
        setup: r#"
            dm metadata "0 32768 linear $D2 0"
            dm fast "0 262144 linear $D2 32768"
            dd if=/dev/zero of=/dev/mapper/metadata bs=4k count=1 conv=fsync
            pair="/dev/mapper/metadata /dev/mapper/fast"
            dm cached "0 $(sectors $D1) cache $pair $D1 512 1 writeback smq 0"
            ext4_on /dev/mapper/cached
        "#,
        expected: Expected::arrived(&["b"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "dm-writecache",
        about: "ext4 on dm-writecache: origin a, cache b",
        disks: &[A, B],
        modules: &["ext4", "dm_mod", "dm_writecache"],
        setup: r#"
            dm fast "0 131072 linear $D2 0"
            dm cached "0 $(sectors $D1) writecache s $D1 /dev/mapper/fast 4096 0"
            ext4_on /dev/mapper/cached
        "#,
        expected: Expected::arrived(&["b"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "bcache",
        about: "ext4 on bcache, writeback: backing a, cache b",
        disks: &[A, B],
        modules: &["ext4", "bcache"],
        setup: r#"
            make-bcache -B $D1 -C $D2 --writeback
            echo $D2 >/sys/fs/bcache/register
            echo $D1 >/sys/fs/bcache/register
            [ -b /dev/bcache0 ]
            ext4_on /dev/bcache0
        "#,
        expected: Expected::arrived(&["b"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "multipath",
        about: "ext4 on dm-multipath: two paths to one disk",
        disks: &[Disk::new(Bus::VirtioScsi, "lun"), Disk::new(Bus::VirtioScsi, "lun-path-2").path_to("lun")],
        modules: &["ext4", "dm_multipath", "dm_round_robin"],
        setup: r#"
            paths="round-robin 0 2 1 $D1 1 $D2 1"
            dm mpatha "0 $(sectors $D1) multipath 0 0 1 1 $paths" mpath-lun
            ext4_on /dev/mapper/mpatha
        "#,
        expected: Expected::arrived(&["lun"]),
        ..Scenario::PLAIN
    },
    Scenario {
        name: "loop",
        about: "ext4 on a loop device over a file on ext4",
        disks: &[A],
        modules: &["ext4", "loop"],
        setup: "
            ext4_on $D1 /mnt/below
            truncate -s 200M /mnt/below/image
            losetup /dev/loop0 /mnt/below/image
            ext4_on /dev/loop0
        ",
        expected: Expected::arrived(&["a"]),
        ..Scenario::PLAIN
    },
];
