//! Threads, depths and targets: `-t`, `-F`, `-o`, `-O`, several targets, `-a`, `-n`, `-I`, `-X`.

use std::collections::BTreeMap;

use plumb_dialect::diskspd::{self, Command, write_profile};
use plumb_workload::{Affinity, EngineChoice, Priority, Span};

use super::{brief, invocation, span};
use crate::streams::crew::{self, Stream};

/// Returns the number of workers of each target.
fn workers(stream: &Stream) -> BTreeMap<&str, usize> {
    let mut seen: Vec<(&str, usize)> =
        stream.seen.iter().map(|seen| (seen.target.as_str(), seen.worker)).collect();
    seen.sort_unstable();
    seen.dedup();
    let mut workers = BTreeMap::new();
    seen.iter().for_each(|(target, _)| *workers.entry(*target).or_default() += 1);
    workers
}

#[test]
fn o_is_what_each_thread_has_outstanding_on_each_target() {
    for (typed, depth) in [
        ("t", 2),
        ("-o1 t", 1),
        ("-o8 -r t", 8),
        ("-o32 -t2 t", 32),
        ("-o4 -F2 t u", 4),
        ("-o64 -si -t3 t", 64),
    ] {
        let stream = brief(typed);
        for (worker, seen) in stream.by_worker() {
            assert_eq!(seen.iter().map(|seen| seen.in_flight).max(), Some(depth), "{typed}, worker {worker}");
        }
    }
    assert_eq!(span("-o1 t").jobs[0].opening.engine, EngineChoice::Synchronous);
}

#[test]
fn t_threads_work_on_each_target() {
    assert_eq!(workers(&brief("t")), BTreeMap::from([("t", 1)]));
    assert_eq!(workers(&brief("-t4 t")), BTreeMap::from([("t", 4)]));
    assert_eq!(workers(&brief("-t3 t u v")), BTreeMap::from([("t", 3), ("u", 3), ("v", 3)]));
    let span = span("-t3 t u");
    let threads: u32 = span.jobs.iter().map(|job| job.threads * job.targets.len() as u32).sum();
    assert_eq!(threads, 6, "each works on one target");
}

#[test]
fn f_threads_work_on_all_targets() {
    assert_eq!(workers(&brief("-F3 t u")), BTreeMap::from([("t", 3), ("u", 3)]));
    let span = span("-F3 t u");
    assert!(span.jobs.len() == 1 && span.jobs[0].threads == 3 && span.jobs[0].threads_shared);
    let stream = brief("-F3 -r t u");
    let offsets: Vec<Vec<u64>> =
        stream.by_worker().values().map(|seen| seen.iter().map(|seen| seen.offset).collect()).collect();
    assert_ne!(offsets[0], offsets[2], "threads draw apart");
}

#[test]
fn capital_o_is_outstanding_over_all_targets_of_a_thread() {
    let stream = crew::run(&span("-F1 -O8 -r t u v"));
    let most = stream.seen.iter().map(|seen| seen.in_flight_anywhere).max();
    assert_eq!(most, Some(8), "not 8 on each of three targets");
    assert_eq!(workers(&stream).len(), 3);
    let two = crew::run(&span("-F2 -O3 -r t u"));
    assert!(two.seen.iter().all(|seen| seen.in_flight_anywhere <= 6), "two threads, three each");
    let counts: Vec<usize> =
        ["t", "u"].map(|target| two.seen.iter().filter(|seen| seen.target == target).count()).to_vec();
    let total = counts[0] + counts[1];
    assert!(counts.iter().all(|count| count * 3 > total), "targets get their turns: {counts:?}");
}

#[test]
fn every_target_is_asked() {
    let one = brief("-r t");
    let three = brief("-r t u v");
    assert_eq!(three.seen.len(), 3 * one.seen.len());
    assert_eq!(workers(&three).len(), 3);
}

#[test]
fn placement_says_where_threads_run_and_nothing_else() {
    let plain = brief("-t2 -r t");
    for (typed, affinity, priority) in [
        ("-t2 -r -a1,3 t", Affinity::Each(vec![1, 3]), Priority::Normal),
        ("-t2 -r -ag0,2 t", Affinity::Each(vec![2]), Priority::Normal),
        ("-t2 -r -n t", Affinity::Any, Priority::Normal),
        ("-t2 -r -I1 t", Affinity::Each(vec![0, 1, 2, 3]), Priority::Idle),
        ("-t2 -r -I2 t", Affinity::Each(vec![0, 1, 2, 3]), Priority::Low),
    ] {
        let job = span(typed).jobs.remove(0);
        assert_eq!((job.affinity, job.priority), (affinity, priority), "{typed}");
        assert!(brief(typed).seen == plain.seen, "{typed} changes the requests");
    }
}

#[test]
fn a_profile_gives_the_stream_of_its_command_line() {
    for typed in [
        "-b8k -o8 -t2 -r -w30 -Zr -Sh -d1 -W0 t u",
        "-si -t3 -w100 -Z -d1 -W1 -C1 t",
        "-F2 -rs40 -g200i -d1 -W0 t u",
    ] {
        let text = write_profile(&invocation(typed).profile);
        let read = |_: &str| Ok(text.clone());
        let parsed =
            diskspd::parse(&crate::streams::arguments("-Xp.xml"), &crate::streams::machine(), &read).unwrap();
        let Command::Run(from_file) = parsed else { panic!("usage") };
        let meaning = from_file.meaning(&crate::streams::machine(), &|_| None).unwrap();
        assert_eq!(meaning.scenario.spans, [span(typed)], "{typed}");
        let stream = crew::run(&meaning.scenario.spans[0]);
        assert!(stream.seen == crew::run(&span(typed)).seen, "{typed}");
    }
}

/// Returns the span of a profile with these totals of threads and requests, and these targets.
fn profile(threads: u32, requests: u32, targets: &str) -> Span {
    let text = format!(
        "<Profile><TimeSpans><TimeSpan><Duration>2</Duration><Warmup>0</Warmup><ThreadCount>{threads}</ThreadCount>\
         <RequestCount>{requests}</RequestCount><Targets>{targets}</Targets></TimeSpan></TimeSpans></Profile>"
    );
    let read = |_: &str| Ok(text.clone());
    let parsed = diskspd::parse(&crate::streams::arguments("-Xp.xml"), &crate::streams::machine(), &read);
    let Ok(Command::Run(invocation)) = parsed else { panic!("{parsed:?}") };
    let meaning = invocation.meaning(&crate::streams::machine(), &|_| None);
    meaning.unwrap_or_else(|error| panic!("{error}")).scenario.spans.remove(0)
}

fn count(stream: &Stream, target: &str) -> usize {
    stream.seen.iter().filter(|seen| seen.target == target).count()
}

#[test]
fn threads_in_all_work_on_targets_that_are_unlike() {
    let random = "<Target><Path>t</Path><BlockSize>4096</BlockSize><Random>4096</Random>\
                  <WriteRatio>100</WriteRatio><RequestCount>4</RequestCount></Target>";
    let sequential = "<Target><Path>u</Path><BlockSize>65536</BlockSize><StrideSize>65536</StrideSize>\
                      <RequestCount>2</RequestCount></Target>";
    for requests in [0, 6] {
        let span = profile(3, requests, &format!("{random}{sequential}"));
        let stream = crew::run(&span);
        assert_eq!(workers(&stream), BTreeMap::from([("t", 3), ("u", 3)]));
        assert_eq!(span.threads().len(), 3, "each thread works on both");
        let of =
            |target: &str| stream.seen.iter().filter(move |seen| seen.target == target).collect::<Vec<_>>();
        assert!(of("t").iter().all(|seen| seen.length == 4096 && crew::is_write(seen)));
        assert!(of("u").iter().all(|seen| seen.length == 65536 && !crew::is_write(seen)));
        assert!(of("t").windows(2).any(|pair| pair[1].offset < pair[0].offset), "random");
        let most = stream.seen.iter().map(|seen| seen.in_flight_anywhere).max();
        assert_eq!(most, Some(18), "three threads, six each: {requests} over all, or 4 and 2");
    }
}

#[test]
fn weights_hold_at_every_depth() {
    let target = |path: &str, weight: u32, block: u32| {
        format!("<Target><Path>{path}</Path><BlockSize>{block}</BlockSize><Weight>{weight}</Weight></Target>")
    };
    for requests in [1, 2, 3, 4, 8, 32] {
        for block in [65536, 8192] {
            let span =
                profile(2, requests, &format!("{}{}", target("t", 300, 65536), target("u", 100, block)));
            let stream = crew::run(&span);
            let (often, seldom) = (count(&stream, "t"), count(&stream, "u"));
            assert!(often.abs_diff(3 * seldom) <= 8 * requests as usize, "{requests}: {often} to {seldom}");
        }
    }
}

#[test]
fn threads_choose_their_targets_among_unlike_ones() {
    let target = |path: &str, block: u32, threads: &[u32]| {
        let of = |thread| format!("<ThreadTarget><Thread>{thread}</Thread><Weight>1</Weight></ThreadTarget>");
        let threads: String = threads.iter().map(of).collect();
        format!(
            "<Target><Path>{path}</Path><BlockSize>{block}</BlockSize><ThreadTargets>{threads}</ThreadTargets></Target>"
        )
    };
    let span = profile(3, 4, &format!("{}{}", target("t", 4096, &[0, 1]), target("u", 8192, &[1, 2])));
    let works_on: Vec<usize> = span.threads().iter().map(|thread| thread.targets.len()).collect();
    assert_eq!(works_on, [1, 2, 1]);
    assert_eq!(workers(&crew::run(&span)), BTreeMap::from([("t", 2), ("u", 2)]));
}
