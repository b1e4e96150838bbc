//! Relations between sections: spans, groups, and properties of a span.

use super::*;
use plumb_block::Nanos;
use plumb_workload::{LatencyTarget, Replay, Span, Steady, Stop, TraceSpeed, Warmup};

fn spans(text: &str) -> Vec<Span> {
    file(text).unwrap_or_else(|error| panic!("{text}: {error}")).meaning.scenario.spans
}

#[test]
fn a_stonewall_begins_a_span() {
    let text = "[global]\nsize=1m\n[a]\n[b]\n[c]\nstonewall\n[d]\nwait_for_previous\n";
    let invocation = file(text).unwrap();
    let names: Vec<Vec<&str>> = invocation
        .meaning
        .scenario
        .spans
        .iter()
        .map(|span| span.jobs.iter().map(|job| job.name.as_str()).collect())
        .collect();
    assert_eq!(names, [vec!["a", "b"], vec!["c"], vec!["d"]]);
    let groups: Vec<(usize, u32)> = invocation.reported.iter().map(|job| (job.span, job.group)).collect();
    assert_eq!(groups, [(0, 0), (0, 0), (1, 1), (2, 2)]);
    let groups = file("[global]\nsize=1m\n[a]\n[b]\nnew_group\n").unwrap().reported;
    assert_eq!((groups[1].span, groups[1].group), (0, 1));
}

#[test]
fn global_sections_hold_for_those_after_them() {
    let spans = spans("[global]\nsize=1m\nbs=8k\n[a]\n[global]\nbs=16k\n[b]\n[c]\nbs=32k\n");
    let blocks: Vec<u64> = spans[0].jobs.iter().map(|job| job.workload.block_min().0 >> 10).collect();
    assert_eq!(blocks, [8, 16, 32]);
}

#[test]
fn warm_up_is_that_of_the_span() {
    let one = "[global]\nsize=1m\nramp_time=5\n[a]\n[b]\n";
    assert_eq!(spans(one)[0].warmup, Warmup::For(Nanos::secs(5)));
    let differing = file("[global]\nsize=1m\n[a]\nramp_time=5\n[b]\n").unwrap_err();
    assert!(differing.to_string().contains("ramp_time"), "{differing}");
    assert!(file("[global]\nsize=1m\n[a]\nramp_time=5\n[b]\nstonewall\n").is_ok());
}

#[test]
fn a_latency_to_keep() {
    let spans = spans(
        "[x]\nfilename=/f\nsize=64m\nrw=randread\nioengine=libaio\ndirect=1\niodepth=64\nlatency_target=10ms\n\
         latency_percentile=99.9\nlatency_window=5s\n",
    );
    let target = LatencyTarget { latency: Nanos::millis(10), percentile: 99.9 };
    assert_eq!(spans[0].latency_target, Some(target));
    assert_eq!(spans[0].jobs[0].workload.stop, Stop::after(Nanos::secs(5)), "each depth is tried so long");
    assert!(notes("latency_run=1").contains("latency_run has no effect"));
}

#[test]
fn a_steady_state() {
    let text = "[x]\nfilename=/f\nsize=64m\nrw=randread\nss=iops:0.3%\nss_dur=60\nss_ramp=10\nruntime=1h\ntime_based\n";
    let invocation = file(text).unwrap();
    let span = &invocation.meaning.scenario.spans[0];
    assert_eq!(span.steady, Some(Steady { rounds_max: 300 }), "an hour of rounds of 12 s");
    assert_eq!(span.jobs[0].workload.stop, Stop::after(Nanos::secs(12)), "five of them are a minute");
    assert_eq!(span.warmup, Warmup::For(Nanos::secs(10)));
    assert!(invocation.meaning.notes.join(" ").contains("SNIA"));
}

#[test]
fn the_first_to_end_ends_all() {
    let spans =
        spans("[global]\nsize=1m\ntime_based\n[a]\nruntime=10\nexitall\n[b]\nruntime=99\nstartdelay=2\n");
    let durations: Vec<_> = spans[0].jobs.iter().map(|job| job.workload.stop.duration).collect();
    assert_eq!(durations, [Some(Nanos::secs(10)), Some(Nanos::secs(8))]);
    let error = file("[global]\nsize=1m\n[a]\nexitall\n[b]\n").unwrap_err();
    assert!(error.to_string().contains("exitall"), "{error}");
}

#[test]
fn a_trace_is_replayed_alone() {
    let invocation = file("[x]\nread_iolog=trace\nreplay_no_stall=1\nreplay_redirect=/dev/vdb\n").unwrap();
    let job = only_job(&invocation);
    let how = job.trace.clone().unwrap();
    assert_eq!((how.path.as_str(), how.speed), ("trace", TraceSpeed::Unpaced));
    assert_eq!(invocation.meaning.scenario.validate(), Ok(()));
    let text = "fio version 2 iolog\n/a add\n/b add\n/a wait 900 0\n/b write 5000 512\n/a read 0 512\n";
    let trace = crate::fio::trace::read(text.as_bytes()).unwrap();
    let (replaying, replay) = Replay::new(job, &how, trace.clone()).unwrap();
    assert_eq!((replaying.targets.len(), replaying.targets[0].name.as_str()), (1, "/dev/vdb"));
    assert_eq!(replay.targets[0].events().len(), 2, "all of it goes there");
    let own = file("[x]\nread_iolog=trace\nreplay_time_scale=50\nreplay_align=4k\n").unwrap();
    let how = only_job(&own).trace.clone().unwrap();
    let (replaying, replay) = Replay::new(only_job(&own), &how, trace).unwrap();
    assert_eq!(replaying.targets.len(), 2, "its own targets");
    let event = replay.targets[1].events()[0];
    assert_eq!((event.offset.0, event.at), (4096, Nanos::ZERO), "times begin with the first event");
    assert_eq!(how.speed, TraceSpeed::Percent(50));
    for text in ["[x]\nread_iolog=t\n[y]\nsize=1m\n", "[y]\nsize=1m\n[x]\nread_iolog=t\n"] {
        assert!(file(text).unwrap_err().to_string().contains("alone"));
    }
}
