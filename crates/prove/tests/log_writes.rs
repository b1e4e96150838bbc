//! Logs of dm-log-writes: as written by the kernel and by plumb, and damaged.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use plumb_block::{Bytes, Lba, LbaRange, Nanos, Op};
use plumb_crash::below;
use plumb_prove::ErrorKind;
use plumb_prove::explore::{Explorer, Limits};
use plumb_prove::recording::{CommandId, Event, Recording};
use plumb_prove::session::{RecordedWork, logged};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::explorer;

const BLOCK: usize = 512;
const BLOCKS: u64 = 4;
const MAGIC: u64 = 0x006a_7366_7773_6872;

/// Returns a block that begins with these words and bytes.
fn block(words: &[u64], rest: &[u8]) -> Vec<u8> {
    let mut block: Vec<u8> =
        words.iter().flat_map(|word| word.to_le_bytes()).chain(rest.iter().copied()).collect();
    block.resize(BLOCK, 0);
    block
}

fn entry(lba: u64, nlb: u64, flags: u64, data: &[u8]) -> Vec<u8> {
    let blocks = data.iter().flat_map(|byte| [*byte; BLOCK]).collect::<Vec<u8>>();
    [block(&[lba, nlb, flags, 0], &[]), blocks].concat()
}

fn mark(text: &str) -> Vec<u8> {
    block(&[0, 0, 8, text.len() as u64], text.as_bytes())
}

fn log(entries: &[Vec<u8>]) -> Vec<u8> {
    let head = block(&[MAGIC, 1, entries.len() as u64, BLOCK as u64], &[]);
    // A log is shorter than its device.
    [head, entries.concat(), vec![0xee; 3 * BLOCK]].concat()
}

fn read(log: &[u8]) -> RecordedWork {
    logged(log, None, false).unwrap()
}

/// Returns all states at and after `from`: the first bytes of the blocks, and the required acknowledgement.
fn states(recording: &Recording, from: usize) -> BTreeSet<([u8; BLOCKS as usize], Option<u64>)> {
    let mut states = BTreeSet::new();
    let limits = Limits { pieces: 20, ..Limits::default() };
    Explorer { from, limits, ..explorer(recording) }.explore(&mut |state| {
        let bytes = |lba| recording.contents.bytes(state.content(lba))[0];
        states.insert(([0, 1, 2, 3].map(bytes), state.required()));
        ControlFlow::Continue(())
    });
    states
}

/// Returns the contents without losses.
fn last(recording: &Recording) -> BTreeMap<u64, u8> {
    let mut blocks = BTreeMap::new();
    for (_, event) in &recording.events {
        let Event::Completed(CommandId(id)) = event else { continue };
        let command = &recording.commands[*id as usize];
        for lba in command.range.lba.0..command.range.end().0 {
            blocks.insert(lba, recording.contents.bytes(command.content(lba))[0]);
        }
    }
    blocks.retain(|_, byte| *byte != 0);
    blocks
}

#[test]
fn a_log_of_the_kernel_tells_what_is_durable_when() {
    let log = log(&[
        entry(0, 2, 16, &[1, 2]),
        entry(0, 0, 1, &[]),
        mark("mkfs"),
        entry(2, 1, 2, &[3]),
        mark("7"),
        entry(0, 1, 0, &[9]),
        entry(1, 3, 4, &[]),
        mark("dm-log-writes-end"),
    ]);
    let work = read(&log);
    let recording = &*work.recording;
    assert_eq!((recording.size, recording.logical_block), (Bytes(4 * 512), Bytes(512)));
    assert_eq!(recording.events[work.from - 1].1, Event::Marked("mkfs".to_owned()));
    let found = states(recording, work.from);
    let acknowledged: BTreeSet<_> = found.iter().filter(|(_, required)| *required == Some(7)).collect();
    // FUA is durable; no flush covers the write and the discard after it.
    let expected = [
        [1, 0, 0, 0],
        [1, 0, 3, 0],
        [1, 2, 0, 0],
        [1, 2, 3, 0],
        [9, 0, 0, 0],
        [9, 0, 3, 0],
        [9, 2, 0, 0],
        [9, 2, 3, 0],
    ];
    assert_eq!(acknowledged.iter().map(|(blocks, _)| *blocks).collect::<Vec<_>>(), expected);
    assert!(found.contains(&([1, 2, 0, 0], None)), "{found:?}");
    assert_eq!(work.facts.acknowledgements, 1);
    assert!(work.facts.serialised_because.is_some(), "such a log proves nothing");

    // Without the earlier contents of the device, these blocks are zeroes.
    let base: Vec<u8> = [5, 5, 5, 6].iter().flat_map(|byte| [*byte; BLOCK]).collect();
    let based = logged(&log[..], Some(&mut &base[..]), false).unwrap();
    assert_eq!(last(&based.recording), BTreeMap::from([(0, 9)]), "the discard has taken the rest");
    assert!(states(&based.recording, based.from).contains(&([1, 2, 3, 6], Some(7))));
    let short = logged(&log[..], Some(&mut &base[..3 * BLOCK]), false).unwrap_err();
    assert!(short.to_string().contains("the base has 1.5 KiB"), "{short}");
}

/// Random writes with and without FUA, some while a flush is in flight, and acknowledgements.
fn drawn(seed: u64) -> Recording {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut recording = Recording::of_blank(Bytes(BLOCKS * BLOCK as u64), Bytes(BLOCK as u64));
    let mut flush = None;
    for step in 0..10_u64 {
        let at = Nanos(step);
        let range = LbaRange::new(Lba(below(&mut chance, BLOCKS)), 1);
        match (below(&mut chance, 6), flush) {
            (0, None) => flush = Some(recording.submit(at, Op::Flush, LbaRange::EMPTY, &[])),
            (0 | 1, Some(id)) => {
                recording.happened(at, Event::Completed(id));
                flush = None;
            }
            (2, _) => recording.happened(at, Event::Acknowledged(step)),
            (drawn, _) => {
                let op = Op::Write { fua: drawn == 3 };
                let id = recording.submit(at, op, range, &[step as u8 + 1; BLOCK]);
                recording.happened(at, Event::Completed(id));
            }
        }
    }
    recording
}

#[test]
fn what_is_written_as_a_log_has_no_state_that_the_recording_has_not() {
    for seed in 0..200 {
        let recording = drawn(seed);
        let mut written = Vec::new();
        recording.save_log_writes(usize::MAX, &mut written).unwrap();
        let work = read(&written);
        assert_eq!(last(&work.recording), last(&recording), "seed {seed}");
        let (of_log, all) = (states(&work.recording, 0), states(&recording, 0));
        for (blocks, required) in of_log {
            let is_there = all.iter().any(|(other, by_then)| *other == blocks && *by_then >= required);
            assert!(is_there, "seed {seed}: {blocks:?} with {required:?} of {all:?}");
        }
        let mut again = Vec::new();
        work.recording.save_log_writes(work.until - 1, &mut again).unwrap();
        assert_eq!(again, written, "seed {seed}");
    }
}

#[test]
fn damaged_logs_are_refused() {
    let whole = [mark("a"), entry(0, 2, 0, &[1, 2]), entry(0, 0, 1, &[])];
    let good = log(&whole);
    let with = |at: usize, byte: u8| {
        let mut log = good.clone();
        log[at] = byte;
        log
    };
    let of = |one: Vec<u8>| log(&[one]);
    for (log, why) in [
        (Vec::new(), "it ends in its first block"),
        (good[..100].to_vec(), "it ends in its first block"),
        (good[..2 * BLOCK + 7].to_vec(), "it ends in entry 2 of 3"),
        (good[..4 * BLOCK + 7].to_vec(), "it ends in entry 2 of 3"),
        (with(0, 0), "it does not begin"),
        (with(8, 2), "it does not begin"),
        (with(24, 1), "its blocks have"),
        (with(16, 4), "its flags are unknown"),
        (of(block(&[], &[])), "it holds nothing"),
        (of(block(&[0, 0, 8, 481], &[])), "its mark does not fit"),
        (of(block(&[0, 1, 0, 9], &[])), "as of DAX"),
        (of(block(&[u64::MAX, 1, 0, 0], &[])), "beyond the end"),
        (log(&[mark("3"), mark("3")]), "the numbers must rise"),
    ] {
        let error = logged(&log[..], None, false).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage, "{error}");
        assert!(error.to_string().contains(why) && error.to_string().contains("dm-log-writes"), "{error}");
    }
}
