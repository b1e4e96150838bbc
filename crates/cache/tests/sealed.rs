//! Tests of a log that fails writes: the user does not notice, even with crashes, and the backing device has
//! everything in the end. Tests of a move to another log, killed at each step.

use plumb_cache::{Purpose, State, Wait};
use plumb_crash::{Strategy, Survival};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

use crate::history::{Ask, Fault, FaultKind, History, Step};
use crate::random::number;
use crate::setup::{Faults, LeftOut, Legs, MODES, Setup};
use crate::world::World;

/// Number of histories in the test run.
const HISTORIES: u64 = 4_000;

/// Returns the history of a seed on a log that fails writes, with a mark.
fn history(seed: u64) -> History {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let drawn = Setup::draw(&mut chance);
    let layout = if drawn.layout == Legs::Mirror { Legs::Single } else { drawn.layout };
    let setup = Setup { faults: Faults::LogWrites, layout, ..drawn };
    History { marks: true, ..History::on(seed, setup, &mut chance) }
}

#[test]
fn nobody_notices_that_a_log_fails_writes() {
    let (first, count) = (number("PLUMB_SEED", 1), number("PLUMB_HISTORIES", HISTORIES));
    let (mut sealed, mut retried) = (0, 0);
    for seed in first..first + count {
        let history = history(seed);
        let Ok(world) = history.run() else { panic!("{}", history.told()) };
        if let Some(status) = world.status() {
            sealed += u64::from(status.log_error.is_some());
            retried += u64::from(status.figures.records_retried > 0);
        }
    }
    eprintln!("{sealed} sealed, {retried} retried of {count}");
    assert!(sealed > count / 20 && retried > count / 200, "{sealed} sealed, {retried} retried");
}

#[test]
fn every_order_of_seals_is_needed() {
    for left_out in [LeftOut::Wait(Wait::SealMarked), LeftOut::Purpose(Purpose::SealFlush)] {
        let fails = |seed: &u64| {
            let history = History { left_out, ..history(*seed) };
            let run = std::panic::AssertUnwindSafe(|| history.run().is_err());
            std::panic::catch_unwind(run).unwrap_or(true)
        };
        let shown = (1..10 * HISTORIES).find(fails);
        eprintln!("{left_out:?}: seed {shown:?}");
        assert!(shown.is_some(), "nobody notices that {left_out:?} is left out");
    }
}

/// Returns a world whose log holds something, in this mode.
fn written(setup: &Setup) -> World {
    let mut world = World::marked(setup, LeftOut::Nothing).unwrap();
    for lba in [1, 3, 5, 1] {
        world.step(Step::Write { lba, nlb: 1, fua: lba == 5 }).unwrap();
        world.step(Step::Settle { roll: lba }).unwrap();
    }
    world
}

#[test]
fn a_log_that_is_read_only_when_it_is_opened_is_written_back_and_detached() {
    for mode in MODES {
        for layout in [Legs::Single, Legs::Mirror, Legs::Stripe] {
            let setup = Setup { mode, layout, destage_start: 2.0, faults: Faults::LogWrites, ..Setup::SMALL };
            let mut world = written(&setup);
            world.step(Step::Break { fault: Fault::ReadOnly }).unwrap();
            world.step(Step::Kill { roll: 1 }).unwrap();
            world.step(Step::Verify { roll: 2 }).unwrap();
            assert!(world.status().unwrap().log_error.is_some(), "{mode:?} {layout:?}");
            world.step(Step::Write { lba: 3, nlb: 1, fua: true }).unwrap();
            world.step(Step::Settle { roll: 3 }).unwrap();
            world.step(Step::Cut { roll: 4 }).unwrap();
            world.step(Step::Verify { roll: 5 }).unwrap();
            // The oracle compares the backing device alone with the written data.
            world.step(Step::Ask { what: Ask::Detach, roll: 6 }).unwrap();
        }
    }
}

#[test]
fn a_record_that_fails_once_is_written_in_the_next_segment_and_the_log_goes_on() {
    let setup = Setup { destage_start: 2.0, faults: Faults::LogWrites, ..Setup::SMALL };
    let mut world = written(&setup);
    // Four records fill a segment, and the first of the next is not written again.
    world.step(Step::Write { lba: 2, nlb: 1, fua: true }).unwrap();
    world.step(Step::Settle { roll: 0 }).unwrap();
    world.step(Step::Break { fault: Fault::Fails { member: 0, kind: FaultKind::Write, nth: 1 } }).unwrap();
    world.step(Step::Write { lba: 7, nlb: 1, fua: true }).unwrap();
    world.step(Step::Settle { roll: 0 }).unwrap();
    let status = world.status().unwrap();
    assert_eq!((status.log_error, status.figures.records_retried), (None, 1));
    world.step(Step::Cut { roll: 1 }).unwrap();
    world.step(Step::Verify { roll: 2 }).unwrap();
    assert_eq!(world.state(), State::Serving);
}

/// Without a mark nothing states the end of a log that cannot be written, so it stops.
#[test]
fn a_log_whose_backing_nobody_marks_stops_when_it_fails_twice() {
    let mut world = World::new(&Setup { faults: Faults::Any, ..Setup::SMALL }, LeftOut::Nothing).unwrap();
    world.step(Step::Write { lba: 1, nlb: 1, fua: true }).unwrap();
    world.step(Step::Settle { roll: 0 }).unwrap();
    world.expect_failures();
    world.step(Step::Break { fault: Fault::ReadOnly }).unwrap();
    world.step(Step::Write { lba: 2, nlb: 1, fua: true }).unwrap();
    world.step(Step::Settle { roll: 0 }).unwrap();
    assert!(matches!(world.state(), State::Latched { .. }));
}

/// Kills the process or cuts the power after each number of steps of a move to another log, and opens the
/// cache over the log that the mark names. The written data is present, and the move continues.
#[test]
fn a_move_to_another_log_may_be_interrupted_at_each_step() {
    let mut steps_max = 0;
    for (mode, layout, is_dying) in [
        (MODES[0], Legs::Single, false),
        (MODES[0], Legs::Single, true),
        (MODES[0], Legs::Mirror, true),
        (MODES[3], Legs::Stripe, true),
        (MODES[2], Legs::Single, false),
    ] {
        let setup = Setup { mode, layout, destage_start: 2.0, faults: Faults::LogWrites, ..Setup::SMALL };
        for steps in 0.. {
            let mut has_moved = false;
            for roll in 0..8_u64 {
                let mut world = written(&setup);
                if is_dying {
                    world.step(Step::Break { fault: Fault::ReadOnly }).unwrap();
                }
                let mut chance = Xoshiro256PlusPlus::seed_from_u64(roll / 2);
                world.retire_log().unwrap();
                world.step(Step::Write { lba: 9, nlb: 1, fua: false }).unwrap();
                has_moved = world.move_log(steps, &mut chance).unwrap();
                let crash = if roll % 2 == 0 { Step::Kill { roll } } else { Step::Cut { roll } };
                let told =
                    |why: String| panic!("{mode:?} {layout:?} {is_dying} step {steps} roll {roll}: {why}");
                world.step(crash).unwrap_or_else(told);
                world.step(Step::Verify { roll }).unwrap_or_else(told);
                world.step(Step::Write { lba: 1, nlb: 2, fua: true }).unwrap_or_else(told);
                world.step(Step::Ask { what: Ask::Move, roll }).unwrap_or_else(told);
                world.step(Step::Write { lba: 2, nlb: 2, fua: true }).unwrap_or_else(told);
                world.step(Step::Cut { roll }).unwrap_or_else(told);
                world.step(Step::Verify { roll }).unwrap_or_else(told);
                assert!(world.status().unwrap().log_error.is_none(), "the new log is written");
            }
            if has_moved {
                steps_max = steps_max.max(steps);
                break;
            }
        }
    }
    eprintln!("up to {steps_max} steps");
    assert!(steps_max > 20);
}

/// Tests that after a move the old log is refused, and so is a sealed log that lacks records.
#[test]
fn the_log_that_a_cache_moved_from_is_refused() {
    let setup = Setup { destage_start: 2.0, faults: Faults::LogWrites, ..Setup::SMALL };
    let mut world = written(&setup);
    let old = world.members_after_kill();
    world.step(Step::Ask { what: Ask::Move, roll: 0 }).unwrap();
    let mut members = world.members.clone();
    let all = Survival::By(Strategy::AllSurvive);
    members.iter_mut().for_each(|medium| medium.cut(&mut Xoshiro256PlusPlus::seed_from_u64(0), all));
    members[0] = old[0].clone();
    let mut again = world.reborn(members).unwrap();
    again.expect_failures();
    again.setup_any();
    again.settle(&mut Xoshiro256PlusPlus::seed_from_u64(0)).unwrap();
    assert!(matches!(again.state(), State::Failed { because } if because.contains(
            "bring back the log that was served last")));
}

/// The superblocks of a sealed log have an older tail than the mark. Tests that after opening again, the mark
/// keeps its tail, and no record that was already written back overwrites data that bypassed the log.
#[test]
fn a_sealed_log_that_is_opened_again_passes_what_it_has_passed() {
    for mode in MODES {
        let setup = Setup { mode, destage_start: 2.0, faults: Faults::LogWrites, ..Setup::SMALL };
        let mut world = written(&setup);
        world.step(Step::Break { fault: Fault::ReadOnly }).unwrap();
        world.step(Step::Ask { what: Ask::Detach, roll: 1 }).unwrap();
        world.step(Step::Write { lba: 1, nlb: 1, fua: true }).unwrap();
        world.step(Step::Settle { roll: 2 }).unwrap();
        for roll in 3..6 {
            world.step(Step::Cut { roll }).unwrap();
            world.step(Step::Verify { roll }).unwrap();
        }
    }
}
