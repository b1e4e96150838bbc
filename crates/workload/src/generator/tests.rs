//! The stream of operations: fixed for ever by its seed, and true to its description.

use std::collections::HashMap;

use plumb_block::Nanos;
use proptest::prelude::*;

use super::*;
use crate::workload::{ByteRange, Stop};

fn workload() -> Workload {
    let range = ByteRange { offset: Bytes::mib(1), length: Bytes::gib(1) };
    Workload { write_percent: 30, seed: 42, ..Workload::over(range, Bytes::kib(4)) }
}

fn operations(workload: &Workload, count: usize) -> Vec<Operation> {
    Generator::new(workload, Share::WHOLE).unwrap().take(count).collect()
}

/// The offset of a read or a write.
fn offset(operation: Operation) -> Option<u64> {
    match operation {
        Operation::Read { offset } | Operation::Write { offset, .. } => Some(offset.0),
        Operation::Flush => None,
    }
}

#[test]
fn the_stream_of_a_seed_is_fixed_for_ever() {
    // Recordings of older versions must verify: these values never change. They were found by another
    // implementation of SplitMix64 and xoshiro256++.
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
            Operation::Read { offset } => format!("R {}", offset.0),
            Operation::Write { offset, generation } => format!("W {} {generation}", offset.0),
            Operation::Flush => "F".to_owned(),
        })
        .collect();
    assert_eq!(spelt, golden);
}

#[test]
fn the_mix_is_what_was_asked_for() {
    for percent in [0, 1, 30, 50, 99, 100] {
        let workload = Workload { write_percent: percent, ..workload() };
        let stream = operations(&workload, 100_000);
        let writes = stream.iter().filter(|op| matches!(op, Operation::Write { .. })).count();
        let expected = usize::from(percent) * 1000;
        // Three standard deviations of a binomial; none at all at the ends.
        let slack = 3.0 * (expected as f64 * (1.0 - f64::from(percent) / 100.0)).sqrt();
        assert!(writes.abs_diff(expected) as f64 <= slack, "{writes} writes at {percent} %");
    }
}

#[test]
fn random_offsets_are_spread_evenly() {
    let stream = operations(&workload(), 160_000);
    let mut sixteenths = [0_u32; 16];
    for offset in stream.into_iter().filter_map(offset) {
        sixteenths[((offset - Bytes::mib(1).0) / (Bytes::gib(1).0 / 16)) as usize] += 1;
    }
    assert!(sixteenths.iter().all(|count| count.abs_diff(10_000) < 400), "{sixteenths:?}");
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
fn sequential_goes_round() {
    let range = ByteRange { offset: Bytes(8192), length: Bytes(3 * 4096 + 100) };
    let workload = Workload { access: Access::Sequential, range, ..workload() };
    let offsets: Vec<u64> = operations(&workload, 7).into_iter().filter_map(offset).collect();
    assert_eq!(offsets, [8192, 12288, 16384, 8192, 12288, 16384, 8192]);
}

#[test]
fn a_flush_follows_every_so_many_writes() {
    let workload = Workload {
        write_percent: 50,
        flush_every: NonZeroU32::new(3),
        stop: Stop::Operations(100),
        ..workload()
    };
    let stream: Vec<_> = Generator::new(&workload, Share::WHOLE).unwrap().collect();
    let mut writes = 0;
    for operation in &stream {
        match operation {
            Operation::Write { .. } => writes += 1,
            Operation::Flush => {
                assert_eq!(writes, 3);
                writes = 0;
            }
            Operation::Read { .. } => assert!(writes < 3, "a read came between the writes and their flush"),
        }
    }
    assert_eq!(stream.iter().filter(|op| **op != Operation::Flush).count(), 100, "flushes do not count");
}

#[test]
fn the_last_group_of_a_counted_workload_is_flushed() {
    let workload = Workload {
        write_percent: 100,
        flush_every: NonZeroU32::new(2),
        stop: Stop::Operations(4),
        ..workload()
    };
    let stream: Vec<_> = Generator::new(&workload, Share::WHOLE).unwrap().collect();
    assert_eq!(stream.len(), 6);
    assert_eq!(stream.last(), Some(&Operation::Flush));
}

proptest! {
    #[test]
    fn every_rewrite_takes_a_higher_generation_and_replays(seed: u64, blocks in 1_u64..50, count in 1_u64..500) {
        let range = ByteRange { offset: Bytes(0), length: Bytes(4096 * blocks) };
        let workload = Workload {
            range, seed, write_percent: 70, stop: Stop::Operations(count), ..workload()
        };
        let run = || Generator::new(&workload, Share::WHOLE).unwrap();
        let mut latest = HashMap::new();
        for operation in run() {
            prop_assert!(offset(operation).unwrap() < range.length.0);
            if let Operation::Write { offset, generation } = operation {
                prop_assert!(generation > 0, "0 means never written");
                let before = latest.insert(offset, generation);
                prop_assert!(before.is_none_or(|before| before < generation));
            }
        }
        prop_assert_eq!(run().count() as u64, count);
        prop_assert!(run().eq(run()));
    }

    #[test]
    fn workers_never_touch_the_same_block(seed: u64, of in 2_u32..8) {
        let workload = Workload { seed, stop: Stop::Duration(Nanos::secs(1)), ..workload() };
        let mut owners = HashMap::new();
        for share in Share::all(NonZeroU32::new(of).unwrap()) {
            for offset in Generator::new(&workload, share).unwrap().take(300).filter_map(offset) {
                prop_assert_eq!(*owners.entry(offset).or_insert(share.index()), share.index());
            }
        }
    }
}
