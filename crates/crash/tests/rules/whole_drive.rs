//! Tests of draw and enumeration against brute force over whole histories, including atomic writes.
//!
//! The brute force knows commands, not windows: it tries every subset of the blocks of every command that may
//! survive, and for each block every survivor over which no newer one lies. Histories: all of up to three
//! commands over W, U (FUA), D on block 0, on block 1, on both, and F, none of which fails, under each of
//! three promises of atomicity.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use plumb_crash::{Atomicity, DrawnCut, Grain, Kind, Landing, Options, Promise, Survival, Survivor};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

use crate::history::{BLOCKS, Both, Every, Letter, SubmittedCommand, letters, range};

/// Contents of the blocks: the number of a command each, 0 for what was there before all commands.
pub(crate) type Outcome = [u64; BLOCKS];

/// Atomic units of one block, of both blocks, and of both blocks with a boundary between them.
pub(crate) const ATOMICITIES: [Atomicity; 3] =
    [Atomicity::BLOCK, Atomicity { unit: 2, boundary: 0 }, Atomicity { unit: 2, boundary: 1 }];

/// Returns all outcomes of a cut at this moment, found by brute force.
pub(crate) fn legal(commands: &[SubmittedCommand], promise: Promise) -> BTreeSet<Outcome> {
    let mut outcomes = BTreeSet::new();
    for choice in 0..4_u32.pow(commands.len() as u32) {
        let masks: Vec<u32> = (0..commands.len()).map(|index| choice >> (2 * index) & 3).collect();
        if (0..commands.len()).all(|index| may_survive(commands, index, masks[index], promise)) {
            let [first, second] = [0, 1].map(|block| last_ones(commands, &masks, block));
            for one in &first {
                outcomes.extend(second.iter().map(|other| [*one, *other]));
            }
        }
    }
    outcomes
}

/// Returns true if exactly these blocks of the command (a bit each) may survive.
fn may_survive(commands: &[SubmittedCommand], index: usize, mask: u32, promise: Promise) -> bool {
    let command = &commands[index];
    let Letter::On(kind, first, nlb) = command.letter else { return mask == 0 };
    let all = if nlb == 2 { 3 } else { 1 << first };
    let flushed = |completed| {
        let flushes = commands.iter().filter(|one| one.letter == Letter::Flush && one.completed.is_some());
        flushes.map(|one| one.submitted).any(|submitted| completed < submitted)
    };
    let is_must = command.completed.is_some_and(|at| kind.is_fua() || !promise.volatile || flushed(at));
    let crosses = promise.atomicity.boundary == 1 && nlb == 2;
    let is_atomic = matches!(kind, Kind::Write { .. }) && nlb <= promise.atomicity.unit && !crosses;
    mask & !all == 0 && (mask == all || !is_must && (mask == 0 || !is_atomic))
}

/// Returns the commands that a block may hold if those of `masks` survive in it.
fn last_ones(commands: &[SubmittedCommand], masks: &[u32], block: usize) -> Vec<u64> {
    let here: Vec<usize> = (0..commands.len()).filter(|index| masks[*index] >> block & 1 == 1).collect();
    let is_older = |one: usize, other: usize| {
        commands[one].completed.is_some_and(|completed| completed < commands[other].submitted)
    };
    let last = here.iter().filter(|one| !here.iter().any(|other| is_older(**one, *other)));
    let last: Vec<u64> = last.map(|index| *index as u64 + 1).collect();
    if last.is_empty() { vec![0] } else { last }
}

/// Returns the outcomes that the window enumerates.
pub(crate) fn enumerated(both: &Both, grain: Grain) -> BTreeSet<Outcome> {
    let mut outcomes = BTreeSet::new();
    let options = Options { grain, unreadable: false };
    let ended = both.window.enumerate(options, &mut |survivors| {
        let mut outcome = both.stored;
        for (range, survivor) in survivors {
            if let Survivor::Command(id) = survivor {
                outcome[range.lba.0 as usize..range.end().0 as usize].fill(*id);
            }
        }
        outcomes.insert(outcome);
        ControlFlow::Continue(())
    });
    assert!(ended.is_continue());
    outcomes
}

/// Returns the outcome that a drawn cut leaves.
pub(crate) fn left(both: &Both, drawn: &DrawnCut) -> Outcome {
    let mut outcome = both.stored;
    for one in &drawn.remainders {
        let command = both.window.command(one.id).unwrap();
        for (run, ids) in both.window.versions(command.range) {
            for lba in (run.lba.0..run.end().0).filter(|_| ids.contains(&one.id)) {
                if one.keep.keeps(lba - command.range.lba.0, command.range.nlb) {
                    outcome[lba as usize] = one.id;
                }
            }
        }
    }
    outcome
}

fn each_history(mut judge: impl FnMut(&Both)) {
    for atomicity in ATOMICITIES {
        let promise = Promise { atomicity, ..Promise::VOLATILE };
        let every = Every { alphabet: &letters(true), commands: 3, with_failures: false };
        every.walk(&Both::new(promise), &mut |before, _, event| {
            let mut both = before.clone();
            both.tell(event, Landing::Unknown);
            judge(&both);
            both
        });
    }
}

#[test]
fn what_is_enumerated_is_what_is_legal() {
    each_history(|both| {
        let (legal, commands) = (legal(&both.commands, both.window.promise()), &both.commands);
        assert_eq!(enumerated(both, Grain::Blocks), legal, "{commands:?}");
        let whole = enumerated(both, Grain::Commands);
        assert!(!whole.is_empty() && whole.is_subset(&legal), "{whole:?} of {legal:?}: {commands:?}");
    });
}

#[test]
fn what_is_drawn_is_legal() {
    each_history(|both| {
        let legal = legal(&both.commands, both.window.promise());
        for seed in 0..20 {
            let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
            let left = left(both, &both.window.draw(&mut chance, Survival::Mixed));
            assert!(legal.contains(&left), "{left:?} of {legal:?}, seed {seed}: {:?}", both.commands);
        }
    });
}

#[test]
fn an_enumeration_ends_when_the_visitor_says_so() {
    let mut both = Both::new(Promise::VOLATILE);
    let discard = Kind::Discard { zeroes: true };
    both.window.submit(1, discard, range(0, 1 << 40), 1);
    both.window.submit(2, discard, range(1 << 20, 1 << 30), 2);
    let options = Options { grain: Grain::Commands, unreadable: false };
    let mut visited = 0;
    let ended = both.window.enumerate(options, &mut |_| {
        visited += 1;
        if visited == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(ended.is_break() && visited == 3);
}
