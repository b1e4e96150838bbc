//! Checks of states: counts known by hand for any number of workers, early ends, and stored results.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use plumb_block::{Bytes, Lba, LbaRange, Nanos, Op, RealClock};
use plumb_prove::explore::{Coverage, Limits};
use plumb_prove::file_system::FileSystem;
use plumb_prove::judge::{Judge, JudgeResult};
use plumb_prove::profile::DriveProfile;
use plumb_prove::recording::{Event, Recording};
use plumb_prove::session::RecordedWork;
use plumb_prove::subject::{Outcome, Subject};
use plumb_prove::{Error, ErrorKind};
use plumb_report::document::proof::FailureClass;
use tempfile::TempDir;

use crate::recorded_whole;

const BLOCK: u64 = 4096;

/// Check of blocks 0 to 3, of which it reads as many as it needs, and of the required acknowledgement.
type Look = dyn Fn(&dyn Fn(u64) -> u8, Option<u64>) -> plumb_prove::Result<Outcome> + Send + Sync;

/// Checker of the bare drive that counts its runs.
struct Checker {
    look: Box<Look>,
    checks: AtomicU64,
}

impl Subject for Checker {
    fn name(&self) -> String {
        "a checker".to_owned()
    }

    fn set_up(&self, _: &Path) -> plumb_prove::Result<()> {
        Ok(())
    }

    fn check(&self, place: &Path, required: Option<u64>) -> plumb_prove::Result<Outcome> {
        self.checks.fetch_add(1, Ordering::Relaxed);
        let drive = std::fs::File::options().read(true).write(true).open(place).unwrap();
        let block = |lba: u64| {
            let mut bytes = [0];
            drive.read_exact_at(&mut bytes, lba * BLOCK).unwrap();
            bytes[0]
        };
        let outcome = (self.look)(&block, required);
        // Data written by a check is gone in the next state.
        drive.write_all_at(&[99; BLOCK as usize], 0).unwrap();
        outcome
    }
}

fn failed(class: FailureClass, words: &str) -> plumb_prove::Result<Outcome> {
    Ok(Outcome::Failed { class, words: words.to_owned() })
}

/// Checks that block 0 holds the last acknowledgement or more, and in that case that block 1 equals block 0.
fn counter(block: &dyn Fn(u64) -> u8, required: Option<u64>) -> plumb_prove::Result<Outcome> {
    match (block(0), required) {
        (found, Some(required)) if u64::from(found) < required => {
            failed(FailureClass::LostAcknowledged, "lost")
        }
        (found, _) if block(1) != found => failed(FailureClass::Corrupt, "corrupt"),
        _ => Ok(Outcome::Intact),
    }
}

/// Twice: blocks 0, 1 and 2 are written with a number, it is acknowledged, and a flush follows.
fn recording() -> Recording {
    let mut recording = Recording::of_blank(Bytes::mib(1), Bytes(BLOCK));
    for number in 1..=2_u8 {
        for lba in 0..3 {
            let range = LbaRange::new(Lba(lba), 1);
            let bytes = vec![number; BLOCK as usize];
            let write = recording.submit(Nanos(0), Op::Write { fua: false }, range, &bytes);
            recording.happened(Nanos(0), Event::Completed(write));
        }
        recording.happened(Nanos(0), Event::Acknowledged(number.into()));
        let flush = recording.submit(Nanos(0), Op::Flush, LbaRange::EMPTY, &[]);
        recording.happened(Nanos(0), Event::Completed(flush));
    }
    recording
}

/// Parameters of a judge.
struct Case {
    recorded: RecordedWork,
    profile: DriveProfile,
    checker: Arc<Checker>,
    subject: Arc<dyn Subject>,
    directory: TempDir,
    stop: AtomicBool,
    clock: RealClock,
    limits: Limits,
    workers: usize,
    results: Option<PathBuf>,
}

impl Case {
    fn new(
        look: impl Fn(&dyn Fn(u64) -> u8, Option<u64>) -> plumb_prove::Result<Outcome> + Send + Sync + 'static,
    ) -> Self {
        let checker = Arc::new(Checker { look: Box::new(look), checks: AtomicU64::new(0) });
        Self {
            recorded: recorded_whole(recording()),
            profile: DriveProfile::parse("volatile", Bytes(BLOCK)).unwrap(),
            subject: Arc::clone(&checker) as Arc<dyn Subject>,
            checker,
            directory: tempfile::tempdir().unwrap(),
            stop: AtomicBool::new(false),
            clock: RealClock::start(),
            limits: Limits::default(),
            workers: 1,
            results: None,
        }
    }

    fn judge(&self) -> Judge<'_> {
        Judge {
            recorded: &self.recorded,
            profile: &self.profile,
            limits: self.limits,
            seed: 1,
            subject: &self.subject,
            file_system: FileSystem::None,
            workers: self.workers,
            directory: self.directory.path(),
            timeout: Nanos::secs(60),
            stop: &self.stop,
            clock: &self.clock,
            until: Nanos(u64::MAX),
            mount_here: false,
            results: self.results.as_deref(),
        }
    }

    /// Judges the states; `None` if nothing can be attached.
    fn judged(&self) -> Option<JudgeResult> {
        unless_unattachable(self.judge().judge(&mut |_| ()))
    }

    fn checks(&self) -> u64 {
        self.checker.checks.load(Ordering::Relaxed)
    }
}

fn unless_unattachable<T>(result: plumb_prove::Result<T>) -> Option<T> {
    match result {
        Err(error) if error.kind == ErrorKind::NotMeasured => {
            plumb_testkit::skip(&error.to_string());
            None
        }
        result => Some(result.unwrap()),
    }
}

/// In each window any of three blocks may be lost. Of the 8 states of the first window, where 1 is required,
/// 4 have lost block 0, 2 have lost block 1 alone or with block 2, and 2 are intact. The second window is the
/// same.
#[test]
fn counts_are_those_known_by_hand_however_many_workers_there_are() {
    let mut first: Option<JudgeResult> = None;
    for workers in [1, 3] {
        let case = Case { workers, ..Case::new(counter) };
        let Some(judged) = case.judged() else { return };
        assert_eq!((judged.counts.distinct, judged.counts.failing), (16, 12), "{judged:?}");
        assert_eq!(judged.incomplete_because, None);
        let windows: Vec<_> =
            judged.windows.iter().map(|(window, failing)| (window.states, *failing)).collect();
        assert_eq!(windows, [(8, 6), (8, 6)]);
        assert!(judged.windows.iter().all(|(window, _)| window.coverage == Coverage::Exhaustive));
        let lost = &judged.failing[&FailureClass::LostAcknowledged];
        assert_eq!((lost.count, lost.words.as_str()), (8, "lost"));
        assert_eq!(lost.example.lost.values().flatten().copied().collect::<Vec<_>>(), [0]);
        assert_eq!(judged.failing[&FailureClass::Corrupt].count, 4);
        // The first state is checked twice.
        assert_eq!(judged.counts.checked, case.checks() - 1);
        if let Some(first) = &first {
            assert_eq!(*first, judged);
        }
        first = Some(judged);
    }
}

#[test]
fn one_state_is_judged_and_made_smaller() {
    let case = Case::new(counter);
    let Some(judged) = case.judged() else { return };
    let example = &judged.failing[&FailureClass::Corrupt].example;
    assert_eq!(case.judge().outcome(example).unwrap().class(), Some(FailureClass::Corrupt));
    let mut more = example.clone();
    more.lost.insert(plumb_prove::recording::CommandId(2), vec![2]);
    let minimal = case.judge().minimise(&more, FailureClass::Corrupt).unwrap();
    assert_eq!(minimal, *example);
    let nothing = plumb_prove::explore::Choice { lost: BTreeMap::new(), ..more };
    assert!(matches!(
        case.judge().minimise(&nothing, FailureClass::Corrupt),
        Err(error) if error.kind == ErrorKind::NoSuchState
    ));
}

#[test]
fn a_checker_that_answers_differently_for_the_same_state_ends_the_judging() {
    let turn = AtomicU64::new(0);
    // Reads nothing that differs, and alternates between two results.
    let every_other_time = Case::new(move |block, _| {
        block(3);
        match turn.fetch_add(1, Ordering::Relaxed) % 2 {
            0 => Ok(Outcome::Intact),
            _ => failed(FailureClass::Checker, "odd"),
        }
    });
    let first = AtomicBool::new(true);
    let after_the_first = Case::new(move |block, _| {
        block(0);
        match first.swap(false, Ordering::Relaxed) {
            true => Ok(Outcome::Intact),
            false => failed(FailureClass::Checker, "later"),
        }
    });
    for case in [every_other_time, after_the_first] {
        let Some(judged) = case.judged() else { return };
        let why = judged.incomplete_because.unwrap_or_default();
        assert!(why.contains("answers differently for the same state"), "{why}");
    }
}

/// Twelve blocks, none of which becomes durable.
fn many_writes() -> Recording {
    let mut recording = Recording::of_blank(Bytes::mib(1), Bytes(BLOCK));
    for lba in 0..12 {
        let range = LbaRange::new(Lba(lba), 1);
        let write = recording.submit(Nanos(0), Op::Write { fua: false }, range, &[1; BLOCK as usize]);
        recording.happened(Nanos(0), Event::Completed(write));
    }
    recording
}

#[test]
fn what_was_read_tells_the_results_of_most_states() {
    let case = Case {
        recorded: recorded_whole(many_writes()),
        ..Case::new(|block, _| match block(0) + block(1) {
            2 => Ok(Outcome::Intact),
            _ => failed(FailureClass::OutOfOrder, "one is missing"),
        })
    };
    let Some(judged) = case.judged() else { return };
    assert_eq!((judged.counts.distinct, judged.counts.failing), (1 << 12, 3 << 10));
    assert!(judged.counts.checked < 40, "{} checks", judged.counts.checked);
}

#[test]
fn a_check_that_fails_or_panics_ends_all_and_what_was_judged_stays() {
    for panics in [false, true] {
        let checks = AtomicU64::new(0);
        let case = Case::new(move |block, required| {
            if checks.fetch_add(1, Ordering::Relaxed) == 5 {
                assert!(!panics, "a panic on purpose");
                return Err(Error::failed("check", "is broken"));
            }
            (0..3).for_each(|lba| assert!(block(lba) < 3));
            counter(block, required)
        });
        let Some(judged) = case.judged() else { return };
        let why = judged.incomplete_because.unwrap();
        assert!(why.contains(if panics { "panicked" } else { "check: is broken" }), "{why}");
        assert_eq!((judged.counts.distinct, judged.counts.checked), (5, 5));
        // States that were not judged are not reported as explored.
        assert!(judged.windows.iter().all(|(window, _)| window.coverage == Coverage::Sampled));
        assert_eq!(judged.windows.iter().map(|(window, _)| window.states).sum::<u64>(), 5);
    }
}

#[test]
fn a_check_that_hangs_is_given_up() {
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let (checks, waiting) = (AtomicU64::new(0), Arc::clone(&gate));
    let case = Case::new(move |block, required| {
        if checks.fetch_add(1, Ordering::Relaxed) == 3 {
            let (is_open, opened) = &*waiting;
            drop(opened.wait_while(is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
            return Ok(Outcome::Intact);
        }
        counter(block, required)
    });
    let judge = Judge { timeout: Nanos::millis(1), ..case.judge() };
    let Some(judged) = unless_unattachable(judge.judge(&mut |_| ())) else { return };
    let why = judged.incomplete_because.unwrap();
    assert!(why.contains("did not end within 0.001 s"), "{why}");
    assert_eq!(judged.counts.distinct, 3);
    let (is_open, opened) = &*gate;
    *is_open.lock().unwrap() = true;
    opened.notify_all();
}

#[test]
fn a_stop_keeps_what_was_judged_and_another_run_goes_on_from_there() {
    let whole = Case::new(counter);
    let Some(expected) = whole.judged() else { return };
    let results = tempfile::tempdir().unwrap();
    let case = Case { results: Some(results.path().join("checks")), ..Case::new(counter) };
    let mut told = 0;
    let stopped = case.judge().judge(&mut |progress| {
        told = progress.checked;
        case.stop.store(progress.checked >= 3, Ordering::Relaxed);
    });
    let stopped = stopped.unwrap();
    assert_eq!(stopped.incomplete_because.as_deref(), Some("it was stopped"));
    assert!(stopped.counts.distinct < expected.counts.distinct && told == stopped.counts.checked);
    // The process was killed while it wrote the last line.
    let path = results.path().join("checks");
    let text = std::fs::read(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 10]).unwrap();
    case.stop.store(false, Ordering::Relaxed);
    let before = case.checks();
    assert_eq!(case.judged().unwrap(), expected);
    assert_eq!(case.checks() - before, expected.counts.checked - (told - 1));
    assert_eq!(case.judged().unwrap(), expected);
    assert_eq!(case.checks() - before, expected.counts.checked - (told - 1), "all was known");
}

#[test]
fn results_of_something_else_are_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes");
    let case = Case { results: Some(path.clone()), ..Case::new(counter) };
    for text in [
        "no line",
        "no results\n",
        "{\"schema\":\"plumb/checks/1\",\"recording\":\"\",\"subject\":\"\",\"file_system\":\"\"}\n",
    ] {
        std::fs::write(&path, text).unwrap();
        let error = case.judge().judge(&mut |_| ()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage, "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn a_file_system_on_a_drive_that_breaks_its_contract_is_not_mounted_here() {
    let case = Case { profile: DriveProfile::parse("lying", Bytes(BLOCK)).unwrap(), ..Case::new(counter) };
    let judge = Judge { file_system: FileSystem::Ext4, ..case.judge() };
    let error = judge.judge(&mut |_| ()).unwrap_err();
    assert!(error.to_string().contains("--mount-here"), "{error}");
    assert!(
        unless_unattachable(case.judge().judge(&mut |_| ())).is_none_or(|judged| judged.counts.failing > 0)
    );
}
