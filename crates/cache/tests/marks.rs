//! Tests of the mark on the backing device: after any crash the log is not older than the mark, and no
//! witness counts as written by others; an old copy of the log is refused, and a write outside the cache is
//! noticed.

use plumb_block::Nanos;
use plumb_cache::{Mode, Purpose, State, Wait};
use plumb_crash::{Strategy, Survival};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

use crate::history::{Ask, History, Step};
use crate::medium::Medium;
use crate::random::number;
use crate::sensitivity::hold;
use crate::setup::{Faults, LeftOut, MODES, Setup};
use crate::world::World;

/// Number of histories in the test run.
const HISTORIES: u64 = 4_000;

/// Returns the history of a seed on devices that do not fail, with a mark.
fn history(seed: u64) -> History {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let drawn = Setup::draw(&mut chance);
    let setup = Setup { faults: Faults::None, ..drawn };
    History { marks: true, ..History::on(seed, setup, &mut chance) }
}

#[test]
fn no_crash_is_taken_for_an_old_log_or_for_a_write_by_somebody_else() {
    let (first, count) = (number("PLUMB_SEED", 1), number("PLUMB_HISTORIES", HISTORIES));
    for seed in first..first + count {
        let history = history(seed);
        assert!(history.run().is_ok(), "{}", history.told());
    }
}

#[test]
fn every_order_of_marks_is_needed() {
    let orders = [LeftOut::Wait(Wait::WitnessReleased), LeftOut::Purpose(Purpose::BackingFlushBeforeMark)];
    for left_out in orders {
        let fails = |seed: &u64| History { left_out, ..history(*seed) }.run().is_err();
        let shown = (1..HISTORIES).find(fails);
        eprintln!("{left_out:?}: seed {shown:?}");
        assert!(shown.is_some(), "nobody notices within {HISTORIES} histories that {left_out:?} is left out");
    }
}

/// Cuts the power when a batch was written back and flushed, its new tail is in flight to the log, and a mark
/// is due. Returns the reason why the cache is then refused.
fn refusal_after_a_mark_before_the_tail(left_out: LeftOut) -> Option<String> {
    let mut world = World::marked(&Setup { faults: Faults::Any, ..Setup::SMALL }, left_out).unwrap();
    world.mark_after(Nanos::ZERO).unwrap();
    world.step(Step::Write { lba: 1, nlb: 1, fua: true }).unwrap();
    world.step(Step::Settle { roll: 0 }).unwrap();
    world.step(Step::Ask { what: Ask::Drain, roll: 0 }).unwrap();
    hold(&mut world, &[Purpose::TailAdvance]).unwrap();
    assert!(world.in_flight().iter().any(|(purpose, _)| *purpose == Purpose::TailAdvance));
    world.mark_after(Nanos::secs(31)).unwrap();
    let mut members = world.members.clone();
    let lost = Survival::By(Strategy::AllLost);
    members.iter_mut().for_each(|medium| medium.cut(&mut Xoshiro256PlusPlus::seed_from_u64(0), lost));
    refusal(&world, members)
}

#[test]
fn a_mark_names_a_tail_once_the_log_has_it() {
    assert_eq!(refusal_after_a_mark_before_the_tail(LeftOut::Nothing), None);
    let because = refusal_after_a_mark_before_the_tail(LeftOut::Wait(Wait::MarkedTailDurable));
    assert!(because.is_some_and(|because| because.contains("is an old copy")));
}

/// Returns the reason why the cache over these members is refused; `None` if it is served.
fn refusal(world: &World, members: Vec<Medium>) -> Option<String> {
    let mut again = world.reborn(members).unwrap();
    again.expect_failures();
    again.pump().unwrap();
    again.settle(&mut Xoshiro256PlusPlus::seed_from_u64(0)).unwrap();
    match again.state() {
        State::Failed { because } => Some(because),
        _ => None,
    }
}

/// Tests a copy of the log that is made while the log is served, and put back later in the same session.
#[test]
fn an_old_copy_of_the_log_is_refused_once_the_tail_has_passed_it() {
    for mode in MODES {
        let setup = Setup { mode, faults: Faults::Any, ..Setup::SMALL };
        let mut world = World::marked(&setup, LeftOut::Nothing).unwrap();
        let write = |world: &mut World, lba| {
            // Not adjacent, so not a stream.
            world.step(Step::Write { lba, nlb: 1, fua: true }).unwrap();
            world.step(Step::Settle { roll: lba }).unwrap();
        };
        write(&mut world, 1);
        let old = world.members_after_kill();
        write(&mut world, 1);
        world.step(Step::Ask { what: Ask::Drain, roll: 0 }).unwrap();
        world.step(Step::Pass { millis: 1, roll: 0 }).unwrap();
        write(&mut world, 3);
        let now = world.members_after_kill();
        assert_eq!(refusal(&world, now.clone()), None, "{mode:?}");
        if mode == Mode::WriteThrough {
            // The log has not changed.
            continue;
        }
        let mixed = vec![old[0].clone(), now[1].clone()];
        let because = refusal(&world, mixed).expect("an old copy of the log is served");
        assert!(because.contains("is an old copy"), "{mode:?}: {because}");
    }
}

/// Without a drain the tail need not move; then the records that were durable at the last mark reveal an old
/// copy.
#[test]
fn a_log_that_lacks_what_was_durable_at_the_last_mark_is_refused() {
    let setup = Setup { faults: Faults::Any, destage_start: 2.0, ..Setup::SMALL };
    let mut world = World::marked(&setup, LeftOut::Nothing).unwrap();
    let mut old = None;
    for lba in [1, 3] {
        world.step(Step::Write { lba, nlb: 1, fua: true }).unwrap();
        world.step(Step::Settle { roll: 0 }).unwrap();
        old.get_or_insert_with(|| world.members_after_kill());
    }
    let durable = world.members_after_kill();
    // The log of the session has one record more than the copy, and the mark is written when the cache stops.
    world.step(Step::Ask { what: Ask::Stop, roll: 0 }).unwrap();
    assert!(world.marking.as_ref().unwrap().mark().durable > 0);
    let mixed = vec![old.unwrap()[0].clone(), durable[1].clone()];
    let because = refusal(&world, mixed).expect("an old copy of the log is served");
    assert!(because.contains("old copy"), "{because}");
}

/// Tests that after any history, every change of data that the mark states and the log does not hold is
/// noticed.
#[test]
fn a_write_beside_the_cache_is_noticed() {
    let (mut noticed, mut stated) = (0, 0);
    for seed in 1..1000 {
        let mut history = history(seed);
        let last =
            if seed % 2 == 0 { Step::Kill { roll: seed } } else { Step::Ask { what: Ask::Stop, roll: seed } };
        history.steps.push(last);
        let mut world = history.run().unwrap();
        let found = world.is_write_beside_noticed(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
        stated += u64::from(found.is_some());
        noticed += u64::from(found == Some(true));
    }
    eprintln!("{noticed} of {stated}");
    assert!(stated > 500, "few histories end with a mark that states anything: {stated}");
    assert_eq!(noticed, stated);
}
