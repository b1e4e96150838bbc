//! Tests that everything below a target counts as the target. Guards against writing through a loop device
//! into a file system that is mounted in another way. Uses own loop devices, which takes root.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use plumb_targets::{Intent, Kind, Permission, overlap};
use rustix::fs::{FlockOperation, OFlags, flock};

use crate::support::{alone, destroy, nothing, open_path, overwrite, run};
use plumb_testkit::loop_device::{LoopDevice, Mount};

/// File of 64 MiB with a loop device on it.
struct Bench {
    lower: LoopDevice,
    file: PathBuf,
    _directory: tempfile::TempDir,
}

/// Creates the bench; prints a skip and returns `None` without loop devices.
fn bench(options: &[&str]) -> Option<Bench> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().canonicalize().unwrap().join("image");
    File::create(&file).unwrap().set_len(64 << 20).unwrap();
    let lower = LoopDevice::over(&file, options)?;
    Some(Bench { lower, file, _directory: directory })
}

/// Returns the bench with ext4 on its loop device, mounted. Prints a skip if something is missing.
fn mounted(options: &[&str]) -> Option<(Bench, Mount)> {
    let bench = bench(options)?;
    let mounted = run("mkfs.ext4", &["-q", &bench.lower.path]).and_then(|_| Mount::new(&[&bench.lower.path]));
    match mounted {
        Ok(mount) => Some((bench, mount)),
        Err(why) => {
            plumb_testkit::skip(&why);
            None
        }
    }
}

fn refused(path: &Path, permission: &Permission) -> String {
    let error = open_path(path, Intent::WRITE, permission).unwrap_err();
    assert_eq!(error.kind(), Kind::Refused, "{error}");
    error.to_string()
}

#[test]
fn a_loop_device_over_a_mounted_one_is_mounted() {
    let _alone = alone();
    let Some((bench, mount)) = mounted(&[]) else { return };
    fs::write(mount.point.path().join("f"), "data").unwrap();
    run("sync", &["-f", mount.point.path().to_str().unwrap()]).unwrap();
    let Some(upper) = LoopDevice::over(bench.lower.as_path(), &["--offset", "1M"]) else { return };
    let Some(top) = LoopDevice::over(upper.as_path(), &["--offset", "1M"]) else { return };
    let point = mount.point.path().display().to_string();
    for device in [&upper, &top] {
        let said = refused(device.as_path(), &overwrite());
        assert!(said.contains(&format!("{} is mounted at {point} (ext4)", bench.lower.name)), "{said}");
        assert!(said.contains("unmount it"), "{said}");
    }
    assert!(overlap(File::open(top.as_path()).unwrap(), File::open(&bench.file).unwrap()).unwrap());
}

#[test]
fn loop_devices_over_one_file_are_users_of_what_they_share() {
    let _alone = alone();
    let Some((bench, _mount)) = mounted(&["--sizelimit", "32M"]) else { return };
    let Some(within) = LoopDevice::over(&bench.file, &["--offset", "16M", "--sizelimit", "8M"]) else {
        return;
    };
    let said = refused(within.as_path(), &overwrite());
    assert!(said.contains(&format!("{} is mounted at", bench.lower.name)), "{said}");
    assert!(said.contains(&format!("{} is behind {}", bench.file.display(), bench.lower.name)), "{said}");
    // Another name of the file.
    let link = bench.file.with_file_name("link");
    fs::hard_link(&bench.file, &link).unwrap();
    let Some(linked) = LoopDevice::over(&link, &["--offset", "16M", "--sizelimit", "8M"]) else { return };
    assert!(refused(linked.as_path(), &overwrite()).contains("is mounted at"));
    fs::remove_file(&link).unwrap();
    assert!(refused(linked.as_path(), &overwrite()).contains("is mounted at"), "a name that is gone");
    // A range that is not shared is not in use.
    let Some(apart) = LoopDevice::over(&bench.file, &["--offset", "32M"]) else { return };
    drop(open_path(apart.as_path(), Intent::WRITE, &overwrite()).unwrap());
    let open = |device: &LoopDevice| File::open(device.as_path()).unwrap();
    assert!(overlap(open(&within), open(&bench.lower)).unwrap());
    assert!(!overlap(open(&apart), open(&bench.lower)).unwrap());
    // With permission to destroy it, a note tells the use.
    let word = format!("{}={}", within.name, bench.file.display());
    let opened = open_path(within.as_path(), Intent::WRITE, &destroy(&word)).unwrap();
    assert!(opened.notes.iter().any(|note| note.contains("is mounted at")), "{:?}", opened.notes);
}

#[test]
fn a_partition_over_a_mounted_file_is_mounted() {
    let _alone = alone();
    let Some((bench, _mount)) = mounted(&["--sizelimit", "16M"]) else { return };
    let Some(disk) = LoopDevice::over(&bench.file, &["--partscan"]) else { return };
    let path = &disk.path;
    let added = run("addpart", &[path, "1", "2048", "8192"])
        .and_then(|_| run("addpart", &[path, "2", "65536", "8192"]));
    if let Err(why) = added {
        return plumb_testkit::skip(&why);
    }
    let partition = |number: u32| PathBuf::from(format!("{path}p{number}"));
    if !partition(2).exists() {
        return plumb_testkit::skip("no node for the partition of a loop device");
    }
    assert!(refused(&partition(1), &overwrite()).contains("is mounted at"));
    drop(open_path(&partition(2), Intent::WRITE, &overwrite()).unwrap());
    for number in ["1", "2"] {
        run("delpart", &[path, number]).unwrap();
    }
}

#[test]
fn a_loop_device_over_what_a_program_has_claimed_is_in_use() {
    let _alone = alone();
    let Some(bench) = bench(&[]) else { return };
    let Some(upper) = LoopDevice::over(bench.lower.as_path(), &[]) else { return };
    let exclusive = OFlags::EXCL.bits() as i32;
    let claim = OpenOptions::new().read(true).custom_flags(exclusive).open(bench.lower.as_path()).unwrap();
    let word = format!("{}={}", upper.name, bench.lower.path);
    for permission in [overwrite(), destroy(&word)] {
        let said = refused(upper.as_path(), &permission);
        assert!(said.contains(&format!("{} beneath it is in use", bench.lower.name)), "{said}");
    }
    drop(claim);
    drop(open_path(upper.as_path(), Intent::WRITE, &overwrite()).unwrap());
}

#[test]
fn what_is_claimed_by_another_way_to_the_same_file_is_in_use() {
    let _alone = alone();
    let Some(bench) = bench(&[]) else { return };
    let Some(other) = LoopDevice::over(&bench.file, &[]) else { return };
    // A mount in another mount namespace, which this mount table does not show, claims it in this way.
    let exclusive = OFlags::EXCL.bits() as i32;
    let claim = OpenOptions::new().read(true).custom_flags(exclusive).open(bench.lower.as_path()).unwrap();
    let file = bench.file.display().to_string();
    for (path, word) in
        [(other.as_path(), format!("{}={file}", other.name)), (bench.file.as_path(), file.clone())]
    {
        let said = refused(path, &destroy(&word));
        assert!(said.contains(&format!("{} is the same storage, and in use", bench.lower.name)), "{said}");
    }
    drop(claim);
    let word = format!("{}={file}", other.name);
    drop(open_path(other.as_path(), Intent::WRITE, &destroy(&word)).unwrap());
}

#[test]
fn a_loop_device_over_a_locked_file_is_never_written() {
    let _alone = alone();
    let Some(bench) = bench(&[]) else { return };
    // A simulated drive locks its medium in this way, and a cache its files.
    let medium = File::open(&bench.file).unwrap();
    flock(&medium, FlockOperation::NonBlockingLockExclusive).unwrap();
    let word = format!("{}={}", bench.lower.name, bench.file.display());
    let opened = open_path(bench.lower.as_path(), Intent::WRITE, &overwrite());
    let Err(error) = opened else {
        return plumb_testkit::skip("/proc/locks names this file system's files differently from stat(2)");
    };
    assert!(error.to_string().contains("is locked by process"), "{error}");
    assert!(refused(bench.lower.as_path(), &destroy(&word)).contains("--destroy cannot override"));
    drop(medium);
    drop(open_path(bench.lower.as_path(), Intent::WRITE, &overwrite()).unwrap());
}

#[test]
fn a_loop_device_over_active_swap_space_is_never_written() {
    let _alone = alone();
    let Some(bench) = bench(&["--offset", "1M"]) else { return };
    let file = bench.file.display().to_string();
    // A swap file must not have holes.
    fs::write(&bench.file, vec![0; 64 << 20]).unwrap();
    fs::set_permissions(&bench.file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    if let Err(why) = run("mkswap", &["-q", &file]).and_then(|_| run("swapon", &[&file])) {
        return plumb_testkit::skip(&why);
    }
    let word = format!("{}={file}", bench.lower.name);
    let said = [overwrite(), destroy(&word)].map(|permission| {
        open_path(bench.lower.as_path(), Intent::WRITE, &permission).map_err(|error| error.to_string())
    });
    run("swapoff", &[&file]).unwrap();
    for said in said {
        let said = said.unwrap_err();
        assert!(said.contains(&format!("run `swapoff {file}` first")), "{said}");
    }
}

#[test]
fn a_file_of_the_kernel_is_no_target() {
    for path in ["/proc/self/comm", "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/new-file"] {
        let path = Path::new(path);
        if !path.parent().is_some_and(Path::exists) {
            continue;
        }
        let before = fs::read(path).ok();
        for intent in [Intent::READ, Intent::WRITE, Intent::WRITE.sized(plumb_block::Bytes(4096))] {
            let error = open_path(path, intent, &destroy(path.to_str().unwrap())).map(drop);
            // A word must name a target first.
            let error = error.and_then(|()| open_path(path, intent, &overwrite()).map(drop)).unwrap_err();
            assert_eq!(error.kind(), Kind::Refused, "{error}");
            let error = open_path(path, intent, &overwrite()).unwrap_err();
            assert!(error.to_string().contains("a file of the kernel"), "{error}");
        }
        assert_eq!(fs::read(path).ok(), before);
    }
}

#[test]
fn what_wipefs_leaves_is_refused_with_the_way_to_erase_it() {
    let _alone = alone();
    let Some(bench) = bench(&[]) else { return };
    let path = &bench.lower.path;
    if let Err(why) = run("mkfs.ext4", &["-q", path]).and_then(|_| run("wipefs", &["-a", "-q", path])) {
        return plumb_testkit::skip(&why);
    }
    // Each refusal names one copy, and the command that erases it.
    let mut erased = 0;
    while let Err(error) = open_path(bench.lower.as_path(), Intent::WRITE, &overwrite()) {
        let said = error.to_string();
        assert!(said.contains("a copy of its superblock at byte"), "{said}");
        let command = said.split('`').nth(1).unwrap();
        assert!(command.starts_with("dd ") && erased < 10, "{said}");
        run("sh", &["-c", command]).unwrap();
        erased += 1;
    }
    assert!(erased > 0, "ext4 of 64 MiB has copies");
    assert!(refused(bench.lower.as_path(), &nothing()).contains("--overwrite"));
}

#[test]
fn what_only_blkid_knows_is_refused() {
    let _alone = alone();
    let Some(bench) = bench(&[]) else { return };
    // The control volume of DRBD Manage is not among the own signatures.
    let header = b"$DRBDmgr=q 0123456789abcdef0123456789abcdef\n";
    let file = OpenOptions::new().write(true).open(&bench.file).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, header, 0).unwrap();
    file.sync_all().unwrap();
    let device = &bench.lower.path;
    if let Err(why) = run("blkid", &["-p", device]) {
        return plumb_testkit::skip(&why);
    }
    let said = refused(bench.lower.as_path(), &overwrite());
    assert!(
        said.contains("drbdmanage_control_volume (as blkid says)") && said.contains("--destroy"),
        "{said}"
    );
    let word = format!("{}={}", bench.lower.name, bench.file.display());
    drop(open_path(bench.lower.as_path(), Intent::WRITE, &destroy(&word)).unwrap());
    // Also for a foreign file. A file that plumb made needs no permission.
    let copy = bench.file.with_file_name("copy");
    fs::copy(&bench.file, &copy).unwrap();
    assert!(refused(&copy, &overwrite()).contains("as blkid says"));
}

/// Directory with an overlay mounted in it.
struct Overlay {
    directory: tempfile::TempDir,
}

impl Overlay {
    fn new(is_absolute: bool) -> Result<Self, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        for name in ["lower", "upper", "work", "merged"] {
            fs::create_dir(directory.path().join(name)).map_err(|error| error.to_string())?;
        }
        let root = directory.path().display().to_string();
        let from = if is_absolute { format!("{root}/") } else { String::new() };
        let options = format!("lowerdir={from}lower,upperdir={from}upper,workdir={from}work");
        let line = format!("cd {root} && mount -t overlay overlay -o {options} merged");
        run("sh", &["-c", &line])?;
        Ok(Self { directory })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        if let Err(error) = run("umount", &[&self.at("merged").display().to_string()]) {
            eprintln!("left mounted: {error}");
        }
    }
}

#[test]
fn a_file_of_an_overlay_is_the_file_of_its_layer() {
    let _alone = alone();
    for is_absolute in [true, false] {
        let overlay = match Overlay::new(is_absolute) {
            Ok(overlay) => overlay,
            Err(why) => return plumb_testkit::skip(&why),
        };
        for name in ["upper/file", "upper/other", "lower/old"] {
            File::create(overlay.at(name)).unwrap().set_len(8 << 20).unwrap();
        }
        let open = |name: &str| File::open(overlay.at(name)).unwrap();
        for (layer, merged) in [("upper/file", "merged/file"), ("lower/old", "merged/old")] {
            assert!(overlap(open(layer), open(merged)).unwrap(), "{layer}");
            assert!(overlap(open(merged), open(layer)).unwrap(), "{layer}");
        }
        assert!(!overlap(open("upper/other"), open("merged/file")).unwrap());
        for (used, written) in [("merged/file", "upper/file"), ("upper/file", "merged/file")] {
            let Some(device) = LoopDevice::over(&overlay.at(used), &[]) else { return };
            let said = refused(&overlay.at(written), &overwrite());
            assert!(said.contains(&format!("behind {}", device.name)), "{said}");
            drop(open_path(&overlay.at("upper/other"), Intent::WRITE, &overwrite()).unwrap());
        }
    }
}

#[test]
fn how_to_erase_what_is_left_is_not_said_of_a_device_in_use() {
    let _alone = alone();
    let Some(bench) = bench(&[]) else { return };
    // Superblock of group 1 of an ext2 with blocks of 1 KiB, whose first one is gone.
    let group = 8193 * 1024;
    let image = OpenOptions::new().write(true).open(bench.lower.as_path()).unwrap();
    for (at, bytes) in [(group + 0x38, [0x53, 0xef]), (group + 0x5a, [1, 0])] {
        image.write_all_at(&bytes, at).unwrap();
    }
    drop(image);
    assert!(refused(bench.lower.as_path(), &overwrite()).contains("dd if=/dev/zero"));
    let exclusive = OFlags::EXCL.bits() as i32;
    let _claim = OpenOptions::new().read(true).custom_flags(exclusive).open(bench.lower.as_path()).unwrap();
    let said = refused(bench.lower.as_path(), &overwrite());
    assert!(said.contains("in use") && !said.contains("dd if="), "{said}");
}
