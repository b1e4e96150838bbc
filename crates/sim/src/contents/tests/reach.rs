//! Small scripts, whose legal outcomes are all enumerated by brute force: a cut leaves one of them, and each
//! of them occurs with some seed.
//!
//! The oracle knows commands, not blocks: it tries every subset of the blocks of every command that may
//! survive, in every order in which an older command precedes a newer one, and collects the resulting
//! contents.

use std::collections::BTreeSet;

use plumb_block::{Lba, LbaRange, Op};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

use super::mutated::Mistake;
use super::trial::{FoundCommand, Trial};
use crate::contents::{Atomicity, Damage, FlushKept, Promise};
use plumb_crash::{Survival, below};

const BLOCKS: u64 = 2;
/// Maximum number of commands that may survive: the enumeration is exponential.
const AT_RISK_MAX: usize = 3;

#[derive(Debug, Clone, Copy)]
pub(super) enum Act {
    Submit(Op, LbaRange),
    Complete(usize),
    Lose(usize),
}

#[derive(Debug, Clone)]
pub(super) struct Script {
    acts: Vec<Act>,
    promise: Promise,
}

/// A command as the enumeration needs it.
#[derive(Debug, Clone, Copy)]
struct KnownCommand {
    number: u64,
    range: LbaRange,
    is_data: bool,
    submitted: usize,
    completed: usize,
    is_must: bool,
    is_atomic: bool,
    is_lost: bool,
}

const FLUSH: Op = Op::Flush;
const WRITE: Op = Op::Write { fua: false };
const WRITE_FUA: Op = Op::Write { fua: true };

fn on(first: u64, nlb: u64) -> LbaRange {
    LbaRange::new(Lba(first), nlb)
}

/// Returns the basic cases of the rules, followed by random ones.
pub(super) fn scripts() -> Vec<Script> {
    use Act::{Complete as C, Lose as L, Submit as S};
    let volatile = Promise::VOLATILE;
    let plain = |acts: &[Act]| Script { acts: acts.to_vec(), promise: volatile };
    let with = |acts: &[Act], promise| Script { acts: acts.to_vec(), promise };
    let none = LbaRange::EMPTY;
    let flushed = [S(WRITE, on(0, 2)), C(0), S(FLUSH, none), C(1)];
    let liar = Promise { flush: FlushKept::AllButLast(1), ..volatile };
    let atomic = Promise { atomicity: Atomicity { unit: 2, boundary: 0 }, ..volatile };
    let mut scripts = vec![
        plain(&flushed),
        // In flight alone.
        plain(&[S(WRITE, on(0, 2))]),
        // A write in flight during a flush.
        plain(&[S(WRITE, on(0, 1)), S(FLUSH, none), C(0), C(1)]),
        // Overwrites keep their order.
        plain(&[S(WRITE, on(0, 2)), C(0), S(WRITE, on(0, 2)), C(1), S(WRITE, on(0, 1)), C(2)]),
        // FUA covers itself alone.
        plain(&[S(WRITE, on(0, 1)), C(0), S(WRITE_FUA, on(1, 1)), C(1)]),
        plain(&[S(WRITE, on(0, 2)), C(0), S(WRITE_FUA, on(1, 1)), C(1), S(WRITE, on(1, 1)), C(2)]),
        // Overlapping in flight.
        plain(&[S(WRITE, on(0, 2)), S(WRITE, on(0, 2)), C(0), C(1)]),
        plain(&[S(WRITE, on(0, 2)), S(WRITE_FUA, on(0, 2)), C(1)]),
        plain(&[S(WRITE_FUA, on(0, 1)), S(WRITE_FUA, on(0, 1)), C(1), C(0)]),
        plain(&[S(WRITE, on(0, 1)), S(WRITE, on(0, 1)), C(1), C(0), S(FLUSH, none), C(2)]),
        // Discards.
        plain(&[S(WRITE_FUA, on(0, 2)), C(0), S(Op::Discard, on(0, 2)), C(1)]),
        plain(&[S(Op::Discard, on(0, 2)), C(0), S(WRITE_FUA, on(0, 1)), C(1)]),
        plain(&[S(WRITE_FUA, on(0, 2)), C(0), S(Op::Discard, on(0, 2)), C(1), S(FLUSH, none), C(2)]),
        // A failed write.
        plain(&[S(WRITE_FUA, on(0, 2)), C(0), S(WRITE, on(0, 2)), L(1)]),
        plain(&[S(WRITE, on(0, 1)), L(0), S(WRITE, on(0, 1)), C(1)]),
        with(&flushed, liar),
        with(&[flushed.as_slice(), &[S(WRITE, on(0, 1)), C(2), S(FLUSH, none), C(3)]].concat(), liar),
        with(&[S(WRITE, on(0, 2)), S(WRITE, on(0, 1))], atomic),
        with(
            &[S(WRITE, on(0, 2)), C(0)],
            Promise { atomicity: Atomicity { unit: 2, boundary: 1 }, ..volatile },
        ),
        with(&[S(WRITE, on(0, 2)), S(WRITE, on(0, 2)), C(0)], Promise::DURABLE),
    ];
    scripts.extend((0..25).map(random));
    scripts
}

fn random(seed: u64) -> Script {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (mut acts, mut in_flight, mut submitted) = (Vec::new(), Vec::new(), 0);
    while submitted < 5 {
        if below(&mut chance, 2) == 0 && !in_flight.is_empty() {
            let place = below(&mut chance, in_flight.len() as u64) as usize;
            acts.push(Act::Complete(in_flight.swap_remove(place)));
            continue;
        }
        let nlb = 1 + below(&mut chance, BLOCKS);
        let range = on(below(&mut chance, BLOCKS - nlb + 1), nlb);
        let act = match below(&mut chance, 6) {
            0 | 1 => Act::Submit(FLUSH, LbaRange::EMPTY),
            2 => Act::Submit(WRITE_FUA, range),
            3 => Act::Submit(Op::Discard, range),
            _ => Act::Submit(WRITE, range),
        };
        acts.push(act);
        in_flight.push(submitted);
        submitted += 1;
    }
    Script { acts, promise: Promise::VOLATILE }
}

fn known(script: &Script) -> Vec<KnownCommand> {
    let mut all: Vec<(Op, KnownCommand)> = Vec::new();
    for (moment, act) in script.acts.iter().enumerate() {
        match *act {
            Act::Submit(op, range) => {
                let is_data = matches!(op, Op::Write { .. });
                let Atomicity { unit, boundary } = script.promise.atomicity;
                let crosses =
                    boundary > 0 && range.nlb > 1 && range.lba.0 / boundary != (range.end().0 - 1) / boundary;
                let is_atomic = is_data && range.nlb <= unit && !crosses;
                let number = all.len() as u64 + 1;
                let (completed, is_must, is_lost) = (usize::MAX, false, false);
                let known = KnownCommand {
                    number,
                    range,
                    is_data,
                    submitted: moment,
                    completed,
                    is_must,
                    is_atomic,
                    is_lost,
                };
                all.push((op, known));
            }
            Act::Complete(index) => all[index].1.completed = moment,
            Act::Lose(index) => all[index].1.is_lost = true,
        }
    }
    let lies = if let FlushKept::AllButLast(last) = script.promise.flush { last as usize } else { 0 };
    let mut flushes: Vec<_> = all
        .iter()
        .filter(|(op, known)| *op == FLUSH && known.completed != usize::MAX)
        .map(|(_, known)| *known)
        .collect();
    flushes.sort_by_key(|flush| flush.completed);
    flushes.truncate(flushes.len().saturating_sub(lies));
    for (op, known) in &mut all {
        let is_done = known.completed != usize::MAX;
        let covered = flushes.iter().any(|flush| known.completed < flush.submitted);
        known.is_must = is_done && (covered || *op == WRITE_FUA || !script.promise.volatile);
    }
    all.into_iter().filter(|(op, _)| *op != FLUSH).map(|(_, known)| known).collect()
}

/// Returns all contents that a cut at the end may leave.
fn legal(script: &Script) -> BTreeSet<Vec<FoundCommand>> {
    let known = known(script);
    let mut found = BTreeSet::new();
    let choices: u32 = 4_u32.pow(known.len() as u32);
    for order in orders(&known, &mut Vec::new()) {
        for choice in 0..choices {
            let masks: Vec<u32> = (0..known.len()).map(|index| choice >> (2 * index) & 3).collect();
            found.extend(laid(&known, &order, &masks));
        }
    }
    found
}

/// Returns every order in which an older one never comes after a newer one.
fn orders(known: &[KnownCommand], taken: &mut Vec<usize>) -> Vec<Vec<usize>> {
    if taken.len() == known.len() {
        return vec![taken.clone()];
    }
    let mut found = Vec::new();
    for index in 0..known.len() {
        let waits = (0..known.len()).any(|other| {
            !taken.contains(&other) && other != index && known[other].completed < known[index].submitted
        });
        if taken.contains(&index) || waits {
            continue;
        }
        taken.push(index);
        found.extend(orders(known, taken));
        taken.pop();
    }
    found
}

/// Returns the contents of the drive if the blocks in the mask of each command survive; `None` if that is not
/// allowed.
fn laid(known: &[KnownCommand], order: &[usize], masks: &[u32]) -> Option<Vec<FoundCommand>> {
    let mut state = vec![Some(0); BLOCKS as usize];
    for index in order {
        let one = known[*index];
        let all = (1_u32 << one.range.nlb) - 1;
        let mask = masks[*index];
        let is_part = mask != all && mask != 0;
        if mask > all || one.is_must && mask != all || one.is_atomic && is_part && !one.is_lost {
            return None;
        }
        for block in (0..one.range.nlb).filter(|block| mask >> block & 1 == 1) {
            state[(one.range.lba.0 + block) as usize] = Some(if one.is_data { one.number } else { 0 });
        }
    }
    Some(state)
}

/// Runs the script with many seeds until every legal outcome has occurred.
pub(super) fn run(script: &Script, seeds: u64, mistake: Option<Mistake>) -> Result<(), String> {
    let legal = legal(script);
    let mut missing = legal.clone();
    let has_lost = script.acts.iter().any(|act| matches!(act, Act::Lose(_)));
    let damage = Damage { survival: Survival::Mixed, unreadable: 0.0, ..Damage::LEGAL };
    let mut is_unreadable_seen = !has_lost;
    for seed in 0..seeds {
        let state = outcome(script, seed, &damage, mistake)
            .map_err(|why| format!("{why}; seed {seed} of {script:?}"))?;
        if state.contains(&None) {
            is_unreadable_seen = true;
            continue;
        }
        if !legal.contains(&state) {
            return Err(format!("{state:?} is not legal; seed {seed} of {script:?}"));
        }
        missing.remove(&state);
        if missing.is_empty() && is_unreadable_seen {
            return Ok(());
        }
    }
    Err(format!("never seen: {missing:?} (unreadable: {is_unreadable_seen}) of {script:?}"))
}

fn outcome(
    script: &Script,
    seed: u64,
    damage: &Damage,
    mistake: Option<Mistake>,
) -> Result<Vec<FoundCommand>, String> {
    let mut trial = Trial::new(BLOCKS, script.promise, 512, seed, mistake);
    for act in &script.acts {
        match *act {
            Act::Submit(op, range) => {
                trial.submit(op, range, seed.is_multiple_of(2));
            }
            Act::Complete(index) => trial.complete(index),
            Act::Lose(index) => trial.lose(index),
        }
    }
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x5eed);
    trial.cut_and_judge(&mut chance, damage)
}

/// Returns true if a script is small enough to be enumerated.
pub(super) fn is_small(script: &Script) -> bool {
    known(script).iter().filter(|one| !one.is_must).count() <= AT_RISK_MAX
}

#[test]
fn every_legal_outcome_is_reached_and_no_other() {
    let scripts: Vec<_> = scripts().into_iter().filter(is_small).collect();
    assert!(scripts.len() > 35, "only {} scripts are small enough", scripts.len());
    for script in scripts {
        if let Err(why) = run(&script, 40_000, None) {
            panic!("{why}");
        }
    }
}
