//! Every flush, every write and every wait of the cache is needed: without any single one of them some history fails.
//!
//! A purpose is left out by answering its commands as done without carrying them out; a wait by
//! [`Waits::without`](plumb_cache::Waits::without). Left out of the list, since no history needs them:
//!
//! - `ReadRepair`: it matters once the other leg is lost, and has a test of its own below.
//! - `EpochDurable`: what is acknowledged too early is on the leg that is left, and the next superblock has the epoch; a leg that comes back
//!   before that is read like the others. `EpochFlush`, which it waits for, is shown.
//! - `ResilverFlush`: the flush after the superblocks that have the leg count makes durable what was copied, too. It matters if the other
//!   leg and the power go between the two.
//! - `GrownDurable`, `Grow`, `GrowFlush`: the cut has to come after a record in the room that is new, and before any superblock after the
//!   growing is durable; both are in flight for a moment. `docs/ON_DISK_FORMAT.md` says why they are there.
//! - `Stop`, `StopFlush`: they make known where the log ends; that a test of the crate itself shows.

use plumb_cache::{Purpose, Wait};

use crate::history::{Fault, History, Step};
use crate::setup::{Faults, LeftOut, Legs, Setup};
use crate::world::World;

/// How many histories are tried before nobody seems to notice.
const TRIED_MAX: u64 = 6_000;

/// What is left out, and the first history that showed it; another one may, once histories are made otherwise.
const PURPOSES: [(Purpose, u64); 19] = [
    (Purpose::BackingFlushBeforeDestage, 64273),
    (Purpose::ResilverRead, 3516),
    (Purpose::Resilver, 1144),
    (Purpose::EpochOnSurvivors, 71),
    (Purpose::Equalise, 2548),
    (Purpose::EqualiseFlush, 1859),
    (Purpose::Session, 549),
    (Purpose::SessionFlush, 107),
    (Purpose::LogRecord, 2),
    (Purpose::LogFlush, 20),
    (Purpose::BypassWrite, 4),
    (Purpose::BypassFlush, 35),
    (Purpose::LogFlushBeforeDestage, 36),
    (Purpose::BackingDestage, 1),
    (Purpose::BackingFlushBeforeTail, 4),
    (Purpose::LogFlushBeforeTail, 21),
    (Purpose::TailAdvance, 19),
    (Purpose::TailFlush, 1168),
    (Purpose::EpochFlush, 549),
];

/// The same of waits.
const WAITS: [(Wait, u64); 10] = [
    (Wait::LegCopied, 213),
    (Wait::LowerSequences, 124),
    (Wait::SuccessorsDurable, 141),
    (Wait::DurableBeforeDestage, 1104),
    (Wait::BackingDurable, 184),
    (Wait::TailDurable, 339),
    (Wait::FlushCovers, 125),
    (Wait::LegsEqual, 402),
    (Wait::LogBeforeBypass, 41),
    (Wait::SegmentUnread, 7502),
];

/// What this history shows if this is left out.
fn shown_by(left_out: LeftOut, seed: u64) -> Option<String> {
    let mut history = History::of(seed);
    history.left_out = left_out;
    let run = std::panic::AssertUnwindSafe(|| history.run().map(drop));
    match std::panic::catch_unwind(run) {
        Ok(Ok(())) => None,
        Ok(Err(why)) => Some(why),
        Err(_) => Some("the cache panicked".to_owned()),
    }
}

fn assert_shown(all: impl IntoIterator<Item = (LeftOut, u64)>) {
    let mut unnoticed = Vec::new();
    for (left_out, known) in all {
        let mut seeds = std::iter::once(known).chain(1..TRIED_MAX);
        match seeds.find_map(|seed| shown_by(left_out, seed).map(|why| (seed, why))) {
            Some((seed, why)) => {
                let why: String = why.chars().take(160).collect();
                eprintln!("{left_out:?}: seed {seed}: {why}");
            }
            None => unnoticed.push(left_out),
        }
    }
    assert!(
        unnoticed.is_empty(),
        "nobody notices within {TRIED_MAX} histories that {unnoticed:?} is left out"
    );
}

/// A damaged block of one leg is read from the other, which is lost then.
fn failed_reads(left_out: LeftOut) -> Result<u64, String> {
    let setup = Setup { layout: Legs::Mirror, faults: Faults::Any, ..Setup::SMALL };
    let mut world = World::new(&setup, left_out)?;
    let (read, settle) = (Step::Read { lba: 0, nlb: 1 }, Step::Settle { roll: 1 });
    world.step(Step::Write { lba: 0, nlb: 1, fua: true })?;
    world.step(settle)?;
    // The first payload of the first segment.
    world.step(Step::Break { fault: Fault::Flip { leg: 0, byte: 5 * 4096 + 100, bits: 1 } })?;
    for _ in 0..4 {
        world.step(read)?;
        world.step(Step::Pass { millis: 1, roll: 1 })?;
    }
    world.step(Step::Break { fault: Fault::Lost { leg: 1 } })?;
    world.step(read)?;
    world.step(settle)?;
    Ok(world.failed_reads)
}

#[test]
fn a_repair_is_needed_once_the_other_leg_is_lost() {
    assert_eq!(failed_reads(LeftOut::Nothing), Ok(0));
    assert_eq!(failed_reads(LeftOut::Purpose(Purpose::ReadRepair)), Ok(1));
}

#[test]
fn every_purpose_is_needed() {
    assert_shown(PURPOSES.map(|(purpose, seed)| (LeftOut::Purpose(purpose), seed)));
}

#[test]
fn every_wait_is_needed() {
    assert_shown(WAITS.map(|(wait, seed)| (LeftOut::Wait(wait), seed)));
}
