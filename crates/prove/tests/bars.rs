//! What is known of SQLite and of plain files after a power cut is found on each file system, and nothing else is.
//!
//! Each subject is recorded once and a part of its states judged; with `PLUMB_SEED`, as in a soak, 20 inserts and ten times as many.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plumb_block::Bytes;
use plumb_prove::explore::Limits;
use plumb_prove::file_system::{FileSystem, FileSystemError};
use plumb_prove::judge::Judge;
use plumb_prove::profile::DriveProfile;
use plumb_prove::session::{RecordOptions, Recorded, SessionError, record};
use plumb_prove::subject::{Outcome, Subject, SubjectError, named};
use plumb_report::document::proof::FailureClass::{self, Corrupt, LostAcknowledged, OutOfOrder, Resurrected};

/// A subject whose failures are all put down, not only one of each class.
struct Watched {
    subject: Arc<dyn Subject>,
    failed: Mutex<BTreeSet<Failed>>,
}

impl Subject for Watched {
    fn name(&self) -> String {
        self.subject.name()
    }

    fn set_up(&self, place: &Path) -> Result<(), SubjectError> {
        self.subject.set_up(place)
    }

    fn work(&self, place: &Path, acknowledge: &mut dyn FnMut(u64)) -> Result<(), SubjectError> {
        self.subject.work(place, acknowledge)
    }

    fn check(&self, place: &Path, required: Option<u64>) -> Result<Outcome, SubjectError> {
        let outcome = self.subject.check(place, required)?;
        if let Outcome::Failed { class, words } = &outcome {
            self.failed.lock().unwrap().insert((required, *class, words.clone()));
        }
        Ok(outcome)
    }
}

/// A subject on a file system, recorded once.
struct Case {
    file_system: FileSystem,
    watched: Arc<Watched>,
    recorded: Recorded,
    directory: tempfile::TempDir,
}

/// A failure: what was required, and what the checker said.
type Failed = (Option<u64>, FailureClass, String);

/// The seed of a soak.
fn seed() -> Option<u64> {
    std::env::var("PLUMB_SEED").ok().map(|seed| seed.parse().unwrap())
}

impl Case {
    /// `None` if nothing can be recorded here.
    fn of(subject: &str, file_system: FileSystem) -> Option<Self> {
        if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
            plumb_testkit::skip("recording needs root and /dev/fuse");
            return None;
        }
        let watched = Arc::new(Watched { subject: named(subject).unwrap(), failed: Mutex::default() });
        let directory = tempfile::tempdir().unwrap();
        let options = RecordOptions {
            size: Bytes::mib(file_system.size_min_mib().max(64)),
            logical_block: Bytes(512),
            file_system,
            directory: directory.path().to_owned(),
            timeout: Duration::from_secs(60),
        };
        let recorded = match record(&*watched, &options, &AtomicBool::new(false)) {
            Err(SessionError::FileSystem(error @ FileSystemError::NoProgram { .. })) => {
                plumb_testkit::skip(&error.to_string());
                return None;
            }
            recorded => recorded.unwrap(),
        };
        assert_eq!(recorded.ended_because, None);
        Some(Self { file_system, watched, recorded, directory })
    }

    /// All failures under a drive profile.
    fn failed(&self, profile: &str) -> BTreeSet<Failed> {
        self.watched.failed.lock().unwrap().clear();
        let subject = Arc::clone(&self.watched) as Arc<dyn Subject>;
        let judge = Judge {
            recording: &self.recorded.recording,
            from: self.recorded.from,
            until: self.recorded.until,
            profile: &DriveProfile::of(profile, self.recorded.recording.logical_block).unwrap(),
            limits: match seed() {
                None => Limits { pieces: 4, commands: 4, states: 500 },
                Some(_) => Limits { pieces: 8, commands: 8, states: 5_000 },
            },
            seed: seed().unwrap_or(1),
            subject: &subject,
            file_system: self.file_system,
            workers: 0,
            directory: self.directory.path(),
            timeout: Duration::from_secs(60),
            stop: &AtomicBool::new(false),
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

/// What SQLite loses in a mode, with so many inserts.
fn sqlite(
    file_system: FileSystem,
    mode: &str,
    deletes: u64,
    profile: &str,
) -> Option<(u64, BTreeSet<Failed>)> {
    let inserts = if seed().is_some() { 20 } else { 4 };
    let case = Case::of(&format!("sqlite:{mode},inserts={inserts},deletes={deletes}"), file_system)?;
    Some((inserts, case.failed(profile)))
}

/// The journal that is removed and whose directory is not synced comes back, and rolls the last commit back.
fn delete_loses_the_last_commit(file_system: FileSystem) {
    let Some((inserts, failed)) = sqlite(file_system, "journal=delete,synchronous=full", 2, "volatile")
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
        "journal=delete,synchronous=extra",
        "journal=truncate,synchronous=full",
        "journal=wal,synchronous=full",
    ] {
        let Some((_, failed)) = sqlite(file_system, mode, 0, "volatile") else { return };
        assert!(failed.is_empty(), "{mode} on {file_system}: {failed:?}");
    }
}

fn a_log_that_is_not_synced_loses_all(file_system: FileSystem) {
    let mode = "journal=wal,synchronous=normal";
    let Some((inserts, failed)) = sqlite(file_system, mode, 0, "volatile") else { return };
    assert!(failed.iter().all(|(_, class, _)| *class == LostAcknowledged), "{failed:?}");
    let lost_all = |(required, _, words): &Failed| *required == Some(inserts) && words.ends_with("is empty");
    assert!(failed.iter().any(lost_all), "{failed:?}");
}

fn a_drive_that_lies_loses_what_else_is_safe(file_system: FileSystem) {
    let mode = "journal=delete,synchronous=extra";
    let Some((_, failed)) = sqlite(file_system, mode, 0, "lying:8") else { return };
    assert!(failed.iter().any(|(_, class, _)| *class == LostAcknowledged), "{failed:?}");
}

/// Each protocol, and what is found of it.
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
        let Some(case) = Case::of(&format!("files:{protocol}"), file_system) else { return };
        let failed = case.failed("volatile");
        let found: BTreeSet<_> = failed.iter().map(|(_, class, _)| *class).collect();
        // ext4 begins to write the data when a file is replaced: they may be durable before they have to be.
        let is_luck = protocol == "rename-no-fsync" && file_system == FileSystem::Ext4 && found.is_empty();
        assert!(is_luck || found == class.into_iter().collect(), "{protocol} on {file_system}: {failed:?}");
    }
}

/// The tests of one file system.
macro_rules! on {
    ($name:ident, $file_system:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn sqlite_with_a_deleted_journal_loses_the_last_commit() {
                delete_loses_the_last_commit($file_system);
            }

            #[test]
            fn sqlite_loses_nothing_in_its_durable_modes() {
                these_modes_lose_nothing($file_system);
            }

            #[test]
            fn sqlite_with_a_log_that_is_not_synced_loses_all() {
                a_log_that_is_not_synced_loses_all($file_system);
            }

            #[test]
            fn sqlite_loses_commits_on_a_drive_that_lies() {
                a_drive_that_lies_loses_what_else_is_safe($file_system);
            }

            #[test]
            fn the_protocols_of_files_are_told_apart() {
                protocols_are_told_apart($file_system);
            }
        }
    };
}

on!(ext4, FileSystem::Ext4);
on!(xfs, FileSystem::Xfs);
on!(btrfs, FileSystem::Btrfs);
