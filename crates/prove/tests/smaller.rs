//! States by their losses, and minimal cases.

use std::ops::ControlFlow;

use plumb_block::{Bytes, Lba, LbaRange, Nanos, Op};
use plumb_prove::explore::Choice;
use plumb_prove::recording::{CommandId, Event, Recording};

use crate::explorer;

const BLOCK: u64 = 512;
const BLOCKS: u64 = 4;

/// Records `writes` writes of four blocks each, of which every second overlaps half of the previous one.
fn recording(writes: u64) -> Recording {
    let mut recording = Recording::of_blank(Bytes(BLOCK * BLOCKS * writes), Bytes(BLOCK));
    for number in 0..writes {
        let bytes: Vec<u8> =
            (0..BLOCKS).flat_map(|block| [(8 * number + block) as u8 | 1; BLOCK as usize]).collect();
        let range = LbaRange::new(Lba(number * BLOCKS - number % 2 * 2), BLOCKS);
        let id = recording.submit(Nanos(0), Op::Write { fua: false }, range, &bytes);
        recording.happened(Nanos(0), Event::Completed(id));
    }
    recording
}

#[test]
fn each_state_comes_back_from_what_the_cut_took() {
    for writes in [3, 6, 30] {
        let recording = recording(writes);
        let explorer = explorer(&recording);
        let (mut shown, mut torn) = (0, 0);
        explorer.explore(&mut |state| {
            shown += 1;
            let choice = state.choice();
            torn += u32::from(choice.lost.values().any(|blocks| blocks.len() < BLOCKS as usize));
            let text = serde_json::to_string(&choice).unwrap();
            let choice: Choice = serde_json::from_str(&text).unwrap();
            let hash = explorer.show(&choice, &mut |state| state.hash());
            assert_eq!(hash, Some(state.hash()), "{choice:?}");
            ControlFlow::Continue(())
        });
        assert!(shown > 60 && torn > 20, "{shown}, {torn}");
    }
}

#[test]
fn only_what_is_needed_to_fail_is_left() {
    let recording = recording(20);
    let explorer = explorer(&recording);
    // Fails if block 2 of write 4 and the whole of write 12 are lost, while write 16 survives.
    let fails = |state: &plumb_prove::explore::State<'_>| {
        let lost = state.choice().lost;
        let has_lost = |write: u32, blocks: &[u64]| {
            lost.get(&CommandId(write)).is_some_and(|lost| blocks.iter().all(|block| lost.contains(block)))
        };
        has_lost(4, &[18]) && has_lost(12, &[48, 49, 50, 51]) && !lost.contains_key(&CommandId(16))
    };
    let mut first = None;
    explorer.explore(&mut |state| match fails(state) {
        true => {
            first = Some(state.choice());
            ControlFlow::Break(())
        }
        false => ControlFlow::Continue(()),
    });
    let first = first.expect("no state fails");
    assert!(first.lost.len() > 2, "{first:?}");
    let mut tried = 0;
    let mut counted = |state: &plumb_prove::explore::State<'_>| {
        tried += 1;
        ControlFlow::Continue(fails(state))
    };
    let minimal = explorer.minimise(&first, &mut counted).unwrap();
    let lost: Vec<_> = minimal.lost.into_iter().map(|(command, blocks)| (command.0, blocks)).collect();
    assert_eq!(lost, [(4, vec![18]), (12, vec![48, 49, 50, 51])]);
    assert!(tried < 60, "{tried} states");
}

#[test]
fn what_does_not_fail_is_not_made_smaller() {
    let recording = recording(3);
    let nothing_lost = Choice { event: recording.events.len(), lost: std::collections::BTreeMap::new() };
    assert_eq!(explorer(&recording).minimise(&nothing_lost, &mut |_| ControlFlow::Continue(false)), None);
    let elsewhere = Choice { event: 1, ..nothing_lost };
    assert_eq!(explorer(&recording).show(&elsewhere, &mut |_| ()), None);
}
