//! Explorer compared with the rules of one block in the conformance kit, after every event of every history:
//! it shows exactly the states that a cut may leave at that moment, each with the last acknowledgement
//! possible for it.
//!
//! Every completion is acknowledged, so the required acknowledgement is the number of completions.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use plumb_block::{Bytes, Nanos, Op};
use plumb_crash::{Atomicity, Kind, Landing, Promise, below};
use plumb_prove::explore::{Coverage, Explorer, Limits, State};
use plumb_prove::recording::{self, CommandId, Recording};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::explorer;
use crate::history::{BLOCKS, Both, Event, Every, Letter, letters};

/// No write is atomic, since the kit has no atomic units.
const TEARING: Promise = Promise { atomicity: Atomicity { unit: 0, boundary: 0 }, ..Promise::VOLATILE };
const BLOCK: u64 = 512;

/// Content of both blocks, by the number of the command; 0 for zeroes.
type BlockVersions = [u64; BLOCKS];

/// History, its recording, and every state that a cut may have left with the acknowledgements.
#[derive(Clone)]
struct ToldHistory {
    both: Both,
    recording: Recording,
    completed: u64,
    legal: HashSet<(BlockVersions, u64)>,
}

impl ToldHistory {
    fn new(promise: Promise) -> Self {
        let recording = Recording::of_blank(Bytes(BLOCK * BLOCKS as u64), Bytes(BLOCK));
        let mut told = Self { both: Both::new(promise), recording, completed: 0, legal: HashSet::new() };
        told.legal.insert(([0; BLOCKS], 0));
        told
    }

    fn and(&self, event: Event) -> Self {
        let mut told = self.clone();
        told.both.tell(event, Landing::Unknown);
        told.record(event);
        for first in told.both.legal(0).0 {
            for second in told.both.legal(1).0 {
                let held = [first, second].map(|id| told.content(id));
                told.legal.insert((held, told.completed));
            }
        }
        told
    }

    /// Returns the content that the command writes.
    fn content(&self, id: u64) -> u64 {
        let letter = (id as usize).checked_sub(1).map(|index| self.both.commands[index].letter);
        if matches!(letter, Some(Letter::On(Kind::Write { .. }, ..))) { id } else { 0 }
    }

    fn record(&mut self, event: Event) {
        let at = Nanos(self.recording.events.len() as u64);
        let command = |id: u64| CommandId(id as u32 - 1);
        match event {
            Event::Submit(letter) => {
                let id = self.both.commands.len() as u8;
                let (op, range, bytes) = match letter {
                    Letter::Flush => (Op::Flush, plumb_block::LbaRange::EMPTY, 0),
                    Letter::On(kind, first, nlb) => {
                        let range = crate::history::range(first, nlb);
                        match kind {
                            Kind::Write { fua } => (Op::Write { fua }, range, nlb * BLOCK),
                            Kind::WriteZeroes { fua } => {
                                (Op::WriteZeroes { fua, no_hole: false, fast_only: false }, range, 0)
                            }
                            Kind::Discard { .. } => (Op::Discard, range, 0),
                        }
                    }
                };
                self.recording.submit(at, op, range, &vec![id; bytes as usize]);
            }
            Event::Complete(id) => {
                self.completed += 1;
                self.recording.happened(at, recording::Event::Completed(command(id)));
                self.recording.happened(at, recording::Event::Acknowledged(self.completed));
            }
            Event::Fail(id) => self.recording.happened(at, recording::Event::Failed(command(id))),
        }
    }

    fn held(&self, state: &State<'_>) -> BlockVersions {
        let mut contents = [0, 1].map(|lba| state.durable().content(lba));
        for (lba, content) in state.changes() {
            contents[lba as usize] = content;
        }
        contents.map(|content| u64::from(self.recording.contents.bytes(content)[0]))
    }

    /// Returns true if every window was explored exhaustively, in which case nothing may be missing.
    fn check(&self, promise: Promise, pieces: u32) -> bool {
        let limits = Limits { pieces, ..Limits::default() };
        let explorer = Explorer { promise, limits, ..explorer(&self.recording) };
        let mut shown: HashMap<BlockVersions, u64> = HashMap::new();
        let mut hashes: HashMap<u128, BlockVersions> = HashMap::new();
        let windows = explorer.explore(&mut |state| {
            let (held, required) = (self.held(state), state.required().unwrap_or(0));
            assert!(
                self.legal.contains(&(held, required)),
                "{held:?} is shown after {required} acknowledgements, and is not legal: {:?}",
                self.recording.events
            );
            assert_eq!(*hashes.entry(state.hash()).or_insert(held), held, "two states with one hash");
            let most = shown.entry(held).or_default();
            *most = (*most).max(required);
            ControlFlow::Continue(())
        });
        let is_exhaustive = windows.iter().all(|window| window.coverage == Coverage::Exhaustive);
        if is_exhaustive {
            let mut legal: HashMap<BlockVersions, u64> = HashMap::new();
            for (held, required) in &self.legal {
                let most = legal.entry(*held).or_default();
                *most = (*most).max(*required);
            }
            assert_eq!(shown, legal, "{:?}", self.recording.events);
        }
        is_exhaustive
    }
}

fn compare(every: &Every<'_>, promise: Promise) {
    every.walk(&ToldHistory::new(promise), &mut |before, _, event| {
        let told = before.and(event);
        assert!(told.check(promise, 12));
        told
    });
}

#[test]
fn all_kinds_up_to_three_commands() {
    compare(&Every { alphabet: &letters(true), commands: 3, with_failures: false }, TEARING);
}

#[test]
fn up_to_four_commands() {
    let write = |fua| Kind::Write { fua };
    let on = [
        (write(false), 0, 1),
        (write(true), 0, 1),
        (write(false), 0, 2),
        (Kind::Discard { zeroes: false }, 0, 1),
    ];
    let on = on.map(|(kind, first, nlb)| Letter::On(kind, first, nlb));
    let alphabet = [&on[..], &[Letter::Flush]].concat();
    let promise = Promise { discard_zeroes: false, ..TEARING };
    compare(&Every { alphabet: &alphabet, commands: 4, with_failures: false }, promise);
    compare(&Every { alphabet: &alphabet, commands: 3, with_failures: true }, promise);
}

#[test]
fn without_a_volatile_cache() {
    let promise = Promise { volatile: false, ..TEARING };
    compare(&Every { alphabet: &letters(true), commands: 3, with_failures: true }, promise);
}

#[test]
fn ten_thousand_histories_of_up_to_twelve_commands() {
    let alphabet = letters(true);
    let mut whole = 0;
    for seed in 0..10_000 {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut told = ToldHistory::new(TEARING);
        let commands = 1 + below(&mut chance, 12);
        let mut in_flight: Vec<u64> = Vec::new();
        while (told.both.commands.len() as u64) < commands || !in_flight.is_empty() {
            let may_submit = (told.both.commands.len() as u64) < commands;
            if may_submit && (in_flight.is_empty() || below(&mut chance, 2) == 0) {
                let letter = if below(&mut chance, 4) == 0 {
                    Letter::Flush
                } else {
                    alphabet[below(&mut chance, alphabet.len() as u64) as usize]
                };
                told = told.and(Event::Submit(letter));
                in_flight.push(told.both.commands.len() as u64);
            } else {
                let one = in_flight.swap_remove(below(&mut chance, in_flight.len() as u64) as usize);
                told = told.and(Event::Complete(one));
            }
        }
        whole += u32::from(told.check(TEARING, 10));
    }
    assert!(whole > 9_000, "only {whole} of 10,000 histories were explored whole");
}
