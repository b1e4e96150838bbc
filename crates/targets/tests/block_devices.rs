//! Block devices: own loop devices, which takes root. Guards against the worst error of plumb, to overwrite a
//! disk in use.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::MutexGuard;

use crate::support::{alone, clock, destroy, nothing, open_path, overwrite, run, write_first_block};
use plumb_block::{Bytes, Outcome};
use plumb_linux::FileOptions;
use plumb_targets::{Intent, Kind, Name, Permission, TargetKind, TargetRequest, Time, open, open_all};
use plumb_testkit::loop_device::{LoopDevice, Mount};

/// Loop device on a file, used by one test at a time.
struct Bench {
    device: LoopDevice,
    backing: PathBuf,
    _directory: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Bench {
    /// Returns a device of `mib` MiB after `prepare` has run on its file. Prints a skip and returns `None` if
    /// that is impossible.
    fn new(mib: u64, prepare: &[&str], options: &[&str]) -> Option<Self> {
        let alone = alone();
        let directory = tempfile::tempdir().unwrap();
        let backing = directory.path().canonicalize().unwrap().join("backing");
        File::create(&backing).unwrap().set_len(mib << 20).unwrap();
        if let Some((program, arguments)) = prepare.split_first()
            && let Err(why) = run(program, &[arguments, &[backing.to_str().unwrap()]].concat())
        {
            plumb_testkit::skip(&why);
            return None;
        }
        let device = LoopDevice::over(&backing, options)?;
        Some(Self { device, backing, _directory: directory, _alone: alone })
    }

    /// Returns the contents of the device after writing them back.
    fn bytes(&self) -> Vec<u8> {
        File::open(self.device.as_path()).unwrap().sync_all().unwrap();
        fs::read(&self.backing).unwrap()
    }

    /// Returns the word for the device: its name and its backing file.
    fn word(&self) -> String {
        format!("{}={}", self.device.name, self.backing.display())
    }

    fn refusal(&self, permission: &Permission) -> String {
        let error = open_path(self.device.as_path(), Intent::WRITE, permission).unwrap_err();
        assert_eq!(error.kind(), Kind::Refused, "{error}");
        error.to_string()
    }
}

const EXT4: [&str; 3] = ["mkfs.ext4", "-q", "-F"];

#[test]
fn a_blank_device_needs_to_be_overwritten_and_is_claimed() {
    let Some(bench) = Bench::new(4, &[], &[]) else { return };
    assert!(bench.refusal(&nothing()).contains("--overwrite"));
    let read = open_path(bench.device.as_path(), Intent::READ, &nothing()).unwrap();
    assert_eq!((read.kind, read.size), (TargetKind::BlockDevice, Bytes::mib(4)));
    assert_eq!(read.identity, Some(bench.word()));
    let opened = open_path(bench.device.as_path(), Intent::WRITE, &overwrite()).unwrap();
    assert_eq!(write_first_block(&*opened.device), Outcome::Done);
    // Claimed: it cannot be opened otherwise until the last device on it is gone.
    assert!(bench.refusal(&overwrite()).contains("in use"));
    let again = opened.open_again(FileOptions::write_direct(), clock()).unwrap();
    assert_eq!(write_first_block(&*again), Outcome::Done);
    drop(opened);
    assert!(bench.refusal(&overwrite()).contains("in use"));
    drop(again);
    open_path(bench.device.as_path(), Intent::WRITE, &overwrite()).unwrap();
}

#[test]
fn one_device_for_several_jobs_is_claimed_once() {
    let Some(bench) = Bench::new(4, &[], &[]) else { return };
    let want = |options| TargetRequest {
        name: Name::parse(bench.device.as_path()).unwrap(),
        intent: Intent::WRITE,
        options,
    };
    let wanted = [want(FileOptions::write_direct()), want(FileOptions::write_buffered())];
    let opened = open_all(&wanted, &overwrite(), &Time::Real(clock())).unwrap();
    for one in &opened {
        assert_eq!(write_first_block(&*one.device), Outcome::Done);
    }
}

#[test]
fn a_file_system_that_is_not_mounted_is_refused_until_the_device_is_named() {
    let Some(bench) = Bench::new(16, &EXT4, &[]) else { return };
    let before = bench.bytes();
    for permission in [nothing(), overwrite()] {
        let said = bench.refusal(&permission);
        assert!(said.contains("it holds ext4") && said.contains(&bench.word()), "{said}");
    }
    for wrong in [&*bench.device.name, &bench.device.path, "loop"] {
        let said = bench.refusal(&destroy(wrong));
        assert!(said.contains("none of the targets"), "{said}");
    }
    assert!(bench.bytes() == before, "a refusal has changed the device");
    let opened = open_path(bench.device.as_path(), Intent::WRITE, &destroy(&bench.word())).unwrap();
    assert!(opened.notes.iter().any(|note| note.contains("it holds ext4")), "{:?}", opened.notes);
    assert_eq!(write_first_block(&*opened.device), Outcome::Done);
    drop(opened);
    assert!(plumb_block::Stamp::read(&bench.bytes()).is_some());
}

#[test]
fn a_mounted_file_system_is_refused_and_destroyed_only_as_typed() {
    let Some(bench) = Bench::new(16, &EXT4, &[]) else { return };
    let mount = match Mount::new(&[&bench.device.path]) {
        Ok(mount) => mount,
        Err(why) => return plumb_testkit::skip(&why),
    };
    let point = mount.point.path().display().to_string();
    run("sync", &["-f", &point]).unwrap();
    let before = bench.bytes();
    let said = bench.refusal(&overwrite());
    assert!(said.contains(&format!("is mounted at {point} (ext4)")) && said.contains("unmount"), "{said}");
    // The backing file is in use as well.
    let error = open_path(&bench.backing, Intent::WRITE, &overwrite()).unwrap_err();
    assert!(error.to_string().contains(&format!("behind {}", bench.device.name)), "{error}");
    assert!(bench.bytes() == before, "a refusal has changed the device");
    match open_path(bench.device.as_path(), Intent::WRITE, &destroy(&bench.word())) {
        Ok(opened) => assert!(opened.notes.iter().any(|note| note.contains("is mounted at")), "{opened:?}"),
        // A kernel may refuse that by itself (CONFIG_BLK_DEV_WRITE_MOUNTED).
        Err(error) => assert!(matches!(error.kind(), Kind::Os(_)), "{error}"),
    }
    let path = bench.backing.to_str().unwrap();
    drop(open_path(&bench.backing, Intent::WRITE, &destroy(path)).unwrap());
    drop(mount);
}

#[test]
fn active_swap_space_is_refused_whatever_is_typed() {
    let Some(bench) = Bench::new(16, &["mkswap", "-q"], &[]) else { return };
    let device = &bench.device.path;
    if let Err(why) = run("swapon", &[device]) {
        return plumb_testkit::skip(&why);
    }
    let said = [overwrite(), destroy(&bench.word())].map(|permission| {
        open_path(bench.device.as_path(), Intent::WRITE, &permission).map_err(|error| error.to_string())
    });
    run("swapoff", &[device]).unwrap();
    for said in said {
        let said = said.unwrap_err();
        assert!(said.contains("active swap") && said.contains("swapoff"), "{said}");
    }
    assert!(bench.refusal(&overwrite()).contains("it holds swap space"), "inactive, it is a signature");
}

#[test]
fn a_read_only_device_is_not_written() {
    let Some(bench) = Bench::new(4, &[], &["--read-only"]) else { return };
    assert!(bench.refusal(&destroy(&bench.word())).contains("read-only"));
    open_path(bench.device.as_path(), Intent::READ, &nothing()).unwrap();
}

#[test]
fn a_mounted_partition_protects_the_whole_disk() {
    let Some(bench) = Bench::new(16, &[], &["--partscan"]) else { return };
    // One partition of 14 MiB from 1 MiB on, with ext4 in it.
    let entry = [0_u8, 0, 0, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0x70, 0, 0];
    let disk = fs::OpenOptions::new().write(true).open(bench.device.as_path()).unwrap();
    let write = |bytes: &[u8], at| std::os::unix::fs::FileExt::write_all_at(&disk, bytes, at).unwrap();
    write(&entry, 446);
    write(&[0x55, 0xaa], 510);
    disk.sync_all().unwrap();
    drop(disk);
    // The kernel is told about the partition, since it may be built without support for such tables.
    if let Err(why) = run("addpart", &[&bench.device.path, "1", "2048", "28672"]) {
        return plumb_testkit::skip(&why);
    }
    let partition = PathBuf::from(format!("{}p1", bench.device.path));
    if !partition.exists() {
        return plumb_testkit::skip("no node for the partition of a loop device");
    }
    assert!(bench.refusal(&overwrite()).contains("MBR partitions"));
    run(EXT4[0], &[&EXT4[1..], &[partition.to_str().unwrap()]].concat()).unwrap();
    let error = open_path(&partition, Intent::WRITE, &overwrite()).unwrap_err();
    let word = format!("{}p1={}", bench.device.name, bench.backing.display());
    assert!(error.to_string().contains(&word), "{error}");
    let mount = Mount::new(&[partition.to_str().unwrap()]).unwrap();
    let said = bench.refusal(&overwrite());
    assert!(said.contains(&format!("{}p1 is mounted at", bench.device.name)), "{said}");
    drop(mount);
    let opened = open_path(&partition, Intent::WRITE, &destroy(&word)).unwrap();
    assert_eq!(write_first_block(&*opened.device), Outcome::Done);
}

#[test]
fn a_physical_volume_is_refused() {
    let Some(bench) = Bench::new(16, &[], &[]) else { return };
    let device = &bench.device.path;
    let only = format!("devices {{ filter = [ \"a|^{device}$|\", \"r|.*|\" ] use_devicesfile = 0 }}");
    if let Err(why) = run("pvcreate", &["--quiet", "--yes", "--config", &only, device]) {
        return plumb_testkit::skip(&why);
    }
    let before = bench.bytes();
    assert!(bench.refusal(&overwrite()).contains("an LVM2 physical volume"));
    assert!(bench.bytes() == before, "a refusal has changed the device");
}

#[test]
fn a_link_to_a_device_is_judged_as_the_device() {
    let Some(bench) = Bench::new(16, &EXT4, &[]) else { return };
    let link = bench.backing.with_file_name("by-id");
    std::os::unix::fs::symlink(bench.device.as_path(), &link).unwrap();
    let error = open_path(&link, Intent::WRITE, &overwrite()).unwrap_err();
    assert!(error.to_string().contains("it holds ext4"), "{error}");
    assert!(error.target().contains(&bench.device.name), "{error}");
}

#[test]
fn a_disk_by_number_is_opened_past_the_page_cache_and_its_mount_is_seen() {
    let name = Name::parse("#0").unwrap();
    let opened = match open(&name, Intent::READ, &nothing(), FileOptions::read_buffered(), &clock()) {
        Ok(opened) => opened,
        Err(error) => return plumb_testkit::skip(&error.to_string()),
    };
    assert!(opened.shown.starts_with("#0 (/dev/"), "{}", opened.shown);
    assert!(opened.notes.iter().any(|note| note.contains("past the page cache")), "{:?}", opened.notes);
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let number = fs::read_to_string(
        Path::new("/sys/class/block").join(opened.path().unwrap().file_name().unwrap()).join("dev"),
    );
    if !mounts.contains(&format!(" {} ", number.unwrap().trim())) {
        return plumb_testkit::skip("the first disk is not mounted as a whole here");
    }
    let error = open(&name, Intent::WRITE, &overwrite(), FileOptions::write_direct(), &clock()).unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
    assert!(error.to_string().contains("is mounted at"), "{error}");
}
