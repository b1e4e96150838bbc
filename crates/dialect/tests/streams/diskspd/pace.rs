//! Times of requests: `-W`, `-d`, `-C`, `-g`, `-i`, `-j`.

use plumb_block::Nanos;

use super::stream;
use crate::streams::crew::{LATENCY, Stream};
use crate::streams::recording::SeenRequest;

fn last(stream: &Stream) -> Nanos {
    stream.seen.iter().map(|seen| seen.at).max().unwrap()
}

#[test]
fn requests_last_from_warm_up_to_cool_down_and_the_measurement_between() {
    for (typed, whole, measured) in [
        ("t", 15, 10),
        ("-W0 -d3 t", 3, 3),
        ("-W2 -d3 t", 5, 3),
        ("-W0 -d3 -C2 t", 5, 3),
        ("-W1 -d2 -C3 t", 6, 2),
    ] {
        let stream = stream(typed);
        assert_eq!(stream.seen[0].at, Nanos::ZERO, "{typed}");
        assert_eq!(last(&stream), Nanos::secs(whole) - LATENCY, "{typed}");
        let each_second = 1_000_000_000 / LATENCY.0 * 2;
        assert_eq!(stream.seen.len() as u64, whole * each_second, "{typed}");
        assert_eq!(stream.outcome.operations().operations(), measured * each_second, "{typed}");
    }
}

/// Returns the number of requests of each worker.
fn counts(stream: &Stream) -> Vec<usize> {
    stream.by_worker().values().map(Vec::len).collect()
}

/// Returns the times between the starts of consecutive requests, in nanoseconds.
fn pauses(seen: &[&SeenRequest]) -> Vec<u64> {
    seen.windows(2).map(|pair| pair[1].at.since(pair[0].at).0).collect()
}

#[test]
fn g_with_i_is_requests_per_second_of_each_thread_on_each_target() {
    assert_eq!(counts(&stream("-W0 -d10 -g100i t")), [1000]);
    assert_eq!(counts(&stream("-W0 -d10 -g100i -t3 t")), [1000; 3]);
    assert_eq!(counts(&stream("-W0 -d10 -g100i t u")), [1000; 2]);
    assert_eq!(counts(&stream("-W0 -d10 -g50i -F2 t u")), [500; 4]);
    let stream = stream("-W0 -d10 -g100i -t2 t");
    for seen in stream.by_worker().values() {
        assert!(pauses(seen).iter().all(|pause| *pause == 10_000_000), "they come evenly");
    }
}

#[test]
fn g_is_bytes_per_millisecond_of_each_thread_on_each_target() {
    for (typed, workers, per_second) in [
        ("-g1000 -b4k t", 1, 1_000_000),
        ("-g1000 -b4k -t4 t", 4, 4_000_000),
        ("-g500 -b8k t u", 2, 1_000_000),
    ] {
        let stream = stream(&format!("-W0 -d10 {typed}"));
        assert_eq!(counts(&stream).len(), workers, "{typed}");
        let bytes: u64 = stream.seen.iter().map(|seen| seen.length).sum();
        let expected = per_second * 10;
        assert!(bytes.abs_diff(expected) <= 8192 * workers as u64, "{typed}: {bytes} of {expected}");
    }
}

#[test]
fn bursts_are_as_long_as_i_and_apart_by_j() {
    let stream = stream("-W0 -d2 -i10 -j5 t");
    let seen = stream.accesses();
    for (place, pause) in pauses(&seen).iter().enumerate() {
        let burst_ends = place % 10 == 9;
        assert_eq!(*pause >= 5_000_000, burst_ends, "{pause} ns after request {place}");
    }
}

#[test]
fn a_burst_is_divided_among_threads() {
    let stream = stream("-W0 -d1 -i8 -j20 -t4 t");
    for seen in stream.by_worker().values() {
        let pauses = pauses(seen);
        assert!(pauses.iter().skip(1).step_by(2).all(|pause| *pause >= 20_000_000), "{pauses:?}");
        assert!(pauses.iter().step_by(2).all(|pause| *pause < 20_000_000), "{pauses:?}");
    }
}
