//! Tests of ordered mode: the backing device alone, without the log, has a state that a power cut at some
//! earlier moment could have left.
//!
//! A backing device that holds a write submitted after the answer to a flush also holds everything that the
//! flush covers.

use plumb_block::conformance::{BlockContent, Content, Moment};
use plumb_block::{Lba, LbaRange, Op};
use plumb_cache::Mode;
use plumb_crash::{Survival, below};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use crate::history::{Ask, Step};
use crate::setup::{Faults, LeftOut, Setup};
use crate::world::World;
use plumb_block::conformance::oracle::{Answer, SEED};

const HISTORIES: u64 = 2_000;

/// Runs a random history, in mode `first` and then ordered, and checks the backing device after a power cut
/// with loss of the log. Returns true if the backing was ordered by then.
fn run(seed: u64, first: Mode) -> Result<bool, String> {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let drawn = Setup::draw(&mut chance);
    let setup = Setup { mode: first, faults: Faults::None, hot: 8, ..drawn };
    let mut world = World::new(&setup, LeftOut::Nothing)?;
    let steps = below(&mut chance, 80);
    let switch = below(&mut chance, steps.max(1));
    for step in 0..steps {
        let roll = chance.next_u64();
        let lba = below(&mut chance, setup.hot);
        let step = match below(&mut chance, 8) {
            _ if step == switch => Step::Ask { what: Ask::Mode(Mode::Ordered), roll },
            0 => Step::Flush,
            1 => Step::Pass { millis: 1 << below(&mut chance, 15), roll },
            2..5 => Step::Run { commands: below(&mut chance, 12), roll },
            _ => Step::Write { lba, nlb: 1 + below(&mut chance, 2), fua: below(&mut chance, 8) == 0 },
        };
        world.step(step)?;
    }
    if !world.status().is_some_and(|status| status.is_ordered) {
        return Ok(false);
    }
    let mut backing = world.members[setup.legs()].clone();
    backing.cut(&mut chance, Survival::Mixed);
    let answered = world.oracle.answered();
    let mut bytes = vec![0; setup.block as usize];
    let found: Vec<Option<u64>> = (0..setup.blocks())
        .map(|lba| {
            let is_readable = backing.read(LbaRange::new(Lba(lba), 1), &mut bytes);
            match BlockContent::from_bytes(&bytes, SEED, Lba(lba)) {
                BlockContent::Whole(Content::Generation(generation)) if is_readable => Some(generation),
                _ => None,
            }
        })
        .collect();
    is_of_one_moment(answered, &found).map(|()| true)
}

/// Checks that `found`, a generation for each readable block, is a possible result of a cut at one moment.
fn is_of_one_moment(answered: &[Answer], found: &[Option<u64>]) -> Result<(), String> {
    let of = |generation: u64| answered.iter().find(|one| one.generation == Some(generation));
    let submitted = |generation: u64| of(generation).map_or(0, |one| one.submitted);
    let last: Moment = found.iter().flatten().map(|generation| submitted(*generation)).max().unwrap_or(0);
    let flushes = answered.iter().filter(|one| one.op == Op::Flush && one.completed < last);
    let Some(covered) = flushes.map(|flush| flush.submitted).max() else { return Ok(()) };
    for write in answered.iter().filter(|one| one.generation.is_some() && one.completed < covered) {
        for lba in write.range.lba.0..write.range.end().0 {
            let Some(generation) = found[lba as usize] else { continue };
            let is_older =
                generation == 0 || of(generation).is_some_and(|one| one.completed < write.submitted);
            if is_older {
                return Err(format!(
                    "the backing has a write submitted at {last}, and at LBA {lba} generation {generation}; the flush \
                     submitted at {covered} covers {write:?}"
                ));
            }
        }
    }
    Ok(())
}

#[test]
fn the_backing_alone_is_old_but_consistent() {
    for first in [Mode::Ordered, Mode::WriteBack] {
        let ordered =
            |seed| run(seed, first).unwrap_or_else(|why| panic!("{first:?} first, seed {seed}: {why}"));
        let ordered = (0..HISTORIES).filter(|seed| ordered(*seed)).count();
        assert!(ordered > 500, "{first:?} first: only {ordered} histories were ordered in the end");
    }
}
