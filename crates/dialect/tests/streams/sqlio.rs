//! Streams of requests of SQLIO command lines.

use plumb_block::{Nanos, Op};
use plumb_dialect::sqlio;
use plumb_workload::{Affinity, Caching, EngineChoice, Span};

use crate::streams::crew::{self, LATENCY, SIZE, Stream, is_write};

const KIB: u64 = 1 << 10;

fn span(typed: &str) -> Span {
    let read = |_: &str| Ok("a 2 0x0 8\nb 3 0x2 16\n".to_owned());
    let invocation = sqlio::parse(&crate::streams::arguments(typed), &crate::streams::machine(), &read);
    let meaning = invocation.and_then(|invocation| invocation.meaning());
    meaning.unwrap_or_else(|error| panic!("{typed}: {error}")).scenario.spans.remove(0)
}

fn stream(typed: &str) -> Stream {
    crew::run(&span(typed))
}

#[test]
fn k_is_read_or_write() {
    assert_eq!(stream("-s1 t").percent(is_write), 0.0);
    assert_eq!(stream("-s1 -kR t").percent(is_write), 0.0);
    assert_eq!(stream("-s1 -kW t").percent(is_write), 100.0);
}

#[test]
fn s_is_how_long() {
    for (typed, seconds) in [("t", 30), ("-s2 t", 2)] {
        let last = stream(typed).seen.iter().map(|seen| seen.at).max();
        assert_eq!(last, Some(Nanos::secs(seconds) - LATENCY), "{typed}");
    }
}

#[test]
fn b_is_the_length_in_kib() {
    assert!(stream("-s1 t").seen.iter().all(|seen| seen.length == 2 * KIB));
    assert!(stream("-s1 -b64 t").seen.iter().all(|seen| seen.length == 64 * KIB));
}

#[test]
fn f_is_where() {
    let step = |typed: &str, step: u64| {
        let offsets = stream(typed).offsets();
        let on = offsets.windows(2).filter(|pair| pair[1] == pair[0] + step).count();
        let back = offsets.windows(2).filter(|pair| pair[1] < pair[0]).count();
        assert!(on + back == offsets.len() - 1 && on > back, "{typed}");
    };
    step("-s2 -b8 -fsequential t", 8 * KIB);
    step("-s2 -b8 -fstripe t", 64 * 8 * KIB);
    step("-s2 -b8 -f16 t", 16 * 8 * KIB);
    let random = stream("-s2 -b8 -frandom t");
    let offsets = random.offsets();
    assert!(offsets.iter().all(|offset| offset % (8 * KIB) == 0 && offset + 8 * KIB <= SIZE.0));
    let on = offsets.windows(2).filter(|pair| pair[1] == pair[0] + 8 * KIB).count();
    assert!(on * 50 < offsets.len(), "{on} follow one another");
}

#[test]
fn capital_s_is_the_block_to_begin_at() {
    assert_eq!(stream("-s1 -b8 -fsequential -S100 t").offsets()[..3], [800 * KIB, 808 * KIB, 816 * KIB]);
    assert!(stream("-s1 -b8 -frandom -S100 t").offsets().iter().all(|offset| *offset >= 800 * KIB));
}

#[test]
fn t_and_o_are_threads_and_outstanding() {
    let stream = stream("-s1 -t3 -o8 -frandom t");
    assert_eq!(stream.by_worker().len(), 3);
    assert_eq!(stream.deepest(), 8);
    assert_eq!(span("-s1 t").jobs[0].opening.engine, EngineChoice::Synchronous, "-o0 is one at a time");
}

#[test]
fn b_buffering_is_which_caches() {
    for (typed, caching, fua) in [
        ("-s1 -kW t", Caching::Direct, true),
        ("-s1 -kW -BN t", Caching::Direct, true),
        ("-s1 -kW -BH t", Caching::Direct, false),
        ("-s1 -kW -BS t", Caching::Cached, true),
        ("-s1 -kW -BY t", Caching::Cached, false),
    ] {
        assert_eq!(span(typed).jobs[0].opening.caching, caching, "{typed}");
        assert!(stream(typed).seen.iter().all(|seen| seen.op == Op::Write { fua }), "{typed}");
    }
}

#[test]
fn a_parameter_file_names_files_with_threads_and_sizes() {
    let typed = "-s1 -fsequential -b64 -Fparam.txt";
    let stream = stream(typed);
    for (target, workers, size) in [("a", 2, 8 << 20), ("b", 3, 16 << 20)] {
        let seen: Vec<_> = stream.seen.iter().filter(|seen| seen.target == target).collect();
        assert_eq!(seen.iter().map(|seen| seen.offset + seen.length).max(), Some(size), "{target}");
        let mut found: Vec<usize> = seen.iter().map(|seen| seen.worker).collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), workers, "{target}");
    }
    assert_eq!(span(typed).jobs[1].affinity, Affinity::Shared(vec![1]));
}
