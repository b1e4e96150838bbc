//! Tests of workers on threads, and of runs that end early, late, or with a fault.

use std::num::NonZeroU32;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use plumb_block::{
    Bytes, Clock, Completion, Device, DeviceInfo, Errno, Extent, Latch, LbaRange, Nanos, Outcome, Queue,
    QueueFull, QueueOptions, RealClock, Request, Wait,
};
use plumb_workload::{ByteRange, Share, Stop, Warmup, Workload};

use super::{LoadFailure, merged, run};
use crate::fault::Fault;
use crate::runner::*;
use crate::worker::Worker;
use crate::{Event, Observer, WorkerOptions};
use crate::{LoadOutcome, Progress};

/// Behaviour of a queue after it has answered `after` requests successfully.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Habit {
    Good,
    Fails,
    Panics,
    /// Does not return from a poll until the test is over.
    Hangs,
    /// Returns from polls, but never with an answer.
    Silent,
}

struct Instant {
    clock: Arc<dyn Clock>,
    habit: Habit,
    after: usize,
    /// Lock that the test holds, for which a hanging poll waits.
    gate: Arc<Mutex<()>>,
    /// True if anything was requested of the device.
    is_asked: Arc<AtomicBool>,
}

impl Instant {
    fn new(habit: Habit, after: usize) -> Self {
        let (clock, gate) = (Arc::new(RealClock::start()), Arc::new(Mutex::new(())));
        Self { clock, habit, after, gate, is_asked: Arc::default() }
    }
}

impl Instant {
    fn time(&self) -> Time {
        Time::Real(Arc::clone(&self.clock))
    }
}

impl Device for Instant {
    fn info(&self) -> DeviceInfo {
        DeviceInfo::plain("instant", Bytes::gib(1), Bytes(512))
    }

    fn open_queue(&self, _options: QueueOptions) -> plumb_block::Result<Box<dyn Queue>> {
        Ok(Box::new(InstantQueue {
            clock: Arc::clone(&self.clock),
            gate: Arc::clone(&self.gate),
            is_asked: Arc::clone(&self.is_asked),
            habit: self.habit,
            left: self.after,
            pending: Vec::new(),
        }))
    }

    fn extents(&self, _range: LbaRange) -> plumb_block::Result<Vec<Extent>> {
        Ok(Vec::new())
    }

    fn set_wce(&self, _enabled: bool) -> plumb_block::Result<()> {
        Ok(())
    }

    fn latched(&self) -> Option<Latch> {
        None
    }
}

struct InstantQueue {
    clock: Arc<dyn Clock>,
    gate: Arc<Mutex<()>>,
    is_asked: Arc<AtomicBool>,
    habit: Habit,
    left: usize,
    pending: Vec<Request>,
}

impl Queue for InstantQueue {
    fn submit(&mut self, request: Request) -> std::result::Result<(), QueueFull> {
        self.is_asked.store(true, Ordering::Relaxed);
        self.pending.push(request);
        Ok(())
    }

    fn poll(&mut self, _wait: Wait, completions: &mut Vec<Completion>) -> plumb_block::Result<usize> {
        let now = self.clock.now();
        let before = completions.len();
        for request in std::mem::take(&mut self.pending) {
            let mut outcome = Outcome::Done;
            if self.left == 0 {
                match self.habit {
                    Habit::Good => {}
                    Habit::Fails => outcome = Outcome::Failed(Errno::EIO),
                    Habit::Panics => panic!("as scripted"),
                    Habit::Hangs => drop(self.gate.lock()),
                    Habit::Silent => continue,
                }
            }
            self.left = self.left.saturating_sub(1);
            completions.push(request.completed(outcome, now));
        }
        Ok(completions.len() - before)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

fn workload(stop: Stop) -> Workload {
    let range = ByteRange { offset: Bytes(0), length: Bytes::mib(64) };
    Workload { depth: 4, write_percent: 50, stop, ..Workload::over(range, Bytes::kib(4)) }
}

fn run_on(
    device: &Instant,
    workload: &Workload,
    workers: u32,
    stop: bool,
) -> Result<LoadOutcome, LoadFailure> {
    let workers = Share::all(NonZeroU32::new(workers).unwrap())
        .map(|share| {
            // Short if no answer will come; long otherwise, so that a busy machine does not look like a
            // silent device.
            let answer_within = match device.habit {
                Habit::Silent => Nanos::millis(500),
                Habit::Hangs => Nanos::millis(20),
                Habit::Good | Habit::Fails | Habit::Panics => Nanos::secs(30),
            };
            let options = WorkerOptions { share, answer_within, ..WorkerOptions::default() };
            Worker::new(device, workload, options).unwrap()
        })
        .collect();
    run(workers, &device.time(), &AtomicBool::new(stop), &mut |_| {})
}

#[test]
fn several_threads_do_exactly_what_was_asked() {
    let device = Instant::new(Habit::Good, 0);
    let mut last = Progress::default();
    let workload = workload(Stop::operations(100_001));
    let workers = Share::all(NonZeroU32::new(3).unwrap())
        .map(|share| {
            Worker::new(&device, &workload, WorkerOptions { share, ..WorkerOptions::default() }).unwrap()
        })
        .collect();
    let outcome =
        run(workers, &device.time(), &AtomicBool::new(false), &mut |progress| last = progress.clone())
            .unwrap();
    assert_eq!(outcome.read.operations() + outcome.write.operations(), 100_001);
    assert_eq!(
        (last.total.reads, last.total.writes),
        (outcome.read.operations(), outcome.write.operations())
    );
    assert_eq!(last.total.write_bytes, outcome.write.bytes);
    assert_eq!(outcome.worker_cpu.len(), 3);
    assert!(outcome.length > Nanos::ZERO && outcome.ending == Ending::Complete);
}

#[test]
fn a_duration_is_kept_and_a_schedule_with_it() {
    let device = Instant::new(Habit::Good, 0);
    let rate = plumb_workload::Rate::iops(500.0);
    let outcome =
        run_on(&device, &Workload { rate, ..workload(Stop::after(Nanos::millis(100))) }, 1, false).unwrap();
    assert_eq!(
        outcome.application().operations + outcome.unstarted,
        50,
        "a busy machine may start some too late"
    );
    assert!(outcome.length >= Nanos::millis(100));
}

#[test]
fn a_flag_that_is_set_ends_a_run_that_would_never_end() {
    let device = Instant::new(Habit::Good, 0);
    let outcome = run_on(&device, &workload(Stop::after(Nanos::secs(1_000_000))), 2, true).unwrap();
    assert_eq!(outcome.ending, Ending::Interrupted);
}

#[test]
fn the_first_failure_stops_the_others() {
    let device = Instant::new(Habit::Fails, 1000);
    let failure = run_on(&device, &workload(Stop::after(Nanos::secs(1_000_000))), 2, false).unwrap_err();
    assert!(matches!(failure.fault, Fault::Request { outcome: Outcome::Failed(Errno::EIO), .. }));
    assert!(failure.outcome.application().operations >= 1000);
}

#[test]
fn a_panic_is_a_fault_and_not_a_hang() {
    let device = Instant::new(Habit::Panics, 10);
    let failure = run_on(&device, &workload(Stop::after(Nanos::secs(1_000_000))), 1, false).unwrap_err();
    assert!(matches!(failure.fault, Fault::Thread { worker: 0, .. }), "{}", failure.fault);
}

#[test]
fn a_device_without_answers_is_given_up() {
    let device = Instant::new(Habit::Silent, 10);
    let failure = run_on(&device, &workload(Stop::operations(1000)), 1, false).unwrap_err();
    assert!(matches!(failure.fault, Fault::Unanswered { .. }), "{}", failure.fault);
    assert_eq!(failure.outcome.application().operations, 10, "what was measured is kept");
}

#[test]
fn a_queue_that_does_not_come_back_is_given_up() {
    let device = Instant::new(Habit::Hangs, 10);
    let gate = Arc::clone(&device.gate);
    let held = gate.lock().unwrap();
    let failure = run_on(&device, &workload(Stop::operations(1000)), 2, false).unwrap_err();
    assert!(matches!(failure.fault, Fault::Hung { .. }), "{}", failure.fault);
    drop(held);
}

/// Observer that requests the figures of the workers repeatedly, and ends the run after the third time.
struct Asking<'a> {
    stop: &'a AtomicBool,
    operations: Vec<u64>,
}

impl Observer for Asking<'_> {
    fn on(&mut self, event: &Event<'_>) {
        match event {
            Event::WantsFigures(answer) => answer.set(true),
            Event::TeamFigures(teams) => self.figures(&teams.take()),
            _ => {}
        }
    }
}

impl Asking<'_> {
    fn figures(&mut self, teams: &[TeamOutcome]) {
        assert_eq!(teams.iter().map(|team| team.workers.len()).collect::<Vec<_>>(), [1, 1]);
        self.operations.push(merged(teams).application().operations);
        self.stop.store(self.operations.len() == 3, Ordering::Relaxed);
    }
}

#[test]
fn what_was_measured_until_now_is_part_of_what_is_measured_in_the_end() {
    let device = Instant::new(Habit::Good, 0);
    let endless = workload(Stop::after(Nanos::secs(1_000_000)));
    let worker = |_| Team::single(Worker::new(&device, &endless, WorkerOptions::default()).unwrap());
    let stop = AtomicBool::new(false);
    let options = RunOptions {
        time: device.time(),
        stop: &stop,
        warmup: Warmup::For(Nanos::ZERO),
        duration: None,
        cooldown: Nanos::ZERO,
    };
    let mut asking = Asking { stop: &stop, operations: Vec::new() };
    let teams = run_teams((0..2).map(worker).collect(), &options, &mut asking).unwrap();
    let all = merged(&teams).application().operations;
    let had = asking.operations;
    assert!(had[0] > 0 && had.is_sorted() && had[2] <= all, "{had:?} of {all}");
}

/// Observer that takes long when the window begins, like a busy machine.
struct Reading<'a> {
    is_asked: &'a AtomicBool,
    missed: Option<bool>,
}

impl Observer for Reading<'_> {
    fn on(&mut self, event: &Event<'_>) {
        let Event::WindowBegins { .. } = event else { return };
        (0..10_000).for_each(|_| std::thread::yield_now());
        assert_eq!(self.missed.replace(self.is_asked.load(Ordering::Relaxed)), None, "it begins once");
    }
}

#[test]
fn what_is_read_when_a_run_begins_misses_nothing_of_it() {
    let device = Instant::new(Habit::Good, 0);
    let hundred = workload(Stop { operations: Some(100), ..Stop::default() });
    let team = Team::single(Worker::new(&device, &hundred, WorkerOptions::default()).unwrap());
    let mut reading = Reading { is_asked: &device.is_asked, missed: None };
    let stop = AtomicBool::new(false);
    run_teams(vec![team], &RunOptions::whole(device.time(), &stop), &mut reading).unwrap();
    assert_eq!(reading.missed, Some(false));
}
