//! What mkfs and its like leave is found, by the tools that are installed here. It guards against a table that only
//! agrees with itself.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Command;

use plumb_targets::signature::{FileSource, find};

use crate::support::alone;

/// The names of what is in a file of `mib` MiB after `command`, in which `{}` stands for the file; `None` if the
/// command is not here or fails.
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
    Some(names(&path))
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
    finds(16, &["mke2fs", "-q", "-F", "-O", "journal_dev", "{}"], "ext4 journal");
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
        // The protective MBR is a partition table, too.
        assert_eq!(found, ["GPT", "MBR partitions"]);
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
