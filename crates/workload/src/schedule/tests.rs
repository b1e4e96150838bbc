//! Tests of schedules against their arithmetic, and of Poisson arrivals against the exponential law.

use std::num::NonZeroU32;

use super::*;
use crate::block_sizes::{BlockSizes, BlockSplit};
use crate::byte_range::ByteRange;

/// Seeds whose arrivals are tested.
const SEEDS: [u64; 5] = [0, 1, 7, 42, 1 << 60];
const BLOCK: Bytes = Bytes(4096);

fn workload(amount: Amount, arrival: Arrival) -> Workload {
    let range = ByteRange { offset: Bytes(0), length: Bytes::mib(1) };
    Workload { rate: Rate::Scheduled { amount, arrival }, ..Workload::over(range, BLOCK) }
}

fn shares(of: u32) -> impl Iterator<Item = Share> {
    Share::all(NonZeroU32::new(of).unwrap())
}

/// Returns the first `count` intended starts of operations of 4 KiB.
fn starts(workload: &Workload, share: Share, count: usize) -> Vec<Nanos> {
    let mut schedule = Schedule::new(workload, share).unwrap();
    let mut next = || {
        let intended = schedule.intended();
        schedule.advance(BLOCK);
        intended
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn fixed_starts_are_exact_and_do_not_drift() {
    let mut schedule = Schedule::new(&workload(Amount::Iops(3.0), Arrival::Fixed), Share::WHOLE).unwrap();
    assert_eq!(schedule.due_before(Nanos::ZERO, 9), 0);
    assert_eq!(schedule.due_before(Nanos(1), 9), 1);
    assert_eq!(schedule.due_before(Nanos::secs(1), 9), 3);
    assert_eq!(schedule.due_before(Nanos(1_000_000_001), 9), 4);
    assert_eq!(schedule.due_before(Nanos::secs(100), 9), 9);
    assert_eq!(schedule.due_before(Nanos::secs(100), u64::MAX), 300);
    let expected = [0, 333_333_333, 666_666_666, 1_000_000_000];
    for start in expected {
        assert_eq!(schedule.intended(), Nanos(start), "thirds of a second drifted");
        schedule.advance(BLOCK);
    }
    for _ in 4..3 * 86_400 {
        schedule.advance(BLOCK);
    }
    assert_eq!(schedule.intended(), Nanos::secs(86_400));
    assert_eq!(schedule.due_before(Nanos::secs(86_401), u64::MAX), 3);
    assert_eq!(
        Schedule::new(
            &Workload { rate: Rate::Unlimited, ..workload(Amount::Iops(1.0), Arrival::Fixed) },
            Share::WHOLE
        ),
        None
    );
}

#[test]
fn workers_interleave_into_one_schedule() {
    for amount in [Amount::Iops(1000.0), Amount::BytesPerSecond(4_096_000.0)] {
        let workload = workload(amount, Arrival::Fixed);
        let mut all: Vec<Nanos> = shares(4).flat_map(|share| starts(&workload, share, 25)).collect();
        let intervals = shares(4).map(|share| Schedule::new(&workload, share).unwrap().interval());
        assert!(intervals.into_iter().all(|interval| interval == Nanos::millis(4)));
        all.sort_unstable();
        assert_eq!(all, (0..100).map(Nanos::millis).collect::<Vec<_>>());
    }
}

#[test]
fn bytes_take_as_much_of_the_schedule_as_they_are() {
    let split = BlockSplit(vec![(Bytes(1000), 50), (Bytes(3000), 50)]);
    let base = workload(Amount::BytesPerSecond(1e6), Arrival::Fixed);
    let workload = Workload { blocks: BlockSizes { read: split, ..base.blocks.clone() }, ..base };
    let mut schedule = Schedule::new(&workload, Share::WHOLE).unwrap();
    assert_eq!(schedule.interval(), Nanos::millis(2));
    let mut starts = Vec::new();
    for length in [1000, 3000, 3000, 1000] {
        starts.push(schedule.intended());
        schedule.advance(Bytes(length));
    }
    assert_eq!(starts, [0, 1, 4, 7].map(Nanos::millis));
    assert_eq!(schedule.intended(), Nanos::millis(8));
    assert_eq!(schedule.due_before(Nanos::millis(14), 99), 3, "at 8, 10 and 12 ms");
}

/// Returns the largest distance between the distribution of the gaps and the exponential one of this mean,
/// and the distance that is exceeded by chance once in a hundred times (Kolmogorov and Smirnov).
fn distance(starts: &[Nanos], mean_ns: f64) -> (f64, f64) {
    let mut gaps: Vec<u64> = starts.windows(2).map(|pair| pair[1].since(pair[0]).0).collect();
    gaps.push(starts[0].0);
    gaps.sort_unstable();
    let count = gaps.len() as f64;
    let mut most: f64 = 0.0;
    for (rank, gap) in gaps.iter().enumerate() {
        // Both ends of a gap were rounded down, so that half of the gaps of a whole number are below it.
        let expected = 1.0 - (-(*gap as f64) / mean_ns).exp();
        most = most
            .max((expected - rank as f64 / count).abs())
            .max(((rank + 1) as f64 / count - expected).abs());
    }
    (most, 1.6276 / count.sqrt())
}

#[test]
fn poisson_gaps_are_exponential_for_one_worker_and_for_four_together() {
    for iops in [1e3, 50e3, 300e3] {
        for seed in SEEDS {
            let workload = Workload { seed, ..workload(Amount::Iops(iops), Arrival::Poisson) };
            let (most, critical) = distance(&starts(&workload, Share::WHOLE, 120_000), 1e9 / iops);
            assert!(most < critical, "one worker at {iops} IOPS, seed {seed}: {most} over {critical}");

            let each: Vec<Vec<Nanos>> = shares(4).map(|share| starts(&workload, share, 40_000)).collect();
            // After the last start of the worker that ends first, its starts are missing.
            let until = each.iter().filter_map(|starts| starts.last()).min().copied().unwrap();
            let mut all: Vec<Nanos> = each.into_iter().flatten().filter(|start| *start <= until).collect();
            all.sort_unstable();
            assert!(all.len() > 100_000);
            let (most, critical) = distance(&all, 1e9 / iops);
            assert!(most < critical, "four workers at {iops} IOPS, seed {seed}: {most} over {critical}");
        }
    }
}

#[test]
fn the_test_of_gaps_tells_a_wrong_rate_and_a_wrong_law() {
    let poisson = starts(&workload(Amount::Iops(50e3), Arrival::Poisson), Share::WHOLE, 120_000);
    let (most, critical) = distance(&poisson, 1e9 / 51e3);
    assert!(most > critical, "a rate that is 2 % off passed");
    let fixed = starts(&workload(Amount::Iops(50e3), Arrival::Fixed), Share::WHOLE, 120_000);
    let (most, critical) = distance(&fixed, 1e9 / 50e3);
    assert!(most > critical, "equal gaps passed for exponential ones");
}

#[test]
fn a_gap_says_nothing_of_the_next() {
    let starts = starts(&workload(Amount::Iops(1e3), Arrival::Poisson), Share::WHOLE, 100_001);
    let gaps: Vec<f64> = starts.windows(2).map(|pair| pair[1].since(pair[0]).0 as f64 / 1e6 - 1.0).collect();
    let product: f64 = gaps.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / gaps.len() as f64;
    // The standard deviation of the mean is 1 / sqrt(100,000).
    assert!(product.abs() < 3.0 / 316.0, "gaps and the ones after correlate by {product}");
}

#[test]
fn poisson_bytes_come_at_the_rate_of_bytes() {
    let workload = workload(Amount::BytesPerSecond(4096e3), Arrival::Poisson);
    let (most, critical) = distance(&starts(&workload, Share::WHOLE, 120_000), 1e6);
    assert!(most < critical, "{most} over {critical}");
    let mut schedule = Schedule::new(&workload, Share::WHOLE).unwrap();
    (0..10_000).for_each(|_| schedule.advance(Bytes(2 * 4096)));
    let seconds = schedule.intended().as_secs_f64();
    assert!((seconds / 20.0 - 1.0).abs() < 0.04, "{seconds} s for 80 MB at 4 MB/s");
}

#[test]
fn poisson_arrivals_are_fixed_by_the_seed_and_apart_for_each_worker() {
    let workload = Workload { seed: 42, ..workload(Amount::Iops(1e6), Arrival::Poisson) };
    let of = |share| starts(&workload, share, 8);
    // Fixed forever, like the operations; computed by another implementation.
    let golden = [1831, 3166, 3459, 4344, 7407, 7525, 10_722, 14_059];
    assert_eq!(of(Share::WHOLE), golden.map(Nanos));
    let each: Vec<Vec<Nanos>> = shares(2).map(of).collect();
    assert_ne!(each[0], each[1]);
    let other = Workload { seed: 43, ..workload.clone() };
    assert_ne!(starts(&other, Share::WHOLE, 8), of(Share::WHOLE));
}

#[test]
fn what_is_due_is_counted_as_it_will_come() {
    for arrival in [Arrival::Fixed, Arrival::Poisson] {
        for amount in [Amount::Iops(7e3), Amount::BytesPerSecond(3e7)] {
            let workload = workload(amount, arrival);
            for share in shares(3) {
                let all = starts(&workload, share, 400);
                let mut schedule = Schedule::new(&workload, share).unwrap();
                for taken in 0..300 {
                    let time = Nanos::micros(150 * taken as u64);
                    let due = all[taken..].iter().filter(|start| **start < time).count() as u64;
                    assert_eq!(schedule.due_before(time, 50), due.min(50), "{arrival:?} after {taken}");
                    schedule.advance(BLOCK);
                }
            }
        }
    }
}
