//! Offsets of requests: `-b`, `-r`, `-rs`, `-rd`, `-s`, `-si`, `-T`, `-p`, `-B`, `-f`, `-z`.

use std::collections::BTreeMap;

use super::{brief, stream};
use crate::streams::crew::{SIZE, Stream, is_write};
use crate::streams::recording::SeenRequest;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

#[test]
fn requests_are_as_long_as_b_says() {
    for (typed, length) in [("t", 64 * KIB), ("-b4k t", 4 * KIB), ("-b512 -r -w50 t", 512), ("-b1M t", MIB)] {
        let stream = brief(typed);
        assert!(stream.accesses().iter().all(|seen| seen.length == length), "{typed}");
    }
}

/// Returns the distances between consecutive requests, in bytes.
fn steps(stream: &Stream) -> Vec<i64> {
    let offsets = stream.offsets();
    offsets.windows(2).map(|pair| pair[1].cast_signed() - pair[0].cast_signed()).collect()
}

#[test]
fn without_r_each_request_follows_the_one_before() {
    let stream = brief("t");
    let laps = -(SIZE.0.cast_signed() - 64 * KIB.cast_signed());
    assert!(steps(&stream).iter().all(|step| *step == 64 * KIB.cast_signed() || *step == laps));
    assert!(steps(&stream).contains(&laps), "it starts again at the end");
    assert_eq!(stream.offsets()[0], 0);
}

#[test]
fn s_is_the_distance_between_requests() {
    for (typed, step) in
        [("-s128k t", 128 * KIB), ("-b64k -s4k t", 4 * KIB), ("-s0 t", 64 * KIB), ("-s2b t", 128 * KIB)]
    {
        let stream = brief(typed);
        let forward = steps(&stream).iter().filter(|found| **found == step.cast_signed()).count();
        let back = steps(&stream).iter().filter(|found| **found < 0).count();
        assert_eq!(forward + back, steps(&stream).len(), "{typed}");
        assert!(forward > 100 * back, "{typed}");
    }
}

#[test]
fn r_draws_places_on_its_alignment() {
    for (typed, align, length) in
        [("-r t", 64 * KIB, 64 * KIB), ("-r4k t", 4 * KIB, 64 * KIB), ("-b4k -r64k t", 64 * KIB, 4 * KIB)]
    {
        let stream = stream(&format!("-W0 -d10 {typed}"));
        let offsets = stream.offsets();
        assert!(offsets.iter().all(|offset| offset % align == 0 && offset + length <= SIZE.0), "{typed}");
        assert!(offsets.iter().any(|offset| offset / align % 2 == 1), "{typed}: coarser than asked");
        let places = (SIZE.0 - length) / align + 1;
        let different: std::collections::BTreeSet<_> = offsets.iter().collect();
        let drawn = offsets.len() as f64 / places as f64;
        let expected = places as f64 * (1.0 - (-drawn).exp());
        assert!(
            (different.len() as f64 / expected - 1.0).abs() < 0.05,
            "{typed}: {} places",
            different.len()
        );
        let follow = steps(&stream).iter().filter(|step| **step == length.cast_signed()).count();
        assert!(follow * 50 < offsets.len(), "{typed}: sequential");
    }
}

/// Returns the runs of consecutive requests, each of which starts at the end of the previous one.
fn runs(stream: &Stream) -> Vec<Vec<&SeenRequest>> {
    let mut runs: Vec<Vec<&SeenRequest>> = Vec::new();
    for seen in stream.accesses() {
        match runs.last_mut() {
            Some(run) if run.last().is_some_and(|last| last.offset + last.length == seen.offset) => {
                run.push(seen)
            }
            _ => runs.push(vec![seen]),
        }
    }
    runs
}

#[test]
fn rs_is_the_share_of_requests_that_draw_a_place() {
    for random in [10_u32, 30, 80] {
        let stream = stream(&format!("-W0 -d10 -b4k -rs{random} -w40 t"));
        let runs = runs(&stream);
        let drawn = runs.len() as f64 * 100.0 / stream.accesses().len() as f64;
        assert!((drawn - f64::from(random)).abs() < 2.0, "-rs{random}: {drawn} % are drawn");
        let single = runs.iter().filter(|run| run.len() == 1).count() as f64 / runs.len() as f64;
        assert!(
            (single * 100.0 - f64::from(random)).abs() < 4.0,
            "-rs{random}: {single} of the runs end at once"
        );
        let writes = stream.percent(is_write);
        assert!((writes - 40.0).abs() < 6.0, "-rs{random}: {writes} % writes");
    }
}

#[test]
fn a_run_is_all_reads_or_all_writes_and_starts_on_the_alignment() {
    let stream = stream("-W0 -d10 -b4k -r32k -rs20 -w50 t");
    let mut mixed = 0;
    for run in runs(&stream) {
        assert_eq!(run[0].offset % (32 * KIB), 0);
        mixed += usize::from(run.iter().any(|seen| is_write(seen) != is_write(run[0])));
    }
    // A random offset may happen to continue the previous run.
    assert!(mixed <= 5, "{mixed} runs are mixed");
}

#[test]
fn what_goes_on_from_a_random_place_keeps_the_alignment_of_r() {
    for (align, block) in [(32 * KIB, 4 * KIB), (4 * KIB, 4 * KIB), (12 * KIB, 8 * KIB)] {
        let stream = stream(&format!("-W0 -d10 -b{block} -r{align} -rs20 t"));
        assert!(stream.offsets().iter().all(|offset| offset % align == 0), "-r{align}");
        let steps = steps(&stream);
        let next = steps.iter().filter(|step| **step == align.cast_signed()).count() * 100 / steps.len();
        assert!((77..=83).contains(&next), "-r{align}: {next} % go on");
    }
}

/// Returns the percentage of requests that start in each part.
fn shares(stream: &Stream, ends: &[u64]) -> Vec<f64> {
    let mut from = 0;
    let mut shares = Vec::new();
    for end in ends {
        shares.push(stream.percent(|seen| (from..*end).contains(&seen.offset)));
        from = *end;
    }
    shares
}

fn assert_shares(found: &[f64], expected: &[f64], of: &str) {
    for (found, expected) in found.iter().zip(expected) {
        let tolerance = if *expected == 0.0 { 0.0 } else { 1.5 };
        assert!((found - expected).abs() <= tolerance, "{of}: {found} % where {expected} % belong");
    }
}

#[test]
fn rdpct_divides_requests_over_parts_and_leaves_holes() {
    let percent = |part: u64| SIZE.0 * part / 100;
    let ends = [percent(10), percent(20), percent(40), SIZE.0];
    let of = "-W0 -d10 -b4k -r -rdpct90/10:0/10:5/20 t";
    assert_shares(&shares(&stream(of), &ends), &[90.0, 0.0, 5.0, 5.0], of);
    let all = "-W0 -d10 -b4k -r -rdpct100/10:0/90 t";
    assert_shares(&shares(&stream(all), &ends), &[100.0, 0.0, 0.0, 0.0], all);
}

#[test]
fn rdabs_divides_requests_over_parts_and_leaves_holes() {
    let ends = [MIB, 3 * MIB, 4 * MIB, SIZE.0];
    let of = "-W0 -d10 -b4k -r -rdabs60/1m:0/2m:30/1m t";
    assert_shares(&shares(&stream(of), &ends), &[60.0, 0.0, 30.0, 10.0], of);
}

#[test]
fn a_distribution_and_rs_go_together() {
    let of = "-W0 -d10 -b4k -rs50 -rdpct80/25:0/25 t";
    let ends = [SIZE.0 / 4, SIZE.0 / 2, SIZE.0];
    let stream = stream(of);
    let found = shares(&stream, &ends);
    assert!(found[1] == 0.0 && (found[0] - 80.0).abs() < 3.0, "{found:?}");
    let drawn = runs(&stream).len() as f64 / stream.accesses().len() as f64;
    assert!((drawn - 0.5).abs() < 0.03, "{drawn}");
}

/// Returns the number of visits of each offset.
fn visits(stream: &Stream) -> BTreeMap<u64, usize> {
    let mut visits = BTreeMap::new();
    stream.offsets().into_iter().for_each(|offset| *visits.entry(offset).or_default() += 1);
    visits
}

#[test]
fn si_shares_one_offset_among_threads() {
    let shared = brief("-b4k -t4 -si t");
    let offsets = shared.offsets();
    assert!(offsets.windows(2).all(|pair| pair[1] == pair[0] + 4 * KIB), "one sequence over all threads");
    assert_eq!(shared.by_worker().len(), 4);
    let each = brief("-b4k -t4 t");
    assert!(visits(&each).values().all(|count| *count == 4), "without it each thread goes its own way");
    let stride = brief("-b4k -t4 -si64k t").offsets();
    assert!(stride.windows(2).all(|pair| pair[1] == (pair[0] + 64 * KIB) % SIZE.0));
}

#[test]
fn t_offset_sets_threads_apart() {
    let first = |typed| {
        let stream = brief(typed);
        let workers = stream.by_worker();
        workers.values().map(|seen| seen[0].offset).collect::<Vec<_>>()
    };
    assert_eq!(first("-t3 -T1m t"), [0, MIB, 2 * MIB]);
    assert_eq!(first("-t3 -T2b t"), [0, 128 * KIB, 256 * KIB]);
    assert_eq!(first("-t3 t"), [0, 0, 0]);
    assert_eq!(first("-F3 -T1m t"), [0, MIB, 2 * MIB]);
    assert_eq!(first("-t2 -T1m -B8m t"), [8 * MIB, 9 * MIB]);
}

#[test]
fn p_sends_all_outstanding_requests_to_one_offset() {
    let stream = brief("-p -o4 t");
    let offsets = stream.offsets();
    for (group, offsets) in offsets.chunks_exact(4).enumerate() {
        let place = group as u64 * 64 * KIB % SIZE.0;
        assert!(offsets.iter().all(|offset| *offset == place), "group {group}: {offsets:?}");
    }
    let skipping = brief("-p -o2 -s1m t").offsets();
    assert_eq!(skipping[..6], [0, 0, MIB, MIB, 2 * MIB, 2 * MIB]);
}

#[test]
fn requests_stay_within_the_range() {
    for (typed, from, end) in [
        ("-B1m t", MIB, SIZE.0),
        ("-B1m:1m t", MIB, 2 * MIB),
        ("-f1m t", 0, MIB),
        ("-B1m -f3m t", MIB, 3 * MIB),
        ("-B1m:1m -r4k t", MIB, 2 * MIB),
        ("-r -f2b -b4k t", 0, 8 * KIB),
        ("-B3m:1m -rs50 t", 3 * MIB, 4 * MIB),
        ("-B60m -s t", 60 * MIB, SIZE.0),
    ] {
        let stream = brief(typed);
        let accesses = stream.accesses();
        assert_eq!(accesses.iter().map(|seen| seen.offset).min(), Some(from), "{typed}");
        assert_eq!(accesses.iter().map(|seen| seen.offset + seen.length).max(), Some(end), "{typed}");
    }
}

#[test]
fn z_chooses_the_stream() {
    let offsets = |typed| brief(typed).offsets();
    assert_eq!(offsets("-r t"), offsets("-r -z0 t"), "0 is the default");
    assert_eq!(offsets("-r -z7 t"), offsets("-r -z7 t"), "a seed gives one stream");
    assert_ne!(offsets("-r -z7 t"), offsets("-r -z8 t"));
    assert_eq!(offsets("-r -z t"), offsets("-r -z123456 t"), "bare, it is the uptime in milliseconds");
    let two = brief("-r t u");
    let of = |target: &str| {
        let seen = two.seen.iter().filter(|seen| seen.target == target);
        seen.map(|seen| seen.offset).collect::<Vec<_>>()
    };
    assert_ne!(of("t"), of("u"), "targets draw apart");
}
