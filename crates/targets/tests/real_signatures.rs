//! Tests that the signatures of mkfs and similar tools are found, with the tools installed here. Guards
//! against a table that only agrees with itself.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Command;

use plumb_guard::signature::{FileSource, find};

use crate::support::alone;

/// Returns the names of the signatures in a file of `mib` MiB after `command`, in which `{}` stands for the
/// file; `None` if the command is missing or fails.
fn made_with(mib: u64, command: &[&str]) -> Option<Vec<&'static str>> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    File::create(&path).unwrap().set_len(mib << 20).unwrap();
    let place = path.display().to_string();
    let arguments = command[1..].iter().map(|word| if *word == "{}" { place.as_str() } else { word });
    let _alone = alone();
    let output = match Command::new(command[0]).args(arguments).output() {
        Ok(output) => output,
        Err(error) => {
            plumb_testkit::skip(&format!("{}: {error}", command[0]));
            return None;
        }
    };
    if !output.status.success() {
        plumb_testkit::skip(&format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()));
        return None;
    }
    let found = names(&path);
    agrees_with_blkid(&path, &found);
    Some(found)
}

/// Names that blkid(8) gives to the kinds whose tools may be installed.
const CALLED: [(&str, &str); 35] = [
    ("ext2", "ext2"),
    ("ext3", "ext3"),
    ("ext4", "ext4"),
    ("an ext4 journal", "jbd"),
    ("xfs", "xfs"),
    ("btrfs", "btrfs"),
    ("swap space", "swap"),
    ("LUKS", "crypto_LUKS"),
    ("MBR partitions", "dos"),
    ("a boot sector", "dos"),
    ("a GPT", "gpt"),
    ("bcache", "bcache"),
    ("f2fs", "f2fs"),
    ("FAT", "vfat"),
    ("exFAT", "exfat"),
    ("NTFS", "ntfs"),
    ("JFS", "jfs"),
    ("NILFS2", "nilfs2"),
    ("ReiserFS", "reiserfs"),
    ("erofs", "erofs"),
    ("minix", "minix"),
    ("SCO bfs", "bfs"),
    ("cramfs", "cramfs"),
    ("squashfs", "squashfs"),
    ("UDF", "udf"),
    ("ISO 9660", "iso9660"),
    ("Sun partitions", "sun"),
    ("SGI partitions", "sgi"),
    ("a BSD disk label", "bsd"),
    ("Atari partitions", "atari"),
    ("Apple partition map", "mac"),
    ("BeFS", "befs"),
    ("NSS", "nss"),
    ("UBI", "ubi"),
    ("UBIFS", "ubifs"),
];

/// Compares our name with that of blkid(8), if it is installed and finds a single kind.
fn agrees_with_blkid(path: &Path, found: &[&'static str]) {
    let Ok(output) = Command::new("blkid").args(["-p", "-o", "export"]).arg(path).output() else {
        return plumb_testkit::skip("there is no blkid here");
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let said = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
    // Next to a file system it may take the end of a boot sector for a partition table.
    if let Some(theirs) = said("TYPE=").or_else(|| said("PTTYPE=")) {
        let ours: Vec<&str> =
            CALLED.iter().filter(|(_, called)| *called == theirs).map(|(name, _)| *name).collect();
        assert!(ours.iter().any(|ours| found.contains(ours)), "blkid says {theirs}, and plumb {found:?}");
    }
}

fn names(path: &Path) -> Vec<&'static str> {
    let file = File::open(path).unwrap();
    let size = file.metadata().unwrap().len();
    let source = FileSource { file: file.as_fd(), size };
    find(&source).unwrap().iter().map(|found| found.name).collect()
}

fn finds(mib: u64, command: &[&str], expected: &str) {
    if let Some(found) = made_with(mib, command) {
        assert_eq!(found, [expected], "{command:?}");
    }
}

#[test]
fn file_systems_of_the_ext_family() {
    finds(16, &["mkfs.ext4", "-q", "-F", "{}"], "ext4");
    finds(16, &["mkfs.ext3", "-q", "-F", "{}"], "ext3");
    finds(16, &["mkfs.ext2", "-q", "-F", "{}"], "ext2");
    finds(16, &["mke2fs", "-q", "-F", "-O", "journal_dev", "{}"], "an ext4 journal");
}

#[test]
fn xfs() {
    finds(400, &["mkfs.xfs", "-q", "{}"], "xfs");
}

#[test]
fn btrfs() {
    finds(200, &["mkfs.btrfs", "-q", "{}"], "btrfs");
}

#[test]
fn swap_space() {
    finds(4, &["mkswap", "-q", "{}"], "swap space");
    finds(4, &["mkswap", "-q", "-p", "65536", "{}"], "swap space");
}

#[test]
fn encrypted_volumes() {
    let format = ["--batch-mode", "--key-file", "/etc/hostname", "--pbkdf-force-iterations"];
    let luks1 = [&["cryptsetup", "luksFormat", "--type", "luks1"][..], &format, &["1000", "{}"]].concat();
    let luks2 = ["--pbkdf", "pbkdf2", "1000", "{}"];
    let luks2 =
        [&["cryptsetup", "luksFormat", "--type", "luks2"][..], &luks2[..2], &format, &luks2[2..]].concat();
    finds(32, &luks1, "LUKS");
    finds(32, &luks2, "LUKS");
}

#[test]
fn partition_tables() {
    finds(16, &["sh", "-c", "echo 'label: dos\n,' | sfdisk -q $0", "{}"], "MBR partitions");
    if let Some(found) = made_with(16, &["sh", "-c", "echo 'label: gpt\n,' | sfdisk -q $0", "{}"]) {
        // The protective MBR is also a partition table.
        assert_eq!(found, ["a GPT", "MBR partitions"]);
    }
}

#[test]
fn others_that_may_be_here() {
    finds(64, &["make-bcache", "-C", "{}"], "bcache");
    finds(64, &["mkfs.f2fs", "-q", "{}"], "f2fs");
    finds(16, &["mkfs.vfat", "{}"], "FAT");
    finds(16, &["mkfs.exfat", "{}"], "exFAT");
    finds(16, &["mkfs.ntfs", "-F", "-Q", "{}"], "NTFS");
    finds(16, &["mkfs.jfs", "-q", "{}"], "JFS");
    finds(160, &["mkfs.nilfs2", "-q", "{}"], "NILFS2");
    finds(64, &["mkfs.reiserfs", "-q", "-ff", "{}"], "ReiserFS");
    finds(16, &["mkfs.erofs", "{}", "/etc/default"], "erofs");
    finds(16, &["mkfs.minix", "-1", "{}"], "minix");
    finds(16, &["mkfs.minix", "-2", "{}"], "minix");
    finds(16, &["mkfs.minix", "-3", "{}"], "minix");
    finds(16, &["mkfs.bfs", "{}"], "SCO bfs");
    finds(16, &["mkfs.cramfs", "/etc/default", "{}"], "cramfs");
    finds(16, &["mksquashfs", "/etc/default", "{}", "-noappend", "-quiet"], "squashfs");
    finds(16, &["mkudffs", "{}"], "UDF");
    finds(16, &["mkudffs", "--media-type=hd", "--blocksize=512", "{}"], "UDF");
    finds(16, &["mkudffs", "--media-type=hd", "--blocksize=4096", "{}"], "UDF");
    finds(16, &["genisoimage", "-quiet", "-o", "{}", "/etc/default"], "ISO 9660");
    finds(16, &["genisoimage", "-quiet", "-udf", "-allow-limited-size", "-o", "{}", "/etc/default"], "UDF");
}

#[test]
fn partition_tables_of_other_machines() {
    let labelled = |label: &str, expected: &str| {
        finds(64, &["parted", "-s", "{}", "mklabel", label], expected);
    };
    labelled("sun", "Sun partitions");
    labelled("dvh", "SGI partitions");
    labelled("bsd", "a BSD disk label");
    labelled("mac", "Apple partition map");
    // An empty partition table.
    labelled("msdos", "a boot sector");
    finds(
        64,
        &["parted", "-s", "{}", "mklabel", "atari", "mkpart", "primary", "1MiB", "20MiB"],
        "Atari partitions",
    );
}

/// Returns an image of 8 MiB that contains `parts`.
fn image(parts: &[(u64, &[u8])]) -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    let file = File::create(&path).unwrap();
    file.set_len(8 << 20).unwrap();
    for (at, bytes) in parts {
        std::os::unix::fs::FileExt::write_all_at(&file, bytes, *at).unwrap();
    }
    (directory, path)
}

#[test]
fn what_blkid_knows_without_a_tool_to_make_it_is_called_the_same() {
    let end = 8_u64 << 20;
    let checked = |parts: &[(u64, &[u8])], theirs: &str, ours: &str| {
        let (_directory, path) = image(parts);
        assert_eq!(names(&path), [ours]);
        let _alone = alone();
        let Ok(output) = Command::new("blkid").args(["-p", "-o", "export"]).arg(&path).output() else {
            return plumb_testkit::skip("there is no blkid here");
        };
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(&format!("TYPE={theirs}\n")), "{ours}: {text}");
    };
    checked(&[(end - 512, b"JM")], "jmicron_raid_member", "a JMicron RAID member");
    checked(&[(end - 11 * 512, &[0xf3, 0x16, 0x78, 0x5a])], "hpt45x_raid_member", "a HighPoint RAID member");
    checked(&[(9 * 512 + 32, &[0xf0, 0x16, 0x78, 0x5a])], "hpt37x_raid_member", "a HighPoint RAID member");
    let adaptec: &[(u64, &[u8])] = &[(end - 512, &[0x37, 0xfc, 0x4d, 0x1e]), (end - 512 + 0x100, b"DPTM")];
    checked(adaptec, "adaptec_raid_member", "an Adaptec RAID member");
    let promise: &[(u64, &[u8])] = &[(end - 399 * 512, b"Promise Technology, Inc.")];
    checked(promise, "promise_fasttrack_raid_member", "a Promise RAID member");
    checked(&[(end - 512, &[0x55, 0xaa, 1])], "via_raid_member", "a VIA RAID member");
    // The sum of all words up to this one is 0x2f00, so 0xd100 makes it zero.
    let silicon: &[(u64, &[u8])] =
        &[(end - 512 + 0x60, &[0, 0, 0, 0x2f]), (end - 512 + 0x13e, &[0x00, 0xd1])];
    checked(silicon, "silicon_medley_raid_member", "a Silicon Image RAID member");
    checked(&[(0, b"UBI#\x01")], "ubi", "UBI");
}

#[test]
fn copies_far_behind_are_found() {
    let directory = tempfile::tempdir().unwrap();
    for at in [64_u64 << 20, 256 << 30] {
        let path = directory.path().join(at.to_string());
        let file = File::create(&path).unwrap();
        if let Err(error) = file.set_len(at + (1 << 20)) {
            return plumb_testkit::skip(&format!("no sparse file of {at} bytes: {error}"));
        }
        std::os::unix::fs::FileExt::write_all_at(&file, b"_BHRfS_M", at + 0x40).unwrap();
        assert_eq!(names(&path), ["btrfs"]);
    }
}
