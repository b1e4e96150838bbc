//! Tests of the stream against an independent slow model, and of limits that hold for all distributions.

use proptest::prelude::*;

use super::*;
use crate::access::{Sequential, Walk, Zone, ZoneLength};
use crate::block_sizes::{BlockSizes, BlockSplit};

/// Returns every start in `range` at which the longest operation fits, found one by one.
fn candidates(range: ByteRange, align: u64, longest: u64) -> Vec<u64> {
    (0..range.length.0)
        .filter(|start| start % align == 0 && start + longest <= range.length.0)
        .map(|start| start + range.offset.0)
        .collect()
}

fn any_distribution() -> impl Strategy<Value = Distribution> {
    prop_oneof![
        Just(Distribution::Uniform),
        Just(Distribution::EachOnce),
        (0.01_f64..4.0).prop_map(|theta| Distribution::Zipf { theta }),
        (0.01_f64..0.99).prop_map(|power| Distribution::Pareto { power }),
        (0.1_f64..100.0).prop_map(|deviation_percent| Distribution::Normal { deviation_percent }),
        (0.0_f64..60.0, 40.0_f64..60.0).prop_map(|(io_percent, length)| {
            Distribution::Zoned(vec![Zone { io_percent, length: ZoneLength::Percent(length) }])
        }),
    ]
}

fn any_runs() -> impl Strategy<Value = Runs> {
    prop_oneof![
        Just(Runs::Single),
        (1_u8..100).prop_map(|random_percent| Runs::Geometric { random_percent }),
        (2_u32..20).prop_map(Runs::Fixed),
    ]
}

fn any_walk() -> impl Strategy<Value = Access> {
    let walks = prop_oneof![Just(Walk::Each), Just(Walk::Interlocked), Just(Walk::Parallel)];
    (0_u64..80, walks)
        .prop_map(|(stride, walk)| Access::Sequential(Sequential { stride: Some(Bytes(512 * stride)), walk }))
}

fn any_access() -> impl Strategy<Value = Access> {
    let random = (any_distribution(), any_runs(), proptest::option::of(1_u64..40)).prop_map(
        |(distribution, runs, align)| {
            let runs = if distribution == Distribution::EachOnce { Runs::Single } else { runs };
            Access::Random(Random { align: align.map(|sectors| Bytes(512 * sectors)), distribution, runs })
        },
    );
    prop_oneof![random, any_walk()]
}

fn any_blocks() -> impl Strategy<Value = BlockSizes> {
    let split = (1_u64..16, 1_u64..16, 1_u8..100).prop_map(|(one, other, percent)| {
        BlockSplit(vec![(Bytes(512 * one), percent), (Bytes(512 * other), 100 - percent)])
    });
    (split.clone(), split.clone(), split).prop_map(|(read, write, trim)| BlockSizes { read, write, trim })
}

/// Numbers at which arithmetic errors are likely.
fn any_number() -> impl Strategy<Value = u64> {
    let edges =
        [0, 1, 2, 511, 512, 4096, 1 << 20, 1 << 40, 1 << 63, (1 << 63) + 512, u64::MAX - 4096, u64::MAX - 1];
    proptest::sample::select([&edges[..], &[u64::MAX]].concat())
}

proptest! {
    #[test]
    fn nothing_panics_however_large_the_numbers_are(
        access in any_access(), numbers in proptest::array::uniform8(any_number()), of in 1_u32..5, kind in 0_usize..3
    ) {
        let [start, length, block, step, zone, bytes, count, seed] = numbers;
        let access = match access {
            Access::Random(random) => {
                let distribution = match random.distribution {
                    Distribution::Zoned(_) => {
                        let length = ZoneLength::Bytes(Bytes(zone));
                        Distribution::Zoned(vec![Zone { io_percent: 50.0, length }])
                    }
                    other => other,
                };
                Access::Random(Random { align: Some(Bytes(step)), distribution, ..random })
            }
            Access::Sequential(walk) => Access::Sequential(Sequential { stride: Some(Bytes(step)), ..walk }),
        };
        let division = [Division::Parts, Division::Overlap, Division::Offset(Bytes(zone))][kind];
        let range = ByteRange { offset: Bytes(start), length: Bytes(length) };
        let stop = crate::pace::Stop { bytes: Some(bytes), operations: Some(count), duration: None };
        let base = Workload { access, blocks: BlockSizes::one(Bytes(block)), stop, seed, range, division, ..workload() };
        let workload = base.within(Bytes(u64::MAX)).unwrap_or(base);
        for share in shares(of) {
            let Ok(stream) = Generator::new(&workload, share, &Cursor::default()) else { continue };
            for (offset, length) in stream.take(20).filter_map(span) {
                let end = u128::from(offset) + u128::from(length);
                let range = workload.range;
                prop_assert!(offset >= range.offset.0 && end <= u128::from(range.offset.0) + u128::from(range.length.0));
            }
        }
    }

    #[test]
    fn every_kind_stays_within_its_range_and_on_its_grid(
        access in any_access(), lengths in any_blocks(), seed: u64, start in 0_u64..10_000,
        length in 100_000_u64..300_000, write_percent in 0_u8..=100, depth in 1_u32..9
    ) {
        let range = ByteRange { offset: Bytes(start), length: Bytes(length) };
        let base = Workload { access, blocks: lengths, seed, range, write_percent, depth, ..workload() };
        let base = Workload { trim_percent: (100 - write_percent) / 2, division: Division::Overlap, ..base };
        let align = base.grid().step;
        let is_drawn = matches!(&base.access, Access::Random(random) if random.runs == Runs::Single);
        for (offset, taken) in operations(&base, 500).into_iter().filter_map(span) {
            prop_assert!(offset >= start && offset + taken <= start + length, "{} + {}", offset, taken);
            prop_assert!(!is_drawn || (offset - start) % align == 0, "{} is off the grid of {}", offset, align);
            prop_assert!(taken >= base.block_min().0 && taken <= base.block_max().0);
        }
    }

    #[test]
    fn uniform_follows_from_one_draw_for_each_operation(
        seed: u64, index in 0_u32..4, align in 1_u64..40, length in 40_000_u64..200_000
    ) {
        let range = ByteRange { offset: Bytes(1536), length: Bytes(length) };
        let align = 512 * align;
        let random = Random { align: Some(Bytes(align)), distribution: Distribution::Uniform, runs: Runs::Single };
        let workload =
            Workload { access: Access::Random(random), range, seed, division: Division::Overlap, ..workload() };
        let share = shares(4).nth(index as usize).unwrap();
        let places = candidates(range, align, 4096);
        let mut stream = Xoshiro256PlusPlus::seed_from_u64(seed ^ u64::from(index).wrapping_mul(0x9e3779b97f4a7c15));
        for operation in generator(&workload, share).take(200) {
            let product = u128::from(stream.next_u64()) * places.len() as u128;
            prop_assert_eq!(offset(operation), Some(places[(product >> 64) as usize]));
            let writes = (product as u64) as f64 / 18_446_744_073_709_551_616.0 < 0.3;
            prop_assert_eq!(matches!(operation, Operation::Write { .. }), writes);
        }
    }
}
