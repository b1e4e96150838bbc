//! Subjects recorded at their work: the order of acknowledgements and commands, misbehaving programs, and the
//! removal of mounts and attachments.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_block::{Bytes, Nanos, Op};
use plumb_prove::ErrorKind;
use plumb_prove::file_system::FileSystem;
use plumb_prove::recording::{Event, Recording};
use plumb_prove::session::{RecordOptions, RecordedWork, record};
use plumb_prove::subject::{CheckBy, Outcome, Program, Programs, Subject};
use plumb_report::document::proof::FailureClass;
use plumb_testkit::loop_device::can_attach;

use crate::record_options;

/// Appends a line, syncs it and acknowledges, five times.
const APPEND: &str = "for n in 1 2 3 4 5; do echo $n >> log; sync log; echo $n > $PLUMB_ACK; done";

fn programs(run: &str) -> Programs {
    Programs {
        run: Program::acknowledging(run.to_owned()),
        check: CheckBy::Command("exit 0".to_owned()),
        recover: None,
        setup: None,
        timeout: Nanos::secs(60),
        stop: Arc::default(),
    }
}

/// Records in a separate directory, and checks that nothing is left there.
fn recorded_on(
    file_system: FileSystem,
    subject: &dyn Subject,
    timeout: Nanos,
) -> plumb_prove::Result<RecordedWork> {
    let directory = tempfile::tempdir().unwrap();
    let options = RecordOptions { timeout, ..record_options(file_system, directory.path()) };
    let recorded = record(subject, &options, &AtomicBool::new(false));
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&directory.path().display().to_string()), "left mounted");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "something was left");
    recorded
}

fn recorded(subject: &dyn Subject) -> plumb_prove::Result<RecordedWork> {
    recorded_on(FileSystem::Ext4, subject, Nanos::secs(60))
}

/// Returns the acknowledgements of the work, each with the number of flushes completed since the previous
/// one.
fn acknowledged(recorded: &RecordedWork) -> Vec<(u64, usize)> {
    let RecordedWork { recording, from, until, .. } = recorded;
    let mut flushes = 0;
    let mut found = Vec::new();
    for (_, event) in &recording.events[*from..*until] {
        match event {
            Event::Completed(id) if recording.commands[id.0 as usize].op == Op::Flush => flushes += 1,
            Event::Acknowledged(number) => found.push((*number, std::mem::take(&mut flushes))),
            _ => {}
        }
    }
    found
}

fn is_in_order(recording: &Recording) -> bool {
    recording.events.is_sorted_by_key(|(at, _)| *at)
}

#[test]
fn a_small_program_on_each_file_system() {
    if !can_attach() {
        return;
    }
    for file_system in FileSystem::ALL.into_iter().filter(|file_system| !file_system.is_posix()) {
        let work = if file_system == FileSystem::None {
            "for n in 1 2 3 4 5; do echo $n | dd of=$PLUMB_DEVICE seek=$n conv=fsync,notrunc status=none; echo $n > $PLUMB_ACK; done"
        } else {
            APPEND
        };
        let subject = programs(work);
        let recorded = match recorded_on(file_system, &subject, Nanos::secs(60)) {
            Err(error) if error.kind == ErrorKind::NotMeasured => {
                plumb_testkit::skip(&error.to_string());
                continue;
            }
            recorded => recorded.unwrap(),
        };
        let found = acknowledged(&recorded);
        let numbers: Vec<u64> = found.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5], "{file_system}");
        assert!(found.iter().all(|(_, flushes)| *flushes > 0), "{file_system}: {found:?}");
        assert!(is_in_order(&recorded.recording));
        let facts = &recorded.facts;
        assert_eq!(
            (facts.serialised_because.as_deref(), facts.acknowledged_by.as_deref()),
            (None, Some("control-file"))
        );
        assert!(facts.acknowledgements == 5 && facts.writes >= 5 && facts.flushes >= 5, "{facts:?}");
        assert_eq!(recorded.ended_because, None);
        let before = &recorded.recording.events[..recorded.from];
        assert!(before.iter().all(|(_, event)| !matches!(event, Event::Acknowledged(_))));
    }
}

/// Subject in process.
struct InProcess;

impl Subject for InProcess {
    fn name(&self) -> String {
        "in process".to_owned()
    }

    fn set_up(&self, place: &Path) -> plumb_prove::Result<()> {
        std::fs::write(place.join("old"), "x").unwrap();
        Ok(())
    }

    fn work(&self, place: &Path, acknowledge: &mut dyn FnMut(u64)) -> plumb_prove::Result<()> {
        let file = std::fs::File::create(place.join("new")).unwrap();
        for number in 1..=3 {
            file.sync_all().unwrap();
            acknowledge(number);
        }
        Ok(())
    }

    fn check(&self, _place: &Path, _required: Option<u64>) -> plumb_prove::Result<Outcome> {
        Ok(Outcome::Intact)
    }
}

#[test]
fn a_subject_in_process_is_recorded_from_where_its_work_begins() {
    if !can_attach() {
        return;
    }
    let recorded = recorded(&InProcess).unwrap();
    assert!(acknowledged(&recorded).iter().all(|(_, flushes)| *flushes > 0));
    let mut open = std::collections::HashSet::new();
    for (_, event) in &recorded.recording.events[..recorded.from] {
        match event {
            Event::Submitted(id) => drop(open.insert(*id)),
            Event::Completed(id) => drop(open.remove(id)),
            _ => {}
        }
    }
    assert!(open.is_empty(), "the work began with commands in flight");
    let last = recorded.recording.events[..recorded.from].iter().rev().find_map(|(_, event)| match event {
        Event::Completed(id) => Some(recorded.recording.commands[id.0 as usize].op),
        _ => None,
    });
    assert_eq!(last, Some(Op::Flush), "what was set up is not durable");
}

#[test]
fn acknowledgements_by_descriptor_and_on_stdout() {
    if !can_attach() {
        return;
    }
    for (ack, line) in [
        ("fd:3", "echo 1 >&3; echo ACK 2 >&3; printf 3 >&3; echo ACK 9"),
        ("stdout", "echo ACK 1; echo 8; echo ACK 2; printf 'ACK 3'"),
    ] {
        let mut subject = programs(line);
        subject.run.ack = ack.parse().unwrap();
        let recorded = recorded(&subject).unwrap();
        let numbers: Vec<u64> = acknowledged(&recorded).iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [1, 2, 3], "{ack}");
        assert_eq!(recorded.facts.acknowledged_by.as_deref(), Some(subject.run.ack.name()));
    }
}

#[test]
fn a_program_that_fails_says_how() {
    if !can_attach() {
        return;
    }
    for (line, said) in [
        ("echo some words >&2; exit 3", "ended with exit status: 3: some words"),
        ("no-such-program", "not found"),
        ("echo one > $PLUMB_ACK", "\"one\" is not an acknowledgement: expected a number"),
        ("kill -9 $$", "ended with signal: 9"),
        ("yes | head -c 20000000; exit 1", "ended with exit status: 1"),
    ] {
        let error = recorded(&programs(line)).unwrap_err();
        let text = plumb_block::in_one_line(&error);
        assert!(text.contains(said) && text.len() < 8000, "{line}: {text}");
    }
    let partly = [
        ("echo 1 > $PLUMB_ACK; exit 3", "ended with exit status: 3"),
        ("echo 2 > $PLUMB_ACK; echo 1 > $PLUMB_ACK; echo 3 > $PLUMB_ACK", "1 was acknowledged after 2"),
        ("echo 1 > $PLUMB_ACK; echo x > $PLUMB_ACK", "\"x\" is not an acknowledgement"),
    ];
    for (line, said) in partly {
        let recorded = recorded(&programs(line)).unwrap();
        assert_eq!(acknowledged(&recorded).len(), 1, "{line}");
        let because = recorded.ended_because.unwrap();
        assert!(because.contains(said), "{line}: {because}");
    }
    let recorded = recorded(&programs("true")).unwrap();
    assert_eq!((recorded.facts.acknowledgements, recorded.facts.acknowledged_by), (0, None));
}

#[test]
fn a_program_that_hangs_is_killed_with_its_children() {
    if !can_attach() {
        return;
    }
    let line = "echo 1 > $PLUMB_ACK; (sleep 1000 & sleep 1000) & exec sleep 1000";
    let recorded = recorded_on(FileSystem::Ext4, &programs(line), Nanos::secs(5)).unwrap();
    let because = recorded.ended_because.unwrap();
    assert!(because.contains("was killed"), "{because}");
    // A process left running in the mount does not keep the mount busy.
    let recorded =
        recorded_on(FileSystem::Ext4, &programs("sleep 1000 & echo 1 > $PLUMB_ACK"), Nanos::secs(60));
    assert_eq!(recorded.unwrap().ended_because, None);
}

#[test]
fn an_interrupted_recording_keeps_what_it_has() {
    if !can_attach() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let options = record_options(FileSystem::Ext4, directory.path());
    let flag = directory.path().join("acknowledged");
    let subject = programs(&format!("echo 1 > $PLUMB_ACK; : > {}; exec sleep 1000", flag.display()));
    let stop = AtomicBool::new(false);
    let recorded = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !flag.exists() {
                std::thread::yield_now();
            }
            stop.store(true, Ordering::Release);
        });
        record(&subject, &options, &stop).unwrap()
    });
    assert!(recorded.ended_because.unwrap().contains("interrupted"));
    assert_eq!(recorded.facts.acknowledgements, 1);
    let error = record(&subject, &options, &AtomicBool::new(true)).unwrap_err();
    assert!(error.to_string().contains("interrupted before the work began"), "{error}");
}

#[test]
fn what_is_missing_is_said_before_anything_is_made() {
    if !can_attach() {
        return;
    }
    let nowhere = record_options(FileSystem::Xfs, Path::new("/nonexistent"));
    let mut options = RecordOptions { size: Bytes::mib(64), ..nowhere };
    let failed =
        |options: &RecordOptions| record(&programs("true"), options, &AtomicBool::new(false)).unwrap_err();
    assert!(failed(&options).to_string().contains("300 MiB"), "{}", failed(&options));
    options.file_system = FileSystem::None;
    assert!(failed(&options).to_string().contains("name a directory that exists"), "{}", failed(&options));
}

#[test]
fn a_checker_says_what_it_found_by_its_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let check = |line: &str, required| {
        let subject = Programs { check: CheckBy::Command(line.to_owned()), ..programs("true") };
        subject.check(directory.path(), required)
    };
    assert_eq!(check("test \"$PLUMB_REQUIRED\" = 7", Some(7)).unwrap(), Outcome::Intact);
    assert_eq!(check("test -z \"$PLUMB_REQUIRED\" && test \"$PWD\" != /", None).unwrap(), Outcome::Intact);
    let lost = Outcome::Failed { class: FailureClass::LostAcknowledged, words: "7 is missing".to_owned() };
    assert_eq!(check("echo 7 is missing; exit 1", Some(7)).unwrap(), lost);
    let corrupt = Outcome::Failed { class: FailureClass::Corrupt, words: "exit status: 2".to_owned() };
    assert_eq!(check("exit 2", Some(7)).unwrap(), corrupt);
    for line in ["exit 3", "no-such-checker", "kill -9 $$"] {
        let error = check(line, None).unwrap_err().to_string();
        assert!(error.contains("the check itself failed"), "{line}: {error}");
    }
    let Outcome::Failed { words, .. } =
        check("yes many words | head -c 9000000; echo the end; exit 1", None).unwrap()
    else {
        panic!("intact")
    };
    assert!(words.len() <= 4096 && words.ends_with("the end"), "{} bytes", words.len());
    let hangs = Programs {
        check: CheckBy::Command("sleep 1000 & sleep 1000".to_owned()),
        timeout: Nanos::millis(200),
        ..programs("true")
    };
    let error = hangs.check(directory.path(), None).unwrap_err();
    assert!(error.to_string().contains("has not ended after 0.2 s"), "{error}");
}
