//! Every flush, every write and every wait of the cache is needed: without any single one of them some history fails.
//!
//! A purpose is left out by answering its commands as done without carrying them out; a wait by
//! [`Waits::without`](plumb_cache::Waits::without). Left out of the list, since no history needs them:
//!
//! - `ReadRepair`: the other leg has the block still, and is read each time. It matters once that leg is lost, too.
//! - `EpochOnSurvivors`: recovery takes each record from any leg that has it, so a leg that came back misleads it only where the
//!   log has gone round its ring without writing another superblock, which each round of the ring does.
//! - `Stop`, `StopFlush`: they only say that the log is clean. One that does not say so is read, and found to be empty.
//! - `BypassBeforeLog`: the two writes were in flight together, and neither is older.

use plumb_cache::{Purpose, Wait};

use crate::history::History;
use crate::setup::LeftOut;

/// How many histories are tried before nobody seems to notice.
const TRIED_MAX: u64 = 6_000;

/// What is left out, and the first history that showed it; another one may, once histories are made otherwise.
const PURPOSES: [(Purpose, u64); 15] = [
    (Purpose::Equalise, 3273),
    (Purpose::EqualiseFlush, 985),
    (Purpose::Session, 2894),
    (Purpose::SessionFlush, 98),
    (Purpose::LogRecord, 2),
    (Purpose::LogFlush, 19),
    (Purpose::BypassWrite, 1),
    (Purpose::BypassFlush, 1),
    (Purpose::LogFlushBeforeDestage, 30),
    (Purpose::BackingDestage, 2),
    (Purpose::BackingFlushBeforeTail, 4),
    (Purpose::LogFlushBeforeTail, 36),
    (Purpose::TailAdvance, 19),
    (Purpose::TailFlush, 3391),
    (Purpose::EpochFlush, 3631),
];

/// The same of waits.
const WAITS: [(Wait, u64); 10] = [
    (Wait::LowerSequences, 517),
    (Wait::SuccessorsDurable, 356),
    (Wait::DurableBeforeDestage, 1610),
    (Wait::BackingDurable, 27),
    (Wait::TailDurable, 250),
    (Wait::FlushCovers, 80),
    (Wait::EpochDurable, 3631),
    (Wait::LegsEqual, 985),
    (Wait::LogBeforeBypass, 10),
    (Wait::SegmentUnread, 2170),
];

/// What this history shows if this is left out.
fn shown_by(left_out: LeftOut, seed: u64) -> Option<String> {
    let mut history = History::of(seed);
    history.left_out = left_out;
    let run = std::panic::AssertUnwindSafe(|| history.run().map(drop));
    match std::panic::catch_unwind(run) {
        Ok(Ok(())) => None,
        Ok(Err(why)) => Some(why),
        Err(_) => Some("the cache panicked".to_owned()),
    }
}

fn assert_shown(all: impl IntoIterator<Item = (LeftOut, u64)>) {
    let mut unnoticed = Vec::new();
    for (left_out, known) in all {
        let mut seeds = std::iter::once(known).chain(1..TRIED_MAX);
        match seeds.find_map(|seed| shown_by(left_out, seed).map(|why| (seed, why))) {
            Some((seed, why)) => {
                let why: String = why.chars().take(160).collect();
                eprintln!("{left_out:?}: seed {seed}: {why}");
            }
            None => unnoticed.push(left_out),
        }
    }
    assert!(
        unnoticed.is_empty(),
        "nobody notices within {TRIED_MAX} histories that {unnoticed:?} is left out"
    );
}

#[test]
fn every_purpose_is_needed() {
    assert_shown(PURPOSES.map(|(purpose, seed)| (LeftOut::Purpose(purpose), seed)));
}

#[test]
fn every_wait_is_needed() {
    assert_shown(WAITS.map(|(wait, seed)| (LeftOut::Wait(wait), seed)));
}
