//! Tests of single cases.

use plumb_block::{Bytes, Extent, ExtentState, Lba, LbaRange, Op, Pattern};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

use crate::command::CommandId;
use crate::contents::{Backing, Contents, ContentsError, Damage, Data, Promise, Shape};

const TERA: u64 = 1 << 40;

fn drive(block: u64, size: u64) -> Contents {
    let shape = Shape { logical_block: Bytes(block), blocks: size / block };
    Contents::new(shape, Promise::VOLATILE, Backing::Memory).unwrap()
}

fn range(lba: u64, nlb: u64) -> LbaRange {
    LbaRange::new(Lba(lba), nlb)
}

fn pattern(lba: u64, generation: u64) -> Pattern {
    Pattern { seed: 1, lba: Lba(lba), generation }
}

/// Submits and completes a command.
fn done(contents: &mut Contents, id: u64, op: Op, range: LbaRange, data: Data<'_>) {
    contents.submit(CommandId(id), op, range, data);
    contents.complete(CommandId(id)).unwrap();
}

const WRITE: Op = Op::Write { fua: false };

#[test]
fn a_discard_of_a_tebibyte_costs_what_was_written() {
    let mut contents = drive(512, TERA);
    let all = range(0, TERA / 512);
    for index in 0..1000 {
        let lba = index * 2_000_000;
        done(&mut contents, index, WRITE, range(lba, 8), Data::Pattern(pattern(lba, 1)));
    }
    done(&mut contents, 2000, Op::Flush, LbaRange::EMPTY, Data::None);
    done(&mut contents, 2001, Op::Discard, all, Data::None);
    let hole = [Extent { range: all, state: ExtentState::Hole }];
    assert_eq!(contents.extents(all), hole, "the discard is not visible");
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(1);
    let before = contents.extents(range(0, 16));
    assert_eq!(before[0].state, ExtentState::Hole);
    done(&mut contents, 2002, WRITE, range(100, 3), Data::Pattern(pattern(100, 2)));
    done(&mut contents, 2003, Op::Flush, LbaRange::EMPTY, Data::None);
    contents.cut(&mut chance, &Damage::LEGAL);
    let written: Vec<_> =
        contents.extents(all).into_iter().filter(|one| one.state == ExtentState::Written).collect();
    assert_eq!(written, [Extent { range: range(100, 3), state: ExtentState::Written }]);
}

#[test]
fn zeroes_that_keep_their_space_over_a_tebibyte_are_unwritten() {
    let mut contents = drive(4096, TERA);
    let all = range(0, TERA / 4096);
    let zeroes = Op::WriteZeroes { fua: false, no_hole: true, fast_only: false };
    done(&mut contents, 1, zeroes, all, Data::None);
    assert_eq!(contents.extents(all), [Extent { range: all, state: ExtentState::Unwritten }]);
    done(&mut contents, 2, Op::Flush, LbaRange::EMPTY, Data::None);
    done(&mut contents, 3, Op::Discard, range(1000, 100_000), Data::None);
    done(&mut contents, 4, Op::Flush, LbaRange::EMPTY, Data::None);
    let states: Vec<_> = contents.extents(all).iter().map(|one| (one.range.lba.0, one.state)).collect();
    let expected =
        [(0, ExtentState::Unwritten), (1000, ExtentState::Hole), (101_000, ExtentState::Unwritten)];
    assert_eq!(states, expected);
    assert_eq!(contents.window.len(), 0);
}

#[test]
fn a_pattern_for_another_place_or_of_a_large_generation_is_read_as_written() {
    let mut contents = drive(4096, 1 << 20);
    let patterns = [pattern(77, 1), pattern(3, u64::MAX)];
    for (id, wanted) in patterns.into_iter().enumerate() {
        done(&mut contents, id as u64 * 2, WRITE, range(3, 2), Data::Pattern(wanted));
        done(&mut contents, id as u64 * 2 + 1, Op::Flush, LbaRange::EMPTY, Data::None);
        let (mut found, mut expected) = (vec![0; 8192], vec![0; 8192]);
        contents.read(range(3, 2), &mut found).unwrap();
        wanted.fill(4096, &mut expected);
        assert_eq!(found, expected, "{wanted:?}");
    }
}

#[test]
fn what_is_destaged_is_not_remembered() {
    let mut contents = drive(4096, TERA);
    for id in 0..50_000 {
        let lba = id % 64;
        done(&mut contents, id, WRITE, range(lba, 1), Data::Pattern(pattern(lba, id)));
        if id >= 32 {
            contents.persist(CommandId(id - 32));
        }
        assert!(contents.window.len() <= 33, "{} are remembered after {id}", contents.window.len());
    }
    assert_eq!(contents.at_risk(), Bytes(32 * 4096));
}

#[test]
fn what_cannot_be_a_drive_is_refused() {
    let new = |block, blocks| {
        let promise = Promise::VOLATILE;
        Contents::new(Shape { logical_block: Bytes(block), blocks }, promise, Backing::Memory).err()
    };
    assert!(matches!(new(520, 8), Some(ContentsError::LogicalBlock { .. })));
    assert!(matches!(new(512, 0), Some(ContentsError::Size { .. })));
    assert!(matches!(new(4096, u64::MAX), Some(ContentsError::Size { .. })));
    assert_eq!(new(65536, 3), None);
}

#[test]
fn commands_outside_the_drive_or_with_the_wrong_length_do_nothing() {
    let mut contents = drive(512, 4096);
    contents.submit(CommandId(1), WRITE, range(7, 2), Data::Pattern(pattern(7, 1)));
    contents.submit(CommandId(2), WRITE, range(u64::MAX, 2), Data::Pattern(pattern(7, 1)));
    contents.submit(CommandId(3), WRITE, range(0, 2), Data::Bytes(&[1; 512]));
    contents.submit(CommandId(4), Op::Discard, range(0, 0), Data::None);
    (1..=5).for_each(|id| contents.complete(CommandId(id)).unwrap());
    contents.persist(CommandId(9));
    contents.fail(CommandId(9));
    assert_eq!((contents.window.len(), contents.at_risk()), (0, Bytes(0)));
}

#[test]
fn a_null_drive_keeps_nothing() {
    let shape = Shape { logical_block: Bytes(512), blocks: 1 << 20 };
    let mut contents = Contents::new(shape, Promise::VOLATILE, Backing::Nothing).unwrap();
    done(&mut contents, 1, WRITE, range(0, 8), Data::Bytes(&[1; 4096]));
    let mut bytes = [1; 4096];
    contents.read(range(0, 8), &mut bytes).unwrap();
    assert_eq!(bytes, [0; 4096]);
    assert_eq!(contents.at_risk(), Bytes(0));
}

#[test]
fn the_same_seed_gives_the_same_cut() {
    let run = || {
        let mut contents = drive(512, 1 << 20).with_seed(3);
        for id in 0..500 {
            let lba = id * 37 % 1000;
            contents.submit(CommandId(id), WRITE, range(lba, 9), Data::Pattern(pattern(lba, id)));
            if id % 3 > 0 {
                contents.complete(CommandId(id)).unwrap();
            }
        }
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(5);
        let report =
            contents.cut(&mut chance, &Damage { torn: 0.1, shorn: 0.1, misdirected: 0.1, ..Damage::LEGAL });
        let mut seen = Vec::new();
        for lba in 0..2048 {
            let mut bytes = vec![0; 512];
            let read = contents.read(range(lba, 1), &mut bytes);
            seen.push((read, bytes));
        }
        (report, seen)
    };
    assert_eq!(run(), run());
}
