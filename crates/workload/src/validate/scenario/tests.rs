//! Tests of the scenarios that are refused, and of the words of the refusal.

use plumb_block::Opening;

use super::*;
use crate::access::Sequential;
use crate::pace::Stop;
use crate::scenario::{Steady, TargetUse};
use crate::workload::{Division, Workload};

/// Function that changes a valid job.
type Change = fn(&mut Job);

fn base() -> Job {
    let range = ByteRange { offset: Bytes(0), length: Bytes::mib(1) };
    Job::on("disk", Workload { write_percent: 50, ..Workload::over(range, Bytes::kib(4)) })
}

fn message(scenario: &Scenario) -> String {
    scenario.validate().map_or_else(|invalid| invalid.to_string(), |()| "valid".to_owned())
}

/// Returns the message for two jobs, of which `change` has changed the second.
fn of_job(change: impl FnOnce(&mut Job)) -> String {
    let mut job = base();
    change(&mut job);
    message(&Scenario { spans: vec![Span::new(vec![base(), job])] })
}

/// Returns the message for a valid span changed by `change`.
fn of_span(change: impl FnOnce(&mut Span)) -> String {
    let mut span = Span::new(vec![base()]);
    change(&mut span);
    message(&Scenario { spans: vec![span] })
}

#[test]
fn a_scenario_has_spans_jobs_and_targets() {
    assert_eq!(of_span(|_| {}), "valid");
    assert_eq!(message(&Scenario { spans: Vec::new() }), "spans is empty: expected at least one span");
    assert_eq!(of_span(|span| span.jobs.clear()), "spans[0].jobs is empty: expected at least one job");
    let cases: [(Change, &str); 8] = [
        (|job| job.name.clear(), "name is empty: expected a name for reports"),
        (|job| job.targets.clear(), "targets is empty: expected at least one target"),
        (|job| job.targets[0].name.clear(), "targets[0].name is empty: expected a path, `#N`, or a scheme"),
        (|job| job.targets[0].weight = 0, "targets[0].weight is 0: expected at least 1"),
        (
            |job| job.targets[0].weight = 3,
            "targets[0].weight is 3: expected 1 without a shared depth: each target has a depth of its own, so none is \
             chosen",
        ),
        (|job| job.size = Some(Bytes(0)), "size is 0 B: expected above zero"),
        (|job| job.threads = 0, "threads is 0: expected 1 to 4096"),
        (
            |job| job.affinity = Affinity::Each(Vec::new()),
            "affinity is an empty list: expected at least one processor",
        ),
    ];
    for (change, expected) in cases {
        assert_eq!(of_job(change), format!("spans[0].jobs[1].{expected}"));
    }
}

#[test]
fn a_fault_of_a_workload_is_found_in_its_place() {
    assert_eq!(
        of_job(|job| job.workload.depth = 0),
        "spans[0].jobs[1].workload.depth is 0: expected 1 to 32768"
    );
    assert_eq!(
        of_job(|job| job.size = Some(Bytes::kib(512))),
        "spans[0].jobs[1].workload.length is 1 MiB: expected at most what the target holds from there on, 512 KiB"
    );
    let open = |job: &mut Job| {
        job.workload.range = ByteRange::ALL;
        job.size = Some(Bytes(1000));
    };
    assert_eq!(
        of_job(open),
        "spans[0].jobs[1].workload.length is 1000 B: expected at least one block of 4 KiB"
    );
    let overlapping = |job: &mut Job| {
        job.threads = 2;
        job.targets[0].name = "other".to_owned();
        job.workload.division = Division::Overlap;
        job.workload.verify = true;
    };
    assert!(
        of_job(overlapping)
            .starts_with("spans[0].jobs[1].workload.verify is true: expected false with 2 workers")
    );
}

#[test]
fn a_depth_is_shared_only_where_there_is_something_to_share() {
    let shared = |job: &mut Job| {
        (job.threads_shared, job.depth_shared) = (true, true);
        job.targets.push(TargetUse { name: "other".to_owned(), weight: 4 });
    };
    assert_eq!(of_job(shared), "valid");
    let alone = |job: &mut Job| {
        shared(job);
        job.threads_shared = false;
    };
    assert!(
        of_job(alone).starts_with("spans[0].jobs[1].depth_shared is true: expected false where each thread")
    );
    let parallel = |job: &mut Job| {
        shared(job);
        job.workload.access = Access::Sequential(Sequential { stride: None, walk: Walk::Parallel });
    };
    assert!(
        of_job(parallel)
            .starts_with("spans[0].jobs[1].depth_shared is true: expected false with a parallel walk")
    );
}

#[test]
fn what_comes_one_after_the_other_has_no_depth() {
    let opened = |caching, engine, depth| {
        of_job(|job| {
            job.opening = Opening { caching, engine, ..Opening::DIRECT };
            job.workload.depth = depth;
        })
    };
    assert_eq!(opened(Caching::Direct, EngineChoice::Auto, 32), "valid");
    assert_eq!(opened(Caching::Direct, EngineChoice::Synchronous, 1), "valid");
    assert_eq!(opened(Caching::Mapped, EngineChoice::Auto, 1), "valid");
    assert!(
        opened(Caching::Mapped, EngineChoice::IoUring, 1)
            .contains("opening.engine is io-uring: expected auto or")
    );
    for (caching, engine, how) in [
        (Caching::Direct, EngineChoice::Synchronous, "synchronous calls"),
        (Caching::Mapped, EngineChoice::Auto, "a mapping"),
    ] {
        let expected = format!("workload.depth is 2: expected 1 with {how}, which come one after the other");
        assert!(opened(caching, engine, 2).contains(&expected));
    }
}

#[test]
fn a_search_has_rounds_and_one_aim() {
    let target = |percentile| Some(LatencyTarget { latency: Nanos::millis(1), percentile });
    let steady = |rounds_max| Some(Steady { rounds_max });
    assert_eq!(of_span(|span| span.steady = steady(5)), "valid");
    assert_eq!(of_span(|span| span.latency_target = target(99.9)), "valid");
    assert_eq!(
        of_span(|span| span.steady = steady(4)),
        "spans[0].steady.rounds_max is 4: expected at least 5, over which a steady state is judged"
    );
    assert_eq!(
        of_span(|span| span.latency_target = target(100.1)),
        "spans[0].latency_target.percentile is 100.1: expected above 0, at most 100"
    );
    let none = Some(LatencyTarget { latency: Nanos::ZERO, percentile: 99.0 });
    assert_eq!(
        of_span(|span| span.latency_target = none),
        "spans[0].latency_target.latency is 0 ns: expected a time above zero"
    );
    let both = |span: &mut Span| (span.steady, span.latency_target) = (steady(9), target(50.0));
    assert!(of_span(both).starts_with("spans[0].latency_target is given: expected none with steady"));
    for search in [(steady(9), None), (None, target(50.0))] {
        let counted = |span: &mut Span| {
            (span.steady, span.latency_target) = search;
            span.jobs[0].workload.stop = Stop::operations(9);
        };
        assert!(
            of_span(counted).starts_with("spans[0].jobs[0].workload.stop.duration is none: expected a time")
        );
    }
    let serial = |span: &mut Span| {
        span.latency_target = target(50.0);
        span.jobs[0].opening.engine = EngineChoice::Synchronous;
    };
    assert!(of_span(serial).starts_with("spans[0].jobs[0].opening.engine is synchronous"));
}

#[test]
fn a_job_begins_before_it_is_over() {
    let delayed = |warmup, delay| {
        of_span(|span| {
            span.warmup = warmup;
            span.jobs[0].start_delay = Nanos::secs(delay);
        })
    };
    assert_eq!(delayed(Warmup::For(Nanos::secs(2)), 2), "valid");
    assert_eq!(
        delayed(Warmup::For(Nanos::secs(2)), 3),
        "spans[0].jobs[0].start_delay is 3 s: expected less than 3 s, when the job is over already"
    );
    assert_eq!(delayed(Warmup::Auto, 3), "valid");
}

#[test]
fn nothing_else_changes_what_is_verified() {
    let verified = |change: fn(&mut Job)| {
        of_job(|job| {
            job.workload.verify = true;
            change(job);
        })
    };
    assert_eq!(
        verified(|_| {}),
        "spans[0].jobs[1].workload.verify is true: expected false, or a range that jobs[0] does not change on disk at the \
         same time"
    );
    assert_eq!(verified(|job| job.targets[0].name = "other".to_owned()), "valid");
    assert_eq!(verified(|job| job.workload.range.offset = Bytes::mib(1)), "valid");
    let twice = |job: &mut Job| {
        job.targets[0].name = "other".to_owned();
        job.targets.push(job.targets[0].clone());
    };
    assert!(verified(twice).contains("a range that jobs[1] does not change on other"));
}

#[test]
fn a_scenario_survives_json() {
    let scenario = Scenario { spans: vec![Span { warmup: Warmup::Auto, ..Span::new(vec![base()]) }] };
    let text = serde_json::to_string(&scenario).unwrap();
    assert_eq!(serde_json::from_str::<Scenario>(&text).unwrap(), scenario);
}
