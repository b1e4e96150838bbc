//! Tests of the workloads that are refused, and of the words of the refusal.

use super::*;
use crate::access::{Access, Distribution, Random, Runs, Sequential, Walk, Zone, ZoneLength};
use crate::block_sizes::BlockSizes;
use crate::byte_range::ByteRange;
use crate::pace::Arrival;
use crate::workload::Durability;

fn base() -> Workload {
    let range = ByteRange { offset: Bytes(0), length: Bytes::mib(1) };
    Workload { write_percent: 50, ..Workload::over(range, Bytes::kib(4)) }
}

/// Returns the message for a valid workload changed by `change`.
fn message(change: impl FnOnce(&mut Workload)) -> String {
    let mut workload = base();
    change(&mut workload);
    workload.validate().map_or_else(|invalid| invalid.to_string(), |()| "valid".to_owned())
}

fn random(align: Option<Bytes>, distribution: Distribution, runs: Runs) -> Access {
    Access::Random(Random { align, distribution, runs })
}

fn spread(distribution: Distribution) -> Access {
    random(None, distribution, Runs::Single)
}

fn reads_only(workload: &mut Workload) {
    workload.write_percent = 0;
}

#[test]
fn a_valid_workload_is_valid_with_and_without_an_end() {
    assert_eq!(message(|_| {}), "valid");
    assert_eq!(message(|w| w.range = ByteRange::ALL), "valid");
    assert_eq!(message(|w| w.durability = Durability::EACH_WRITE), "valid");
    assert_eq!(message(|w| (w.write_percent, w.trim_percent) = (50, 50)), "valid");
}

#[test]
fn the_mix_and_the_lengths_add_up() {
    assert_eq!(message(|w| w.write_percent = 101), "write_percent is 101: expected 0 to 100");
    assert_eq!(
        message(|w| w.trim_percent = 51),
        "trim_percent is 51: expected 0 to 50, what 50 % of writes leave"
    );
    let split = |split: &[(u64, u8)]| BlockSizes {
        read: BlockSplit(split.iter().map(|(block, percent)| (Bytes(*block), *percent)).collect()),
        ..BlockSizes::one(Bytes::kib(4))
    };
    let cases: [(&[(u64, u8)], &str); 5] = [
        (&[], "blocks.read is 0 % together: expected lengths whose percents add up to 100"),
        (
            &[(512, 50), (1024, 49)],
            "blocks.read is 99 % together: expected lengths whose percents add up to 100",
        ),
        (&[(512, 100), (1024, 0)], "blocks.read[1].percent is 0: expected 1 to 100"),
        (&[(0, 100)], "blocks.read[0].length is 0 B: expected 1 byte to 1 GiB"),
        (&[(1 << 31, 100)], "blocks.read[0].length is 2 GiB: expected 1 byte to 1 GiB"),
    ];
    for (lengths, expected) in cases {
        assert_eq!(message(|w| w.blocks = split(lengths)), expected);
    }
}

#[test]
fn the_range_holds_the_longest_operation_that_occurs() {
    assert_eq!(
        message(|w| w.blocks.write = BlockSplit::one(Bytes::mib(2))),
        "length is 1 MiB: expected at least one block of 2 MiB"
    );
    assert_eq!(message(|w| w.blocks.trim = BlockSplit::one(Bytes::mib(2))), "valid", "nothing is trimmed");
    assert_eq!(
        message(|w| w.range.offset = Bytes(u64::MAX)),
        "offset is 16 EiB: expected an end below 16 EiB, with a length of 1 MiB"
    );
}

#[test]
fn depth_end_and_pace_make_sense() {
    assert_eq!(message(|w| w.depth = 0), "depth is 0: expected 1 to 32768");
    assert_eq!(message(|w| w.depth = 32_769), "depth is 32769: expected 1 to 32768");
    assert_eq!(
        message(|w| w.stop = Stop::default()),
        "stop is never: expected a duration, a number of operations or a number of bytes"
    );
    assert_eq!(
        message(|w| w.stop = Stop::after(Nanos::ZERO)),
        "stop.duration is 0 ns: expected a time above zero"
    );
    assert_eq!(message(|w| w.stop = Stop::operations(0)), "stop.operations is 0: expected at least 1");
    assert_eq!(message(|w| w.stop.bytes = Some(0)), "stop.bytes is 0: expected at least 1");
    assert_eq!(
        message(|w| w.rate = Rate::iops(f64::NAN)),
        "rate.amount.iops is NaN: expected more than 0 and at most 1e9 operations per second"
    );
    let bytes = Rate::Scheduled { amount: Amount::BytesPerSecond(-1.0), arrival: Arrival::Poisson };
    assert_eq!(
        message(|w| w.rate = bytes),
        "rate.amount.bytes-per-second is -1: expected more than 0 and at most 1e13 bytes per second"
    );
    let burst = |operations, pause| Some(Burst { operations, pause });
    assert_eq!(message(|w| w.burst = burst(0, Nanos(1))), "burst.operations is 0: expected at least 1");
    assert_eq!(
        message(|w| w.burst = burst(1, Nanos::ZERO)),
        "burst.pause is 0 ns: expected a time above zero; without pauses there are no bursts"
    );
}

#[test]
fn nothing_is_made_durable_where_nothing_is_written() {
    let every = NonZeroU32::new(2);
    for (durability, expected) in [
        (
            Durability { flush_every: every, ..Durability::default() },
            "durability.flush_every is 2: expected none, for a workload that never writes",
        ),
        (
            Durability { fua_every: every, ..Durability::default() },
            "durability.fua_every is 2: expected none, for a workload that never writes",
        ),
        (
            Durability { flush_at_end: true, ..Durability::default() },
            "durability.flush_at_end is true: expected false, for a workload that never writes",
        ),
    ] {
        assert_eq!(message(|w| w.durability = durability), "valid");
        let change = |w: &mut Workload| {
            reads_only(w);
            w.durability = durability;
        };
        assert_eq!(message(change), expected);
    }
}

#[test]
fn random_access_makes_sense() {
    let uniform = |align, runs| random(align, Distribution::Uniform, runs);
    let cases = [
        (uniform(Some(Bytes(0)), Runs::Single), "access.random.align is 0 B: expected above zero"),
        (
            uniform(Some(Bytes(1000)), Runs::Single),
            "access.random.align is 1000 bytes: expected a multiple of 512 bytes, as the blocks are",
        ),
        (
            uniform(Some(Bytes::mib(2)), Runs::Single),
            "access.random.align is 2 MiB: expected at most the range, 1 MiB",
        ),
        (
            uniform(None, Runs::Geometric { random_percent: 100 }),
            "access.random.runs.geometric.random_percent is 100: expected 1 to 99",
        ),
        (uniform(None, Runs::Fixed(1)), "access.random.runs.fixed is 1: expected at least 2"),
        (
            random(None, Distribution::EachOnce, Runs::Fixed(2)),
            "access.random.runs is Fixed(2): expected single with each-once: a run covers places that have \
             a turn of their own",
        ),
        (
            spread(Distribution::Zipf { theta: 1.0 }),
            "access.random.distribution.zipf.theta is 1: expected above 0, at most 100, not 1",
        ),
        (
            spread(Distribution::Zipf { theta: f64::NAN }),
            "access.random.distribution.zipf.theta is NaN: expected above 0, at most 100, not 1",
        ),
        (
            spread(Distribution::Pareto { power: 1.0 }),
            "access.random.distribution.pareto.power is 1: expected between 0 and 1; 0.2 sends 80 % of operations \
             to 20 % of the places",
        ),
        (
            spread(Distribution::Normal { deviation_percent: 0.0 }),
            "access.random.distribution.normal.deviation_percent is 0: expected above 0, at most 100",
        ),
    ];
    for (access, expected) in cases {
        assert_eq!(message(|w| w.access = access), expected);
    }
}

#[test]
fn zones_make_sense() {
    let zone = |io_percent, percent| Zone { io_percent, length: ZoneLength::Percent(percent) };
    let cases = [
        (vec![], " is empty: expected at least one zone"),
        (vec![zone(101.0, 10.0)], "[0].io_percent is 101: expected 0 to 100"),
        (vec![zone(f64::NAN, 10.0)], "[0].io_percent is NaN: expected 0 to 100"),
        (vec![zone(50.0, 10.0), zone(50.0, 0.0)], "[1].length is 0 %: expected above zero, at most 100 %"),
        (
            vec![zone(60.0, 10.0), zone(41.0, 10.0)],
            " is 101 % of the operations: expected at most 100 % together",
        ),
        (vec![zone(60.0, 60.0), zone(30.0, 41.0)], " is 101 % of the range: expected at most 100 % together"),
    ];
    for (zones, expected) in cases {
        let expected = format!("access.random.distribution.zoned{expected}");
        assert_eq!(message(|w| w.access = spread(Distribution::Zoned(zones))), expected);
    }
    let tenths = vec![zone(10.0 + 0.1 + 0.2, 33.3), zone(89.7, 66.7)];
    assert_eq!(
        message(|w| w.access = spread(Distribution::Zoned(tenths))),
        "valid",
        "rounding was held against it"
    );
}

#[test]
fn sequential_access_and_division_make_sense() {
    let walk = |stride, walk| Access::Sequential(Sequential { stride, walk });
    let with = |access: Access, division| message(|w| (w.access, w.division) = (access, division));
    assert_eq!(
        with(walk(Some(Bytes(4097)), Walk::Each), Division::Parts),
        "access.sequential.stride is 4097 bytes: expected a multiple of 512 bytes, as the blocks are"
    );
    assert_eq!(with(walk(Some(Bytes(0)), Walk::Each), Division::Parts), "valid");
    assert_eq!(
        with(walk(None, Walk::Interlocked), Division::Parts),
        "access.sequential.walk is interlocked: expected each or parallel, or the division overlap: interlocked \
         workers share one range"
    );
    assert_eq!(with(walk(None, Walk::Interlocked), Division::Overlap), "valid");
    let lengths = |w: &mut Workload| {
        w.blocks.read = BlockSplit::one(Bytes::kib(8));
        w.access = walk(None, Walk::Parallel);
    };
    assert_eq!(
        message(lengths),
        "access.sequential.stride is none: expected a number of bytes: operations of different lengths at one place \
         do not say where the next place is"
    );
    assert_eq!(
        with(Access::RANDOM, Division::Offset(Bytes(512))),
        "division.offset is 512 B: expected parts or overlap with random access: random workers do not start anywhere"
    );
    assert_eq!(
        with(Access::SEQUENTIAL, Division::Offset(Bytes(700))),
        "division.offset is 700 bytes: expected a multiple of 512 bytes, as the blocks are"
    );
}

#[test]
fn content_makes_sense_and_can_be_verified() {
    assert_eq!(
        message(|w| w.content = Content::Reducible { compress_percent: 100, dedup_percent: 0 }),
        "content.reducible.compress_percent is 100: expected 0 to 99"
    );
    assert_eq!(
        message(|w| w.content = Content::Buffer(Bytes(4095))),
        "content.buffer is 4 KiB: expected 4 KiB, so that the longest write fits, to 1 GiB"
    );
    assert_eq!(
        message(|w| w.content = Content::File { size: Bytes::mib(1), path: String::new() }),
        "content.file.path is empty: expected the path of a file"
    );
    let verified = |content| {
        message(|w| {
            w.verify = true;
            w.content = content;
        })
    };
    assert_eq!(verified(Content::Pattern), "valid");
    assert_eq!(verified(Content::Reducible { compress_percent: 50, dedup_percent: 0 }), "valid");
    assert_eq!(
        verified(Content::Reducible { compress_percent: 0, dedup_percent: 5 }),
        "content.reducible.dedup_percent is 5: expected 0 with verify: copies carry no stamp, so a stale one would \
         pass for a fresh one"
    );
    assert_eq!(
        verified(Content::Zeroes),
        "content is zeroes: expected pattern or reducible with verify: only their blocks say where and when they \
         were written"
    );
}

#[test]
fn a_workload_survives_json() {
    let workload = Workload {
        durability: Durability::flush_every(NonZeroU32::new(8).unwrap()),
        rate: Rate::iops(100.0),
        stop: Stop::operations(7),
        access: random(
            Some(Bytes(512)),
            Distribution::Zoned(vec![Zone { io_percent: 12.5, length: ZoneLength::Bytes(Bytes::kib(64)) }]),
            Runs::Geometric { random_percent: 30 },
        ),
        ..base()
    };
    let text = serde_json::to_string(&workload).unwrap();
    assert_eq!(serde_json::from_str::<Workload>(&text).unwrap(), workload);
    let misspelt = text.replace("write_percent", "writepercent");
    assert!(serde_json::from_str::<Workload>(&misspelt).is_err(), "an unknown field was taken");
}
