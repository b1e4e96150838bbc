//! Tests that wrong devices with each class of mistake are found by the comparisons of `exhaustive` and
//! `whole_drive`. A mistake is made by reporting other events to the window, by another promise, or by
//! changing a drawn outcome; the code of the window itself is correct.

use std::cell::Cell;
use std::collections::BTreeSet;

use plumb_crash::{Atomicity, Grain, Keep, Kind, Landing, Promise, Strategy, Survival};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

use crate::history::{BLOCKS, Both, Event, Every, Letter, letters, submit};
use crate::whole_drive::{Outcome, enumerated, left, legal};

/// A mistake in the events reported to the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    FlushCoversNothing,
    /// The flush covers what had been submitted before it, completed or not.
    FlushCoversSubmitted,
    /// The flush covers what completed before the flush itself completed.
    FlushCoversUntilItsCompletion,
    FailedFlushCovers,
    FuaIsPlain,
    FuaIsBarrier,
    DiscardIsDurable,
    DiscardIsIgnored,
    /// Completed overwrites survive in any order, and an older one over a durable newer one.
    OrderIsForgotten,
    InFlightNeverSurvives,
    FailedNeverLands,
    /// A version that becomes durable over another durable version is not stored.
    StoreIsDropped,
}

const MISTAKES: [Mistake; 12] = [
    Mistake::FlushCoversNothing,
    Mistake::FlushCoversSubmitted,
    Mistake::FlushCoversUntilItsCompletion,
    Mistake::FailedFlushCovers,
    Mistake::FuaIsPlain,
    Mistake::FuaIsBarrier,
    Mistake::DiscardIsDurable,
    Mistake::DiscardIsIgnored,
    Mistake::OrderIsForgotten,
    Mistake::InFlightNeverSurvives,
    Mistake::FailedNeverLands,
    Mistake::StoreIsDropped,
];

/// First number for flushes that the history does not have.
const OWN: u64 = 1000;

impl Mistake {
    fn tell(self, both: &mut Both, event: Event) {
        match event {
            Event::Submit(letter) => self.tell_submission(both, letter),
            Event::Complete(id) => self.tell_completion(both, id),
            Event::Fail(id) => {
                let is_flush = both.commands[id as usize - 1].letter == Letter::Flush;
                both.tell_window(|window, store| match self {
                    Self::FailedNeverLands => window.withdraw(id),
                    Self::FailedFlushCovers if is_flush => window.complete(id, Landing::Unknown, store),
                    _ => window.fail(id),
                });
            }
        }
        both.tell_oracle(event);
    }

    fn tell_submission(self, both: &mut Both, letter: Letter) {
        let id = both.commands.len() as u64 + 1;
        let is_discard = matches!(letter, Letter::On(Kind::Discard { .. }, ..));
        match (self, letter) {
            (Self::FlushCoversNothing | Self::FlushCoversUntilItsCompletion, Letter::Flush)
            | (Self::InFlightNeverSurvives, Letter::On(..)) => {}
            (Self::DiscardIsIgnored, _) if is_discard => {}
            (Self::FlushCoversSubmitted, Letter::Flush) => {
                for before in 1..id {
                    both.tell_window(|window, store| window.complete(before, Landing::Unknown, store));
                }
                both.tell_window(|window, _| window.submit_flush(id));
            }
            (Self::FuaIsPlain, Letter::On(Kind::Write { .. }, first, nlb)) => {
                let plain = Letter::On(Kind::Write { fua: false }, first, nlb);
                both.tell_window(|window, _| submit(window, id, plain));
            }
            _ => both.tell_window(|window, _| submit(window, id, letter)),
        }
    }

    fn tell_completion(self, both: &mut Both, id: u64) {
        let letter = both.commands[id as usize - 1].letter;
        let stored = both.stored;
        let is_fua = matches!(letter, Letter::On(Kind::Write { fua: true }, ..));
        both.tell_window(|window, store| {
            match (self, letter) {
                (Self::OrderIsForgotten, Letter::On(Kind::Write { fua: false }, ..)) => return,
                (Self::FlushCoversUntilItsCompletion, Letter::Flush)
                | (Self::InFlightNeverSurvives, Letter::On(..)) => submit(window, id, letter),
                (Self::DiscardIsDurable, Letter::On(Kind::Discard { .. }, ..)) => window.destage(id, store),
                _ => {}
            }
            window.complete(id, Landing::Unknown, store);
            if self == Self::FuaIsBarrier && is_fua {
                window.submit_flush(OWN + id);
                window.complete(OWN + id, Landing::Unknown, store);
            }
        });
        if self == Self::StoreIsDropped {
            let kept =
                (0..BLOCKS).map(|block| if stored[block] == 0 { both.stored[block] } else { stored[block] });
            both.stored = kept.collect::<Vec<_>>().try_into().unwrap();
        }
    }

    /// Returns true if the comparison with the rules of one block finds the mistake.
    fn is_found(self) -> bool {
        let found = Cell::new(false);
        let every = Every { alphabet: &letters(true), commands: 3, with_failures: true };
        let promise = Promise { atomicity: Atomicity { unit: 0, boundary: 0 }, ..Promise::VOLATILE };
        every.walk(&Both::new(promise), &mut |before, _, event| {
            let mut both = before.clone();
            if !found.get() {
                self.tell(&mut both, event);
                let differs = |block: usize| crate::exhaustive::candidates(&both, block) != both.legal(block);
                found.set((0..BLOCKS).any(differs));
            }
            both
        });
        found.get()
    }
}

#[test]
fn each_mistake_in_what_is_covered_is_found() {
    let missed: Vec<_> = MISTAKES.iter().filter(|mistake| !mistake.is_found()).collect();
    assert!(missed.is_empty(), "nothing finds {missed:?}");
}

/// Returns a history of a durable write of both blocks, and another one in flight.
fn two_writes(told: Promise) -> Both {
    let mut both = Both::new(told);
    let both_blocks = |fua| Event::Submit(Letter::On(Kind::Write { fua }, 0, 2));
    for event in [both_blocks(true), Event::Complete(1), both_blocks(false)] {
        both.tell(event, Landing::Unknown);
    }
    both
}

/// Returns the outcomes that many seeds leave when the drawn remainders are changed by `change`.
fn drawn(
    both: &Both,
    survival: Survival,
    change: impl Fn(&mut Vec<plumb_crash::Remainder>),
) -> BTreeSet<Outcome> {
    let outcome = |seed| {
        let mut drawn = both.window.draw(&mut Xoshiro256PlusPlus::seed_from_u64(seed), survival);
        change(&mut drawn.remainders);
        left(both, &drawn)
    };
    (0..200).map(outcome).collect()
}

#[test]
fn each_mistake_about_atomic_writes_is_found() {
    let atomic = Promise { atomicity: Atomicity { unit: 2, boundary: 0 }, ..Promise::VOLATILE };
    let bounded = Promise { atomicity: Atomicity { unit: 2, boundary: 1 }, ..Promise::VOLATILE };
    for (promised, taken_for) in [(atomic, Promise::VOLATILE), (atomic, bounded), (bounded, atomic)] {
        let both = two_writes(taken_for);
        let legal = legal(&both.commands, promised);
        assert_ne!(enumerated(&both, Grain::Blocks), legal, "{promised:?} taken for {taken_for:?}");
        assert_ne!(drawn(&both, Survival::Mixed, |_| {}), legal, "{promised:?} taken for {taken_for:?}");
    }
}

#[test]
fn each_mistake_of_a_draw_is_found() {
    let both = two_writes(Promise::VOLATILE);
    let legal = legal(&both.commands, Promise::VOLATILE);
    assert_eq!(drawn(&both, Survival::Mixed, |_| {}), legal, "without a mistake all is drawn and no more");
    for strategy in [Strategy::AllLost, Strategy::AllSurvive, Strategy::Prefix] {
        assert_ne!(drawn(&both, Survival::By(strategy), |_| {}), legal, "always {strategy:?}");
    }
    let never_torn = drawn(&both, Survival::Mixed, |remainders| {
        let torn = remainders.iter_mut().filter(|one| one.keep != Keep::Nothing);
        torn.for_each(|one| one.keep = Keep::All);
    });
    assert_ne!(never_torn, legal, "a write of several blocks never tears");
    let lost = drawn(&both, Survival::Mixed, |remainders| remainders.retain(|one| one.id != 2));
    assert_ne!(lost, legal, "what is in flight never survives");
}
