//! Tests that every flush, write and wait of the cache is needed: without any of them some history fails.
//!
//! A purpose is left out by answering its commands as done without executing them; a wait by
//! [`Waits::without`](plumb_cache::Waits::without). If few histories reach the moment at which a purpose or
//! wait matters, a separate test creates that moment (for marks in `marks`). The test of the flush before
//! destaging, which none of 120,000 histories needs, is beside the core (`cache/tests/faults.rs`).

use std::ops::ControlFlow;

use plumb_cache::{Purpose, State, Wait};
use plumb_crash::{Grain, Strategy, Survival};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

use crate::exhaustive::{every, judge};
use crate::history::{Ask, Fault, History, Step};
use crate::setup::{Faults, LeftOut, Legs, Setup};
use crate::world::World;

/// Number of histories that are tried before an omission counts as unnoticed.
const TRIED_MAX: u64 = 6_000;

/// Purposes that are left out, each with the first history that shows it, which changes with the generation
/// of histories.
const PURPOSES: [(Purpose, u64); 18] = [
    (Purpose::ResilverRead, 3516),
    (Purpose::Resilver, 1144),
    (Purpose::EpochOnSurvivors, 95),
    (Purpose::Equalise, 2548),
    (Purpose::EqualiseFlush, 1859),
    (Purpose::Session, 549),
    (Purpose::SessionFlush, 4162),
    (Purpose::LogRecord, 2),
    (Purpose::LogFlush, 20),
    (Purpose::BypassWrite, 6),
    (Purpose::BypassFlush, 35),
    (Purpose::LogFlushBeforeDestage, 36),
    (Purpose::BackingDestage, 1),
    (Purpose::BackingFlushBeforeTail, 4),
    (Purpose::LogFlushBeforeTail, 21),
    (Purpose::TailAdvance, 19),
    (Purpose::TailFlush, 1168),
    (Purpose::EpochFlush, 549),
];

/// Waits that are left out, each with the first history that shows it.
const WAITS: [(Wait, u64); 10] = [
    (Wait::LegCopied, 228),
    (Wait::LowerSequences, 124),
    (Wait::SuccessorsDurable, 141),
    (Wait::DurableBeforeDestage, 1104),
    (Wait::BackingDurable, 184),
    (Wait::TailDurable, 572),
    (Wait::FlushCovers, 125),
    (Wait::LegsEqual, 402),
    (Wait::LogBeforeBypass, 41),
    (Wait::SegmentUnread, 17201),
];

/// Returns the failure of this history with the omission `left_out`.
fn shown_by(left_out: LeftOut, seed: u64) -> Option<String> {
    let mut history = History::from_seed(seed);
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

/// Lets every action complete except those of these purposes.
pub(crate) fn hold(world: &mut World, held: &[Purpose]) -> Result<(), String> {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(0);
    while let Some(next) = world.in_flight().iter().position(|(purpose, _)| !held.contains(purpose)) {
        world.complete(next, &mut chance)?;
    }
    Ok(())
}

/// Fails with the first outcome of a cut at this moment that is wrong for the user, except refusals with
/// these words.
fn shown_by_a_cut(world: &World, but_for: &str) -> Result<(), String> {
    let mut shown = String::new();
    let all = every(world, Grain::Blocks, &mut Vec::new(), &mut |left| match judge(world, left) {
        Err(why) if !why.contains(but_for) => {
            shown = why;
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    if all.is_break() { Err(shown) } else { Ok(()) }
}

/// Lets a full log grow, and flushes a record in the new room while the superblocks with the new shape are in
/// flight.
fn written_in_new_room(left_out: LeftOut) -> Result<(), String> {
    let setup =
        Setup { room: 1, record_max: 28 << 10, destage_start: 2.0, bypass_after: None, ..Setup::SMALL };
    let mut world = World::new(&setup, left_out)?;
    let segment = Step::Write { lba: 0, nlb: 7, fua: true };
    for _ in 0..setup.segments {
        world.step(segment)?;
        world.step(Step::Pass { millis: 100, roll: 0 })?;
    }
    world.step(Step::Ask { what: Ask::Grow { segments: 1 }, roll: 0 })?;
    world.step(segment)?;
    hold(&mut world, &[Purpose::EpochOnSurvivors, Purpose::BackingDestage])?;
    shown_by_a_cut(&world, "\0")
}

#[test]
fn a_larger_log_is_used_once_that_is_durable() {
    assert_eq!(written_in_new_room(LeftOut::Nothing), Ok(()));
    written_in_new_room(LeftOut::Wait(Wait::EpochDurable)).unwrap_err();
}

/// Loses the other leg and the power after the replacement of a leg, while the superblocks are written that
/// let the new one count.
fn other_leg_lost(left_out: LeftOut) -> Result<(), String> {
    let mut world = World::new(&Setup { layout: Legs::Mirror, ..Setup::SMALL }, left_out)?;
    world.step(Step::Write { lba: 0, nlb: 2, fua: true })?;
    world.step(Step::Settle { roll: 0 })?;
    world.step(Step::Ask { what: Ask::Replace { leg: 0, is_same: false }, roll: 0 })?;
    hold(&mut world, &[Purpose::ResilverFlush])?;
    hold(&mut world, &[Purpose::EpochFlush])?;
    world.members[1].is_dead = true;
    world.is_degraded = true;
    shown_by_a_cut(&world, "none of the remaining devices")
}

#[test]
fn a_leg_is_flushed_before_it_counts() {
    assert_eq!(other_leg_lost(LeftOut::Nothing), Ok(()));
    other_leg_lost(LeftOut::Purpose(Purpose::ResilverFlush)).unwrap_err();
}

/// Returns true if damage of the last record is distinguished from a crash, after the cache has stopped and
/// lost its power.
fn is_damage_known(left_out: LeftOut) -> Result<bool, String> {
    let mut world = World::new(&Setup::SMALL, left_out)?;
    world.step(Step::Write { lba: 0, nlb: 1, fua: true })?;
    world.step(Step::Settle { roll: 0 })?;
    world.step(Step::Ask { what: Ask::Stop, roll: 0 })?;
    let mut members = world.members.clone();
    let lost = Survival::By(Strategy::AllLost);
    members.iter_mut().for_each(|medium| medium.cut(&mut Xoshiro256PlusPlus::seed_from_u64(0), lost));
    let header = members[0].image().windows(8).position(|bytes| bytes == b"plumbrec").ok_or("no record")?;
    members[0].flip(header + 100, 1);
    let mut world = world.reborn(members)?;
    world.expect_failures();
    world.pump()?;
    hold(&mut world, &[])?;
    Ok(matches!(world.state(), State::Failed { because } if because.contains("were durable")))
}

/// Only a stop records the end of the log as durable without another record.
#[test]
fn the_superblocks_of_a_stop_tell_damage_of_the_last_record_from_a_crash() {
    assert_eq!(is_damage_known(LeftOut::Nothing), Ok(true));
    for purpose in [Purpose::Stop, Purpose::StopFlush] {
        assert_eq!(is_damage_known(LeftOut::Purpose(purpose)), Ok(false), "{purpose:?}");
    }
}

/// Reads a damaged block of one leg from the other, which is then lost.
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
