//! Tests of flushes, durable writes, and the end of a stream.

use super::*;
use crate::block_sizes::{BlockSizes, BlockSplit};
use crate::pace::Stop;

fn every(writes: u32) -> Option<NonZeroU32> {
    NonZeroU32::new(writes)
}

#[test]
fn a_flush_follows_every_so_many_writes() {
    let workload = Workload {
        write_percent: 50,
        durability: Durability::flush_every(NonZeroU32::new(3).unwrap()),
        stop: Stop::operations(100),
        ..workload()
    };
    let stream: Vec<_> = generator(&workload, WHOLE).collect();
    let mut writes = 0;
    for operation in &stream {
        match operation {
            Operation::Write { .. } => writes += 1,
            Operation::Flush => {
                assert_eq!(writes, 3);
                writes = 0;
            }
            _ => assert!(writes < 3, "a read came between the writes and their flush"),
        }
    }
    assert_eq!(stream.iter().filter(|op| **op != Operation::Flush).count(), 100, "flushes do not count");
}

#[test]
fn the_end_is_flushed_once_where_that_is_due() {
    let stream = |count, flush_every, flush_at_end| {
        let durability = Durability { flush_every: every(flush_every), flush_at_end, ..Durability::NEVER };
        let stop = Stop::operations(count);
        let workload = Workload { write_percent: 100, durability, stop, ..workload() };
        let spell = |operation| if operation == Operation::Flush { 'F' } else { 'W' };
        generator(&workload, WHOLE).map(spell).collect::<String>()
    };
    assert_eq!(stream(4, 2, false), "WWFWWF");
    assert_eq!(stream(4, 2, true), "WWFWWF", "nothing was left to flush");
    assert_eq!(stream(5, 2, false), "WWFWWFW");
    assert_eq!(stream(5, 2, true), "WWFWWFWF");
    assert_eq!(stream(3, 0, true), "WWWF");
    assert_eq!(stream(3, 0, false), "WWW");
}

#[test]
fn a_flush_before_the_next_operation_does_not_follow_the_last() {
    let stream = |count, flush_every, flush_at_end| {
        let durability = Durability {
            flush_every: every(flush_every),
            flush_at_end,
            flush_before_next: true,
            ..Durability::NEVER
        };
        let stop = Stop::operations(count);
        let workload = Workload { write_percent: 100, durability, stop, ..workload() };
        let spell = |operation| if operation == Operation::Flush { 'F' } else { 'W' };
        generator(&workload, WHOLE).map(spell).collect::<String>()
    };
    // The order of fio 3.33: `strace -e fdatasync,pwrite64 fio --rw=write --number_ios=4 --fdatasync=2`.
    assert_eq!(stream(4, 2, false), "WWFWW");
    assert_eq!(stream(5, 2, false), "WWFWWFW");
    assert_eq!(stream(3, 1, false), "WFWFW");
    assert_eq!(stream(4, 2, true), "WWFWWF", "the flush at the end is that of the last writes");
}

#[test]
fn lengths_that_are_drawn_move_no_more_than_the_bytes() {
    let blocks = |split: &[(u64, u8)]| BlockSizes {
        write: BlockSplit(split.iter().map(|(kib, of)| (Bytes::kib(*kib), *of)).collect()),
        ..BlockSizes::one(Bytes::kib(4))
    };
    for (split, bytes) in [(vec![(4, 50), (16, 50)], 1 << 20), (vec![(4, 10), (64, 90)], (1 << 20) + 4096)] {
        let stop = Stop { bytes: Some(bytes), ..Stop::default() };
        let workload = Workload { write_percent: 100, blocks: blocks(&split), stop, ..workload() };
        let moved: u64 = generator(&workload, WHOLE).filter_map(span).map(|(_, length)| length).sum();
        assert_eq!(moved, bytes, "{split:?}");
    }
}

#[test]
fn a_stream_that_ended_stays_ended() {
    let durability = Durability { flush_at_end: true, ..Durability::default() };
    let workload = Workload { write_percent: 100, durability, stop: Stop::operations(1), ..workload() };
    let mut stream = generator(&workload, WHOLE);
    assert!(stream.next().is_some() && stream.next() == Some(Operation::Flush));
    assert!(stream.next().is_none() && stream.next().is_none());
    assert_eq!(stream.ordinal(), 1);
}

#[test]
fn every_so_many_writes_one_is_durable() {
    let durability = Durability { fua_every: every(3), ..Durability::default() };
    let workload = Workload { write_percent: 60, durability, ..workload() };
    let fuas: Vec<bool> = operations(&workload, 1000)
        .into_iter()
        .filter_map(|operation| match operation {
            Operation::Write { fua, .. } => Some(fua),
            _ => None,
        })
        .collect();
    for (nth, fua) in fuas.iter().enumerate() {
        assert_eq!(*fua, nth % 3 == 2, "write {nth}");
    }
    let each = Workload { durability: Durability::EACH_WRITE, ..workload };
    assert!(operations(&each, 100).iter().all(|op| !matches!(op, Operation::Write { fua: false, .. })));
}

#[test]
fn bytes_end_a_stream_of_each_worker() {
    let stop = Stop { bytes: Some(1_000_000), ..Stop::default() };
    let moved = |workload: &Workload| -> Vec<u64> {
        let length = |operation| span(operation).map_or(0, |(_, length)| length);
        shares(3).map(|share| generator(workload, share).map(length).sum()).collect()
    };
    let one = Workload { stop, ..workload() };
    assert_eq!(moved(&one).iter().sum::<u64>(), 1_000_000_u64.next_multiple_of(4096));
    let limits: Option<u64> = shares(3).map(|share| generator(&one, share).limit()).sum();
    assert_eq!(limits, Some(245));
    let split = BlockSplit(vec![(Bytes::kib(4), 90), (Bytes::kib(64), 10)]);
    let mixed = Workload { blocks: BlockSizes { read: split, ..one.blocks.clone() }, ..one };
    for (share, moved) in shares(3).zip(moved(&mixed)) {
        let least = mixed.bytes_of(share).unwrap();
        // The last operation has the remaining length, in whole blocks of the shortest length.
        assert_eq!(moved, least.next_multiple_of(4096), "{moved} bytes of at least {least}");
        assert_eq!(generator(&mixed, share).limit(), None);
    }
    let both =
        Workload { stop: Stop { operations: Some(30), bytes: Some(40_960), duration: None }, ..workload() };
    assert_eq!(generator(&both, WHOLE).count(), 10, "the first of two ends comes first");
}
