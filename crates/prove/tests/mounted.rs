//! States of real file systems, mounted and checked.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::{Bytes, Nanos, RealClock};
use plumb_prove::Error;
use plumb_prove::explore::Limits;
use plumb_prove::file_system::FileSystem;
use plumb_prove::judge::{Judge, JudgeResult};
use plumb_prove::profile::DriveProfile;
use plumb_prove::subject::{Outcome, Subject};
use plumb_report::document::proof::FailureClass;

use crate::recorded_on;

/// Numbered files, each synced or not before it is acknowledged.
struct Files {
    synced: bool,
}

impl Files {
    fn content(number: u64) -> Vec<u8> {
        format!("{number:08}").into_bytes().repeat(1500)
    }
}

fn failed(error: &std::io::Error) -> Error {
    Error::failed("files", error)
}

impl Subject for Files {
    fn name(&self) -> String {
        "files".to_owned()
    }

    fn set_up(&self, _: &Path) -> plumb_prove::Result<()> {
        Ok(())
    }

    fn work(&self, place: &Path, acknowledge: &mut dyn FnMut(u64)) -> plumb_prove::Result<()> {
        for number in 1..=4 {
            let written = File::create(place.join(number.to_string())).and_then(|mut file| {
                file.write_all(&Self::content(number))?;
                if self.synced { file.sync_all() } else { Ok(()) }
            });
            written.map_err(|error| failed(&error))?;
            acknowledge(number);
        }
        Ok(())
    }

    fn check(&self, place: &Path, required: Option<u64>) -> plumb_prove::Result<Outcome> {
        for number in 1..=required.unwrap_or(0) {
            let class = match fs::read(place.join(number.to_string())) {
                Ok(bytes) if bytes == Self::content(number) => continue,
                Ok(_) => FailureClass::Corrupt,
                Err(_) => FailureClass::LostAcknowledged,
            };
            return Ok(Outcome::Failed { class, words: format!("file {number}") });
        }
        // Data written by a check, including its traces in the journal, must be invisible to the next check.
        match fs::create_dir(place.join("checked")).and_then(|()| File::open(place)?.sync_all()) {
            Ok(()) => Ok(Outcome::Intact),
            Err(error) => Ok(Outcome::Failed { class: FailureClass::Checker, words: error.to_string() }),
        }
    }
}

/// Returns the mounts of this process that mention `directory`.
fn left(directory: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let here = mounts.lines().filter(|line| line.contains(&directory.display().to_string()));
    here.collect::<Vec<_>>().join("\n")
}

fn judged(file_system: FileSystem, synced: bool, workers: &[usize]) -> Option<JudgeResult> {
    let directory = tempfile::tempdir().unwrap();
    let subject: Arc<dyn Subject> = Arc::new(Files { synced });
    let recorded = recorded_on(file_system, &*subject, directory.path())?;
    let mut all = workers.iter().map(|workers| {
        let judge = Judge {
            recorded: &recorded,
            profile: &DriveProfile::parse("volatile", Bytes(512)).unwrap(),
            limits: Limits { states: 150, ..Limits::default() },
            seed: 1,
            subject: &subject,
            file_system,
            workers: *workers,
            directory: directory.path(),
            timeout: Nanos::secs(60),
            stop: &AtomicBool::new(false),
            clock: &RealClock::start(),
            until: Nanos(u64::MAX),
            mount_here: false,
            results: None,
        };
        let judged = judge.judge(&mut |_| ()).unwrap();
        assert_eq!(judged.incomplete_because, None);
        assert!(judged.notes.is_empty(), "{:?}", judged.notes);
        assert_eq!(left(directory.path()), "");
        judged
    });
    let first = all.next()?;
    for other in all {
        assert_eq!(
            (other.counts.distinct, other.counts.failing),
            (first.counts.distinct, first.counts.failing)
        );
        assert_eq!((&other.windows, &other.failing), (&first.windows, &first.failing));
    }
    Some(first)
}

#[test]
fn files_that_were_synced_are_there_in_every_state() {
    for file_system in [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs] {
        let Some(judged) = judged(file_system, true, &[1, 3]) else { continue };
        assert!(judged.counts.distinct > 20 && judged.failing.is_empty(), "{file_system}: {judged:?}");
        assert!(judged.counts.checked <= judged.counts.distinct);
    }
}

#[test]
fn files_that_were_not_synced_are_lost() {
    let Some(judged) = judged(FileSystem::Ext4, false, &[1]) else { return };
    let lost = &judged.failing[&FailureClass::LostAcknowledged];
    assert_eq!((judged.counts.failing, lost.words.as_str()), (judged.counts.distinct, "file 1"));
}
