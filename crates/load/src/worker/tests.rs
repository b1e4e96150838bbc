//! Tests of one worker, step by step: depth, order of flushes, counts, and refusals.

use std::num::NonZeroU32;

use plumb_block::{Bytes, Lba, LbaRange, Nanos, Op, Outcome};
use plumb_workload::{BlockSizes, ByteRange, Content, Durability, Stop, Workload};

use super::*;
use crate::tests::scripted::ScriptedDevice;

fn workload() -> Workload {
    let range = ByteRange { offset: Bytes::mib(1), length: Bytes::mib(4) };
    Workload {
        depth: 4,
        write_percent: 100,
        stop: Stop::operations(20),
        ..Workload::over(range, Bytes::kib(4))
    }
}

/// Steps the worker to its end in virtual time. Returns the measurements.
fn run_on(device: &ScriptedDevice, worker: Worker) -> LoadOutcome {
    device.run(worker, |worker| assert!(worker.in_flight() <= worker.completions.capacity()))
}

fn refusal(workload: &Workload) -> String {
    let device = ScriptedDevice::steady(Nanos(1));
    let error = Worker::new(&device, workload, WorkerOptions::default()).err().unwrap();
    match std::error::Error::source(&error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[test]
fn what_does_not_fit_the_device_is_said_with_both_sizes() {
    let range = ByteRange { offset: Bytes::mib(60), length: Bytes::mib(5) };
    assert_eq!(
        refusal(&Workload { range, ..workload() }),
        "the workload does not fit scripted: the range ends at 68157440 bytes: expected at most the device's size, 64 MiB"
    );
    assert_eq!(
        refusal(&Workload { blocks: BlockSizes::one(Bytes(1000)), ..workload() }),
        "the workload does not fit scripted: block is 1000 bytes: expected a multiple of the logical block, \
         512 B; use one, or open the file or disk through the page cache, where any length goes"
    );
    assert_eq!(
        refusal(&Workload { depth: 0, ..workload() }),
        "the workload cannot be run: depth is 0: expected 1 to 32768"
    );
}

#[test]
fn requests_stay_in_the_range_and_carry_rising_generations() {
    let device = ScriptedDevice::steady(Nanos::micros(10));
    let worker = Worker::new(&device, &workload(), WorkerOptions::default()).unwrap();
    run_on(&device, worker);
    let asked = device.asked();
    assert_eq!(asked.len(), 20, "20 operations at depth 4");
    for (index, request) in asked.iter().enumerate() {
        assert_eq!(request.op, Op::Write { fua: false });
        assert_eq!(request.range.nlb, 8);
        assert!(request.range.lba >= Lba(2048) && request.range.end() <= Lba(2048 + 8192));
        assert_eq!(request.generation, Some(index as u64 + 1));
    }
}

#[test]
fn force_unit_access_and_contents_reach_the_device() {
    for content in [Content::Pattern, Content::Repeated, Content::Zeroes] {
        let device = ScriptedDevice::steady(Nanos::micros(10));
        let workload =
            Workload { durability: Durability::EACH_WRITE, content: content.clone(), ..workload() };
        let mut worker = Worker::new(&device, &workload, WorkerOptions::default()).unwrap();
        worker.start(Nanos::ZERO, &Arc::new(Window::closed(Nanos::ZERO)));
        assert_eq!(worker.step(Nanos::ZERO).unwrap(), Step::Progressed);
        let first = &device.asked()[0];
        assert_eq!(first.op, Op::Write { fua: true });
        assert_eq!(first.generation.is_some(), content == Content::Pattern);
    }
}

#[test]
fn a_flush_waits_for_its_writes_and_everything_waits_for_the_flush() {
    // Latencies that differ, so that the writes of a group end in another order than they began.
    let mut next = 0;
    let device = ScriptedDevice::new(move |request, _| {
        next = (next * 5 + 3) % 17;
        let latency = if request.op == Op::Flush { Nanos::micros(100) } else { Nanos::micros(10 + next) };
        (latency, Outcome::Done)
    });
    let workload = Workload {
        durability: Durability::flush_every(NonZeroU32::new(6).unwrap()),
        stop: Stop::operations(20),
        ..workload()
    };
    let worker = Worker::new(&device, &workload, WorkerOptions::default()).unwrap();
    let outcome = run_on(&device, worker);
    let asked = device.asked();
    let kinds: String = asked.iter().map(|asked| if asked.op == Op::Flush { 'F' } else { 'w' }).collect();
    assert_eq!(kinds, "wwwwwwFwwwwwwFwwwwwwFww", "20 writes, a flush after each sixth");
    for (index, flush) in asked.iter().enumerate().filter(|(_, asked)| asked.op == Op::Flush) {
        assert_eq!(flush.range, LbaRange::EMPTY);
        assert!(asked[index + 1].at >= flush.at + Nanos::micros(100), "a write overtook the flush");
    }
    assert_eq!((outcome.write.operations(), outcome.flush.operations(), outcome.durable.count()), (20, 3, 3));
    // The first write of a group begins at the end of the flush before, so groups fill the time between
    // flushes.
    let group = outcome.durable.max().unwrap();
    assert!(group >= outcome.flush.latency.max().unwrap() + outcome.write.latency.min().unwrap());
    assert_eq!(outcome.flush.bytes, Bytes(0));
}

#[test]
fn a_queue_with_less_room_than_the_depth_loses_nothing() {
    let device = ScriptedDevice::steady(Nanos::micros(10)).with_capacity(3);
    let workload = Workload { depth: 16, stop: Stop::operations(50), ..workload() };
    let worker = Worker::new(&device, &workload, WorkerOptions::default()).unwrap();
    let outcome = run_on(&device, worker);
    let generations: Vec<_> = device.asked().iter().filter_map(|asked| asked.generation).collect();
    assert_eq!(generations, (1..=50).collect::<Vec<_>>());
    assert_eq!(
        (outcome.write.operations(), outcome.in_flight_max),
        (50, 3),
        "the depth that was had is said"
    );
}

#[test]
fn a_queue_that_never_has_room_is_a_breach() {
    let device = ScriptedDevice::steady(Nanos(1)).with_capacity(0);
    let mut worker = Worker::new(&device, &workload(), WorkerOptions::default()).unwrap();
    worker.start(Nanos::ZERO, &Arc::new(Window::closed(Nanos::ZERO)));
    let fault = worker.step(Nanos::ZERO).unwrap_err().to_string();
    assert_eq!(fault, "the queue of worker 0 breaks its contract: it is full although nothing is in flight");
}
