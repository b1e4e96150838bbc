//! Tests of profiles on a real file system: a run removes what it created, however it ends.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_block::{Bytes, Errno, FileStore, Nanos, RealClock};
use plumb_linux::DirectoryStore;
use plumb_load::{Ending, Event};

use super::*;
use crate::engine::tests::fake::{FailurePlan, FakeStore};
use crate::find;

fn open(path: &Path) -> plumb_block::Result<Box<dyn FileStore>> {
    Ok(Box::new(DirectoryStore::open(path)?))
}

fn place(path: &Path) -> Directory<'static> {
    Directory { path: path.to_owned(), free: Some(Bytes::gib(64)), open: &open }
}

fn small() -> Limits {
    Limits { count: Some(60), scale: Some(0.01), seed: 5, ..Limits::default() }
}

fn run_in(typed: &str, place: &Directory<'_>, limits: &Limits) -> Result<LoadOutcome, Error> {
    let (profile, variant) = find(typed).unwrap();
    run(profile, variant, place, limits, &RealClock::start(), &AtomicBool::new(false), &mut ())
}

fn assert_empty(directory: &Path, when: &str) {
    let left: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "{when}: {left:?} is left");
}

#[test]
fn every_profile_runs_on_a_real_file_system_and_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    for profile in crate::profiles().iter().filter(|profile| profile.needs_directory()) {
        for variant in &profile.variants {
            let typed = format!("{}:{}", profile.name, variant.name);
            let measured = run_in(&typed, &place(home.path()), &small()).unwrap();
            assert_eq!(measured.transaction_count(), 60, "{typed}");
            assert_eq!(measured.ending, Ending::Complete, "{typed}");
            assert_empty(home.path(), &typed);
        }
    }
}

#[test]
fn stopped_in_the_middle_it_leaves_nothing_and_keeps_what_it_measured() {
    let home = tempfile::tempdir().unwrap();
    for typed in ["varmail", "registry-kv", "sqlite-rollback", "sqlite-wal:normal"] {
        let (profile, variant) = find(typed).unwrap();
        let stop = AtomicBool::new(false);
        let limits = Limits { count: None, duration: Some(Nanos::secs(600)), ..small() };
        let tell = &mut |event: &Event<'_>| {
            let Event::Progress { progress, .. } = event else { return };
            stop.store(progress.total.operations() > 0, Ordering::Release);
        };
        let measured =
            run(profile, variant, &place(home.path()), &limits, &RealClock::start(), &stop, tell).unwrap();
        assert_eq!(measured.ending, Ending::Interrupted, "{typed}");
        assert!(measured.transaction_count() > 0, "{typed}");
        assert_empty(home.path(), typed);
    }
}

#[test]
fn a_failing_store_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    for (verb, errno) in [("append", Errno::ENOSPC), ("fsync", Errno::EIO), ("create", Errno::EROFS)] {
        let open = |path: &Path| -> plumb_block::Result<Box<dyn FileStore>> {
            std::fs::write(path.join("something"), "that was written").unwrap();
            let failing = Some(FailurePlan { verb, call: 1, errno });
            Ok(Box::new(FakeStore { failing, ..FakeStore::default() }))
        };
        let place = Directory { path: home.path().to_owned(), free: None, open: &open };
        let error = run_in("varmail", &place, &small()).unwrap_err();
        let is_right = match verb {
            "append" => matches!(error, Error::Full { .. }),
            "fsync" => matches!(error, Error::SyncFailed { .. }),
            _ => matches!(error, Error::Call { .. }),
        };
        assert!(is_right, "{verb}: {error:?}");
        assert_empty(home.path(), verb);
    }
    let error = run_in("varmail", &place(&home.path().join("missing")), &small()).unwrap_err();
    assert!(matches!(error, Error::Directory { operation: "create", .. }), "{error:?}");
}

#[test]
fn only_its_own_directory_is_touched() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("mail"), "of the user").unwrap();
    let seen = AtomicBool::new(false);
    let open = |path: &Path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("plumb-load-") && path.parent() == Some(home.path()), "{name}");
        seen.store(true, Ordering::Release);
        open(path)
    };
    let place = Directory { path: home.path().to_owned(), free: None, open: &open };
    run_in("varmail", &place, &small()).unwrap();
    assert!(seen.into_inner());
    assert_eq!(std::fs::read_to_string(home.path().join("mail")).unwrap(), "of the user");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
}

#[test]
fn where_room_is_short_less_is_made_and_that_is_said() {
    let home = tempfile::tempdir().unwrap();
    let with_free = |free| Directory { path: home.path().to_owned(), free: Some(free), open: &open };
    let limits = Limits { count: Some(50), ..Limits::default() };
    let measured = run_in("fileserver", &with_free(Bytes::mib(80)), &limits).unwrap();
    let note = "the files were scaled to 2 % of the profile's, because it takes about 2 GiB and only 80 MiB are free";
    assert_eq!(measured.transactions.as_ref().unwrap().notes, [note]);
    let error = run_in("fileserver", &with_free(Bytes::mib(30)), &limits).unwrap_err();
    assert!(error.to_string().contains("needs 2 GiB, but only 30 MiB are free"), "{error}");
    let error = run_in("sqlite-wal", &with_free(Bytes::mib(7)), &limits).unwrap_err();
    assert!(error.to_string().contains("needs 8 MiB, but only 7 MiB are free"), "{error}");
    assert_empty(home.path(), "refused");
}

#[test]
fn a_tree_is_done_once_and_a_time_that_was_asked_for_wins() {
    let home = tempfile::tempdir().unwrap();
    let once = Limits { scale: Some(0.01), threads: Some(2), ..Limits::default() };
    let measured = run_in("unpack:syncfs", &place(home.path()), &once).unwrap();
    assert_eq!(measured.transaction_count(), 200, "a hundredth of 10,000 files for each of two threads");
    assert_eq!(measured.durable.count(), 2, "one syncfs for each tree");
    let timed = Limits { duration: Some(Nanos::millis(1)), ..once };
    let measured = run_in("copy", &place(home.path()), &timed).unwrap();
    assert!(measured.length >= Nanos::millis(1));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let refused =
        |typed, place: &Directory<'_>, limits| run_in(typed, place, &limits).unwrap_err().to_string();
    assert!(refused("ceph-osd", &place(home.path()), small()).contains("run its scenario"));
    let (varmail, variant) = find("varmail").unwrap();
    let job = scenario(varmail, variant, "x", &small()).unwrap().spans.remove(0).jobs.remove(0);
    assert_eq!(job.program.map(|program| program.profile), Some(format!("varmail:{}", variant.name)));
    assert_eq!(job.workload.stop.operations, small().count);
    for (limits, field) in [
        (Limits { count: Some(0), ..small() }, "count"),
        (Limits { duration: Some(Nanos::ZERO), ..small() }, "duration"),
        (Limits { threads: Some(0), ..small() }, "threads"),
        (Limits { scale: Some(f64::NAN), ..small() }, "scale"),
        (Limits { scale: Some(1.5), ..small() }, "scale"),
    ] {
        let error = refused("varmail", &place(home.path()), limits);
        assert!(error.starts_with(field), "{error}");
    }
    let two = Limits { threads: Some(2), ..small() };
    assert!(refused("sqlite-wal", &place(home.path()), two).contains("SQLite has one writer"));
    assert_empty(home.path(), "refused");
}
