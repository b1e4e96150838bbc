//! Tests that damage beyond the rules happens when it is requested, and is counted.

use plumb_block::{Bytes, Lba, LbaRange, Op, Pattern, Stamp};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

use crate::command::CommandId;
use crate::contents::{Backing, Contents, CutReport, Damage, Data, FlushKept, Promise, Shape};
use plumb_crash::{Strategy, Survival};

const ALL_SURVIVE: Damage =
    Damage { survival: Survival::By(Strategy::AllSurvive), unreadable: 0.0, ..Damage::LEGAL };

/// Writes two versions of eight blocks at 16, the second at risk, and cuts the power.
fn cut(block: u64, promise: Promise, damage: Damage, seed: u64) -> (Contents, CutReport) {
    let shape = Shape { logical_block: Bytes(block), blocks: 64 };
    let mut contents = Contents::new(shape, promise, Backing::Memory).unwrap();
    for (id, fua) in [(1, true), (2, false)] {
        let pattern = Pattern { seed: 1, lba: Lba(16), generation: id };
        contents.submit(CommandId(id), Op::Write { fua }, LbaRange::new(Lba(16), 8), Data::Pattern(pattern));
        contents.complete(CommandId(id)).unwrap();
    }
    contents.submit(CommandId(3), Op::Flush, LbaRange::EMPTY, Data::None);
    if promise.flush != FlushKept::Always {
        contents.complete(CommandId(3)).unwrap();
    }
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let report = contents.cut(&mut chance, &damage);
    (contents, report)
}

/// Returns the generation of each block: 0 for zeroes, `None` if torn or unreadable.
fn generations(contents: &Contents, block: usize) -> Vec<Option<u64>> {
    let one = |lba| {
        let mut bytes = vec![0; block];
        contents.read(LbaRange::new(Lba(lba), 1), &mut bytes).ok()?;
        let Some(stamp) = Stamp::read(&bytes) else {
            return bytes.iter().all(|byte| *byte == 0).then_some(0);
        };
        stamp.is_whole(&bytes).then_some(stamp.generation)
    };
    (0..64).map(one).collect()
}

#[test]
fn shorn_writes_lack_the_end_of_each_page() {
    let promise = Promise::VOLATILE;
    let (contents, report) = cut(512, promise, Damage { shorn: 1.0, ..ALL_SURVIVE }, 1);
    assert_eq!(report.shorn, 1);
    let found = generations(&contents, 512);
    let new = found[16..24].iter().filter(|one| **one == Some(2)).count();
    assert!(new == 3 || new == 7, "{found:?}");
    assert_eq!(report.lost_blocks, 8 - new as u64);
    let (contents, report) = cut(4096, Promise::VOLATILE, Damage { shorn: 1.0, ..ALL_SURVIVE }, 1);
    assert_eq!(report.torn_inside_blocks, 8);
    assert_eq!(generations(&contents, 4096)[16..24], [None; 8], "shorn inside the block");
}

#[test]
fn shorn_is_meant_of_each_4_kib_of_a_larger_block() {
    let damage = Damage { shorn: 1.0, ..ALL_SURVIVE };
    for seed in 0..8 {
        let (contents, report) = cut(16_384, Promise::VOLATILE, damage, seed);
        assert_eq!(report.torn_inside_blocks, 8);
        let mut found = vec![0; 16_384];
        contents.read(LbaRange::new(Lba(20), 1), &mut found).unwrap();
        let version = |generation| {
            let mut bytes = vec![0; 16_384];
            Pattern { seed: 1, lba: Lba(20), generation }.fill(16_384, &mut bytes);
            bytes
        };
        let (old, new) = (version(1), version(2));
        let eighth = |number: usize| number * 512..(number + 1) * 512;
        let landed: Vec<bool> = (0..32).map(|number| found[eighth(number)] == new[eighth(number)]).collect();
        let is_old = |number: usize| found[eighth(number)] == old[eighth(number)];
        assert!((0..32).all(|number| landed[number] != is_old(number)), "seed {seed}");
        let count = landed[..8].iter().filter(|landed| **landed).count();
        assert!(count == 3 || count == 7, "seed {seed}: {landed:?}");
        assert!((0..32).all(|number| landed[number] == (number % 8 < count)), "seed {seed}: {landed:?}");
    }
}

#[test]
fn a_write_in_flight_may_spoil_what_was_durable_and_breaks_no_promise() {
    let shape = Shape { logical_block: Bytes(512), blocks: 64 };
    let (mut torn, mut answered) = (0, 0);
    for seed in 0..40 {
        let mut contents = Contents::new(shape, Promise::DURABLE, Backing::Memory).unwrap();
        for id in 1..=2 {
            let pattern = Data::Pattern(Pattern { seed: 1, lba: Lba(16), generation: id });
            contents.submit(CommandId(id), Op::Write { fua: false }, LbaRange::new(Lba(16), 8), pattern);
            if id == 1 {
                contents.complete(CommandId(id)).unwrap();
            }
        }
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        let damage = Damage { torn: 1.0, shorn: 0.5, ..Damage::LEGAL };
        let report = contents.cut(&mut chance, &damage);
        assert_eq!((report.lost_blocks, report.promised_lost_blocks), (0, 0), "seed {seed}: {report:?}");
        torn += report.torn_inside_blocks;
        answered += report.at_risk;
    }
    assert!(torn >= 5 && answered == 0, "{torn}, {answered}");
}

#[test]
fn a_block_is_torn_inside() {
    let (contents, report) = cut(512, Promise::VOLATILE, Damage { torn: 1.0, ..ALL_SURVIVE }, 2);
    assert_eq!(report.torn_inside_blocks, 1);
    assert_eq!(generations(&contents, 512).iter().filter(|one| one.is_none()).count(), 1);
}

#[test]
fn a_misdirected_write_leaves_its_place_and_spoils_another() {
    let promise = Promise::VOLATILE;
    for seed in 0..20 {
        let (contents, report) = cut(512, promise, Damage { misdirected: 1.0, ..ALL_SURVIVE }, seed);
        assert_eq!(report.misdirected, 1);
        let found = generations(&contents, 512);
        assert_eq!(found.iter().filter(|one| **one == Some(2)).count(), 8, "seed {seed}: {found:?}");
    }
}

#[test]
fn what_a_misdirected_write_goes_over_is_lost_and_counted() {
    let shape = Shape { logical_block: Bytes(512), blocks: 64 };
    let damage = Damage { misdirected: 1.0, ..ALL_SURVIVE };
    for (seed, written) in (0..20).flat_map(|seed| [(seed, 64), (seed, 24)]) {
        let promise = Promise::VOLATILE;
        let mut contents = Contents::new(shape, promise, Backing::Memory).unwrap();
        for (id, first, nlb) in [(1, 0, written), (2, 16, 8)] {
            let pattern = Data::Pattern(Pattern { seed: 1, lba: Lba(first), generation: id });
            let range = LbaRange::new(Lba(first), nlb);
            contents.submit(CommandId(id), Op::Write { fua: id == 1 }, range, pattern);
            contents.complete(CommandId(id)).unwrap();
        }
        let before = generations(&contents, 512);
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        let report = contents.cut(&mut chance, &damage);
        let strays: Vec<bool> = (0..written).map(|lba| stamp(&contents, lba).lba != Lba(lba)).collect();
        let count = strays.iter().filter(|stray| **stray).count();
        assert_eq!(report.misdirected_over_blocks, count as u64, "seed {seed}");
        let after = generations(&contents, 512);
        let lost = (0..written as usize).filter(|lba| before[*lba] != after[*lba] || strays[*lba]);
        assert_eq!(report.lost_blocks, lost.count() as u64, "seed {seed}, {written} written: {report:?}");
        assert_eq!(report.promised_lost_blocks, 0, "it does not lie: {report:?}");
    }
}

fn stamp(contents: &Contents, lba: u64) -> Stamp {
    let mut bytes = [0; 512];
    contents.read(LbaRange::new(Lba(lba), 1), &mut bytes).unwrap();
    Stamp::read(&bytes).unwrap()
}

#[test]
fn a_lie_about_flushes_or_fua_is_in_the_account_and_so_is_the_version_under_the_visible_one() {
    let lost = Damage { survival: Survival::By(Strategy::AllLost), ..ALL_SURVIVE };
    let honest = Promise::VOLATILE;
    let ignored = Promise { flush: FlushKept::Never, ..honest };
    let (_, report) = cut(512, ignored, lost, 4);
    assert_eq!((report.lost_blocks, report.promised_lost_blocks), (8, 8), "a flush that is ignored");
    let plain = Promise { fua: crate::contents::FuaKept::Ignored, ..honest };
    let (contents, report) = cut(512, plain, lost, 4);
    assert_eq!(generations(&contents, 512)[16..24], [Some(0); 8]);
    // The version on top was not said to be durable, the one below was.
    assert_eq!((report.lost_blocks, report.promised_lost_blocks), (8, 8), "FUA that is ignored");
}

#[test]
fn survivors_land_in_reverse() {
    let lie =
        Promise { flush: FlushKept::Never, fua: crate::contents::FuaKept::Ignored, ..Promise::VOLATILE };
    let (contents, report) = cut(512, lie, Damage { unserialized: 1.0, ..ALL_SURVIVE }, 3);
    assert!(report.unserialized);
    assert_eq!(generations(&contents, 512)[16..24], [Some(1); 8]);
    assert_eq!((report.lost_blocks, report.promised_lost_blocks), (8, 8));
}

#[test]
fn a_liar_loses_what_it_said_was_durable() {
    let lie = Promise { flush: FlushKept::AllButLast(1), ..Promise::VOLATILE };
    let lost = Damage { survival: Survival::By(Strategy::AllLost), ..ALL_SURVIVE };
    let (contents, report) = cut(512, lie, lost, 4);
    assert_eq!(generations(&contents, 512)[16..24], [Some(1); 8]);
    assert_eq!(report.promised_lost_blocks, 8);
}

#[test]
fn latent_errors_strike_what_was_answered_and_a_write_cures_them() {
    let damage = Damage { latent: 1.0, ..ALL_SURVIVE };
    let (mut contents, report) = cut(512, Promise::VOLATILE, damage, 5);
    assert_eq!(report.unreadable_blocks, 8);
    assert!(contents.probe(LbaRange::new(Lba(20), 1)).is_err());
    let pattern = Pattern { seed: 1, lba: Lba(20), generation: 9 };
    contents.submit(
        CommandId(9),
        Op::Write { fua: false },
        LbaRange::new(Lba(20), 1),
        Data::Pattern(pattern),
    );
    contents.complete(CommandId(9)).unwrap();
    contents.probe(LbaRange::new(Lba(20), 1)).unwrap();
}
