//! Tests of real file systems on an attached device: they are created, mounted, written and checked; an fsync
//! reaches the device as a flush, and freed space as a discard.

use std::fs::{self, File};
use std::io::Write as _;

use crate::attach_support::disk::Disk;
use crate::attach_support::{MountedFileSystem, Place, run};
use plumb_block::Bytes;

/// Programs that create and check a file system.
struct Tools {
    make: &'static [&'static str],
    check: &'static [&'static str],
}

fn works(tools: &Tools) {
    let Some(place) = Place::new() else { return };
    let disk = Disk::new(Bytes::mib(512));
    let mut attachment = place.attach(&disk, "file-system");
    let device = attachment.path().display().to_string();
    let with_device = |command: &[&'static str]| {
        let mut arguments = command[1..].to_vec();
        arguments.push(&device);
        run(command[0], &arguments)
    };
    if let Err(why) = with_device(tools.make) {
        return plumb_testkit::skip(&why);
    }
    assert!(disk.counts().discards > 0, "making the file system discarded nothing");
    let mounted = match MountedFileSystem::new(attachment.path()) {
        Ok(mounted) => mounted,
        Err(why) => return plumb_testkit::skip(&why),
    };
    let path = mounted.path().join("file");
    let content: Vec<u8> = (0..8_u32 << 20).map(|index| (index / 5) as u8).collect();
    let mut file = File::create(&path).unwrap();
    file.write_all(&content).unwrap();
    for round in 0..5 {
        file.write_all(&[round]).unwrap();
        let before = disk.counts().flushes;
        file.sync_all().unwrap();
        assert!(disk.counts().flushes > before, "fsync {round} did not reach the device");
    }
    drop(file);
    mounted.unmount().unwrap();
    with_device(tools.check).unwrap();

    let mounted = MountedFileSystem::new(attachment.path()).unwrap();
    let path = mounted.path().join("file");
    assert!(fs::read(&path).unwrap()[..content.len()] == content, "the file came back changed");
    fs::remove_file(&path).unwrap();
    File::open(mounted.path()).unwrap().sync_all().unwrap();
    let before = disk.counts().discards;
    run("fstrim", &[&mounted.path().display().to_string()]).unwrap();
    assert!(disk.counts().discards > before, "fstrim did not reach the device");
    mounted.unmount().unwrap();
    with_device(tools.check).unwrap();
    attachment.detach().unwrap();
    assert!(place.loop_devices().is_empty() && !place.has_mounts() && place.left().is_empty());
}

#[test]
fn ext4() {
    works(&Tools { make: &["mkfs.ext4", "-q"], check: &["e2fsck", "-fn"] });
}

#[test]
fn xfs() {
    works(&Tools { make: &["mkfs.xfs", "-q"], check: &["xfs_repair", "-n"] });
}

#[test]
fn btrfs() {
    works(&Tools { make: &["mkfs.btrfs", "-q"], check: &["btrfs", "check"] });
}
