//! Windows that are too large to be explored exhaustively.

use std::collections::HashSet;
use std::ops::ControlFlow;

use plumb_block::{Bytes, Lba, LbaRange, Nanos, Op, mixed};
use plumb_crash::Promise;
use plumb_prove::explore::{Coverage, Explorer, Limits, State};
use plumb_prove::profile::DriveProfile;
use plumb_prove::recording::{Event, Recording};

use crate::explorer;

const BLOCK: u64 = 512;

/// Records writes of `nlb` blocks each, one after another.
fn writes(count: u64, nlb: u64) -> Recording {
    let mut recording = Recording::of_blank(Bytes(BLOCK * count * nlb), Bytes(BLOCK));
    for number in 0..count {
        let bytes: Vec<u8> =
            (0..nlb).flat_map(|block| [(number * nlb + block) as u8 | 1; BLOCK as usize]).collect();
        let range = LbaRange::new(Lba(number * nlb), nlb);
        let id = recording.submit(Nanos(number), Op::Write { fua: false }, range, &bytes);
        recording.happened(Nanos(number), Event::Completed(id));
    }
    recording
}

#[test]
fn all_subsets_of_ten_commands_are_shown_once_and_their_tears_too() {
    let recording = writes(10, 8);
    let (mut whole, mut torn) = (0, 0);
    let mut seen = HashSet::new();
    let windows = explorer(&recording).explore(&mut |state| {
        assert!(seen.insert(state.hash()), "shown twice: {:?}", state.choice());
        match state.choice().lost.values().any(|blocks| blocks.len() < 8) {
            true => torn += 1,
            false => whole += 1,
        }
        ControlFlow::Continue(())
    });
    assert_eq!((whole, windows.len()), (1 << 10, 1));
    assert!(torn > 100, "{torn}");
    assert_eq!((windows[0].coverage, windows[0].commands), (Coverage::Bounded, 10));
}

#[test]
fn a_limit_takes_from_all_windows_alike_and_the_order_is_the_same_every_time() {
    let mut recording = writes(40, 2);
    // Two windows of twenty writes, separated by a flush.
    let flush = recording.submit(Nanos(0), Op::Flush, LbaRange::EMPTY, &[]);
    let submitted = recording.events.pop().unwrap();
    recording.events.insert(40, submitted);
    recording.events.insert(41, (Nanos(0), Event::Completed(flush)));
    let limits = Limits { states: 100, ..Limits::default() };
    let explorer = Explorer { limits, ..explorer(&recording) };
    let shown = |explorer: &Explorer<'_>| {
        let mut hashes = Vec::new();
        let windows = explorer.explore(&mut |state| {
            hashes.push(state.hash());
            ControlFlow::Continue(())
        });
        (hashes, windows)
    };
    let (hashes, windows) = shown(&explorer);
    assert_eq!(hashes.len(), 100);
    assert!(windows.iter().all(|window| window.states > 20 && window.coverage == Coverage::Sampled));
    assert_eq!(shown(&explorer), (hashes, windows));
}

#[test]
fn a_flush_covers_its_own_drive_and_a_cut_takes_from_all() {
    let mut recording = writes(4, 1);
    recording.further_drives = vec![2];
    let flush = recording.submit(Nanos(9), Op::Flush, LbaRange::new(Lba(2), 0), &[]);
    recording.happened(Nanos(9), Event::Completed(flush));
    // A late write puts data at risk on the second drive at the end as well.
    let late =
        recording.submit(Nanos(9), Op::Write { fua: false }, LbaRange::new(Lba(3), 1), &[99; BLOCK as usize]);
    recording.happened(Nanos(9), Event::Completed(late));
    let mut file = Vec::new();
    recording.save(&mut file).unwrap();
    let recording = Recording::load(&file[..]).unwrap();
    let from = recording.events.len();
    let mut left = HashSet::new();
    let explorer = Explorer { from, ..explorer(&recording) };
    explorer.explore(&mut |state| {
        left.insert([0, 1, 2, 3].map(|lba| recording.contents.bytes(state.content(lba))[0]));
        ControlFlow::Continue(())
    });
    let all = (0..8).map(|taken: u8| [taken & 1, taken >> 1 & 1, 3, if taken & 4 == 0 { 3 } else { 99 }]);
    assert_eq!(left, all.collect());
    // A drive that keeps completed writes loses nothing next to one that does.
    let mut kept = HashSet::new();
    Explorer { further: &[Promise::DURABLE], ..explorer }.explore(&mut |state| {
        kept.insert([0, 1, 2, 3].map(|lba| recording.contents.bytes(state.content(lba))[0]));
        ControlFlow::Continue(())
    });
    assert_eq!(kept, left.into_iter().filter(|left| left[3] == 99).collect());
}

#[test]
fn what_is_written_again_unchanged_makes_no_difference() {
    let mut recording = writes(1, 8);
    let flush = recording.submit(Nanos(1), Op::Flush, LbaRange::EMPTY, &[]);
    recording.happened(Nanos(1), Event::Completed(flush));
    let from = recording.events.len();
    // A write of the same eight blocks, one of which differs, and a discard of everything else, which is
    // zeroes already.
    let mut bytes: Vec<u8> = (0..8).flat_map(|block| [block | 1; BLOCK as usize]).collect();
    bytes[3 * BLOCK as usize] ^= 0x80;
    recording.submit(Nanos(2), Op::Write { fua: false }, LbaRange::new(Lba(0), 8), &bytes);
    let mut states = 0;
    let windows = Explorer { from, ..explorer(&recording) }.explore(&mut |_| {
        states += 1;
        ControlFlow::Continue(())
    });
    assert_eq!((states, windows[0].pieces, windows[0].coverage), (2, 1, Coverage::Exhaustive));
}

#[test]
fn a_discard_of_a_large_device_costs_no_more_than_what_it_discards() {
    let mut recording = writes(4, 1);
    recording.size = Bytes::gib(1 << 20);
    let flush = recording.submit(Nanos(1), Op::Flush, LbaRange::EMPTY, &[]);
    recording.happened(Nanos(1), Event::Completed(flush));
    let from = recording.events.len();
    recording.submit(Nanos(2), Op::Discard, LbaRange::new(Lba(0), recording.blocks()), &[]);
    let mut states = 0;
    let windows = Explorer { from, ..explorer(&recording) }.explore(&mut |_| {
        states += 1;
        ControlFlow::Continue(())
    });
    assert_eq!((states, windows[0].coverage), (16, Coverage::Exhaustive));
}

#[test]
fn a_drive_without_fua_is_sent_a_flush_behind_what_a_drive_with_fua_makes_durable_alone() {
    let mut recording = Recording::of_blank(Bytes(4 * BLOCK), Bytes(BLOCK));
    for (lba, fua) in [(0, false), (1, true), (2, false)] {
        let range = LbaRange::new(Lba(lba), 1);
        let id = recording.submit(Nanos(lba), Op::Write { fua }, range, &[7; BLOCK as usize]);
        recording.happened(Nanos(lba), Event::Completed(id));
    }
    let left = |profile| {
        let promise = DriveProfile::parse(profile, Bytes(BLOCK)).unwrap().promise;
        let from = recording.events.len();
        let mut left = Vec::new();
        Explorer { promise, from, ..explorer(&recording) }.explore(&mut |state| {
            left.push([0, 1, 2].map(|lba| state.content(lba).0));
            ControlFlow::Continue(())
        });
        left.sort_unstable();
        left
    };
    assert_eq!(left("volatile"), [[1, 1, 0], [1, 1, 1]]);
    assert_eq!(left("volatile-fua"), [[0, 1, 0], [0, 1, 1], [1, 1, 0], [1, 1, 1]]);
}

/// Reads four blocks, each chosen by the contents of the previous ones. Returns the reads and their result.
fn check(seed: u64, blocks: u64, state: &State<'_>) -> (Vec<u64>, u64) {
    let (mut read, mut found) = (Vec::new(), seed);
    for _ in 0..4 {
        let lba = mixed(found) % blocks;
        read.push(lba);
        found = mixed(found ^ u64::from(state.content(lba).0));
    }
    (read, found)
}

/// Records writes of four blocks each, every second overlapping half of the previous one, some in flight
/// together.
fn overlapping(count: u64, seed: u64) -> Recording {
    let mut recording = Recording::of_blank(Bytes(BLOCK * count * 4), Bytes(BLOCK));
    let mut in_flight = Vec::new();
    for number in 0..count {
        let bytes: Vec<u8> =
            (0..4).flat_map(|block| [(8 * number + block) as u8 | 1; BLOCK as usize]).collect();
        let range = LbaRange::new(Lba(number * 4 - number % 2 * 2), 4);
        in_flight.push(recording.submit(Nanos(number), Op::Write { fua: false }, range, &bytes));
        if mixed(seed ^ number).is_multiple_of(2) {
            let ids = in_flight.drain(..);
            ids.for_each(|id| recording.happened(Nanos(number), Event::Completed(id)));
        }
    }
    recording
}

#[test]
fn all_that_a_check_tells_apart_is_found_in_fewer_states() {
    for seed in 0..30 {
        let recording = overlapping(4, seed);
        let found = |limits: Limits| {
            let (mut found, mut shown) = (HashSet::new(), 0);
            let explorer = Explorer { limits, ..explorer(&recording) };
            let windows = explorer.explore(&mut |state| {
                let (read, result) = check(seed, 16, state);
                found.insert(result);
                shown += 1;
                if state.wants_reads() {
                    state.set_reads(&read);
                }
                ControlFlow::Continue(())
            });
            let coverage: Vec<Coverage> = windows.iter().map(|window| window.coverage).collect();
            (found, coverage, shown)
        };
        let (all, coverage, count) = found(Limits { pieces: 24, ..Limits::default() });
        assert_eq!(coverage, [Coverage::Exhaustive], "seed {seed}");
        let (told_apart, coverage, few) =
            found(Limits { pieces: 0, commands: 0, visits: Limits::VISITS_MAX, ..Limits::default() });
        assert_eq!((told_apart, coverage), (all, vec![Coverage::Exhaustive]), "seed {seed}");
        assert!(few < count, "seed {seed}: {few} of {count}");
    }
}

#[test]
fn where_no_check_tells_what_it_read_nothing_is_left_out() {
    let recording = overlapping(3, 7);
    let states = |limits: Limits| {
        let mut states = HashSet::new();
        let explorer = Explorer { limits, ..explorer(&recording) };
        let windows = explorer.explore(&mut |state| {
            states.insert(state.hash());
            ControlFlow::Continue(())
        });
        (states, windows[0].coverage)
    };
    let visits = Limits::VISITS_MAX;
    let all = states(Limits { pieces: 24, ..Limits::default() });
    assert_eq!(states(Limits { pieces: 0, commands: 0, visits, ..Limits::default() }), all);
    let few = states(Limits { pieces: 0, commands: 0, visits: 10, ..Limits::default() });
    assert_eq!(few.1, Coverage::Sampled);
}

#[test]
fn a_window_with_more_blocks_than_can_be_enumerated_is_explored_whole_if_the_check_reads_few() {
    let recording = writes(40, 8);
    let limits = Limits { visits: Limits::VISITS_MAX, ..Limits::default() };
    let mut results = HashSet::new();
    let windows = Explorer { limits, ..explorer(&recording) }.explore(&mut |state| {
        // Reads blocks 3 and 200, and block 9 only if block 3 survived.
        let three = state.content(3).0;
        let read = if three == 0 { vec![3, 200] } else { vec![3, 200, 9] };
        results.insert(read.iter().map(|lba| state.content(*lba).0).collect::<Vec<u32>>());
        if state.wants_reads() {
            state.set_reads(&read);
        }
        ControlFlow::Continue(())
    });
    assert_eq!((windows[0].coverage, windows[0].pieces, results.len()), (Coverage::Exhaustive, 320, 6));
}
