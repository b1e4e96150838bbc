//! Regular files: created, marked, laid out, removed; and unchanged after a refusal.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::support;
use crate::support::{clock, destroy, nothing, open_path, overwrite, write_first_block};
use plumb_block::{Bytes, Caching, Errno, ExtentState, Outcome, Stamp};
use plumb_linux::range_lock::LockKind;
use plumb_linux::{FileOptions, Filling};
use plumb_targets::{
    Intent, Kind, Name, Permission, TargetKind, TargetRequest, Time, mark_as_made, open_all,
};

const MIB: Bytes = Bytes(1 << 20);

fn directory() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    (directory, path)
}

/// Returns true if files can be marked in this directory; otherwise prints a skip.
fn marks_are_kept(directory: &Path) -> bool {
    let probe = fs::File::create(directory.join("probe")).unwrap();
    let kept = mark_as_made(&probe).unwrap();
    if !kept {
        plumb_testkit::skip("no extended attributes on the file system of the temporary directory");
    }
    kept
}

fn filling(stop: &AtomicBool) -> Filling<'_> {
    // The reported progress does not matter here.
    let progress = Box::leak(Box::new(|_: Bytes| {}));
    Filling { seed: 3, stop, progress }
}

/// Returns the access modes (O_ACCMODE) of this process's descriptors of `path`.
fn access_of_descriptors(path: &Path) -> Vec<u32> {
    let mut modes = Vec::new();
    for entry in fs::read_dir("/proc/self/fd").unwrap().flatten() {
        if fs::read_link(entry.path()).is_ok_and(|target| target == path) {
            let info = Path::new("/proc/self/fdinfo").join(entry.file_name());
            let text = fs::read_to_string(info).unwrap();
            let flags = text.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
            modes.push(u32::from_str_radix(flags.trim(), 8).unwrap() & 3);
        }
    }
    modes
}

#[test]
fn a_missing_file_is_made_marked_and_may_be_written_again() {
    let (_guard, directory) = directory();
    if !marks_are_kept(&directory) {
        return;
    }
    let path = directory.join("new.dat");
    let error = open_path(&path, Intent::WRITE, &overwrite()).unwrap_err();
    assert_eq!((error.kind(), path.exists()), (Kind::Usage, false));
    let mut opened = open_path(&path, Intent::WRITE.sized(MIB), &nothing()).unwrap();
    assert!(opened.made);
    assert_eq!((opened.size, opened.kind, opened.path()), (MIB, TargetKind::RegularFile, Some(&*path)));
    assert_eq!(opened.needs_layout, Some(0..MIB.0));
    opened.lay_out(filling(&AtomicBool::new(false))).unwrap();
    assert!(Stamp::read(&fs::read(&path).unwrap()[512..]).is_some(), "not a hole any more");
    opened.remove_if_made().unwrap();
    assert!(path.exists(), "laid out, it stays");
    drop(opened);
    let again = open_path(&path, Intent::WRITE.sized(MIB), &nothing()).unwrap();
    assert_eq!((again.made, again.needs_layout.clone()), (false, None));
    assert_eq!(write_first_block(&*again.device), Outcome::Done);
}

#[test]
fn a_cut_that_was_seen_once_is_not_forgotten_when_the_file_grows_again() {
    let (_guard, directory) = directory();
    let path = directory.join("theirs.dat");
    fs::write(&path, vec![7; MIB.0 as usize]).unwrap();
    let opened = open_path(&path, Intent::READ, &nothing()).unwrap();
    assert_eq!(opened.change_since_open(), None);
    let resize = |size| fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(size).unwrap();
    resize(4096);
    let cut = opened.change_since_open().unwrap().to_owned();
    assert!(cut.contains("became shorter, by at least 1020 KiB of 1 MiB,"), "{cut}");
    resize(MIB.0);
    assert_eq!(opened.change_since_open(), Some(&*cut));
}

#[test]
fn blocks_that_a_file_lost_are_seen_after_it_grew_again() {
    // The hole at the end existed before.
    for place in [std::env::temp_dir(), PathBuf::from("/dev/shm")] {
        let Ok(directory) = tempfile::tempdir_in(&place) else {
            plumb_testkit::skip(&format!("no directory in {}", place.display()));
            continue;
        };
        let path = directory.path().join("theirs.dat");
        fs::write(&path, vec![7; MIB.0 as usize]).unwrap();
        let file = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        file.set_len(2 * MIB.0).unwrap();
        file.sync_all().unwrap();
        let opened = open_path(&path, Intent::READ, &nothing()).unwrap();
        let before = opened.extents();
        if before.iter().any(|extent| extent.state == ExtentState::Unknown) {
            plumb_testkit::skip(&format!("{} does not tell holes", place.display()));
            continue;
        }
        assert_eq!(opened.blocks_lost_since(&before), None);
        file.set_len(MIB.0 - 65536).unwrap();
        file.set_len(2 * MIB.0).unwrap();
        let lost = opened.blocks_lost_since(&before).unwrap();
        assert!(lost.contains("lost up to 64 KiB of its blocks"), "{lost}");
        file.write_all_at(&[7; 65536], MIB.0 - 65536).unwrap();
        assert_eq!(opened.blocks_lost_since(&before), None, "a block that was written again has its place");
    }
}

#[test]
fn reserved_blocks_that_a_file_lost_are_seen_after_it_grew_again() {
    for place in [std::env::temp_dir(), PathBuf::from("/dev/shm")] {
        let Ok(directory) = tempfile::tempdir_in(&place) else {
            plumb_testkit::skip(&format!("no directory in {}", place.display()));
            continue;
        };
        let path = directory.path().join("theirs.dat");
        let file = fs::File::create_new(&path).unwrap();
        // The end is not a whole page.
        let length = 2 * MIB.0 - 512;
        if rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, length).is_err() {
            plumb_testkit::skip(&format!("{} reserves nothing", place.display()));
            continue;
        }
        file.write_all_at(&[7; 4096], 65536).unwrap();
        file.sync_all().unwrap();
        let opened = open_path(&path, Intent::READ, &nothing()).unwrap();
        let before = opened.extents();
        if before.iter().any(|extent| extent.state == ExtentState::Unknown) {
            plumb_testkit::skip(&format!("{} does not tell holes", place.display()));
            continue;
        }
        let states: Vec<ExtentState> = before.iter().map(|extent| extent.state).collect();
        assert_eq!(states, [ExtentState::Unwritten, ExtentState::Written, ExtentState::Unwritten]);
        file.write_all_at(&[8; 65536], MIB.0).unwrap();
        file.sync_all().unwrap();
        assert_eq!(opened.blocks_lost_since(&before), None, "written meanwhile");
        file.set_len(MIB.0).unwrap();
        file.set_len(length).unwrap();
        let lost = opened.blocks_lost_since(&before).unwrap();
        assert!(lost.contains("of its blocks while it was measured: it was cut and grew again"), "{lost}");
    }
}

#[test]
fn what_was_made_is_removed_when_laying_out_fails_and_nothing_else_is() {
    let (_guard, directory) = directory();
    let path = directory.join("new.dat");
    let mut opened = open_path(&path, Intent::READ.sized(MIB), &nothing()).unwrap();
    opened.remove_if_made().unwrap();
    assert!(!path.exists());
    let mut opened = open_path(&path, Intent::READ.sized(MIB), &nothing()).unwrap();
    let stopped = opened.lay_out(filling(&AtomicBool::new(true))).unwrap_err();
    assert_eq!(stopped.kind(), Kind::Os(Some(Errno::EINTR)));
    assert!(stopped.to_string().contains("new.dat") && !path.exists(), "{stopped}");
    // Another file that took the name meanwhile must not be removed.
    let mut opened = open_path(&path, Intent::READ.sized(MIB), &nothing()).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, "somebody's").unwrap();
    opened.remove_if_made().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"somebody's");
}

#[test]
fn a_file_of_somebody_else_is_refused_and_not_one_byte_of_it_changes() {
    let (_guard, directory) = directory();
    let path = directory.join("database");
    let bytes: Vec<u8> = (0..300_000_u32).map(|number| (number % 251) as u8).collect();
    fs::write(&path, &bytes).unwrap();
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    for intent in [Intent::WRITE, Intent::WRITE.sized(MIB), Intent::READ.sized(MIB)] {
        let error = open_path(&path, intent, &nothing()).unwrap_err();
        assert_eq!(error.kind(), Kind::Refused);
        assert!(error.to_string().contains("--overwrite"), "{error}");
    }
    let error = open_path(&path, Intent::WRITE, &destroy("/etc/passwd")).unwrap_err();
    assert_eq!(error.kind(), Kind::Refused, "a word that names another file");
    // A device opened for reading refuses to write, and none of its descriptors permits it.
    let opened = open_path(&path, Intent::READ, &overwrite()).unwrap();
    let access = access_of_descriptors(&path);
    assert!(!access.is_empty() && access.iter().all(|mode| *mode == 0), "{access:?}");
    assert_eq!(write_first_block(&*opened.device), Outcome::Failed(Errno::EROFS));
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
    for permission in [overwrite(), destroy(path.to_str().unwrap())] {
        let opened = open_path(&path, Intent::WRITE, &permission).unwrap();
        assert_eq!(write_first_block(&*opened.device), Outcome::Done);
    }
    assert_ne!(fs::read(&path).unwrap(), bytes, "allowed, it is written");
}

#[test]
fn a_short_file_is_made_longer_and_cut_again_when_that_is_undone() {
    let (_guard, directory) = directory();
    let path = directory.join("short");
    fs::write(&path, vec![7; 4100]).unwrap();
    let mut opened = open_path(&path, Intent::WRITE.sized(MIB), &overwrite()).unwrap();
    assert_eq!((opened.size, opened.made), (MIB, false));
    assert_eq!(opened.needs_layout, Some(4608..MIB.0));
    opened.remove_if_made().unwrap();
    assert_eq!(fs::read(&path).unwrap(), vec![7; 4100]);
}

#[test]
fn one_refusal_among_several_targets_leaves_everything_as_it_was() {
    let (_guard, directory) = directory();
    let (new, theirs) = (directory.join("new"), directory.join("theirs"));
    fs::write(&theirs, vec![7; 8192]).unwrap();
    let want = |path: &Path| TargetRequest {
        name: Name::parse(path).unwrap(),
        intent: Intent::WRITE.sized(Bytes(8192)),
        options: FileOptions::write_buffered(),
    };
    let refused = open_all(&[want(&new), want(&theirs)], &nothing(), &Time::Real(clock())).unwrap_err();
    assert_eq!((refused.kind(), new.exists()), (Kind::Refused, false));
    let typo =
        Permission { overwrite: true, destroy: vec!["no-such-serial".into()], ..Permission::default() };
    let refused = open_all(&[want(&new), want(&theirs)], &typo, &Time::Real(clock())).unwrap_err();
    assert!(refused.to_string().contains("no-such-serial"), "{refused}");
    assert!(!new.exists());
    // An open that fails only when files are created is undone: this name is too long for a file.
    let long = directory.join("x".repeat(300));
    let failed = open_all(&[want(&new), want(&long)], &overwrite(), &Time::Real(clock())).unwrap_err();
    assert!(matches!(failed.kind(), Kind::Os(Some(_))), "{failed}");
    assert!(!new.exists(), "what was made before the failure is gone");
    assert_eq!(fs::read(&theirs).unwrap(), vec![7; 8192]);
}

#[test]
fn a_file_that_does_not_fit_is_not_made() {
    let (_guard, directory) = directory();
    let path = directory.join("huge");
    let Err(error) = open_path(&path, Intent::WRITE.sized(Bytes(1 << 42)), &nothing()) else {
        return plumb_testkit::skip("4 TiB fit here, or the file system does not say");
    };
    assert!(matches!(error.kind(), Kind::Os(_)), "{error}");
    assert!(!path.exists());
}

#[test]
fn one_file_for_several_jobs_is_made_once_and_shared() {
    let (_guard, directory) = directory();
    let path = directory.join("shared");
    let want = |intent: Intent, options| TargetRequest { name: Name::parse(&path).unwrap(), intent, options };
    let write = Intent::WRITE.sized(MIB);
    let buffered = FileOptions::write_buffered();
    let wanted = [
        want(write, buffered),
        want(write.sized(Bytes(4096)), buffered),
        want(write, buffered.caching(Caching::Direct)),
    ];
    let opened = open_all(&wanted, &nothing(), &Time::Real(clock())).unwrap();
    assert_eq!(opened.iter().map(|one| one.made).collect::<Vec<_>>(), [true, false, false]);
    assert!(opened.iter().all(|one| one.size == MIB));
    assert!(std::sync::Arc::ptr_eq(&opened[0].device, &opened[1].device));
    assert!(!std::sync::Arc::ptr_eq(&opened[0].device, &opened[2].device));
    for one in &opened {
        assert_eq!(write_first_block(&*one.device), Outcome::Done);
    }
    let again = opened[0].open_again(FileOptions::read_buffered(), clock()).unwrap();
    assert_eq!(write_first_block(&*again), Outcome::Done, "the access is that of the first");
}

/// Blocks that another run wrote would be reported as wrong data.
#[test]
fn a_run_that_verifies_has_its_file_alone_and_plain_writers_share_it() {
    let (_guard, directory) = directory();
    let (path, link) = (directory.join("f"), directory.join("link"));
    let plain = Intent { lock: Some(LockKind::Shared), ..Intent::WRITE.sized(MIB) };
    let verified = Intent { lock: Some(LockKind::Exclusive), ..plain };
    let open = |intent| open_path(&path, intent, &overwrite());
    let refused = |intent, words: &str| {
        let error = open(intent).unwrap_err();
        assert!(error.kind() == Kind::Refused && error.to_string().contains(words), "{error}");
    };
    // First a new file, then an existing one.
    for _ in 0..2 {
        let mut first = open(verified).unwrap();
        first.laid_out();
        refused(verified, "a run of plumb that verifies what it writes has it");
        refused(plain, "a run of plumb that verifies what it writes has it");
        open(Intent::READ).unwrap();
        let again = first.open_again(FileOptions::read_buffered(), clock()).unwrap();
        assert!(!first.is_claimed(), "only block devices are claimed");
        drop(first);
        refused(plain, "a run of plumb that verifies what it writes has it");
        drop(again);
    }
    let writers = [plain, plain].map(|intent| open(intent).unwrap());
    refused(verified, "another run of plumb writes to it, and this one verifies what it writes");
    drop(writers);
    // One run may use several names of it.
    fs::hard_link(&path, &link).unwrap();
    let want = |path: &Path, intent| TargetRequest {
        name: Name::parse(path).unwrap(),
        intent,
        options: FileOptions::write_buffered(),
    };
    let wanted = [want(&path, plain), want(&link, verified), want(&path, plain)];
    let opened = open_all(&wanted, &overwrite(), &Time::Real(clock())).unwrap();
    refused(plain, "a run of plumb that verifies what it writes has it");
    drop(opened);
    open(verified).unwrap();
}

#[test]
fn things_that_are_no_targets_are_said_to_be_none() {
    let (_guard, directory) = directory();
    let fifo = directory.join("fifo");
    let _alone = support::alone();
    support::run("mkfifo", &[fifo.to_str().unwrap()]).unwrap();
    std::os::unix::fs::symlink(directory.join("none"), directory.join("dangling")).unwrap();
    for (path, kind, word) in [
        (directory.clone(), Kind::Usage, "directory"),
        (fifo, Kind::Usage, "FIFO"),
        (PathBuf::from("/dev/null"), Kind::Usage, "character device"),
        (directory.join("dangling"), Kind::NotFound, "link"),
        (directory.join("a/b"), Kind::NotFound, "directory"),
        (PathBuf::from("/dev/none-such"), Kind::NotFound, "device"),
        (PathBuf::from("sim:none-such"), Kind::Usage, "none-such"),
        (PathBuf::from("nbd://127.0.0.1:1/x"), Kind::Os(Some(Errno::ECONNREFUSED)), "connect"),
        (PathBuf::from("#99999"), Kind::NotFound, "disk"),
    ] {
        // With a size, a directory stands for a test file in it.
        let intent = if path == directory { Intent::WRITE } else { Intent::WRITE.sized(MIB) };
        let error = open_path(&path, intent, &overwrite()).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        // The simulator's own message states how to find the right name of a model.
        let is_advised = !error.remedy().is_empty() || error.to_string().contains("`plumb drive list`");
        assert!(error.to_string().contains(word) && is_advised, "{error}");
    }
    assert!(!Path::new("/dev/none-such").exists() && !directory.join("none").exists());
}

#[test]
fn a_link_is_followed_to_the_file_that_is_judged() {
    let (_guard, directory) = directory();
    let (file, link) = (directory.join("theirs"), directory.join("link"));
    fs::write(&file, vec![7; 8192]).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let error = open_path(&link, Intent::WRITE, &nothing()).unwrap_err();
    assert!(error.target().contains("link") && error.target().contains("theirs"), "{error}");
    let opened = open_path(&link, Intent::WRITE, &destroy(file.to_str().unwrap())).unwrap();
    assert_eq!(opened.path().unwrap(), file);
    assert!(opened.notes[0].contains("as --destroy allows"), "{:?}", opened.notes);
}

#[test]
fn a_file_of_ours_with_a_file_system_in_it_is_ours_no_longer() {
    let (_guard, directory) = directory();
    if !marks_are_kept(&directory) {
        return;
    }
    let path = directory.join("ours");
    let mut opened = open_path(&path, Intent::WRITE.sized(MIB), &nothing()).unwrap();
    opened.laid_out();
    drop(opened);
    std::os::unix::fs::FileExt::write_all_at(
        &fs::OpenOptions::new().write(true).open(&path).unwrap(),
        b"XFSB",
        0,
    )
    .unwrap();
    for permission in [nothing(), overwrite()] {
        let error = open_path(&path, Intent::WRITE, &permission).unwrap_err();
        assert!(error.to_string().contains("xfs") && error.to_string().contains("--destroy"), "{error}");
    }
    open_path(&path, Intent::WRITE, &destroy(path.to_str().unwrap())).unwrap();
}
