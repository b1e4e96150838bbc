//! Tests of sequential access: strides, and the walks of workers.

use std::collections::HashMap;
use std::thread;

use super::*;
use crate::access::{Sequential, Walk};
use crate::block_sizes::{BlockSizes, BlockSplit};

fn walk(stride: Option<Bytes>, walk: Walk) -> Workload {
    let access = Access::Sequential(Sequential { stride, walk });
    Workload { access, division: Division::Overlap, ..workload() }
}

#[test]
fn sequential_goes_round() {
    let range = ByteRange { offset: Bytes(8192), length: Bytes(3 * 4096 + 100) };
    let workload = Workload { access: Access::SEQUENTIAL, range, ..workload() };
    assert_eq!(offsets(&workload, 7), [8192, 12288, 16384, 8192, 12288, 16384, 8192]);
}

#[test]
fn strides_skip_overlap_and_stay() {
    let strided = |kib| Workload { range: blocks(5), ..walk(Some(Bytes::kib(kib)), Walk::Each) };
    let kib =
        |workload: &Workload| offsets(workload, 6).iter().map(|offset| offset / 1024).collect::<Vec<_>>();
    assert_eq!(kib(&strided(8)), [0, 8, 16, 0, 8, 16]);
    assert_eq!(kib(&strided(2)), [0, 2, 4, 6, 8, 10]);
    assert_eq!(kib(&strided(20)), [0; 6]);
    assert_eq!(kib(&strided(0)), [0; 6]);
}

#[test]
fn operations_of_different_lengths_follow_without_a_gap() {
    let split = BlockSplit(vec![(Bytes::kib(4), 50), (Bytes::kib(12), 50)]);
    let blocks_of = BlockSizes { read: split, ..BlockSizes::one(Bytes::kib(8)) };
    let workload = Workload { blocks: blocks_of, range: blocks(100), ..walk(None, Walk::Each) };
    let mut expected = 0;
    for (offset, length) in operations(&workload, 5000).into_iter().filter_map(span) {
        if expected + length > blocks(100).length.0 {
            expected = 0;
        }
        assert_eq!(offset, expected);
        expected += length;
    }
}

#[test]
fn an_offset_sets_the_starts_of_workers_apart() {
    let workload =
        Workload { range: blocks(10), division: Division::Offset(Bytes::kib(12)), ..walk(None, Walk::Each) };
    let starts: Vec<Vec<u64>> = shares(3)
        .map(|share| generator(&workload, share).take(8).filter_map(offset).map(|at| at / 4096).collect())
        .collect();
    assert_eq!(starts[0], [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(starts[1], [3, 4, 5, 6, 7, 8, 9, 0], "a worker goes round over the whole range");
    assert_eq!(starts[2], [6, 7, 8, 9, 0, 1, 2, 3]);
    let strided = Workload {
        division: Division::Offset(Bytes::kib(4)),
        ..Workload { range: blocks(10), ..walk(Some(Bytes::kib(8)), Walk::Each) }
    };
    let second = shares(2).nth(1).unwrap();
    let places: Vec<u64> =
        generator(&strided, second).take(7).filter_map(offset).map(|at| at / 4096).collect();
    assert_eq!(places, [1, 3, 5, 7, 9, 1, 3], "on the places of its own stride");
    let last = shares(5).last().unwrap();
    let message = Generator::new(&workload, last, &Cursor::default()).unwrap_err().to_string();
    assert_eq!(
        message,
        "division.offset is 49152: expected at most 36864 bytes for all of the 5 workers together"
    );
}

#[test]
fn interlocked_workers_together_take_each_place_once() {
    let workload = Workload { range: blocks(1000), ..walk(None, Walk::Interlocked) };
    let cursor = Cursor::default();
    // Three passes by four threads: each takes the next place, so that the threads' speed does not matter.
    let taken: Vec<u64> = thread::scope(|scope| {
        let workers: Vec<_> = shares(4)
            .map(|share| {
                let stream = Generator::new(&workload, share, &cursor).unwrap();
                scope.spawn(move || stream.take(750).filter_map(offset).collect::<Vec<u64>>())
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let mut times: HashMap<u64, u32> = HashMap::new();
    taken.into_iter().for_each(|offset| *times.entry(offset).or_default() += 1);
    assert_eq!(times.len(), 1000);
    assert!(times.values().all(|times| *times == 3), "a place was skipped or taken twice");
}

#[test]
fn interlocked_workers_in_turn_go_one_after_the_other() {
    let workload = Workload { range: blocks(7), ..walk(Some(Bytes::kib(8)), Walk::Interlocked) };
    let cursor = Cursor::default();
    let mut workers: Vec<Generator> =
        shares(3).map(|share| Generator::new(&workload, share, &cursor).unwrap()).collect();
    let turns = (0..9).map(|turn| offset(workers[turn % 3].next().unwrap()).unwrap() / 4096);
    assert_eq!(turns.collect::<Vec<_>>(), [0, 2, 4, 6, 0, 2, 4, 6, 0]);
}

#[test]
fn a_parallel_walk_sends_its_depth_to_each_place() {
    for depth in [1, 4] {
        let workload = Workload { range: blocks(5), depth, ..walk(None, Walk::Parallel) };
        let stream = offsets(&workload, 12 * depth as usize);
        for (step, group) in stream.chunks(depth as usize).enumerate() {
            assert!(group.iter().all(|offset| *offset == step as u64 % 5 * 4096), "{group:?} in step {step}");
        }
    }
}
