//! The store over a real temporary directory.

use plumb_block::Errno;

use super::*;

fn store() -> (tempfile::TempDir, DirectoryStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = DirectoryStore::open(directory.path()).unwrap();
    (directory, store)
}

const CREATE: OpenOptions = OpenOptions { create: true, direct: false, dsync: false };
const OPEN: OpenOptions = OpenOptions { create: false, direct: false, dsync: false };

#[test]
fn files_are_made_written_read_renamed_and_removed() {
    let (directory, store) = store();
    store.create_directory(Path::new("sub")).unwrap();
    let file = store.open(Path::new("sub/a"), CREATE).unwrap();
    store.write_at(file, Bytes(4), b"data").unwrap();
    assert_eq!(store.append(file, b"tail").unwrap(), Bytes(8));
    assert_eq!(store.append(file, b"").unwrap(), Bytes(12));
    let mut all = [9; 12];
    store.read_at(file, Bytes(0), &mut all).unwrap();
    assert_eq!(&all, b"\0\0\0\0datatail");
    store.truncate(file, Bytes(8)).unwrap();
    assert_eq!(store.read_at(file, Bytes(0), &mut all).unwrap_err().kind, ErrorKind::Invalid, "past the end");
    store.sync_file_range(file, Bytes(0), Bytes(8)).unwrap();
    store.fdatasync(file).unwrap();
    store.fsync(file).unwrap();
    store.rename(Path::new("sub/a"), Path::new("b")).unwrap();
    store.fsync_directory(Path::new("sub")).unwrap();
    store.fsync_directory(Path::new("")).unwrap();
    store.syncfs().unwrap();
    store.close(file).unwrap();
    assert!(store.fsync(file).is_err(), "closed");
    assert_eq!(std::fs::read(directory.path().join("b")).unwrap(), b"\0\0\0\0data");
    store.unlink(Path::new("b")).unwrap();
    assert_eq!(store.open(Path::new("b"), OPEN).unwrap_err().errno(), Some(Errno(2)));
}

#[test]
fn appends_through_two_opens_do_not_overwrite_each_other() {
    let (_directory, store) = store();
    let one = store.open(Path::new("log"), CREATE).unwrap();
    let other = store.open(Path::new("log"), OPEN).unwrap();
    assert_eq!(store.append(one, b"aa").unwrap(), Bytes(0));
    assert_eq!(store.append(other, b"bbb").unwrap(), Bytes(2));
    assert_eq!(store.append(one, b"c").unwrap(), Bytes(5));
}

#[test]
fn an_existing_file_is_not_made_again_and_nothing_outside_is_reached() {
    let (directory, store) = store();
    store.open(Path::new("a"), CREATE).unwrap();
    assert_eq!(store.open(Path::new("a"), CREATE).unwrap_err().errno(), Some(Errno(17)));
    for path in ["../a", "/etc/passwd", ".."] {
        assert!(store.open(Path::new(path), OPEN).is_err(), "{path}");
        assert!(store.unlink(Path::new(path)).is_err(), "{path}");
        assert!(store.rename(Path::new("a"), Path::new(path)).is_err(), "{path}");
    }
    assert!(directory.path().join("a").exists());
}

#[test]
fn a_write_through_file_is_opened_with_o_dsync_and_not_o_sync() {
    let (_directory, store) = store();
    let file = store.open(Path::new("a"), OpenOptions { dsync: true, ..CREATE }).unwrap();
    store.write_at(file, Bytes(0), b"x").unwrap();
    let flags = open_flags_of_last_file();
    assert_eq!(flags & libc::O_SYNC, libc::O_DSYNC, "flags {flags:o}");
}

/// Returns the flags of the descriptor with the name `a`, from /proc/self/fdinfo.
fn open_flags_of_last_file() -> i32 {
    let entries = std::fs::read_dir("/proc/self/fd").unwrap();
    for entry in entries.flatten() {
        let Ok(path) = std::fs::read_link(entry.path()) else { continue };
        let info = format!("/proc/self/fdinfo/{}", entry.file_name().display());
        let Ok(text) = std::fs::read_to_string(info) else { continue };
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = i32::from_str_radix(flags.unwrap().trim(), 8).unwrap();
        if path.file_name().is_some_and(|name| name == "a") && flags & libc::O_DSYNC != 0 {
            return flags;
        }
    }
    panic!("the file is not open");
}
