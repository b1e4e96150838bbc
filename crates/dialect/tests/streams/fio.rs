//! Streams of requests of fio job files.

use plumb_block::{Bytes, Nanos, Op};
use plumb_workload::{FlushCall, Span};

use crate::fio_parity::ours;
use crate::streams::crew::{self, LATENCY, SIZE, Stream, is_write};
use crate::streams::recording::RequestContent;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Returns the spans of a job file with one section: these lines, and a file of 64 MiB.
fn spans(lines: &str) -> Vec<Span> {
    let text = format!("[x]\nfilename=t\nsize=64m\n{}\n", lines.replace('|', "\n"));
    ours(&text).unwrap_or_else(|error| panic!("{lines}: {error}")).meaning.scenario.spans
}

fn span(lines: &str) -> Span {
    let mut spans = spans(lines);
    assert_eq!(spans.len(), 1, "{lines}");
    spans.remove(0)
}

fn stream(lines: &str) -> Stream {
    crew::run(&span(lines))
}

/// Returns the stream of `lines` with random access for four seconds.
fn random(lines: &str) -> Stream {
    stream(&format!("rw=randread|norandommap|runtime=4|time_based|{lines}"))
}

#[test]
fn a_job_moves_its_size_once() {
    let stream = stream("rw=write|bs=64k");
    let expected: Vec<u64> = (0..SIZE.0 / (64 * KIB)).map(|block| block * 64 * KIB).collect();
    assert_eq!(stream.offsets(), expected);
    assert_eq!(stream.percent(is_write), 100.0);
}

#[test]
fn rw_is_what_and_where() {
    for (rw, writes, trims) in [
        ("read", 0.0, 0.0),
        ("write", 100.0, 0.0),
        ("rw", 50.0, 0.0),
        ("trim", 0.0, 100.0),
        ("randread", 0.0, 0.0),
        ("randwrite", 100.0, 0.0),
        ("randrw", 50.0, 0.0),
        ("randtrim", 0.0, 100.0),
    ] {
        let stream = stream(&format!("rw={rw}"));
        assert!((stream.percent(is_write) - writes).abs() < 2.0, "{rw}");
        assert_eq!(stream.percent(|seen| seen.op == Op::Discard), trims, "{rw}");
        let offsets = stream.offsets();
        let follow = offsets.windows(2).filter(|pair| pair[1] == pair[0] + 4 * KIB).count();
        let is_sequential = follow == offsets.len() - 1;
        assert_eq!(is_sequential, !rw.starts_with("rand"), "{rw}");
        let mut places = offsets.clone();
        places.sort_unstable();
        places.dedup();
        assert_eq!(
            places.len() as u64,
            SIZE.0 / (4 * KIB),
            "{rw}: each place once, as with fio's random map"
        );
    }
}

#[test]
fn rw_with_a_number_is_runs_or_a_skip() {
    let runs = stream("rw=randread:8|norandommap|runtime=2|time_based");
    let offsets = runs.offsets();
    let drawn = offsets.windows(2).filter(|pair| pair[1] != pair[0] + 4 * KIB).count();
    let expected = offsets.len() / 8;
    assert!(drawn.abs_diff(expected) < expected / 10, "{drawn} of {expected} runs");
    assert_eq!(stream("rw=read:4k").offsets()[..4], [0, 8 * KIB, 16 * KIB, 24 * KIB]);
}

#[test]
fn rwmix_is_the_percent() {
    let writes = |lines| random(&format!("rw=randrw|{lines}")).percent(is_write);
    assert!((writes("rwmixread=70") - 30.0).abs() < 2.5);
    assert!((writes("rwmixwrite=90") - 90.0).abs() < 2.5);
    let drawn = random("percentage_random=25").offsets();
    let jumps = drawn.windows(2).filter(|pair| pair[1] != pair[0] + 4 * KIB).count() as f64;
    assert!((jumps / drawn.len() as f64 - 0.25).abs() < 0.03);
}

#[test]
fn block_sizes_are_as_long_and_as_frequent_as_said() {
    assert!(random("bs=8k").seen.iter().all(|seen| seen.length == 8 * KIB));
    let two = random("rw=randrw|bs=4k,16k");
    assert!(two.seen.iter().all(|seen| seen.length == if is_write(seen) { 16 * KIB } else { 4 * KIB }));
    let split = random("bssplit=4k/60:64k/40");
    let short = split.percent(|seen| seen.length == 4 * KIB);
    let long = split.percent(|seen| seen.length == 64 * KIB);
    assert!((short - 60.0).abs() < 2.5 && short + long == 100.0, "{short} and {long}");
    assert!(random("bs=4k|blockalign=32k").offsets().iter().all(|offset| offset % (32 * KIB) == 0));
}

#[test]
fn depth_clones_and_files() {
    assert_eq!(random("ioengine=libaio|direct=1|iodepth=16").deepest(), 16);
    assert_eq!(random("ioengine=psync|iodepth=16").deepest(), 1, "one at a time, as with fio");
    let clones = stream("rw=write|numjobs=3|bs=1m");
    assert_eq!(clones.by_worker().values().map(Vec::len).collect::<Vec<_>>(), [64; 3], "each does it all");
    let apart = stream("rw=write|numjobs=2|bs=1m|size=8m|offset_increment=8m");
    let firsts: Vec<u64> = apart.by_worker().values().map(|seen| seen[0].offset).collect();
    assert_eq!(firsts, [0, 8 * MIB]);
}

#[test]
fn offset_size_and_amounts() {
    let bounds = |lines: &str| {
        let stream = stream(lines);
        let accesses = stream.accesses();
        let from = accesses.iter().map(|seen| seen.offset).min().unwrap();
        (from, accesses.iter().map(|seen| seen.offset + seen.length).max().unwrap(), accesses.len())
    };
    assert_eq!(bounds("rw=write|bs=1m|offset=8m"), (8 * MIB, 72 * MIB, 64));
    assert_eq!(bounds("rw=write|bs=1m|offset=8m|size=16m"), (8 * MIB, 24 * MIB, 16));
    assert_eq!(bounds("rw=write|bs=1m|io_size=4m"), (0, 4 * MIB, 4));
    assert_eq!(bounds("rw=write|bs=1m|loops=2"), (0, 64 * MIB, 128));
    assert_eq!(bounds("rw=write|bs=1m|number_ios=10"), (0, 10 * MIB, 10));
}

#[test]
fn rates_are_kept_evenly_or_as_clients_come() {
    let pauses = |stream: &Stream| {
        let seen = &stream.seen;
        seen.windows(2).map(|pair| pair[1].at.since(pair[0].at).0).collect::<Vec<_>>()
    };
    let even = random("rate_iops=100");
    assert_eq!(even.seen.len(), 400);
    assert!(pauses(&even).iter().all(|pause| *pause == 10_000_000));
    let clients = random("rate_iops=100|rate_process=poisson|ioengine=libaio|direct=1|iodepth=16|runtime=40");
    let count = clients.seen.len() as f64;
    // Four standard deviations of a Poisson distribution with mean 4000.
    assert!((count - 4000.0).abs() < 4.0 * 63.3, "{count}: neither half nor twice the rate");
    let pauses = pauses(&clients);
    let mean = pauses.iter().sum::<u64>() as f64 / pauses.len() as f64;
    let short = pauses.iter().filter(|pause| (**pause as f64) < mean).count() as f64 / pauses.len() as f64;
    assert!((short - 0.632).abs() < 0.04, "{short} of the pauses are below the mean: not exponential");
    let bytes: u64 = random("rate=1m|bs=64k").seen.iter().map(|seen| seen.length).sum();
    assert_eq!(bytes, 4 << 20);
    assert_eq!(random("rate_iops=100|numjobs=2").seen.len(), 800, "of each clone");
}

#[test]
fn thinktime_is_a_pause_after_blocks() {
    let stream = random("thinktime=5ms|thinktime_blocks=4");
    let times: Vec<u64> = stream.seen.iter().map(|seen| seen.at.0).collect();
    for (place, pair) in times.windows(2).enumerate() {
        assert_eq!(pair[1] - pair[0] >= 5_000_000, place % 4 == 3, "after request {place}");
    }
}

#[test]
fn flushes_follow_writes_as_often_as_said() {
    for (lines, writes_per_flush, call) in [
        ("fsync=4", 4, FlushCall::Fsync),
        ("fdatasync=1", 1, FlushCall::Fdatasync),
        ("sync_file_range=wait_before,write,wait_after:8", 8, FlushCall::Range),
    ] {
        let lines = format!("rw=randwrite|bs=64k|{lines}");
        assert_eq!(span(&lines).jobs[0].opening.flush, call, "{lines}");
        let stream = stream(&lines);
        // No flush follows the last write, as in fio 3.33.
        assert_eq!(stream.flushes(), (stream.writes().len() - 1) / writes_per_flush, "{lines}");
        let mut unflushed = 0;
        for seen in &stream.seen {
            unflushed = if seen.op == Op::Flush { 0 } else { unflushed + 1 };
            assert!(unflushed <= writes_per_flush, "{lines}");
        }
    }
    assert_eq!(stream("rw=write|bs=64k").flushes(), 0);
}

/// Counts of `strace -f -c -e fsync fio --size=1m --rw=randwrite`, with fio 3.33.
#[test]
fn the_flush_after_the_last_write_of_all_files_alone_is_left_out() {
    for (files, every, flushes) in [(32, 8, 31), (8, 32, 7), (8, 16, 15)] {
        let names: Vec<String> = (0..files).map(|file| format!("f{file}")).collect();
        let lines = format!("filename={}|size=1m|rw=randwrite|fsync={every}", names.join(":"));
        let stream = stream(&lines);
        assert_eq!((stream.flushes(), stream.writes().len()), (flushes, 256), "{lines}");
    }
}

#[test]
fn a_flush_waits_for_the_writes_before_it() {
    let stream = stream("rw=randwrite|fsync=16|ioengine=libaio|iodepth=8|direct=1");
    assert_eq!(stream.deepest(), 8);
    let flushes: Vec<_> = stream.seen.iter().filter(|seen| seen.op == Op::Flush).collect();
    assert!(
        !flushes.is_empty() && flushes.iter().all(|seen| seen.in_flight == 1),
        "nothing else is in flight"
    );
}

#[test]
fn end_fsync_flushes_once_at_the_end() {
    let stream = stream("rw=write|bs=64k|end_fsync=1");
    assert_eq!((stream.flushes(), stream.seen.last().unwrap().op), (1, Op::Flush));
}

#[test]
fn sync_makes_each_write_durable() {
    for lines in ["sync=1", "sync=dsync"] {
        let stream = stream(&format!("rw=randrw|{lines}"));
        assert!(stream.writes().iter().all(|seen| seen.op == Op::Write { fua: true }), "{lines}");
        assert_eq!(stream.flushes(), 0, "{lines}");
    }
    assert!(stream("rw=randrw").writes().iter().all(|seen| seen.op == Op::Write { fua: false }));
}

#[test]
fn distributions_favour_places() {
    let hottest = |lines: &str| {
        let mut offsets = random(lines).offsets();
        offsets.sort_unstable();
        let mut counts: Vec<usize> = offsets.chunk_by(|one, other| one == other).map(<[u64]>::len).collect();
        counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
        counts.iter().take(counts.len() / 10).sum::<usize>() as f64 / offsets.len() as f64
    };
    let even = hottest("bs=64k");
    let zipf = hottest("bs=64k|random_distribution=zipf:1.2");
    let pareto = hottest("bs=64k|random_distribution=pareto:0.2");
    assert!(even < 0.25 && zipf > 0.6 && pareto > 0.6, "{even}, {zipf}, {pareto}");
    let middle = random("random_distribution=normal:10")
        .percent(|seen| (SIZE.0 * 4 / 10..SIZE.0 * 6 / 10).contains(&seen.offset));
    assert!((middle - 68.3).abs() < 4.0, "{middle} % within a standard deviation");
    let zoned = random("random_distribution=zoned:70/25:30/75");
    let first = zoned.percent(|seen| seen.offset < SIZE.0 / 4);
    assert!((first - 70.0).abs() < 3.0, "{first}");
}

#[test]
fn seeds_and_contents() {
    let offsets = |lines: &str| random(lines).offsets();
    assert_eq!(offsets("randseed=3"), offsets("randseed=3"));
    assert_ne!(offsets("randseed=3"), offsets("randseed=4"));
    let carried = |lines: &str| stream(&format!("rw=write|bs=64k|{lines}")).writes()[5].carried.clone();
    assert!(matches!(carried("refill_buffers"), RequestContent::Pattern { .. }));
    assert_eq!(carried("zero_buffers"), RequestContent::Bytes(vec![0; 1024]));
}

#[test]
fn times_delays_and_order() {
    let last = |lines: &str| stream(lines).seen.iter().map(|seen| seen.at).max().unwrap();
    assert_eq!(last("rw=read|runtime=3|time_based"), Nanos::secs(3) - LATENCY);
    assert_eq!(last("rw=read|bs=1m|runtime=30"), LATENCY * 63, "the size ends it first");
    let delayed = stream("rw=read|bs=1m|startdelay=5");
    assert_eq!(delayed.seen[0].at, Nanos::secs(5));
    let ramp = stream("rw=read|ramp_time=2|runtime=3|time_based");
    assert_eq!(ramp.seen.len() as u64, 5000, "warm-up and measurement");
    assert_eq!(ramp.outcome.operations().operations(), 3000, "of which only the measurement counts");
    assert_eq!(ramp.outcome.read.bytes, Bytes::kib(4 * 3000));
    assert_eq!(spans("rw=read\n[y]\nsize=1m\nstonewall").len(), 2, "one after the other");
}
