//! Tests that kinds and lengths have the requested frequencies.

use std::collections::HashMap;

use super::*;
use crate::block_sizes::{BlockSizes, BlockSplit};

fn kinds(stream: &[Operation]) -> [u64; 3] {
    stream.iter().fold([0; 3], |[reads, writes, trims], operation| match operation {
        Operation::Read { .. } => [reads + 1, writes, trims],
        Operation::Write { .. } => [reads, writes + 1, trims],
        Operation::Trim { .. } => [reads, writes, trims + 1],
        Operation::Flush => [reads, writes, trims],
    })
}

#[test]
fn the_mix_is_what_was_asked_for() {
    let zipf = drawn(Distribution::Zipf { theta: 1.1 }, Runs::Single);
    for access in [Access::RANDOM, Access::SEQUENTIAL, zipf] {
        for (write_percent, trim_percent) in [(0, 0), (1, 0), (30, 20), (50, 50), (0, 99), (100, 0), (0, 100)]
        {
            let workload = Workload { write_percent, trim_percent, access: access.clone(), ..workload() };
            let seen = kinds(&operations(&workload, 100_000));
            let parts = [100 - write_percent - trim_percent, write_percent, trim_percent];
            for (seen, part) in seen.iter().zip(parts) {
                assert!(
                    (part == 0) == (*seen == 0) && (part == 100) == (*seen == 100_000),
                    "{seen} of {part} %"
                );
            }
            let asked: Vec<(u64, f64)> = seen
                .into_iter()
                .zip(parts.map(|part| f64::from(part) / 100.0))
                .filter(|(_, part)| *part > 0.0)
                .collect();
            let (seen, parts): (Vec<u64>, Vec<f64>) = asked.into_iter().unzip();
            if seen.len() > 1 {
                assert_fits(&seen, &parts, &format!("{write_percent} % writes, {trim_percent} % trims"));
            }
        }
    }
}

#[test]
fn what_is_read_and_what_is_written_are_spread_alike() {
    let of_writes = |write: bool| {
        let offsets: Vec<u64> = operations(&workload(), 100_000)
            .into_iter()
            .filter(|operation| matches!(operation, Operation::Write { .. }) == write)
            .filter_map(offset)
            .collect();
        offsets.iter().map(|offset| *offset as f64).sum::<f64>() / offsets.len() as f64
    };
    let middle = Bytes::mib(1).0 as f64 + Bytes::mib(512).0 as f64;
    for write in [true, false] {
        assert!((of_writes(write) / middle - 1.0).abs() < 0.02, "one draw decides both, but independently");
    }
}

#[test]
fn each_kind_has_its_lengths_as_often_as_was_asked_for() {
    let split = |lengths: &[(u64, u8)]| {
        BlockSplit(lengths.iter().map(|(kib, percent)| (Bytes::kib(*kib), *percent)).collect())
    };
    let blocks = BlockSizes {
        read: split(&[(4, 60), (64, 39), (128, 1)]),
        write: split(&[(8, 50), (12, 50)]),
        trim: split(&[(1024, 100)]),
    };
    for access in [Access::RANDOM, Access::SEQUENTIAL] {
        let workload = Workload { blocks: blocks.clone(), access, trim_percent: 30, ..workload() };
        let mut lengths: HashMap<(u8, u64), u64> = HashMap::new();
        for operation in operations(&workload, 100_000) {
            let kind = match operation {
                Operation::Read { .. } => 0,
                Operation::Write { .. } => 1,
                Operation::Trim { .. } | Operation::Flush => 2,
            };
            *lengths.entry((kind, span(operation).unwrap().1 / 1024)).or_default() += 1;
        }
        let keys = [(0, 4), (0, 64), (0, 128), (1, 8), (1, 12), (2, 1024)];
        let counts = keys.map(|key| lengths.remove(&key).unwrap_or(0));
        assert!(lengths.is_empty(), "lengths that nobody asked for: {lengths:?}");
        assert_fits(&counts, &[0.24, 0.156, 0.004, 0.15, 0.15, 0.3], "lengths");
    }
}
