//! Proofs of recordings that are fully known by hand: the results, and the proposed changes.

use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::{Bytes, Lba, LbaRange, Nanos, Op, RealClock};
use plumb_prove::explore::{Choice, Limits};
use plumb_prove::file_system::FileSystem;
use plumb_prove::judge::Judge;
use plumb_prove::profile::DriveProfile;
use plumb_prove::proof::{KeptRecording, ProofRun, Request, SubjectWords, prove};
use plumb_prove::recording::{Event, Recording};
use plumb_prove::session::RecordedWork;
use plumb_prove::subject::{Outcome, Subject};
use plumb_report::document::proof::{ChangeKind, FailureClass, Fate, Lane, VerifiedBy};
use plumb_report::document::{Environment, ProofDocument};
use plumb_report::{Format, Style, render};
use plumb_testkit::loop_device::can_attach;

use crate::recorded_whole;

const BLOCK: u64 = 4096;

/// Checker: block 0 must hold the last acknowledgement or a later one, and block 1 none later than block 0.
struct Counter;

impl Subject for Counter {
    fn name(&self) -> String {
        "a counter".to_owned()
    }

    fn set_up(&self, _: &Path) -> plumb_prove::Result<()> {
        Ok(())
    }

    fn check(&self, place: &Path, required: Option<u64>) -> plumb_prove::Result<Outcome> {
        let drive = std::fs::File::open(place).unwrap();
        let block = |lba: u64| {
            let mut bytes = [0];
            drive.read_exact_at(&mut bytes, lba * BLOCK).unwrap();
            u64::from(bytes[0])
        };
        let failed = |class, words: &str| Ok(Outcome::Failed { class, words: words.to_owned() });
        match (block(0), block(1)) {
            (first, _) if first < required.unwrap_or(0) => {
                failed(FailureClass::LostAcknowledged, &format!("{first} of {}", required.unwrap_or(0)))
            }
            (first, second) if second > first => failed(FailureClass::OutOfOrder, "the second is ahead"),
            _ => Ok(Outcome::Intact),
        }
    }
}

/// Step made for each number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Writes the number to a block.
    Write(u64),
    Flush,
    /// Writes the number to a block, and completes a flush submitted before.
    WriteBesideFlush(u64),
    Acknowledge,
}

/// Records the steps for the numbers 1 to 3.
fn recorded(steps: &[Step]) -> RecordedWork {
    let mut recording = Recording::of_blank(Bytes::mib(1), Bytes(BLOCK));
    let mut now = 0;
    for number in 1..=3_u8 {
        for step in steps {
            now += 1_000_000_000;
            let (op, range, bytes) = match step {
                Step::Write(lba) => {
                    (Op::Write { fua: false }, LbaRange::new(Lba(*lba), 1), vec![number; BLOCK as usize])
                }
                Step::WriteBesideFlush(lba) => {
                    let (range, bytes) = (LbaRange::new(Lba(*lba), 1), [number; BLOCK as usize]);
                    let write = recording.submit(Nanos(now), Op::Write { fua: false }, range, &bytes);
                    let flush = recording.submit(Nanos(now), Op::Flush, LbaRange::EMPTY, &[]);
                    recording.happened(Nanos(now + 1), Event::Completed(write));
                    recording.happened(Nanos(now + 2), Event::Completed(flush));
                    continue;
                }
                Step::Flush => (Op::Flush, LbaRange::EMPTY, Vec::new()),
                Step::Acknowledge => {
                    recording.happened(Nanos(now), Event::Acknowledged(number.into()));
                    continue;
                }
            };
            let command = recording.submit(Nanos(now), op, range, &bytes);
            recording.happened(Nanos(now + 1), Event::Completed(command));
        }
    }
    recorded_whole(recording)
}

/// Proves the recording; `None` if nothing can be attached.
fn proved(
    recorded: &RecordedWork,
    profiles: &[&str],
    change: impl FnOnce(&mut Request<'_>),
) -> Option<ProofDocument> {
    if !can_attach() {
        return None;
    }
    let subject: Arc<dyn Subject> = Arc::new(Counter);
    let profiles: Vec<_> =
        profiles.iter().map(|name| DriveProfile::parse(name, Bytes(BLOCK)).unwrap()).collect();
    let directory = tempfile::tempdir().unwrap();
    let mut request = Request {
        judge: Judge {
            recorded,
            profile: &profiles[0],
            limits: Limits::default(),
            seed: 7,
            subject: &subject,
            file_system: FileSystem::None,
            workers: 1,
            directory: directory.path(),
            timeout: Nanos::secs(60),
            stop: &AtomicBool::new(false),
            clock: &RealClock::start(),
            until: Nanos(u64::MAX),
            mount_here: false,
            results: None,
        },
        profiles: &profiles,
        target: None,
        budget: Nanos(u64::MAX),
        again: None,
        further: Some(0),
        recovery_depth: 1,
        needless_syncs: false,
        change: true,
        environment: Environment::default(),
        run: &ProofRun::default(),
        watch: &|_, _| {},
    };
    change(&mut request);
    Some(prove(&request).unwrap())
}

#[test]
fn what_was_flushed_before_it_was_acknowledged_is_proved() {
    use Step::{Acknowledge, Flush, Write};
    let Some(document) =
        proved(&recorded(&[Write(0), Flush, Acknowledge]), &["volatile", "write-through"], |_| {})
    else {
        return;
    };
    assert!(document.proved, "{document:?}");
    assert_eq!((document.level.as_str(), document.complete), ("none", true));
    assert_eq!(document.coverage.windows, document.coverage.exhaustive);
    assert_eq!(document.profiles.len(), 2);
    // Without the flushes each block may be older than the acknowledgement.
    let flushes = document.flushes.unwrap();
    assert!(flushes.flushes == 3 && flushes.failing == 3 && flushes.explored == 4, "{flushes:?}");
}

#[test]
fn the_smallest_set_of_flushes_is_found() {
    use Step::{Acknowledge, Flush, Write};
    let Some(document) =
        proved(&recorded(&[Write(0), Acknowledge, Flush]), &["volatile", "write-through"], |_| {})
    else {
        return;
    };
    assert_eq!((document.proved, document.level.as_str()), (false, "danger"));
    assert!(document.not_proved_because.is_empty(), "it is disproved");
    let [failure] = &document.failures[..] else { panic!("{:?}", document.failures) };
    assert_eq!((failure.class, failure.states), (FailureClass::LostAcknowledged, 3));
    assert_eq!(
        (failure.words.as_str(), failure.required),
        ("0 of 1", Some(1)),
        "the first, as nothing is smaller"
    );
    assert!(failure.replay.starts_with("the recording was not kept"), "{}", failure.replay);
    let minimal = &failure.minimal;
    assert_eq!((minimal.dropped.len(), minimal.torn.len(), minimal.dropped[0].length), (1, 0, BLOCK));
    let fates: Vec<_> = minimal.timeline.iter().filter_map(|item| item.fate).collect();
    assert_eq!(fates, [Fate::Dropped]);
    assert!(minimal.timeline.iter().any(|item| item.lane == Lane::Acknowledgement), "{minimal:?}");
    let change = failure.change.as_ref().unwrap();
    assert_eq!((change.kind, change.verified_by), (ChangeKind::DeviceFlush, VerifiedBy::SameRecording));
    assert_eq!(change.sentence, "a flush of the drive before 3 acknowledgements, 1 to 3");
    assert_eq!((change.explored > 0, change.failing_after), (true, 0));
    assert_eq!((document.profiles[1].failing, &document.profiles[1].classes[..]), (Some(0), &[][..]));
    let choice = Choice::from(minimal);
    assert_eq!((choice.event as u64, choice.lost.values().next()), (minimal.event, Some(&vec![0])));
}

#[test]
fn a_flush_that_is_sent_before_the_write_is_done_does_not_cover_it() {
    use Step::{Acknowledge, Flush, WriteBesideFlush};
    let steps = [WriteBesideFlush(0), Acknowledge];
    let Some(document) = proved(&recorded(&steps), &["volatile"], |_| {}) else { return };
    let [failure] = &document.failures[..] else { panic!("{:?}", document.failures) };
    assert_eq!(failure.class, FailureClass::LostAcknowledged);
    let [lost] = &failure.minimal.dropped[..] else { panic!("{:?}", failure.minimal) };
    assert!(lost.flush_came_early, "{lost:?}");
    let text = render(&document, Format::Terminal, Style::PLAIN);
    let text = text.unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("not yet done when the last flush was sent, was dropped"), "{text}");
    let steps = [WriteBesideFlush(0), Flush, Acknowledge];
    let Some(document) = proved(&recorded(&steps), &["volatile"], |_| {}) else { return };
    assert!(document.proved, "{document:?}");
}

#[test]
fn a_flush_between_writes_keeps_their_order() {
    use Step::{Acknowledge, Flush, Write};
    let recorded = recorded(&[Write(0), Write(1), Flush, Acknowledge]);
    let Some(document) = proved(&recorded, &["volatile"], |_| {}) else { return };
    let [failure] = &document.failures[..] else { panic!("{:?}", document.failures) };
    assert_eq!((failure.class, failure.states), (FailureClass::OutOfOrder, 3));
    let change = failure.change.as_ref().unwrap();
    assert_eq!(
        (change.sentence.as_str(), change.failing_after),
        ("3 flushes of the drive between writes", 0)
    );
    assert!(document.flushes.is_none(), "something fails with them already");
}

#[test]
fn what_may_hide_a_failure_is_said() {
    use Step::{Acknowledge, Flush, Write};
    let honest = recorded(&[Write(0), Flush, Acknowledge]);
    let mut unsure = honest.clone();
    unsure.facts.acknowledged_by = Some("stdout".to_owned());
    unsure.facts.serialised_because = Some("one after the other".to_owned());
    let Some(document) = proved(&unsure, &["volatile", "volatile-fua"], |request| {
        request.target = Some("ack:1..ack:2".to_owned());
    }) else {
        return;
    };
    assert_eq!((document.proved, document.level.as_str(), document.states.failing), (false, "warning", 0));
    let because = document.not_proved_because.join("\n");
    for why in [
        "stdout",
        "one after the other",
        "ack:1..ack:2",
        "volatile-fua is not judged: FUA arrived as write and flush",
    ] {
        assert!(because.contains(why), "{why}: {because}");
    }
    assert_eq!((document.profiles[1].failing, document.profiles[1].explored), (None, 0));
    let Some(document) = proved(&honest, &["volatile"], |request| request.judge.limits.states = 2) else {
        return;
    };
    assert!(!document.proved && document.complete && document.level == "none", "{document:?}");
    assert!(document.not_proved_because[0].contains("not every state"), "{document:?}");
}

#[test]
fn what_ends_early_says_so_and_keeps_what_it_has() {
    use Step::{Acknowledge, Flush, Write};
    static STOPPED: AtomicBool = AtomicBool::new(true);
    let recorded = recorded(&[Write(0), Flush, Acknowledge]);
    let Some(document) = proved(&recorded, &["volatile"], |request| request.judge.stop = &STOPPED) else {
        return;
    };
    assert!(!document.proved && !document.complete && document.level == "warning", "{document:?}");
    assert_eq!(document.incomplete_because.as_deref(), Some("interrupted"));
    assert!(document.profiles.iter().all(|profile| profile.not_judged_because.is_some()), "{document:?}");
}

#[test]
fn a_recording_is_kept_with_what_belongs_to_it() {
    use Step::{Acknowledge, Flush, Write};
    let subject = SubjectWords::Command {
        setup: None,
        run: "run".to_owned(),
        check: Some("check".to_owned()),
        recover: Some("recover".to_owned()),
        read: None,
        ack: "fd:3".to_owned(),
        user: None,
    };
    let recorded = recorded(&[Write(0), Flush, Acknowledge]);
    let timeout = Nanos::millis(1500);
    let kept = KeptRecording::new(subject.clone(), FileSystem::Xfs, timeout, recorded);
    let mut file = Vec::new();
    kept.save(&mut file).unwrap();
    let read = KeptRecording::load(&file[..]).unwrap();
    assert_eq!((read.subject, read.file_system, read.check_timeout), (subject, FileSystem::Xfs, 1.5));
    assert_eq!((read.recorded.from, read.recorded.until), (kept.recorded.from, kept.recorded.until));
    assert_eq!(
        (&read.recorded.recording, &read.recorded.facts),
        (&kept.recorded.recording, &kept.recorded.facts)
    );
    for (wrong, why) in [
        (Vec::new(), "the first line"),
        (b"#!/bin/sh\n".to_vec(), "the first line"),
        (file[..file.len() - 1].to_vec(), ""),
        (with_head(&file, "\"until\":", "\"until\":9"), "events"),
        (with_head(&file, "xfs", "zfs"), "zfs"),
    ] {
        let error = KeptRecording::load(&wrong[..]).unwrap_err().to_string();
        assert!(error.contains(why), "{why}: {error}");
    }
}

/// Returns the file with a replacement in its first line.
fn with_head(file: &[u8], from: &str, to: &str) -> Vec<u8> {
    let end = file.iter().position(|byte| *byte == b'\n').unwrap();
    let head = String::from_utf8_lossy(&file[..end]).replacen(from, to, 1);
    [head.as_bytes(), &file[end..]].concat()
}
