//! Test that exactly the known failures of SQLite and of plain files after a power cut are found on each file
//! system.
//!
//! Each subject is recorded once and a part of its states judged; with `PLUMB_SEED`, as in a soak, 20 inserts
//! and ten times as many.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plumb_block::{Nanos, RealClock};
use plumb_prove::explore::Limits;
use plumb_prove::file_system::FileSystem;
use plumb_prove::judge::Judge;
use plumb_prove::profile::DriveProfile;
use plumb_prove::session::RecordedWork;
use plumb_prove::subject::{Outcome, Subject, named};
use plumb_report::document::proof::FailureClass::{self, Corrupt, LostAcknowledged, OutOfOrder, Resurrected};
use plumb_testkit::loop_device::can_attach;

use crate::recorded_on;

/// Subject that records all failures, not only one of each class.
struct WatchedSubject {
    subject: Arc<dyn Subject>,
    failed: Mutex<BTreeSet<FoundFailure>>,
}

impl Subject for WatchedSubject {
    fn name(&self) -> String {
        self.subject.name()
    }

    fn set_up(&self, place: &Path) -> plumb_prove::Result<()> {
        self.subject.set_up(place)
    }

    fn work(&self, place: &Path, acknowledge: &mut dyn FnMut(u64)) -> plumb_prove::Result<()> {
        self.subject.work(place, acknowledge)
    }

    fn check(&self, place: &Path, required: Option<u64>) -> plumb_prove::Result<Outcome> {
        let outcome = self.subject.check(place, required)?;
        if let Outcome::Failed { class, words } = &outcome {
            self.failed.lock().unwrap().insert((required, *class, words.clone()));
        }
        Ok(outcome)
    }
}

/// Subject on a file system, recorded once.
struct Case {
    file_system: FileSystem,
    watched: Arc<WatchedSubject>,
    recorded: RecordedWork,
    directory: tempfile::TempDir,
}

/// Failure: the required acknowledgement, and the result of the checker.
type FoundFailure = (Option<u64>, FailureClass, String);

/// Seed of a soak.
fn seed() -> Option<u64> {
    std::env::var("PLUMB_SEED").ok().map(|seed| seed.parse().unwrap())
}

impl Case {
    /// Records the subject; `None` if recording is impossible here.
    fn new(subject: Arc<dyn Subject>, file_system: FileSystem) -> Option<Self> {
        if !can_attach() {
            return None;
        }
        let watched = Arc::new(WatchedSubject { subject, failed: Mutex::default() });
        let directory = tempfile::tempdir().unwrap();
        let recorded = recorded_on(file_system, &*watched, directory.path())?;
        assert_eq!(recorded.ended_because, None);
        Some(Self { file_system, watched, recorded, directory })
    }

    /// Returns all failures under a drive profile.
    fn failed(&self, profile: &str) -> BTreeSet<FoundFailure> {
        self.failed_within(profile, 500)
    }

    /// Returns the failures found in `states` states, or in ten times as many in a soak.
    fn failed_within(&self, profile: &str, states: u64) -> BTreeSet<FoundFailure> {
        self.watched.failed.lock().unwrap().clear();
        let subject = Arc::clone(&self.watched) as Arc<dyn Subject>;
        let judge = Judge {
            recorded: &self.recorded,
            profile: &DriveProfile::parse(profile, self.recorded.recording.logical_block).unwrap(),
            limits: match seed() {
                None => Limits { pieces: 3, commands: 3, states, visits: 0 },
                Some(_) => Limits { pieces: 8, commands: 8, states: 10 * states, visits: 0 },
            },
            seed: seed().unwrap_or(1),
            subject: &subject,
            file_system: self.file_system,
            workers: 0,
            directory: self.directory.path(),
            timeout: Nanos::secs(60),
            stop: &AtomicBool::new(false),
            clock: &RealClock::start(),
            until: Nanos(u64::MAX),
            mount_here: true,
            results: None,
        };
        let judged = judge.judge(&mut |_| ()).unwrap();
        let what = format!("{} on {} on {profile}", subject.name(), self.file_system);
        assert_eq!(judged.incomplete_because, None, "{what}");
        let failed = self.watched.failed.lock().unwrap().clone();
        println!("{what}: {:?}, {failed:?}", judged.counts);
        failed
    }
}

/// Returns the number of inserts, and the losses of a database in a mode.
fn database(
    file_system: FileSystem,
    mode: &str,
    deletes: u64,
    profile: &str,
) -> Option<(u64, BTreeSet<FoundFailure>)> {
    let inserts = if seed().is_some() { 20 } else { 3 };
    let subject = named(&format!("{mode},inserts={inserts},deletes={deletes}")).unwrap();
    let case = Case::new(subject, file_system)?;
    Some((inserts, case.failed(profile)))
}

/// A removed journal whose directory is not synced reappears, and rolls the last commit back.
fn delete_loses_the_last_commit(file_system: FileSystem) {
    let Some((inserts, failed)) =
        database(file_system, "sqlite:journal=delete,synchronous=full", 2, "volatile")
    else {
        return;
    };
    let classes: BTreeSet<_> = failed.iter().map(|(_, class, _)| *class).collect();
    assert_eq!(classes, [LostAcknowledged, Resurrected].into(), "{failed:?}");
    for (required, _, words) in &failed {
        let required = required.unwrap();
        let lost = match required {
            0..=1 => "the table is empty".to_owned(),
            _ => format!("the table is as it was after transaction {}", required - 1),
        };
        assert!(words.ends_with(&lost) && required <= inserts + 2, "{words}");
    }
}

fn these_modes_lose_nothing(file_system: FileSystem) {
    for mode in [
        "sqlite:journal=delete,synchronous=extra",
        "sqlite:journal=truncate,synchronous=full",
        "sqlite:journal=wal,synchronous=full",
        "redb:durability=immediate",
    ] {
        let Some((_, failed)) = database(file_system, mode, 0, "volatile") else { return };
        assert!(failed.is_empty(), "{mode} on {file_system}: {failed:?}");
    }
}

fn what_is_not_synced_is_lost_whole(file_system: FileSystem) {
    for mode in ["sqlite:journal=wal,synchronous=normal", "redb:durability=none"] {
        let Some((inserts, failed)) = database(file_system, mode, 0, "volatile") else { return };
        assert!(failed.iter().all(|(_, class, _)| *class == LostAcknowledged), "{mode}: {failed:?}");
        let lost_all =
            |(required, _, words): &FoundFailure| *required == Some(inserts) && words.ends_with("is empty");
        assert!(failed.iter().any(lost_all), "{mode}: {failed:?}");
    }
}

fn a_drive_that_lies_loses_what_else_is_safe(file_system: FileSystem) {
    let mode = "sqlite:journal=delete,synchronous=extra";
    let Some((_, failed)) = database(file_system, mode, 0, "lying:8") else { return };
    assert!(failed.iter().any(|(_, class, _)| *class == LostAcknowledged), "{failed:?}");
}

/// Tests that each protocol has the expected failures.
fn protocols_are_told_apart(file_system: FileSystem) {
    let is_btrfs = file_system == FileSystem::Btrfs;
    let expected = [
        ("write-no-fsync", Some(LostAcknowledged)),
        ("write-fsync", None),
        ("append-no-fsync", Some(LostAcknowledged)),
        ("append-fsync", None),
        ("overwrite-no-fsync", Some(LostAcknowledged)),
        ("overwrite-fsync", None),
        ("overwrite-16k-fsync", (!is_btrfs).then_some(Corrupt)),
        ("create-no-dirsync", None),
        ("create-dirsync", None),
        ("create-dirsync-no-fsync", Some(LostAcknowledged)),
        ("rename-no-fsync", Some(Corrupt)),
        ("rename-fsync-no-dirsync", Some(LostAcknowledged)),
        ("fsync-after-rename", None),
        ("rename-fsync-dirsync", None),
        ("mkdir-no-dirsync", Some(LostAcknowledged)),
        ("mkdir-dirsync", None),
        ("unlink-no-dirsync", Some(Resurrected)),
        ("unlink-dirsync", None),
        ("ordered-no-fsync", Some(OutOfOrder)),
        ("ordered-fsync", None),
    ];
    for (protocol, class) in expected {
        let Some(case) = Case::new(named(&format!("files:{protocol}")).unwrap(), file_system) else { return };
        let failed = case.failed("volatile");
        let found: BTreeSet<_> = failed.iter().map(|(_, class, _)| *class).collect();
        let is_luck = match protocol {
            // ext4 begins to write the data when a file is replaced, so they may be durable early.
            "rename-no-fsync" => file_system == FileSystem::Ext4 && found.is_empty(),
            // The file system also commits on a timer: between the rename and the fsync the name is durable
            // without its data.
            "fsync-after-rename" => found == [Corrupt].into(),
            _ => false,
        };
        assert!(is_luck || found == class.into_iter().collect(), "{protocol} on {file_system}: {failed:?}");
    }
}

/// Three random operations, each made durable as POSIX requires before it is acknowledged.
struct Honest {
    seed: u64,
}

impl Honest {
    /// Returns the operations, each with the number of its acknowledgement.
    fn operations(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut state = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (1..=3).map(move |number| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (number, (state >> 33) % 4)
        })
    }
}

fn synced(path: &Path, text: &str, is_appended: bool) -> std::io::Result<()> {
    let mut file =
        File::options().create(true).write(true).append(is_appended).truncate(!is_appended).open(path)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all())
}

impl Subject for Honest {
    fn name(&self) -> String {
        format!("honest operations of seed {}", self.seed)
    }

    fn set_up(&self, place: &Path) -> plumb_prove::Result<()> {
        (1..=3).for_each(|number| std::fs::write(place.join(format!("old-{number}")), "old").unwrap());
        std::fs::write(place.join("log"), "").unwrap();
        Ok(())
    }

    fn work(&self, place: &Path, acknowledge: &mut dyn FnMut(u64)) -> plumb_prove::Result<()> {
        for (number, operation) in self.operations() {
            let text = format!("{number}\n");
            match operation {
                0 => synced(&place.join(format!("new-{number}")), &text, false).unwrap(),
                1 => {
                    synced(&place.join("temporary"), &text, false).unwrap();
                    std::fs::rename(place.join("temporary"), place.join("document")).unwrap();
                }
                2 => synced(&place.join("log"), &text, true).unwrap(),
                _ => std::fs::remove_file(place.join(format!("old-{number}"))).unwrap(),
            }
            File::open(place).unwrap().sync_all().unwrap();
            acknowledge(number);
        }
        Ok(())
    }

    fn check(&self, place: &Path, required: Option<u64>) -> plumb_prove::Result<Outcome> {
        let read = |name: &str| std::fs::read_to_string(place.join(name)).unwrap_or_default();
        for (number, operation) in self.operations().take_while(|(number, _)| Some(*number) <= required) {
            let text = format!("{number}\n");
            let is_there = match operation {
                0 => read(&format!("new-{number}")) == text,
                1 => read("document") >= text,
                2 => read("log").contains(&text),
                _ => !place.join(format!("old-{number}")).exists(),
            };
            if !is_there {
                let words = format!("operation {operation} of acknowledgement {number} is gone");
                return Ok(Outcome::Failed { class: LostAcknowledged, words });
            }
        }
        Ok(Outcome::Intact)
    }
}

/// Runs a third of 50 seeds in a soak, a third of those otherwise.
fn honest_runs_raise_no_alarm(file_system: FileSystem, first: u64) {
    for seed in (first..50).step_by(if seed().is_some() { 3 } else { 9 }) {
        let Some(case) = Case::new(Arc::new(Honest { seed }), file_system) else { return };
        let failed = case.failed_within("volatile", 60);
        assert!(failed.is_empty(), "seed {seed} on {file_system}: {failed:?}");
    }
}

/// All states of a btrfs have one UUID, and the kernel may show the mount of one under the name of an earlier
/// device, so tests on btrfs take turns.
fn turn(file_system: FileSystem) -> Option<MutexGuard<'static, ()>> {
    static BTRFS: Mutex<()> = Mutex::new(());
    (file_system == FileSystem::Btrfs).then(|| BTRFS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Defines the tests of one file system.
macro_rules! on {
    ($name:ident, $file_system:expr, $first_seed:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn sqlite_with_a_deleted_journal_loses_the_last_commit() {
                let _turn = turn($file_system);
                delete_loses_the_last_commit($file_system);
            }

            #[test]
            fn databases_lose_nothing_in_their_durable_modes() {
                let _turn = turn($file_system);
                these_modes_lose_nothing($file_system);
            }

            #[test]
            fn databases_lose_all_that_they_do_not_sync() {
                let _turn = turn($file_system);
                what_is_not_synced_is_lost_whole($file_system);
            }

            #[test]
            fn sqlite_loses_commits_on_a_drive_that_lies() {
                let _turn = turn($file_system);
                a_drive_that_lies_loses_what_else_is_safe($file_system);
            }

            #[test]
            fn the_protocols_of_files_are_told_apart() {
                let _turn = turn($file_system);
                protocols_are_told_apart($file_system);
            }

            #[test]
            fn no_honest_run_raises_an_alarm() {
                let _turn = turn($file_system);
                honest_runs_raise_no_alarm($file_system, $first_seed);
            }
        }
    };
}

on!(ext4, FileSystem::Ext4, 0);
on!(xfs, FileSystem::Xfs, 1);
on!(btrfs, FileSystem::Btrfs, 2);
