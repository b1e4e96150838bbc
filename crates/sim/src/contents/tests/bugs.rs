//! The oracles are tested, too: each bug, planted alone, is seen by one of them.

use super::{reach, streams};
use crate::rules::planted::{ALL, Bug, plant};

/// What sees the bug, if anything does.
fn seen_by(bug: Bug) -> Option<String> {
    plant(Some(bug));
    let kinds = streams::kinds();
    let in_streams = |mut seeds: std::ops::Range<u64>| {
        let why = seeds.find_map(|seed| kinds.iter().find_map(|kind| streams::run(*kind, seed).err()));
        why.map(|why| format!("streams: {why}"))
    };
    let in_reach = || {
        let scripts = reach::scripts();
        let mut small = scripts.iter().filter(|script| reach::is_small(script));
        small.find_map(|script| reach::run(script, 4_000).err()).map(|why| format!("reach: {why}"))
    };
    let seen = in_streams(0..30).or_else(in_reach).or_else(|| in_streams(30..300));
    plant(None);
    seen
}

#[test]
fn each_planted_bug_is_seen() {
    let mut unseen = Vec::new();
    for bug in ALL {
        match seen_by(*bug) {
            Some(why) => println!("{bug:?} is seen by {why}"),
            None => unseen.push(bug),
        }
    }
    assert!(unseen.is_empty(), "nothing sees {unseen:?}");
}
