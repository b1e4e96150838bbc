//! Comparison of the window with the rules of one block in the conformance kit
//! (`plumb_block::conformance::History`), after every event of every history up to five commands. Both must
//! give the same versions that each block may hold after a cut, and the same answer whether it may be
//! unreadable.
//!
//! | Alphabet | Commands | Histories |
//! |---|---|---|
//! | W, U (FUA), D (promising zeroes) on block 0, on block 1, on both; F | 3, some of which fail | 30,922 |
//! | W0, U0, D0 (not promising zeroes), W01, F | 4, some of which fail | 252,166 |
//! | W0, W01, U0, D0, F | 5 | 642,903 |
//!
//! `Every` documents the histories that are left out because they are equivalent to another one.

use plumb_block::LbaRange;
use plumb_crash::{Atomicity, Kind, Landing, Promise, Survivor};

use crate::history::{BLOCKS, Both, Every, Letter, letters};

/// Promise without atomic writes, so that every block in flight may be unreadable: the kit has no atomic
/// units.
const TEARING: Promise = Promise { atomicity: Atomicity { unit: 0, boundary: 0 }, ..Promise::VOLATILE };

pub(crate) const WRITE: Kind = Kind::Write { fua: false };
pub(crate) const FUA: Kind = Kind::Write { fua: true };
pub(crate) const DISCARD: Kind = Kind::Discard { zeroes: true };

fn compare(every: &Every<'_>, promise: Promise, expected: u64) {
    let count = every.walk(&Both::new(promise), &mut |before, events, event| {
        let mut both = before.clone();
        both.tell(event, Landing::Unknown);
        for block in 0..BLOCKS {
            let (found, legal) = (candidates(&both, block), both.legal(block));
            assert_eq!(found, legal, "block {block} after {events:?} and {event:?}");
        }
        both
    });
    assert_eq!(count, expected, "the number of histories");
}

#[test]
fn all_kinds_on_two_blocks_up_to_three_commands() {
    let every = Every { alphabet: &letters(true), commands: 3, with_failures: true };
    compare(&every, TEARING, 30_922);
}

#[test]
fn failures_and_discards_without_promise_up_to_four_commands() {
    let discard = Kind::Discard { zeroes: false };
    let alphabet = [(WRITE, 0, 1), (FUA, 0, 1), (discard, 0, 1), (WRITE, 0, 2)]
        .map(|(kind, lba, nlb)| Letter::On(kind, lba, nlb));
    let alphabet = [&alphabet[..], &[Letter::Flush]].concat();
    compare(&Every { alphabet: &alphabet, commands: 4, with_failures: true }, TEARING, 252_166);
}

#[test]
fn up_to_five_commands() {
    let alphabet = [(WRITE, 0, 1), (WRITE, 0, 2), (FUA, 0, 1), (DISCARD, 0, 1)]
        .map(|(kind, lba, nlb)| Letter::On(kind, lba, nlb));
    let alphabet = [&alphabet[..], &[Letter::Flush]].concat();
    compare(&Every { alphabet: &alphabet, commands: 5, with_failures: false }, TEARING, 642_903);
}

#[test]
fn without_a_volatile_cache() {
    let promise = Promise { volatile: false, ..TEARING };
    compare(&Every { alphabet: &letters(true), commands: 3, with_failures: true }, promise, 30_922);
}

/// Tests that a drive that decides early which of two concurrent writes is the last has only fewer outcomes,
/// and shows versions that a read may return.
#[test]
fn a_drive_that_has_decided_stays_within_the_rules() {
    let every = Every { alphabet: &letters(true), commands: 3, with_failures: true };
    for decide in [
        |id: u64| if id.is_multiple_of(2) { Landing::AtSubmission } else { Landing::AtCompletion },
        |id: u64| if id.is_multiple_of(2) { Landing::AtCompletion } else { Landing::AtSubmission },
    ] {
        every.walk(&Both::new(TEARING), &mut |before, events, event| {
            let mut both = before.clone();
            let id = if let crate::history::Event::Complete(id) = event { id } else { 0 };
            both.tell(event, decide(id));
            for block in 0..BLOCKS {
                let (found, legal) = (candidates(&both, block).0, both.legal(block).0);
                let is_legal = !found.is_empty() && found.iter().all(|version| legal.contains(version));
                assert!(is_legal, "block {block}: {found:?} of {legal:?} after {events:?} and {event:?}");
                let visible = visible(&both, block);
                let (history, now) = (&both.oracle[block], both.now + 1);
                let readable = history.readable(now, now).versions;
                let is_readable = readable.iter().any(|index| history.versions[*index].content == visible);
                assert!(is_readable, "block {block} shows {visible} after {events:?} and {event:?}");
            }
            both
        });
    }
}

fn visible(both: &Both, block: usize) -> u64 {
    let range: LbaRange = crate::history::range(block as u64, 1);
    let ids = both.window.versions(range).next().map_or(&[][..], |(_, ids)| ids);
    both.window.visible(ids).unwrap_or(both.stored[block])
}

/// Returns the contents that a block may have after a cut at this moment according to the window: versions by
/// number, and true if it may be unreadable.
pub(crate) fn candidates(both: &Both, block: usize) -> (Vec<u64>, bool) {
    let (mut versions, mut is_unreadable, mut has_any) = (Vec::new(), false, false);
    let here = |range: LbaRange| range.overlaps(crate::history::range(block as u64, 1));
    for one in both.window.candidates().filter(|one| here(one.range)) {
        has_any = true;
        for survivor in one.survivors {
            match survivor {
                Survivor::Stored => versions.push(both.stored[block]),
                Survivor::Command(id) => versions.push(id),
                Survivor::Unreadable => is_unreadable = true,
            }
        }
    }
    if !has_any {
        versions.push(both.stored[block]);
    }
    versions.sort_unstable();
    (versions, is_unreadable)
}
