//! What is beyond the rules happens when it is asked for, and is counted.

use plumb_block::{Bytes, Lba, LbaRange, Op, Pattern, Stamp};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

use crate::command::CommandId;
use crate::contents::{Backing, Contents, CutReport, Damage, Data, FlushKept, Promise, Shape};
use crate::rules::{Strategy, Survival};

const ALL_SURVIVE: Damage =
    Damage { survival: Survival::By(Strategy::AllSurvive), unreadable: 0.0, ..Damage::LEGAL };

/// Two versions of eight blocks at 16, the second at risk, and then a cut.
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

/// The generation of each block: 0 for zeroes, `None` for what is torn or unreadable.
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
    let promise = Promise::volatile(Bytes(512));
    let (contents, report) = cut(512, promise, Damage { shorn: 1.0, ..ALL_SURVIVE }, 1);
    assert_eq!(report.shorn, 1);
    let found = generations(&contents, 512);
    let new = found[16..24].iter().filter(|one| **one == Some(2)).count();
    assert!(new == 3 || new == 7, "{found:?}");
    assert_eq!(report.lost_blocks, 8 - new as u64);
    let (contents, report) =
        cut(4096, Promise::volatile(Bytes(4096)), Damage { shorn: 1.0, ..ALL_SURVIVE }, 1);
    assert_eq!(report.torn_inside_blocks, 8);
    assert_eq!(generations(&contents, 4096)[16..24], [None; 8], "shorn inside the block");
}

#[test]
fn a_block_is_torn_inside() {
    let (contents, report) = cut(512, Promise::volatile(Bytes(512)), Damage { torn: 1.0, ..ALL_SURVIVE }, 2);
    assert_eq!(report.torn_inside_blocks, 1);
    assert_eq!(generations(&contents, 512).iter().filter(|one| one.is_none()).count(), 1);
}

#[test]
fn a_misdirected_write_leaves_its_place_and_spoils_another() {
    let promise = Promise::volatile(Bytes(512));
    for seed in 0..20 {
        let (contents, report) = cut(512, promise, Damage { misdirected: 1.0, ..ALL_SURVIVE }, seed);
        assert_eq!(report.misdirected, 1);
        let found = generations(&contents, 512);
        assert_eq!(found.iter().filter(|one| **one == Some(2)).count(), 8, "seed {seed}: {found:?}");
    }
}

#[test]
fn survivors_land_in_reverse() {
    let lie = Promise {
        flush: FlushKept::Never,
        fua: crate::contents::FuaKept::Ignored,
        ..Promise::volatile(Bytes(512))
    };
    let (contents, report) = cut(512, lie, Damage { unserialized: 1.0, ..ALL_SURVIVE }, 3);
    assert!(report.unserialized);
    assert_eq!(generations(&contents, 512)[16..24], [Some(1); 8]);
    assert_eq!((report.lost_blocks, report.promised_lost_blocks), (8, 8));
}

#[test]
fn a_liar_loses_what_it_said_was_durable() {
    let lie = Promise { flush: FlushKept::AllButLast(1), ..Promise::volatile(Bytes(512)) };
    let lost = Damage { survival: Survival::By(Strategy::AllLost), ..ALL_SURVIVE };
    let (contents, report) = cut(512, lie, lost, 4);
    assert_eq!(generations(&contents, 512)[16..24], [Some(1); 8]);
    assert_eq!(report.promised_lost_blocks, 8);
}

#[test]
fn latent_errors_strike_what_was_answered_and_a_write_cures_them() {
    let damage = Damage { latent: 1.0, ..ALL_SURVIVE };
    let (mut contents, report) = cut(512, Promise::volatile(Bytes(512)), damage, 5);
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
