//! Tests of distributions against theory.

use std::collections::HashSet;

use plumb_block::mixed;
use proptest::prelude::*;

use super::*;
use crate::EffectiveZone;
use crate::access::{Zone, ZoneLength};
use crate::generator::permutation::Permutation;
use crate::generator::zipf::Zipf;
use crate::seed::SCATTER;

const DRAWS: usize = 200_000;

fn with(distribution: Distribution, range: ByteRange, seed: u64) -> Workload {
    Workload { access: drawn(distribution, Runs::Single), range, seed, ..workload() }
}

/// Returns the counts by rank of a distribution whose ranks are scattered over the range.
fn tally_ranks(workload: &Workload) -> Vec<u64> {
    let places = tally(workload, DRAWS);
    let scatter = Permutation::new(places.len() as u64, mixed(workload.seed ^ SCATTER));
    (0..places.len() as u64).map(|rank| places[scatter.apply(rank) as usize]).collect()
}

#[test]
fn uniform_likes_all_places_alike() {
    for seed in [1, 2, 3] {
        let counts = tally(&with(Distribution::Uniform, blocks(1000), seed), DRAWS);
        assert_fits(&counts, &[0.001; 1000], &format!("uniform, seed {seed}"));
    }
}

#[test]
fn zipf_follows_its_law_rank_by_rank() {
    for (seed, theta, count) in [
        (1, 0.3, 700_u64),
        (2, 0.99, 1000),
        (3, 1.000_000_000_1, 50),
        (4, 1.2, 1000),
        (5, 3.0, 20),
        (6, 0.8, 1),
    ] {
        let weights: Vec<f64> = (1..=count).map(|rank| (rank as f64).powf(-theta)).collect();
        let sum: f64 = weights.iter().sum();
        let parts: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
        if count == 1 {
            assert_eq!(offsets(&with(Distribution::Zipf { theta }, blocks(1), seed), 9), [0; 9]);
            continue;
        }
        let counts = tally_ranks(&with(Distribution::Zipf { theta }, blocks(count), seed));
        assert_fits(&counts, &parts, &format!("zipf {theta}, seed {seed}"));
    }
}

#[test]
fn zipf_is_as_right_over_more_places_than_can_be_counted() {
    let count = 1_u64 << 40;
    for theta in [0.9, 1.1] {
        let head = |to: u64| (1..=to).map(|rank| (rank as f64).powf(-theta)).sum::<f64>();
        // Euler and Maclaurin: the integral of the rest, and half of the values at its ends.
        let power = |x: f64| x.powf(1.0 - theta) / (1.0 - theta);
        let ends = (1e4_f64.powf(-theta) + (count as f64).powf(-theta)) / 2.0;
        let sum = head(10_000) + power(count as f64) - power(1e4) + ends - 1e4_f64.powf(-theta);
        let zipf = Zipf::new(count, theta);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
        let ranks: Vec<u64> = (0..DRAWS).map(|_| zipf.draw(&mut random)).collect();
        assert!(ranks.iter().all(|rank| *rank < count));
        let limits = [1, 10, 100, 1000, 10_000];
        let mut before = (0, 0.0);
        let (mut counts, mut parts) = (Vec::new(), Vec::new());
        for limit in limits {
            let below = ranks.iter().filter(|rank| **rank < limit).count() as u64;
            let part = head(limit) / sum;
            counts.push(below - before.0);
            parts.push(part - before.1);
            before = (below, part);
        }
        counts.push(DRAWS as u64 - before.0);
        parts.push(1.0 - before.1);
        assert_fits(&counts, &parts, &format!("zipf {theta} over 2^40 places"));
    }
}

#[test]
fn pareto_sends_most_to_few() {
    for (seed, power) in [(1, 0.2_f64), (2, 0.05), (3, 0.6)] {
        let counts = tally_ranks(&with(Distribution::Pareto { power }, blocks(1000), seed));
        let below = |rank: u64| (rank as f64 / 1000.0).powf((1.0 - power).ln() / power.ln());
        let parts: Vec<f64> = (0..1000).map(|rank| below(rank + 1) - below(rank)).collect();
        assert_fits(&counts, &parts, &format!("pareto {power}, seed {seed}"));
        let few: u64 = counts[..(power * 1000.0).round() as usize].iter().sum();
        let part = few as f64 / DRAWS as f64;
        assert!(
            (part - (1.0 - power)).abs() < 0.006,
            "{part} of operations to the first {power} of the places"
        );
    }
}

#[test]
fn the_likely_places_are_not_neighbours() {
    let counts = tally(&with(Distribution::Zipf { theta: 1.2 }, blocks(100_000), 7), DRAWS);
    let mut places: Vec<usize> = (0..counts.len()).collect();
    places.sort_by_key(|place| std::cmp::Reverse(counts[*place]));
    let hot: HashSet<usize> = places[..100].iter().copied().collect();
    let neighbours = hot.iter().filter(|place| hot.contains(&(**place + 1))).count();
    assert!(neighbours <= 2, "{neighbours} of the 100 likeliest places are followed by another of them");
    let halves = hot.iter().filter(|place| **place < 50_000).count();
    assert!((30..=70).contains(&halves), "{halves} of 100 are in the first half");
}

#[test]
fn normal_is_a_bell_that_ends_with_the_range() {
    for (seed, deviation_percent) in [(1, 5.0), (2, 20.0), (3, 100.0)] {
        let counts = tally(&with(Distribution::Normal { deviation_percent }, blocks(1000), seed), DRAWS);
        let below = |x: f64| libm::erf((x - 500.0) / (deviation_percent * 10.0) / 2_f64.sqrt());
        let inside = below(1000.0) - below(0.0);
        let parts: Vec<f64> =
            (0..1000).map(f64::from).map(|x| (below(x + 1.0) - below(x)) / inside).collect();
        assert_fits(&counts, &parts, &format!("normal {deviation_percent} %, seed {seed}"));
    }
}

fn zone(io_percent: f64, length: ZoneLength) -> Zone {
    Zone { io_percent, length }
}

#[test]
fn zones_get_their_shares_and_holes_nothing() {
    let zones = vec![
        zone(60.0, ZoneLength::Percent(10.0)),
        zone(0.0, ZoneLength::Bytes(Bytes(4096 * 300 + 1))),
        zone(12.5, ZoneLength::Bytes(Bytes::kib(4) * 99)),
    ];
    let base = with(Distribution::Zoned(zones), blocks(1000), 5);
    let mut parts = vec![0.006; 100];
    parts.extend([0.0; 301]);
    // The hole ends one byte into block 400, so the next zone's first place is block 401; it ends one byte
    // into block 499.
    parts.extend([0.125 / 99.0; 99]);
    parts.extend([0.275 / 500.0; 500]);
    for runs in [Runs::Single, Runs::Geometric { random_percent: 40 }, Runs::Fixed(3)] {
        let Access::Random(random) = &base.access else { unreachable!() };
        let workload = Workload { access: Access::Random(Random { runs, ..random.clone() }), ..base.clone() };
        let counts = tally(&workload, DRAWS);
        let touched = |range: std::ops::Range<usize>| counts[range].iter().sum::<u64>();
        assert_eq!(touched(100..401), 0, "a hole was touched with {runs:?}");
        if runs == Runs::Single {
            assert_fits(&counts, &parts, "zones");
        }
    }
    // With parts, all workers together have the same zones.
    let mut counts = vec![0; 1000];
    for share in shares(4) {
        for offset in generator(&base, share).take(DRAWS / 4).filter_map(offset) {
            counts[(offset / 4096) as usize] += 1;
        }
    }
    let touched = |counts: &[u64]| counts.iter().sum::<u64>();
    let zones = [
        touched(&counts[..100]),
        touched(&counts[100..401]),
        touched(&counts[401..500]),
        touched(&counts[500..]),
    ];
    assert_eq!(zones[1], 0);
    assert_fits(&[zones[0], zones[2], zones[3]], &[0.6, 0.125, 0.275], "zones of four workers");
}

/// Returns the zones of 10 blocks of 4 KiB: first place, number of places, and share of operations.
fn cut(zones: &[(f64, ZoneLength)], range: ByteRange) -> Vec<(u64, u64, f64)> {
    let zones = zones.iter().map(|(io, length)| zone(*io, *length)).collect();
    let effective = with(Distribution::Zoned(zones), range, 1).effective_zones().unwrap();
    let places = |zone: &EffectiveZone| {
        (zone.range.offset.0 / 4096, zone.range.length.0.div_ceil(4096), zone.io_percent)
    };
    effective.iter().map(places).collect()
}

#[test]
fn zones_in_percent_are_whole_blocks_and_those_without_one_are_merged() {
    use ZoneLength::Percent as P;
    assert_eq!(
        cut(&[(10.0, P(15.0)), (80.0, P(30.0)), (10.0, P(55.0))], blocks(10)),
        [(0, 1, 10.0), (1, 3, 80.0), (4, 6, 10.0)]
    );
    // Two zones in the first block are one, and the next begins after it.
    assert_eq!(
        cut(&[(10.0, P(4.0)), (20.0, P(4.0)), (70.0, P(92.0))], blocks(10)),
        [(0, 1, 30.0), (1, 9, 70.0)]
    );
    // No place begins in the middle zone: the smaller of its neighbours gets its share.
    assert_eq!(
        cut(&[(10.0, P(96.0)), (10.0, P(3.0)), (80.0, P(1.0))], blocks(10)),
        [(0, 9, 20.0), (9, 1, 80.0)]
    );
    assert_eq!(
        cut(&[(20.0, P(22.0)), (10.0, P(3.0)), (70.0, P(75.0))], blocks(10)),
        [(0, 2, 30.0), (2, 8, 70.0)]
    );
}

#[test]
fn zones_in_bytes_end_with_the_range() {
    let bytes = |blocks: u64| ZoneLength::Bytes(Bytes::kib(4) * blocks);
    let zones = [(90.0, bytes(10)), (0.0, bytes(10)), (5.0, bytes(20))];
    assert_eq!(cut(&zones, blocks(100)), [(0, 10, 90.0), (20, 20, 5.0), (40, 60, 5.0)]);
    assert_eq!(cut(&zones, blocks(30)), [(0, 10, 90.0), (20, 10, 5.0)]);
    assert_eq!(cut(&zones, blocks(20)), [(0, 10, 90.0)]);
    assert_eq!(cut(&zones, blocks(4)), [(0, 4, 90.0)]);
    let zones = [(10.0, bytes(5)), (30.0, bytes(5)), (60.0, bytes(5))];
    let zones = zones.iter().map(|(io, length)| zone(*io, *length)).collect();
    let counts = tally(&with(Distribution::Zoned(zones), blocks(10), 1), DRAWS);
    let touched = |range: std::ops::Range<usize>| counts[range].iter().sum::<u64>();
    assert_fits(&[touched(0..5), touched(5..10)], &[0.25, 0.75], "shares stand to one another as described");
}

#[test]
fn zones_without_room_are_refused() {
    let holes = vec![zone(0.0, ZoneLength::Bytes(Bytes::mib(1)))];
    let invalid = with(Distribution::Zoned(holes), blocks(10), 1).validate().unwrap_err().to_string();
    assert_eq!(
        invalid,
        "access.random.distribution.zoned is zones on 40 KiB: expected a zone with room for a block of 4 KiB"
    );
    let narrow = with(Distribution::Zoned(vec![zone(50.0, ZoneLength::Percent(20.0))]), blocks(10), 1);
    let first = shares(3).next().unwrap();
    let message = Generator::new(&narrow, first, &Cursor::default()).unwrap_err();
    assert!(message.to_string().ends_with("for each of 3 workers"), "{message}");
}

#[test]
fn each_pass_of_each_once_is_in_an_order_of_its_own() {
    let workload = with(Distribution::EachOnce, blocks(1024), 3);
    let stream = offsets(&workload, 64 * 1024);
    let passes: HashSet<&[u64]> = stream.chunks(1024).collect();
    assert_eq!(passes.len(), 64);
    // The position of a place in the order does not depend on its address, nor on the place before.
    let mut when = vec![0; 256];
    let mut after = vec![0; 256];
    let sixteenth = |offset: u64| (offset / 4096 / 64) as usize;
    for pass in &passes {
        for (turn, offset) in pass.iter().enumerate() {
            when[turn / 64 * 16 + sixteenth(*offset)] += 1;
        }
        for pair in pass.windows(2) {
            after[sixteenth(pair[0]) * 16 + sixteenth(pair[1])] += 1;
        }
    }
    assert_fits(&when, &[1.0 / 256.0; 256], "turns and places");
    assert_fits(&after, &[1.0 / 256.0; 256], "places and the ones before");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn each_once_touches_every_place_once_on_every_pass(count in 1_u64..5000, seed: u64) {
        let workload = with(Distribution::EachOnce, blocks(count), seed);
        let stream = offsets(&workload, 3 * count as usize);
        for pass in stream.chunks(count as usize) {
            let places: HashSet<&u64> = pass.iter().collect();
            prop_assert_eq!(places.len() as u64, count);
            prop_assert!(pass.iter().all(|offset| offset / 4096 < count));
        }
    }
}

#[test]
fn a_permutation_reaches_every_member_whatever_their_number() {
    for count in (1..=260).chain([511, 512, 513, 1023, 1024, 1025, 4095, 4096, 4097]) {
        let permutation = Permutation::new(count, mixed(count));
        let reached: HashSet<u64> = (0..count).map(|index| permutation.apply(index)).collect();
        assert_eq!(reached.len() as u64, count, "of {count}");
        assert!(reached.iter().all(|member| *member < count));
    }
    let large = Permutation::new(u64::MAX, 1);
    assert_ne!(large.apply(0), large.apply(1));
}
