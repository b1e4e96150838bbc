//! Fixed values of the first operations of each access pattern, to compare machines and versions. They never
//! change, since recordings of older versions must verify.

use super::*;
use crate::access::{Sequential, Walk, Zone, ZoneLength};
use crate::block_sizes::{BlockSizes, BlockSplit};

/// Returns each operation as a letter, the number of its first KiB, and its generation if it writes.
fn spelt(workload: &Workload) -> String {
    let spell = |operation| match operation {
        Operation::Read { offset, .. } => format!("R {}", offset.0 / 1024),
        Operation::Write { offset, generation, .. } => format!("W {} {generation}", offset.0 / 1024),
        Operation::Trim { offset, .. } => format!("T {}", offset.0 / 1024),
        Operation::Flush => "F".to_owned(),
    };
    operations(workload, 8).into_iter().map(spell).collect::<Vec<_>>().join(", ")
}

fn with(access: Access) -> Workload {
    Workload { access, trim_percent: 20, ..workload() }
}

#[test]
fn the_stream_of_a_seed_is_fixed_for_ever() {
    // Another implementation of SplitMix64 and xoshiro256++ produced these values.
    let golden = [
        "W 875401216 1",
        "W 343379968 2",
        "R 1057492992",
        "R 753885184",
        "R 853065728",
        "R 632512512",
        "R 135643136",
        "W 650792960 8",
    ];
    let spelt: Vec<String> = operations(&workload(), golden.len())
        .into_iter()
        .map(|operation| match operation {
            Operation::Read { offset, .. } => format!("R {}", offset.0),
            Operation::Write { offset, generation, .. } => format!("W {} {generation}", offset.0),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(spelt, golden);
}

#[test]
fn each_way_through_a_range_is_fixed_for_ever() {
    // All but the zones were found by another implementation, in another language, with another library of
    // functions.
    let random = |distribution| with(drawn(distribution, Runs::Single));
    let walked = |walk| with(Access::Sequential(Sequential { stride: Some(Bytes::mib(300)), walk }));
    let zones = vec![
        Zone { io_percent: 70.0, length: ZoneLength::Percent(10.0) },
        Zone { io_percent: 0.0, length: ZoneLength::Bytes(Bytes::mib(512)) },
    ];
    let split = BlockSplit(vec![(Bytes::kib(4), 60), (Bytes::kib(64), 40)]);
    let cases = [
        (
            "uniform with trims",
            "W 854884 1, W 335332 2, R 1032708, T 736216, T 833072, T 617688, T 132464, W 635540 8",
            with(Access::RANDOM),
        ),
        (
            "each once",
            "T 377144, R 994792, R 634068, R 419096, R 1011852, W 267064 6, R 278984, W 550528 8",
            random(Distribution::EachOnce),
        ),
        (
            "zipf",
            "T 411980, R 182876, R 917452, R 420940, R 199284, R 67052, W 968168 7, R 859060",
            random(Distribution::Zipf { theta: 0.99 }),
        ),
        (
            "pareto",
            "T 668120, R 966384, R 376460, R 182876, R 354588, R 120220, W 299612 7, R 986864",
            random(Distribution::Pareto { power: 0.2 }),
        ),
        (
            "normal",
            "R 628216, R 594456, W 424204 3, R 601284, T 546588, W 549724 6, W 782844 7, R 619928",
            random(Distribution::Normal { deviation_percent: 10.0 }),
        ),
        (
            "zoned",
            "R 763892, R 924244, W 876836 3, W 64476 4, R 98892, R 90156, R 8312, T 58276",
            random(Distribution::Zoned(zones)),
        ),
        (
            "geometric",
            "W 854884 1, R 1032708, R 1032712, R 1032716, R 1032720, W 635540 6, T 979708, T 979712",
            with(drawn(Distribution::Uniform, Runs::Geometric { random_percent: 40 })),
        ),
        (
            "fixed",
            "W 854884 1, W 854888 2, W 854892 3, W 335332 4, W 335336 5, W 335340 6, R 1032708, R 1032712",
            with(drawn(Distribution::Uniform, Runs::Fixed(3))),
        ),
        (
            "lengths",
            "R 854832, W 1032652 2, R 833024, R 132456, R 218816, R 587708, T 714020, W 423652 8",
            Workload {
                blocks: BlockSizes { read: split.clone(), write: split.clone(), trim: split },
                ..with(Access::RANDOM)
            },
        ),
        (
            "each",
            "R 1024, T 308224, R 615424, R 922624, R 1024, R 308224, W 615424 7, R 922624",
            walked(Walk::Each),
        ),
        (
            "parallel",
            "R 1024, T 1024, R 1024, R 308224, R 308224, R 308224, W 615424 7, R 615424",
            Workload { depth: 3, ..walked(Walk::Parallel) },
        ),
    ];
    for (name, golden, workload) in cases {
        assert_eq!(spelt(&workload), golden, "{name}");
    }
}
