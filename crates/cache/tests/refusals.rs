//! Devices that must not be opened: legs that are missing, stale, swapped, foreign or shrunk, and a backing
//! of another size. Each is refused with a reason, and nothing is served.

use plumb_block::{Bytes, Lba, LbaRange};
use plumb_cache::{Cache, LegState, State};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

use crate::history::{Ask, Fault, Step};
use crate::medium::Medium;
use crate::setup::{Faults, LeftOut, Legs, Setup};
use crate::world::World;
use plumb_block::conformance::Content;
use plumb_block::conformance::oracle::Oracle;

const MIRROR: Setup = Setup { layout: Legs::Mirror, faults: Faults::Any, ..Setup::SMALL };

/// Returns the members after some writes that were flushed.
fn used(setup: &Setup) -> Result<Vec<Medium>, String> {
    let mut world = World::new(setup, LeftOut::Nothing)?;
    for lba in 0..4 {
        world.step(Step::Write { lba, nlb: 2, fua: true })?;
        world.step(Step::Settle { roll: lba })?;
    }
    Ok(world.members_after_kill())
}

/// Returns the reason why a cache over these members is refused.
fn refused(setup: &Setup, members: Vec<Medium>) -> Result<String, String> {
    let oracle = Oracle::new(setup.block as usize, setup.discard_zeroes, Content::Generation(0));
    let mut world = match World::over(setup, LeftOut::Nothing, members, oracle, false) {
        Ok(world) => world,
        Err(because) => return Ok(because),
    };
    world.expect_failures();
    world.pump()?;
    world.settle(&mut Xoshiro256PlusPlus::seed_from_u64(0))?;
    match world.state() {
        State::Failed { because } => Ok(because),
        state => Err(format!("not refused: {state:?}")),
    }
}

fn assert_refused(setup: &Setup, what: &str, change: impl FnOnce(&mut Vec<Medium>)) -> Result<(), String> {
    let mut members = used(setup)?;
    change(&mut members);
    let because = refused(setup, members).map_err(|why| format!("{what}: {why}"))?;
    eprintln!("{what}: {because}");
    assert!(because.len() > 30, "{what}: no sentence: {because}");
    Ok(())
}

#[test]
fn what_is_not_the_log_of_this_backing_is_refused() {
    let single = Setup { faults: Faults::Any, ..Setup::SMALL };
    assert_refused(&single, "no leg at all", |members| members[0].is_dead = true).unwrap();
    assert_refused(&single, "a blank leg", |members| {
        let info = members[0].info.clone();
        members[0] = Medium::new(info.clone(), &vec![0; info.size.0 as usize]);
    })
    .unwrap();
    assert_refused(&single, "a shrunk leg", |members| {
        let info = plumb_block::DeviceInfo { size: Bytes(64 << 10), ..members[0].info.clone() };
        let image = members[0].image()[..64 << 10].to_vec();
        members[0] = Medium::new(info, &image);
    })
    .unwrap();
    assert_refused(&single, "a shrunk backing", |members| {
        let info = plumb_block::DeviceInfo { size: Bytes(32 << 10), ..members[1].info.clone() };
        let image = members[1].image()[..32 << 10].to_vec();
        members[1] = Medium::new(info, &image);
    })
    .unwrap();
    assert_refused(&MIRROR, "one leg of two", |members| members[1].is_dead = true).unwrap();
    assert_refused(&MIRROR, "the same leg twice", |members| members[1] = members[0].clone()).unwrap();
    assert_refused(&MIRROR, "the leg of another cache", |members| {
        let other = Setup { segments: MIRROR.segments + 1, cache: 9, ..MIRROR };
        members[1] = used(&other).unwrap().swap_remove(1);
    })
    .unwrap();
}

/// A stale leg holds data that the others have overwritten since.
#[test]
fn a_stale_leg_alone_is_refused() {
    let mut world = World::new(&MIRROR, LeftOut::Nothing).unwrap();
    world.step(Step::Write { lba: 0, nlb: 1, fua: true }).unwrap();
    world.step(Step::Settle { roll: 0 }).unwrap();
    let mut stale = world.members_after_kill().swap_remove(1);
    world.step(Step::Break { fault: Fault::Lost { leg: 1 } }).unwrap();
    world.step(Step::Write { lba: 0, nlb: 1, fua: true }).unwrap();
    world.step(Step::Settle { roll: 0 }).unwrap();
    let mut members = world.members_after_kill();
    stale.is_dead = false;
    members[1] = stale;
    members[0].is_dead = true;
    let because = refused(&MIRROR, members).unwrap();
    eprintln!("a stale leg alone: {because}");
}

/// Returns the remaining leg after the other one was lost this number of times, and replaced in between.
fn went_on_alone(lost: usize, times: u64) -> Medium {
    let mut world = World::new(&MIRROR, LeftOut::Nothing).unwrap();
    for time in 0..times {
        if time > 0 {
            world.step(Step::Ask { what: Ask::Replace { leg: lost, is_same: false }, roll: time }).unwrap();
            world.step(Step::Pass { millis: 1, roll: time }).unwrap();
        }
        world.step(Step::Break { fault: Fault::Lost { leg: lost } }).unwrap();
        world.step(Step::Write { lba: 0, nlb: 1, fua: true }).unwrap();
        world.step(Step::Settle { roll: time }).unwrap();
    }
    let states = world.status().unwrap().legs;
    assert_eq!((states[lost], states[1 - lost]), (LegState::Lost, LegState::Live));
    world.members_after_kill().swap_remove(1 - lost)
}

/// Each leg may have data that the other lacks, whichever has the later epoch or session.
#[test]
fn legs_that_have_lost_each_other_are_refused() {
    for (of_first, of_second) in [(1, 1), (1, 3), (3, 1)] {
        let mut members = used(&MIRROR).unwrap();
        (members[0], members[1]) = (went_on_alone(1, of_first), went_on_alone(0, of_second));
        let because = refused(&MIRROR, members).unwrap();
        assert!(because.contains("written without each other"), "{of_first}, {of_second}: {because}");
    }
}

/// Returns the members after the cache was opened once more, and the slot of leg 1 that its superblock went
/// to.
fn opened(setup: &Setup, members: Vec<Medium>) -> Result<(Vec<Medium>, usize), String> {
    let slots = |medium: &Medium| [0, 1].map(|slot| medium.image()[slot * 4096..(slot + 1) * 4096].to_vec());
    let before = slots(&members[1]);
    let oracle = Oracle::new(setup.block as usize, setup.discard_zeroes, Content::Generation(0));
    let mut world = World::over(setup, LeftOut::Nothing, members, oracle, false)?;
    world.settle(&mut Xoshiro256PlusPlus::seed_from_u64(0))?;
    world.step(Step::Pass { millis: 1, roll: 0 })?;
    let after = world.members_after_kill();
    let changed = (0..2).find(|slot| slots(&after[1])[*slot] != before[*slot]);
    Ok((after, changed.ok_or("no superblock was written")?))
}

/// Tests two cuts, of which the first tears a version of the superblock on one leg only. The next version
/// must not go to the slot of the last intact one there, or a second cut would leave that leg without any.
#[test]
fn two_power_cuts_in_a_row_leave_every_leg_a_whole_superblock() {
    let tear = |members: &mut Vec<Medium>, slot: usize| {
        let block = members[1].info.logical_block.0;
        for range in Cache::superblocks_of(&members[1].info).into_iter().skip(slot).step_by(2) {
            members[1].flip((range.lba.0 * block) as usize + 200, 1);
        }
    };
    let (mut members, first) = opened(&MIRROR, used(&MIRROR).unwrap()).unwrap();
    tear(&mut members, first);
    let (mut members, second) = opened(&MIRROR, members).unwrap();
    tear(&mut members, second);
    opened(&MIRROR, members).unwrap();
}

/// Foreign data written to the start of a device destroys its first superblocks.
#[test]
fn a_log_without_its_first_superblocks_is_found_by_those_at_its_end() {
    for layout in [Legs::Single, Legs::Mirror, Legs::Stripe] {
        let setup = Setup { layout, room: 3, ..Setup::SMALL };
        let mut world = World::new(&setup, LeftOut::Nothing).unwrap();
        for lba in 0..4 {
            world.step(Step::Write { lba, nlb: 2, fua: true }).unwrap();
            world.step(Step::Settle { roll: lba }).unwrap();
        }
        let mut members = world.members_after_kill();
        for leg in &mut members[..setup.legs()] {
            leg.overwrite(LbaRange::new(Lba(0), 4), &[0; 4 * 4096]);
        }
        let mut again = world.reborn(members).unwrap();
        again.verify(&mut Xoshiro256PlusPlus::seed_from_u64(0)).unwrap();
        assert_eq!(again.state(), State::Serving, "{layout:?}");
    }
}
