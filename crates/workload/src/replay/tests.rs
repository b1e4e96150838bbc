//! Tests of the targets of a trace, and of the equivalent workload.

use super::*;
use proptest::prelude::*;

fn event(at: u64, target: u16, op: TraceOp, offset: u64, length_bytes: u32) -> TraceEvent {
    TraceEvent { at: Nanos(at), offset: Bytes(offset), length_bytes, target, op }
}

const WRITE: TraceOp = TraceOp::Write { fua: false };

/// Returns a trace with three targets and events on two of them.
fn trace() -> Trace {
    let events = vec![
        event(0, 2, TraceOp::Read, 4096, 512),
        event(10, 0, WRITE, 0, 4096),
        event(20, 2, TraceOp::Write { fua: true }, 8192, 1024),
        event(30, 0, TraceOp::Flush, 0, 0),
        event(2_000_000_000, 2, TraceOp::Read, 512, 512),
    ];
    Trace { targets: ["a", "b", "c"].map(str::to_owned).to_vec(), events }
}

fn job(targets: &[&str]) -> (Job, TraceUse) {
    let how = TraceUse::new("t");
    let workload =
        Workload { stop: Stop::default(), depth: 7, ..Workload::over(ByteRange::ALL, Bytes::kib(4)) };
    let targets = targets.iter().map(|name| TargetUse { name: (*name).to_owned(), weight: 1 }).collect();
    (Job { targets, trace: Some(how.clone()), ..Job::on("x", workload) }, how)
}

fn replay(targets: &[&str]) -> Result<(Job, Replay), Invalid> {
    let (job, how) = job(targets);
    Replay::new(&job, &how, trace())
}

fn names(job: &Job) -> Vec<&str> {
    job.targets.iter().map(|target| target.name.as_str()).collect()
}

#[test]
fn events_go_to_the_targets_of_the_trace_or_those_of_the_job() {
    let (own, replayed) = replay(&[]).unwrap();
    assert_eq!(names(&own), ["a", "c"], "b is not touched");
    let times = |target: &RecordedEvents| target.events().iter().map(|event| event.at.0).collect::<Vec<_>>();
    assert_eq!(
        replayed.targets.iter().map(times).collect::<Vec<_>>(),
        [vec![10, 30], vec![0, 20, 2_000_000_000]]
    );
    let (one, replayed) = replay(&["z"]).unwrap();
    assert_eq!((names(&one), times(&replayed.targets[0])), (vec!["z"], vec![0, 10, 20, 30, 2_000_000_000]));
    let (each, _) = replay(&["y", "z"]).unwrap();
    assert_eq!(names(&each), ["y", "z"]);
    let error = replay(&["x", "y", "z"]).unwrap_err().to_string();
    assert!(error.contains("each of the 2 that the trace names: a, c"), "{error}");
}

#[test]
fn the_stand_in_says_what_the_events_are() {
    let (job, replayed) = replay(&["z"]).unwrap();
    assert!(job.trace.is_none() && job.workload.validate().is_ok());
    let recorded = &replayed.targets[0];
    let workload = recorded.stand_in(&job.workload);
    assert_eq!((workload.depth, workload.write_percent, workload.trim_percent), (7, 50, 0));
    assert_eq!(workload.range, ByteRange { offset: Bytes(0), length: Bytes(9216) });
    assert_eq!((workload.blocks.max(), workload.block_min()), (Bytes(4096), Bytes(512)));
    assert_eq!(workload.durability.flush_every, NonZeroU32::new(2));
    assert_eq!(workload.rate, Rate::Scheduled { amount: Amount::Iops(2.0), arrival: Arrival::Fixed });
    assert!(recorded.changes());
    assert_eq!(
        recorded.operation(1),
        Some(Operation::Write { offset: Bytes(0), length: Bytes(4096), generation: 2, fua: false })
    );
    assert_eq!((recorded.operation(3), recorded.operation(5)), (Some(Operation::Flush), None));
}

#[test]
fn a_trace_that_does_nothing_is_refused() {
    let (job, how) = job(&[]);
    let skip = crate::trace::Skip { reads: true, writes: true, ..Default::default() };
    assert!(Replay::new(&job, &TraceUse { skip, ..how.clone() }, trace()).is_err(), "a flush alone");
    assert!(Replay::new(&job, &how, Trace::default()).is_err());
}

#[test]
fn a_long_trim_makes_no_large_buffers() {
    let (job, how) = job(&[]);
    let events = vec![event(0, 0, TraceOp::Trim, 0, u32::MAX - 511), event(1, 0, TraceOp::Read, 0, 4096)];
    let trace = Trace { targets: vec!["a".into()], events };
    let (_, replayed) = Replay::new(&job, &how, trace).unwrap();
    assert_eq!(replayed.targets[0].stand_in(&job.workload).blocks.max(), Bytes(4096));
}

fn events() -> impl Strategy<Value = Vec<TraceEvent>> {
    let op = prop_oneof![
        Just(TraceOp::Read),
        any::<bool>().prop_map(|fua| TraceOp::Write { fua }),
        Just(TraceOp::Trim),
        Just(TraceOp::Flush),
    ];
    let one = (0..9_000_000_000_u64, 0_u16..4, op, 0..1_u64 << 40, 1_u32..1 << 30);
    proptest::collection::vec(one, 1..60).prop_map(|events| {
        let event = |(at, target, op, offset, length): (u64, u16, TraceOp, u64, u32)| {
            event(at, target, op, offset, if op == TraceOp::Flush { 0 } else { length })
        };
        let mut events: Vec<_> = events.into_iter().map(event).collect();
        events.sort_by_key(|event| event.at);
        events
    })
}

proptest! {
    #[test]
    fn every_stand_in_is_valid_and_no_event_is_lost(events in events(), unpaced in any::<bool>()) {
        let (job, how) = job(&[]);
        let speed = if unpaced { crate::trace::TraceSpeed::Unpaced } else { how.speed };
        let trace = Trace { targets: (0..4).map(|target| target.to_string()).collect(), events: events.clone() };
        let Ok((job, replayed)) = Replay::new(&job, &TraceUse { speed, ..how }, trace) else {
            prop_assert!(events.iter().all(|event| event.op == TraceOp::Flush));
            return Ok(());
        };
        prop_assert_eq!(job.workload.validate(), Ok(()));
        prop_assert_eq!(replayed.events(), events.len() as u64);
        prop_assert_eq!(replayed.targets.len(), job.targets.len());
        for recorded in &replayed.targets {
            let workload = recorded.stand_in(&job.workload);
            prop_assert_eq!(workload.validate(), Ok(()), "{:?}", workload);
            prop_assert_eq!(workload.changes(), recorded.changes());
            let reads = recorded.events().iter().any(|event| event.op == TraceOp::Read);
            prop_assert!(!reads || workload.write_percent + workload.trim_percent < 100);
            prop_assert!(recorded.events().windows(2).all(|pair| pair[0].at <= pair[1].at));
            let scale = recorded.scale_for(recorded.end());
            prop_assert!(scale.is_some_and(|scale| scale <= 1 + (1 << 40)));
        }
    }
}
