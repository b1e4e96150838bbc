//! Every cut of every short scenario, on a small log that has wrapped around.
//!
//! | Letter | Operation |
//! |---|---|
//! | `W` `V` `X` | write block A, block B, both |
//! | `U` | write A with FUA |
//! | `Z` | write zeroes to A |
//! | `F` | flush |
//! | `D` | drain: destage everything |
//! | `K` | kill the process and recover |
//! | `G` | a larger log; in scenarios of up to two operations |
//! | `R` | another device for leg 0; in scenarios of up to two operations, on a mirror |
//!
//! Each scenario runs on each of these schedules: every operation is answered before the next; or all are
//! submitted at once, and their commands complete first to last, or last to first. Scenarios that differ only
//! in the names of A and B are one.
//!
//! The possible outcomes of a cut grow until something becomes durable, and only then does the state that the
//! user must find change. So the cuts just before a flush or a FUA command completes, and at the end, cover
//! all others. `plumb_crash` enumerates all outcomes of each, block by block on the legs and on the backing
//! device.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher as _};
use std::ops::ControlFlow;
use std::time::Instant;

use plumb_block::Op;
use plumb_crash::{Grain, Options};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

use crate::history::{Ask, Step};
use crate::medium::Medium;
use crate::random::number;
use crate::setup::{LeftOut, Legs, Setup};
use crate::world::World;

const ALPHABET: [char; 10] = ['W', 'V', 'X', 'U', 'Z', 'F', 'D', 'K', 'G', 'R'];

/// Smallest possible setup, with room for one segment more.
const SETUP: Setup = Setup { room: 1, ..Setup::SMALL };

/// Maximum number of operations of a scenario in the test run.
const OPERATIONS: u64 = 4;

/// Order in which commands complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Schedule {
    OneByOne,
    FirstToLast,
    LastToFirst,
}

const SCHEDULES: [Schedule; 3] = [Schedule::OneByOne, Schedule::FirstToLast, Schedule::LastToFirst];

struct Count {
    grain: Grain,
    scenarios: u64,
    cuts: u64,
    outcomes: u64,
    /// Outcomes that were judged, by the contents of the members and what the user may find: many cuts may
    /// have the same outcome.
    judged: HashSet<u64>,
}

#[test]
fn every_cut_of_every_short_scenario_on_one_leg() {
    let operations = number("PLUMB_OPERATIONS", OPERATIONS);
    check(SETUP, operations, operations);
}

#[test]
fn every_cut_of_every_short_scenario_on_a_mirror() {
    let operations = number("PLUMB_OPERATIONS", OPERATIONS);
    check(Setup { layout: Legs::Mirror, ..SETUP }, operations, operations - 2);
}

#[test]
fn every_cut_of_every_short_scenario_over_a_backing_device_that_rests() {
    let operations = number("PLUMB_OPERATIONS", OPERATIONS) - 1;
    check(Setup { rests: true, ..SETUP }, operations, operations);
}

/// Checks all scenarios. Commands tear in those of up to `torn` operations; in longer ones each survives
/// completely or not at all.
fn check(setup: Setup, operations: u64, torn: u64) {
    let began = Instant::now();
    let count = explore(setup, operations, torn).unwrap_or_else(|why| panic!("{why}"));
    eprintln!(
        "{:?}, up to {operations} operations, up to {torn} torn into blocks: {} scenarios, {} cuts with {} outcomes, {} of them different, in {:.1} s",
        setup.layout,
        count.scenarios,
        count.cuts,
        count.outcomes,
        count.judged.len(),
        began.elapsed().as_secs_f64()
    );
}

/// Runs every scenario up to this length. Fails with the first failure.
fn explore(setup: Setup, operations: u64, torn: u64) -> Result<Count, String> {
    let mut count =
        Count { grain: Grain::Blocks, scenarios: 0, cuts: 0, outcomes: 0, judged: HashSet::new() };
    let aged = aged(setup)?;
    for length in 1..=operations {
        count.grain = if length <= torn { Grain::Blocks } else { Grain::Commands };
        for number in 0..(ALPHABET.len() as u64).pow(length as u32) {
            let scenario = scenario(number, length);
            if !is_first_of_its_kind(&scenario, setup.layout) {
                continue;
            }
            for schedule in SCHEDULES.into_iter().filter(|one| length > 1 || *one == Schedule::OneByOne) {
                count.scenarios += 1;
                run(&aged, &scenario, schedule, &mut count).map_err(|why| {
                    let letters: String = scenario.iter().collect();
                    format!("scenario {letters}, {schedule:?}, {:?}: {why}", setup.layout)
                })?;
            }
        }
    }
    Ok(count)
}

fn scenario(number: u64, length: u64) -> Vec<char> {
    let base = ALPHABET.len() as u64;
    (0..length as u32).map(|place| ALPHABET[(number / base.pow(place) % base) as usize]).collect()
}

/// Returns true if the scenario must be run: of two that differ only in the names of A and B the one that
/// names A first, and changes of the log only in short scenarios.
fn is_first_of_its_kind(scenario: &[char], layout: Legs) -> bool {
    let is_b_alone = scenario.contains(&'V') && !scenario.iter().any(|letter| "WUZ".contains(*letter));
    let changes = if scenario.len() > 2 {
        "GR"
    } else if layout == Legs::Mirror {
        ""
    } else {
        "R"
    };
    !is_b_alone && !scenario.iter().any(|letter| changes.contains(*letter))
}

fn step(letter: char) -> Step {
    let on = |lba, nlb, fua| Step::Write { lba, nlb, fua };
    match letter {
        'W' => on(0, 1, false),
        'V' => on(1, 1, false),
        'X' => on(0, 2, false),
        'U' => on(0, 1, true),
        'Z' => Step::Zeroes { lba: 0, nlb: 1, fua: false },
        'F' => Step::Flush,
        'D' => Step::Ask { what: Ask::Drain, roll: 0 },
        'R' => Step::Ask { what: Ask::Replace { leg: 0, is_same: false }, roll: 0 },
        'G' => Step::Ask { what: Ask::Grow { segments: 1 }, roll: 0 },
        _ => Step::Kill { roll: 0 },
    }
}

fn run(aged: &World, scenario: &[char], schedule: Schedule, count: &mut Count) -> Result<(), String> {
    let mut world = aged.reborn(aged.members.clone())?;
    world.settle(&mut Xoshiro256PlusPlus::seed_from_u64(0))?;
    let last = scenario.len() - 1;
    for (index, letter) in scenario.iter().enumerate() {
        world.step(step(*letter))?;
        if schedule == Schedule::OneByOne {
            // The state before the last operation is the end of a shorter scenario.
            finish(&mut world, schedule, if index == last { Some(count) } else { None })?;
        }
    }
    if schedule != Schedule::OneByOne {
        finish(&mut world, schedule, Some(count))?;
    }
    Ok(())
}

/// Returns a cache whose log has wrapped around; A and B were written repeatedly, and are still in the log.
fn aged(setup: Setup) -> Result<World, String> {
    let mut world = World::new(&setup, LeftOut::Nothing)?;
    for round in 0..2 * setup.segments {
        world.step(Step::Write { lba: 0, nlb: 2, fua: false })?;
        world.step(Step::Write { lba: 2 + round % 4, nlb: 3, fua: true })?;
        world.step(Step::Ask { what: Ask::Drain, roll: 0 })?;
        finish(&mut world, Schedule::FirstToLast, None)?;
    }
    for step in [Step::Write { lba: 0, nlb: 2, fua: false }, Step::Flush] {
        world.step(step)?;
        finish(&mut world, Schedule::FirstToLast, None)?;
    }
    Ok(world)
}

/// Lets all commands complete, and checks the cuts in between.
fn finish(world: &mut World, schedule: Schedule, mut count: Option<&mut Count>) -> Result<(), String> {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(0);
    loop {
        let flights = world.in_flight();
        let next = match schedule {
            Schedule::LastToFirst => flights.len().checked_sub(1),
            _ => (!flights.is_empty()).then_some(0),
        };
        let becomes_durable = next.is_none_or(|index| {
            matches!(
                flights[index].1,
                Op::Flush | Op::Write { fua: true } | Op::WriteZeroes { fua: true, .. }
            )
        });
        if let Some(count) = count.as_deref_mut().filter(|_| becomes_durable) {
            cuts(world, count)?;
        }
        match next {
            Some(index) => world.complete(index, &mut chance)?,
            None => return Ok(()),
        }
    }
}

/// Checks all outcomes of a cut at this moment.
fn cuts(world: &World, count: &mut Count) -> Result<(), String> {
    count.cuts += 1;
    let mut failed = Ok(());
    let mut left = Vec::new();
    let mut expected = DefaultHasher::new();
    world.oracle.hash_after_cut(&mut expected);
    let all = every(world, count.grain, &mut left, &mut |left| {
        count.outcomes += 1;
        let mut hasher = expected.clone();
        left.iter().for_each(|medium| medium.hash(&mut hasher));
        if count.judged.insert(hasher.finish()) {
            failed = judge(world, left);
        }
        if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    if all.is_break() { failed } else { Ok(()) }
}

/// Calls the function with each combination of the possible contents of the members after the cut.
pub(crate) fn every(
    world: &World,
    grain: Grain,
    left: &mut Vec<Medium>,
    call: &mut impl FnMut(&[Medium]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let Some(medium) = world.members.get(left.len()) else { return call(left) };
    let options = Options { grain, unreadable: false };
    medium.window().enumerate(options, &mut |outcome| {
        left.push(medium.after(outcome));
        let flow = every(world, grain, left, &mut *call);
        left.pop();
        flow
    })
}

/// Recovers over these members, and reads everything.
pub(crate) fn judge(world: &World, left: &[Medium]) -> Result<(), String> {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut again = world.reborn(left.to_vec())?;
    again.verify(&mut chance)
}
