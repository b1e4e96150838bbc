//! Tests that every kind of wrong block is recognised, and that a correct block never counts as wrong.

use plumb_block::Pattern;
use plumb_workload::{ByteRange, Content, Workload};

use super::*;

const BLOCK: usize = 512;

fn ledger() -> Ledger {
    let range = ByteRange { offset: Bytes(0), length: Bytes::mib(1) };
    let workload = Workload { seed: 9, content: Content::Pattern, ..Workload::over(range, Bytes::kib(4)) };
    let maker = Maker::new(&workload, Bytes(512), Bytes(4096)).unwrap();
    Ledger::new(LbaRange::new(Lba(1000), 80), 8, 9, Bytes(512), maker)
}

fn bytes(lba: u64, generation: u64) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK];
    Pattern { seed: 9, lba: Lba(lba), generation }.fill(BLOCK, &mut bytes);
    bytes
}

fn kind_of(ledger: &mut Ledger, lba: u64, block: &[u8]) -> Option<WrongKind> {
    let before = ledger.verified.examples.len();
    ledger.check(LbaRange::new(Lba(lba), 1), block);
    ledger.verified.examples.get(before).map(|wrong| wrong.kind)
}

#[test]
fn each_way_of_being_wrong_has_its_name() {
    let mut ledger = ledger();
    ledger.changed(LbaRange::new(Lba(1008), 8), Some(3), Outcome::Done);
    ledger.changed(LbaRange::new(Lba(1008), 8), Some(7), Outcome::Done);
    assert_eq!(kind_of(&mut ledger, 1010, &bytes(1010, 7)), None);
    assert_eq!(kind_of(&mut ledger, 1010, &bytes(1010, 3)), Some(WrongKind::Stale));
    assert_eq!(kind_of(&mut ledger, 1010, &bytes(1011, 7)), Some(WrongKind::Misdirected));
    assert_eq!(kind_of(&mut ledger, 1010, &[0; BLOCK]), Some(WrongKind::Lost));
    let mut torn = bytes(1010, 7);
    torn[300..].copy_from_slice(&bytes(1010, 3)[300..]);
    assert_eq!(kind_of(&mut ledger, 1010, &torn), Some(WrongKind::Torn));
    let verified = ledger.verified();
    assert_eq!((verified.blocks, verified.wrong()), (5, 4));
    assert_eq!((verified.lost, verified.torn, verified.misdirected, verified.stale), (1, 1, 1, 1));
}

#[test]
fn memory_follows_what_is_written_and_not_the_size_of_the_device() {
    let range = LbaRange::new(Lba(0), 1 << 53);
    let mut ledger = Ledger { range, grain: 1, ..ledger() };
    let written =
        [(0, 2), (15, 3), (1 << 40, 1), ((1 << 53) - 4, 4)].map(|(lba, nlb)| LbaRange::new(Lba(lba), nlb));
    for (version, range) in (1..).zip(written) {
        ledger.changed(range, Some(version), Outcome::Done);
    }
    assert_eq!(ledger.to_read(64), written);
    assert_eq!(kind_of(&mut ledger, 17, &bytes(17, 2)), None);
    assert_eq!(kind_of(&mut ledger, (1 << 53) - 1, &bytes(0, 1)), Some(WrongKind::Misdirected));
}

#[test]
fn what_is_not_known_is_held_against_its_own_stamp_alone() {
    let mut ledger = ledger();
    assert_eq!(kind_of(&mut ledger, 1000, &[7; BLOCK]), None, "nobody said what is there");
    assert_eq!(kind_of(&mut ledger, 1000, &bytes(1000, 0)), None);
    assert_eq!(kind_of(&mut ledger, 1000, &bytes(1001, 0)), Some(WrongKind::Misdirected));
    let mut torn = bytes(1000, 0);
    torn[511] ^= 1;
    assert_eq!(kind_of(&mut ledger, 1000, &torn), None, "an earlier run may have cut it, in other blocks");
    for (version, outcome) in [(Some(5), Outcome::Unknown), (None, Outcome::Done)] {
        ledger.changed(LbaRange::new(Lba(1016), 8), Some(2), Outcome::Done);
        ledger.changed(LbaRange::new(Lba(1016), 8), version, outcome);
        assert_eq!(kind_of(&mut ledger, 1016, &bytes(1016, 2)), None, "the old or the new will do");
        assert_eq!(kind_of(&mut ledger, 1016, &[0; BLOCK]), None);
    }
}

#[test]
fn what_was_written_is_read_back_in_runs() {
    let mut ledger = ledger();
    for lba in [1000, 1008, 1016, 1064, 1072] {
        ledger.changed(LbaRange::new(Lba(lba), 8), Some(1), Outcome::Done);
    }
    ledger.changed(LbaRange::new(Lba(1008), 8), None, Outcome::Done);
    let runs: Vec<LbaRange> = ledger.written(8).collect();
    assert_eq!(runs, [1000, 1016, 1064, 1072].map(|lba| LbaRange::new(Lba(lba), 8)));
    let runs: Vec<LbaRange> = ledger.written(64).collect();
    let expected = [(1000, 8), (1016, 8), (1064, 16)].map(|(lba, nlb)| LbaRange::new(Lba(lba), nlb));
    assert_eq!(runs, expected);
}

#[test]
fn a_range_is_cut_even_where_a_grain_is_longer_than_what_is_read_at_once() {
    let mut ledger = ledger();
    ledger.changed(LbaRange::new(Lba(1000), 16), Some(1), Outcome::Done);
    let runs: Vec<(u64, u64)> = ledger.written(3).map(|run| (run.lba.0, run.nlb)).collect();
    assert_eq!(runs, [(1000, 3), (1003, 3), (1006, 3), (1009, 3), (1012, 3), (1015, 1)]);
}

#[test]
fn after_a_loss_of_power_only_what_was_durable_is_demanded() {
    let mut ledger = ledger();
    let grain = |lba| LbaRange::new(Lba(lba), 8);
    let mut wrote = |lba, version, fua| {
        ledger.changed_with(grain(lba), Some(version), fua, Outcome::Done);
    };
    wrote(1000, 1, false);
    wrote(1008, 2, true);
    wrote(1024, 3, false);
    ledger.flushed();
    let mut wrote = |lba, version, fua| {
        ledger.changed_with(grain(lba), Some(version), fua, Outcome::Done);
    };
    wrote(1000, 4, false);
    wrote(1000, 5, false);
    wrote(1008, 6, false);
    wrote(1016, 7, false);
    assert_eq!(kind_of(&mut ledger, 1000, &bytes(1000, 4)), Some(WrongKind::Stale), "nothing was lost yet");
    ledger.lose_power();
    for version in [1, 4, 5] {
        assert_eq!(kind_of(&mut ledger, 1000, &bytes(1000, version)), None, "{version}");
    }
    assert_eq!(kind_of(&mut ledger, 1000, &[0; BLOCK]), Some(WrongKind::Lost), "version 1 was durable");
    assert_eq!(kind_of(&mut ledger, 1008, &bytes(1008, 2)), None, "FUA");
    assert_eq!(kind_of(&mut ledger, 1008, &bytes(1008, 1)), Some(WrongKind::Stale));
    assert_eq!(kind_of(&mut ledger, 1016, &[0; BLOCK]), None, "none of it was durable");
    assert_eq!(kind_of(&mut ledger, 1016, &bytes(1017, 7)), Some(WrongKind::Misdirected));
    assert_eq!(kind_of(&mut ledger, 1024, &bytes(1024, 2)), Some(WrongKind::Stale), "a flush covers it");
    let found = ledger.verified();
    assert_eq!((found.older, found.at_risk), (4, 1));
}
