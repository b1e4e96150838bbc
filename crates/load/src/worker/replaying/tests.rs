//! Tests of traces replayed in virtual time: order, times, lateness and ends.

use plumb_block::{Bytes, Lba, Nanos, Op, Outcome};
use plumb_workload::{
    ByteRange, Job, RecordedEvents, Replay, Stop, Trace, TraceEvent, TraceOp, TraceSpeed, TraceUse, Workload,
};
use proptest::prelude::*;

use crate::outcome::LoadOutcome;
use crate::tests::scripted::{ScriptedDevice, SeenRequest};
use crate::worker::{Worker, WorkerOptions};

fn event(at: Nanos, op: TraceOp, block: u64, blocks: u32) -> TraceEvent {
    TraceEvent { at, offset: Bytes(block * 512), length_bytes: blocks * 512, target: 0, op }
}

const WRITE: TraceOp = TraceOp::Write { fua: false };

/// Returns the events at `speed`, and the equivalent workload with this depth.
fn recorded(events: &[TraceEvent], speed: TraceSpeed, depth: u32, stop: Stop) -> (RecordedEvents, Workload) {
    let how = TraceUse { speed, ..TraceUse::new("t") };
    let blank = Workload { depth, stop, ..Workload::over(ByteRange::ALL, Bytes::kib(4)) };
    let job = Job { trace: Some(how.clone()), ..Job::on("x", blank) };
    let trace = Trace { targets: vec!["a".into()], events: events.to_vec() };
    let (job, replay) = Replay::new(&job, &how, trace).unwrap();
    let workload = replay.targets[0].stand_in(&job.workload);
    (replay.targets[0].clone(), workload)
}

fn run_on(
    device: &ScriptedDevice,
    (recorded, workload): (RecordedEvents, Workload),
) -> (Vec<SeenRequest>, LoadOutcome) {
    let options = WorkerOptions { replay: Some(recorded), ..WorkerOptions::default() };
    let worker = Worker::new(device, &workload, options).unwrap();
    let outcome = device.run(worker, |_| {});
    (device.asked(), outcome)
}

fn op_of(op: TraceOp) -> Op {
    match op {
        TraceOp::Read => Op::Read,
        TraceOp::Write { fua } => Op::Write { fua },
        TraceOp::Trim => Op::Discard,
        TraceOp::Flush => Op::Flush,
    }
}

fn as_asked(asked: &[SeenRequest]) -> Vec<(Nanos, Op, Lba, u64)> {
    asked.iter().map(|asked| (asked.at, asked.op, asked.range.lba, asked.range.nlb)).collect()
}

#[test]
fn every_event_starts_at_its_time_and_carries_its_generation() {
    let events = [
        event(Nanos::ZERO, WRITE, 8, 8),
        event(Nanos::millis(1), TraceOp::Read, 0, 1),
        event(Nanos::millis(1), TraceOp::Write { fua: true }, 100, 3),
        event(Nanos::millis(9), TraceOp::Flush, 0, 0),
        event(Nanos::millis(10), WRITE, 8, 8),
    ];
    let device = ScriptedDevice::steady(Nanos::micros(50));
    let (asked, outcome) = run_on(&device, recorded(&events, TraceSpeed::Percent(100), 8, Stop::default()));
    let expected: Vec<_> = events
        .iter()
        .map(|event| {
            (event.at, op_of(event.op), Lba(event.offset.0 / 512), u64::from(event.length_bytes) / 512)
        })
        .collect();
    assert_eq!(as_asked(&asked), expected);
    let generations: Vec<_> = asked.iter().filter_map(|asked| asked.generation).collect();
    assert_eq!(generations, [1, 3, 5]);
    assert_eq!(
        (outcome.write.operations(), outcome.read.operations(), outcome.flush.operations()),
        (3, 1, 1)
    );
    assert_eq!((outcome.late_starts, outcome.unstarted, outcome.backlog_max), (0, 0, Nanos::ZERO));
    let intended = outcome.write.latency_from_intended_start.unwrap();
    assert_eq!(intended.count(), 3);
}

#[test]
fn half_the_speed_is_twice_the_time_and_unpaced_is_none() {
    let events: Vec<_> = (0..10).map(|nth| event(Nanos::millis(nth), TraceOp::Read, nth, 1)).collect();
    let ends = |speed| {
        let device = ScriptedDevice::steady(Nanos::micros(10));
        let (asked, _) = run_on(&device, recorded(&events, speed, 1, Stop::default()));
        assert_eq!(asked.len(), 10);
        asked[9].at
    };
    assert_eq!(ends(TraceSpeed::Percent(50)), Nanos::millis(18));
    assert_eq!(ends(TraceSpeed::Percent(300)), Nanos::millis(3));
    assert_eq!(ends(TraceSpeed::Unpaced), Nanos::micros(90), "one after the other");
}

#[test]
fn what_a_slow_device_delays_is_late_but_not_left_out() {
    let events: Vec<_> = (0..10).map(|nth| event(Nanos::millis(nth), TraceOp::Read, nth, 1)).collect();
    let device = ScriptedDevice::steady(Nanos::millis(5));
    let (asked, outcome) = run_on(&device, recorded(&events, TraceSpeed::Percent(100), 1, Stop::default()));
    assert_eq!(asked.len(), 10);
    assert_eq!(asked[9].at, Nanos::millis(45));
    assert_eq!(outcome.backlog_max, Nanos::millis(36), "the last was meant for 9 ms");
    assert_eq!(outcome.late_starts, 9);
    let intended = outcome.read.latency_from_intended_start.unwrap();
    assert!(intended.max().unwrap() >= Nanos::millis(41));
}

#[test]
fn a_flush_waits_for_the_writes_before_it_and_all_wait_for_the_flush() {
    let events = [
        event(Nanos::ZERO, WRITE, 0, 1),
        event(Nanos::micros(1), TraceOp::Flush, 0, 0),
        event(Nanos::micros(2), TraceOp::Read, 9, 1),
    ];
    let device = ScriptedDevice::new(|request, _| {
        (if request.op == Op::Read { Nanos(1) } else { Nanos::micros(100) }, Outcome::Done)
    });
    let (asked, outcome) = run_on(&device, recorded(&events, TraceSpeed::Percent(100), 8, Stop::default()));
    let times: Vec<_> = asked.iter().map(|asked| asked.at).collect();
    assert_eq!(times, [Nanos::ZERO, Nanos::micros(100), Nanos::micros(200)]);
    assert_eq!(outcome.durable.count(), 1);
}

#[test]
fn a_time_limit_ends_it_and_what_was_due_is_counted() {
    let events: Vec<_> = (0..100).map(|nth| event(Nanos::millis(nth), TraceOp::Read, nth, 1)).collect();
    let device = ScriptedDevice::steady(Nanos::millis(3));
    let stop = Stop { duration: Some(Nanos::millis(30)), ..Stop::default() };
    let (asked, outcome) = run_on(&device, recorded(&events, TraceSpeed::Percent(100), 1, stop));
    assert_eq!(asked.len(), 10, "3 ms each");
    assert_eq!(outcome.unstarted, 20, "30 were due in 30 ms");
}

#[test]
fn an_event_off_the_grid_is_refused_by_its_number() {
    let mut events = vec![event(Nanos::ZERO, TraceOp::Read, 0, 1); 3];
    events[2].offset = Bytes(700);
    let (recorded, workload) = recorded(&events, TraceSpeed::Unpaced, 1, Stop::default());
    let options = WorkerOptions { replay: Some(recorded), ..WorkerOptions::default() };
    let error = Worker::new(&ScriptedDevice::steady(Nanos(1)), &workload, options).err().unwrap().to_string();
    assert!(error.contains("request 3 of the trace is 512 bytes at 700"), "{error}");
}

proptest! {
    #[test]
    fn what_is_asked_is_the_trace_in_its_order(
        steps in proptest::collection::vec((0_u64..200_000, 0_usize..4, 0_u64..1000, 1_u32..9), 1..80),
        depth in 1_u32..9,
        latency in 1_u64..100_000,
        unpaced in any::<bool>(),
    ) {
        let mut at = 0;
        let events: Vec<_> = steps
            .into_iter()
            .map(|(gap, kind, block, blocks)| {
                at += gap;
                let op = [TraceOp::Read, WRITE, TraceOp::Write { fua: true }, TraceOp::Flush][kind];
                event(Nanos(at), op, block, if op == TraceOp::Flush { 0 } else { blocks })
            })
            .collect();
        prop_assume!(events.iter().any(|event| event.op != TraceOp::Flush));
        let device = ScriptedDevice::steady(Nanos(latency));
        let speed = if unpaced { TraceSpeed::Unpaced } else { TraceSpeed::Percent(100) };
        let (recorded, workload) = recorded(&events, speed, depth, Stop::default());
        let (asked, outcome) = run_on(&device, (recorded, workload));
        prop_assert_eq!(asked.len(), events.len());
        let first = events[0].at;
        for (asked, event) in asked.iter().zip(&events) {
            prop_assert_eq!(asked.op, op_of(event.op));
            prop_assert!(unpaced || asked.at >= event.at.max(first));
            if event.op != TraceOp::Flush {
                prop_assert_eq!(asked.range.lba, Lba(event.offset.0 / 512));
            }
        }
        let count = outcome.operations().latency.count() + outcome.flush.operations();
        prop_assert_eq!(count, events.len() as u64);
    }
}
