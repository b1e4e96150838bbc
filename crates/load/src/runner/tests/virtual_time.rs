//! Tests of workers in virtual time: schedules, stalls and standstills, to the nanosecond.

mod open_loop;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use plumb_block::{Bytes, Errno, EventSource, Nanos, Op, Outcome};
use plumb_workload::{BlockSizes, BlockSplit, Burst, ByteRange, Durability, Rate, Share, Stop, Workload};

use super::{LoadFailure, run};
use crate::LoadOutcome;
use crate::fault::Fault;
use crate::runner::*;
use crate::tests::scripted::ScriptedDevice;
use crate::worker::Worker;
use crate::{Failure, Kind, WorkerOptions};

fn workload() -> Workload {
    let range = ByteRange { offset: Bytes(0), length: Bytes::mib(64) };
    Workload { stop: Stop::after(Nanos::secs(1)), seed: 3, ..Workload::over(range, Bytes::kib(4)) }
}

fn workers(device: &ScriptedDevice, workload: &Workload, count: u32) -> Vec<Worker> {
    Share::all(NonZeroU32::new(count).unwrap())
        .map(|share| {
            Worker::new(device, workload, WorkerOptions { share, ..WorkerOptions::default() }).unwrap()
        })
        .collect()
}

fn run_on(device: &ScriptedDevice, workload: &Workload, count: u32) -> Result<LoadOutcome, LoadFailure> {
    let never = AtomicBool::new(false);
    run(workers(device, workload, count), &device.time(), &never, &mut |_| {})
}

#[test]
fn rates_follow_from_latency_and_depth_exactly() {
    for (depth, count) in [(1, 1), (32, 1), (8, 4)] {
        let device = ScriptedDevice::steady(Nanos::millis(1));
        let outcome = run_on(&device, &Workload { depth, ..workload() }, count).unwrap();
        let side = outcome.application();
        let in_flight = u64::from(depth * count);
        assert_eq!(side.operations, 1000 * in_flight);
        assert_eq!((side.seconds, side.iops), (1.0, 1000.0 * in_flight as f64));
        assert_eq!(side.in_flight_mean, Some(in_flight as f64));
        assert_eq!(outcome.in_flight_max, in_flight);
        let latency = side.latency.unwrap();
        assert_eq!((latency.min, latency.p50, latency.max, latency.std), (0.001, Some(0.001), 0.001, 0.0));
        assert_eq!(side.latency_from_intended_start, None);
        // The last of each batch of a thousand ends at one second, which is the eleventh bucket.
        let points = outcome.read.series.whole_points(outcome.length);
        assert_eq!(points.len(), 10);
        assert!(points[1..].iter().all(|point| point.operations == 100 * in_flight));
    }
}

#[test]
fn counts_are_exact_even_when_the_depth_is_larger() {
    for (operations, depth, count) in [(10, 64, 1), (1, 1, 1), (7, 2, 3), (2, 8, 5)] {
        let device = ScriptedDevice::steady(Nanos::micros(70));
        let workload = Workload { stop: Stop::operations(operations), depth, ..workload() };
        let outcome = run_on(&device, &workload, count).unwrap();
        assert_eq!(outcome.read.operations(), operations, "{operations} at depth {depth} by {count}");
        assert_eq!(device.asked().len() as u64, operations);
        assert_eq!(outcome.ending, Ending::Complete);
    }
}

#[test]
fn a_window_shorter_than_one_operation_holds_one() {
    let device = ScriptedDevice::steady(Nanos::millis(8));
    let workload = Workload { stop: Stop::after(Nanos::millis(1)), ..workload() };
    let outcome = run_on(&device, &workload, 1).unwrap();
    assert_eq!((outcome.read.operations(), outcome.length), (1, Nanos::millis(8)));
    assert_eq!(outcome.application().iops, 125.0, "the window reaches to the end of what it counts");
    assert_eq!(outcome.quality().ramp_seconds, None, "too short to say");
}

#[test]
fn operations_start_exactly_on_their_schedule() {
    let device = ScriptedDevice::steady(Nanos::micros(100));
    let workload = Workload { rate: Rate::iops(300.0), depth: 4, ..workload() };
    let outcome = run_on(&device, &workload, 3).unwrap();
    let starts: Vec<u64> = device.asked().iter().map(|asked| asked.at.0).collect();
    let intended: Vec<u64> = (0..300_u64).map(|nth| nth * 1_000_000_000 / 300).collect();
    assert_eq!(starts, intended);
    let side = outcome.application();
    assert_eq!((side.iops, side.seconds), (300.0, 1.0), "what was asked for");
    assert_eq!(side.latency_from_intended_start, side.latency);
    assert_eq!((outcome.late_starts, outcome.backlog_max), (0, Nanos::ZERO));
}

#[test]
fn a_counted_schedule_ends_with_its_last_interval() {
    let device = ScriptedDevice::steady(Nanos::micros(100));
    let workload = Workload { rate: Rate::iops(10.0), stop: Stop::operations(5), ..workload() };
    let outcome = run_on(&device, &workload, 1).unwrap();
    assert_eq!(outcome.length, Nanos::millis(500));
    assert_eq!(outcome.application().iops, 10.0);
}

#[test]
fn a_stall_shows_in_the_time_since_the_intended_start() {
    // 1,000 operations a second of 100 µs each; the one at 0.5 s takes 100 ms.
    let device = ScriptedDevice::new(|_, now| {
        (if now == Nanos::millis(500) { Nanos::millis(100) } else { Nanos::micros(100) }, Outcome::Done)
    });
    let workload = Workload { rate: Rate::iops(1000.0), ..workload() };
    let outcome = run_on(&device, &workload, 1).unwrap();
    let side = outcome.application();
    assert_eq!(side.operations, 1000, "the schedule does not move: what was missed is made up for");
    let (service, intended) = (side.latency.unwrap(), side.latency_from_intended_start.unwrap());
    assert!(service.p99 < Some(0.000_101), "by service time one operation of a thousand was slow");
    assert_eq!(service.max, 0.1);
    assert!(intended.p99 > Some(0.08), "but one of ten came late: {:?}", intended.p99);
    assert_eq!(intended.max, 0.1);
    // The operation of 0.501 s starts at 0.6 s.
    assert_eq!(outcome.backlog_max, Nanos::millis(99));
    assert!(outcome.late_starts > 90);
}

#[test]
fn a_pause_of_the_job_itself_is_no_backlog() {
    // 20 operations a second, of which a pause of a second after each ten lets no more than half start.
    let device = ScriptedDevice::steady(Nanos::micros(100));
    let burst = Some(Burst { operations: 10, pause: Nanos::secs(1) });
    let stop = Stop::after(Nanos::secs(6));
    let workload = Workload { rate: Rate::iops(20.0), burst, stop, ..workload() };
    let outcome = run_on(&device, &workload, 1).unwrap();
    assert_eq!((outcome.late_starts, outcome.unstarted), (0, 0));
    assert!(outcome.backlog_max < Nanos::millis(1), "{}", outcome.backlog_max);
    let slow = ScriptedDevice::steady(Nanos::millis(200));
    let outcome = run_on(&slow, &workload, 1).unwrap();
    assert!(outcome.late_starts > 0 && outcome.backlog_max > Nanos::millis(500), "the device is late itself");
}

#[test]
fn what_a_stall_at_the_end_kept_from_starting_is_counted() {
    let device = ScriptedDevice::new(|_, now| {
        (if now == Nanos::millis(900) { Nanos::millis(400) } else { Nanos::micros(100) }, Outcome::Done)
    });
    let workload = Workload { rate: Rate::iops(1000.0), ..workload() };
    let outcome = run_on(&device, &workload, 1).unwrap();
    assert_eq!((outcome.read.operations(), outcome.unstarted), (901, 99));
    assert_eq!(outcome.length, Nanos::millis(1300));

    let never_late = run_on(&ScriptedDevice::steady(Nanos::micros(100)), &workload, 1).unwrap();
    assert_eq!((never_late.read.operations(), never_late.unstarted), (1000, 0));
    let counted = Workload { stop: Stop::operations(5), ..workload.clone() };
    let counted = run_on(&ScriptedDevice::steady(Nanos::micros(100)), &counted, 2).unwrap();
    assert_eq!((counted.read.operations(), counted.unstarted), (5, 0));
    let split = BlockSplit(vec![(Bytes::kib(4), 50), (Bytes::kib(8), 50)]);
    let blocks = BlockSizes { read: split, ..workload.blocks.clone() };
    let stop = Stop { bytes: Some(Bytes::kib(64).0), ..Stop::after(Nanos::secs(1)) };
    let late = ScriptedDevice::steady(Nanos::millis(10));
    let whole = run_on(&late, &Workload { blocks, stop, ..workload }, 1).unwrap();
    assert!(whole.read.bytes >= Bytes::kib(64) && whole.late_starts > 0);
    assert_eq!(whole.unstarted, 0, "all bytes were moved, late as they were");
}

#[test]
fn a_durable_write_is_its_write_and_its_flush() {
    let device = ScriptedDevice::new(|request, _| {
        (if request.op == Op::Flush { Nanos::micros(400) } else { Nanos::micros(50) }, Outcome::Done)
    });
    let workload = Workload {
        write_percent: 100,
        durability: Durability::flush_every(NonZeroU32::new(1).unwrap()),
        ..workload()
    };
    let outcome = run_on(&device, &workload, 2).unwrap();
    let per_worker = 1_000_000_u64.div_ceil(450);
    assert_eq!(outcome.write.operations(), 2 * per_worker);
    assert_eq!(outcome.flush.operations(), 2 * per_worker, "the flush that is due at the end is carried out");
    let durable = outcome.durable.summary().unwrap();
    assert_eq!((durable.count, durable.min, durable.max), (2 * per_worker, 0.00045, 0.00045));
    assert_eq!(outcome.write.latency.max(), Some(Nanos::micros(50)));
    assert_eq!(outcome.flush.latency.max(), Some(Nanos::micros(400)));
}

#[test]
fn a_durable_write_on_a_schedule_waits_for_its_start_too() {
    let device = ScriptedDevice::new(|request, _| {
        (if request.op == Op::Flush { Nanos::micros(400) } else { Nanos::micros(50) }, Outcome::Done)
    });
    let workload = Workload {
        write_percent: 100,
        durability: Durability::flush_every(NonZeroU32::new(1).unwrap()),
        rate: Rate::iops(4000.0),
        stop: Stop::operations(5),
        ..workload()
    };
    let outcome = run_on(&device, &workload, 1).unwrap();
    // Due every 250 µs, and each takes 450 µs.
    let durable = outcome.durable.summary().unwrap();
    assert_eq!((durable.count, durable.min, durable.max), (5, 0.00045, 0.00125));
    let write = outcome.write.operation_latency();
    assert_eq!((write.min(), write.max()), (Some(Nanos::micros(50)), Some(Nanos::micros(850))));
}

#[test]
fn a_failed_flush_stops_every_worker() {
    let mut flushes = 0;
    let device = ScriptedDevice::new(move |request, _| {
        flushes += u32::from(request.op == Op::Flush);
        let failed = request.op == Op::Flush && flushes == 5;
        (Nanos::micros(100), if failed { Outcome::Failed(Errno::EIO) } else { Outcome::Done })
    });
    let workload = Workload {
        write_percent: 100,
        durability: Durability::flush_every(NonZeroU32::new(2).unwrap()),
        ..workload()
    };
    let failure = run_on(&device, &workload, 3).unwrap_err();
    assert!(matches!(failure.fault, Fault::Flush { outcome: Outcome::Failed(Errno::EIO), .. }));
    assert_eq!(
        failure.fault.to_string(),
        "a flush of scripted failed 600 µs into the run: Input/output error (os error 5); nothing written since the last good \
         flush can be trusted"
    );
    let outcome = &failure.outcome;
    assert_eq!(outcome.flush.errors, [(Failure::Errno(Errno::EIO), 1)]);
    assert_eq!(outcome.ending, Ending::Interrupted);
    assert!(outcome.flush.operations() >= 3 && outcome.flush.operations() < 6, "what was measured is kept");
    assert!(device.asked().iter().all(|asked| asked.at <= Nanos::micros(600)), "somebody went on");
}

#[test]
fn the_first_error_says_what_where_and_when() {
    let device = ScriptedDevice::new(|_, now| {
        (
            Nanos::millis(1),
            if now >= Nanos::millis(10) { Outcome::Failed(Errno::ENOSPC) } else { Outcome::Done },
        )
    });
    let failure = run_on(&device, &Workload { write_percent: 100, depth: 4, ..workload() }, 1).unwrap_err();
    let Fault::Request { kind: Kind::Write, range, outcome: Outcome::Failed(Errno::ENOSPC), at, .. } =
        failure.fault
    else {
        panic!("{}", failure.fault)
    };
    assert_eq!((range.nlb, at), (8, Nanos::millis(11)));
    assert_eq!(failure.outcome.write.operations(), 40);
    assert_eq!(failure.outcome.write.failures(), 4, "all that came back with it is counted");
    assert_eq!(failure.outcome.application().errors, 4);
}

#[test]
fn a_request_without_an_answer_ends_the_run() {
    for depth in [1, 8] {
        // One of the requests that start at 3 ms is lost; at depth 8 the others continue.
        let mut lost = false;
        let device = ScriptedDevice::new(move |_, now| {
            let lose = now == Nanos::millis(3) && !std::mem::replace(&mut lost, now == Nanos::millis(3));
            (if lose { Nanos(u64::MAX) } else { Nanos::millis(1) }, Outcome::Done)
        });
        let options = WorkerOptions { answer_within: Nanos::secs(2), ..WorkerOptions::default() };
        let workload = Workload { depth, stop: Stop::after(Nanos::secs(60)), ..workload() };
        let worker = Worker::new(&device, &workload, options).unwrap();
        let never = AtomicBool::new(false);
        let failure = run(vec![worker], &device.time(), &never, &mut |_| {}).unwrap_err();
        let Fault::Unanswered { kind: Kind::Read, waited, .. } = failure.fault else {
            panic!("{}", failure.fault)
        };
        assert!(waited > Nanos::secs(2) && waited <= Nanos::secs(4), "{waited}");
        assert!(failure.outcome.read.operations() >= 3 * u64::from(depth), "what was measured is kept");
    }
}

/// Observer that sets a flag at a certain time.
struct StopAt {
    at: Nanos,
    stop: Arc<AtomicBool>,
}

impl EventSource for StopAt {
    fn next_event(&self) -> Option<Nanos> {
        (!self.stop.load(Ordering::Relaxed)).then_some(self.at)
    }

    fn advance(&self, now: Nanos) -> bool {
        self.stop.fetch_or(now >= self.at, Ordering::Relaxed);
        false
    }
}

#[test]
fn the_flag_to_stop_ends_early_and_keeps_what_was_measured() {
    let stopped = |workload: &Workload| {
        let device = ScriptedDevice::steady(Nanos::millis(1));
        let stop = Arc::new(AtomicBool::new(false));
        let timer = Arc::new(StopAt { at: Nanos::millis(250), stop: Arc::clone(&stop) });
        let source = Arc::downgrade(&timer);
        device.clock.register(source);
        let outcome = run(workers(&device, workload, 2), &device.time(), &stop, &mut |_| {}).unwrap();
        assert_eq!(outcome.ending, Ending::Interrupted);
        outcome
    };
    let workload = Workload { depth: 2, ..workload() };
    let outcome = stopped(&workload);
    assert_eq!((outcome.read.operations(), outcome.length), (250 * 4, Nanos::millis(250)));
    let late = stopped(&Workload { rate: Rate::iops(5000.0), ..workload });
    assert_eq!(late.unstarted, 0, "nobody waits for what was due when it was stopped");
    assert!(late.late_starts > 0);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let device =
            ScriptedDevice::new(|request, _| (Nanos(10_000 + request.range.lba.0 % 977), Outcome::Done));
        let workload = Workload {
            seed,
            depth: 8,
            write_percent: 30,
            durability: Durability::flush_every(NonZeroU32::new(16).unwrap()),
            ..workload()
        };
        let outcome = run_on(&device, &Workload { stop: Stop::operations(5000), ..workload }, 3).unwrap();
        (device.asked(), outcome.application(), outcome.durable.summary())
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7).0, run(8).0);
}

/// Device that reports an event now, but never handles it.
struct Stuck(AtomicU64);

impl EventSource for Stuck {
    fn next_event(&self) -> Option<Nanos> {
        Some(Nanos::ZERO)
    }

    fn advance(&self, _now: Nanos) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        true
    }
}

#[test]
fn a_clock_that_stands_still_is_said_and_not_waited_for() {
    let device = ScriptedDevice::steady(Nanos::millis(1));
    let stuck = Arc::new(Stuck(AtomicU64::new(0)));
    let source = Arc::downgrade(&stuck);
    device.clock.register(source);
    let failure = run_on(&device, &workload(), 1).unwrap_err();
    assert!(matches!(failure.fault, Fault::Standstill { at: Nanos::ZERO }), "{}", failure.fault);
    assert!(stuck.0.load(Ordering::Relaxed) <= 1 << 11);
}

#[test]
fn no_workers_measure_nothing() {
    let never = AtomicBool::new(false);
    let outcome = run(Vec::new(), &Time::Virtual(Arc::default()), &never, &mut |_| {}).unwrap();
    let side = outcome.application();
    assert_eq!((side.operations, side.iops, side.latency, side.io_bytes_mean), (0, 0.0, None, None));
}
