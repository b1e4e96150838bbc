//! Random streams of commands with many in flight: all reads, and all states after a cut, are legal.

use plumb_block::{Lba, LbaRange, Op};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

use super::mutated::Mistake;
use super::trial::Trial;
use crate::contents::{Atomicity, Damage, FlushKept, FuaKept, Promise};
use plumb_crash::below;

/// A kind of drive and of load.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    blocks: u64,
    block_bytes: u64,
    longest: u64,
    promise: Promise,
}

pub(super) fn kinds() -> Vec<Kind> {
    let small = Promise::VOLATILE;
    let large = Promise::VOLATILE;
    let of_small = Kind { blocks: 20, block_bytes: 512, longest: 10, promise: small };
    let of_large = Kind { blocks: 70, block_bytes: 4096, longest: 40, promise: large };
    vec![
        of_small,
        of_large,
        // All on two blocks, so that many commands displace others.
        Kind { blocks: 2, longest: 2, ..of_small },
        Kind { blocks: 200, longest: 180, ..of_small },
        Kind { promise: Promise::DURABLE, ..of_small },
        Kind { promise: Promise { flush: FlushKept::AllButLast(2), ..small }, ..of_small },
        Kind { promise: Promise { flush: FlushKept::Never, fua: FuaKept::Ignored, ..small }, ..of_small },
        Kind { promise: Promise { fua: FuaKept::Ignored, ..small }, ..of_small },
        Kind { promise: Promise { discard_zeroes: false, ..large }, ..of_large },
        Kind {
            longest: 4,
            promise: Promise { atomicity: Atomicity { unit: 4, boundary: 8 }, ..small },
            ..of_small
        },
    ]
}

/// Runs one stream, and the cut at its end.
pub(super) fn run(kind: Kind, seed: u64, mistake: Option<Mistake>) -> Result<(), String> {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut trial = Trial::new(kind.blocks, kind.promise, kind.block_bytes, seed, mistake);
    let mut in_flight = Vec::new();
    let mut answered = Vec::new();
    for _ in 0..below(&mut chance, 60) {
        step(&mut trial, kind, &mut chance, &mut in_flight, &mut answered)?;
    }
    trial.cut_and_judge(&mut chance, &Damage::LEGAL)?;
    Ok(())
}

fn step(
    trial: &mut Trial,
    kind: Kind,
    chance: &mut Xoshiro256PlusPlus,
    in_flight: &mut Vec<usize>,
    answered: &mut Vec<usize>,
) -> Result<(), String> {
    match below(chance, 16) {
        0..=5 => {
            let (op, range) = draw_command(kind, chance);
            in_flight.push(trial.submit(op, range, below(chance, 3) == 0));
        }
        6..=10 if !in_flight.is_empty() => {
            let index = in_flight.swap_remove(below(chance, in_flight.len() as u64) as usize);
            trial.complete(index);
            answered.push(index);
        }
        11..=12 if !answered.is_empty() => {
            let index = answered.swap_remove(below(chance, answered.len() as u64) as usize);
            if trial.commands[index].op != Op::Flush {
                trial.persist(index);
            }
        }
        13 if !in_flight.is_empty() && below(chance, 4) == 0 => {
            let index = in_flight.swap_remove(below(chance, in_flight.len() as u64) as usize);
            trial.lose(index);
        }
        _ => trial.judge_read(below(chance, kind.blocks))?,
    }
    Ok(())
}

fn draw_command(kind: Kind, chance: &mut Xoshiro256PlusPlus) -> (Op, LbaRange) {
    let zeroes = |fua| Op::WriteZeroes { fua, no_hole: false, fast_only: false };
    let op = match below(chance, 20) {
        0..=7 => Op::Write { fua: false },
        8..=10 => Op::Write { fua: true },
        11..=14 => return (Op::Flush, LbaRange::EMPTY),
        15..=17 => Op::Discard,
        18 => zeroes(false),
        _ => zeroes(true),
    };
    let longest = if below(chance, 3) == 0 { kind.longest } else { kind.longest.min(3) };
    let nlb = 1 + below(chance, longest);
    (op, LbaRange::new(Lba(below(chance, kind.blocks - nlb + 1)), nlb))
}

#[test]
fn whatever_is_read_and_whatever_a_cut_leaves_is_legal() {
    for kind in kinds() {
        for seed in 0..300 {
            if let Err(why) = run(kind, seed, None) {
                panic!("{why}\nseed {seed} of {kind:?}");
            }
        }
    }
}

#[test]
fn nothing_is_left_behind_by_what_is_gone() {
    let kind = kinds()[0];
    for seed in 0..200 {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut trial = Trial::new(kind.blocks, kind.promise, kind.block_bytes, seed, None);
        let (mut in_flight, mut answered) = (Vec::new(), Vec::new());
        for _ in 0..100 {
            step(&mut trial, kind, &mut chance, &mut in_flight, &mut answered).unwrap();
        }
        trial.cut_and_judge(&mut chance, &Damage::LEGAL).unwrap();
        let all = LbaRange::new(Lba(0), kind.blocks);
        let discard = trial.submit(Op::Discard, all, false);
        trial.complete(discard);
        let flush = trial.submit(Op::Flush, LbaRange::EMPTY, false);
        trial.complete(flush);
        assert_eq!(trial.contents.window.len(), 0, "commands are remembered for nothing, seed {seed}");
    }
}
