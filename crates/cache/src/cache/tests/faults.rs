//! Tests of the waits of the cache when a device fails, a mode is left, or a write overtakes another: step by
//! step.

use super::*;
use crate::settings::{Identity, MissingLegs};

fn identity(marked: Mark) -> Options {
    let (cache, backing) = (Uuid([1; 16]), Uuid([2; 16]));
    Options { identity: Some(Identity { cache, backing, marked }), degraded: MissingLegs::Any, ..options() }
}

/// The leg that is lost first does not record that the other one continued alone. The backing device does,
/// before anything is acknowledged.
#[test]
fn a_leg_that_others_went_on_without_is_refused_alone() {
    let mut rig = Rig::new(1, 2, Layout::Mirror, identity(Mark::default()));
    rig.mark();
    rig.write(0, 8, 1);
    rig.failing = Some((Member::Leg(0), Purpose::LogRecord));
    let tag = rig.ask(Op::Write { fua: false }, 0, 8, 2);
    rig.run();
    assert!(
        !rig.answers.contains_key(&tag),
        "acknowledged, and the backing device does not name the session"
    );
    let mark = rig.mark().expect("the log has a later session");
    assert_eq!(rig.answers.remove(&tag).map(|answer| answer.outcome), Some(Outcome::Done));
    assert_eq!(rig.cache.to_mark(), None);
    rig.failing = None;
    rig.reopen(identity(mark), &[true, false]);
    let State::Failed { because } = rig.cache.state() else { panic!("a stale leg was opened") };
    assert!(because.contains("device that had failed"), "{because}");
    rig.reopen(identity(mark), &[false, true]);
    assert_eq!(rig.bytes(0, 8), [2; 4096]);
}

#[test]
fn a_mark_that_is_not_taken_stops_writes() {
    let mut rig = Rig::new(1, 2, Layout::Mirror, identity(Mark::default()));
    rig.mark();
    rig.failing = Some((Member::Leg(0), Purpose::LogRecord));
    let tag = rig.ask(Op::Write { fua: false }, 0, 8, 2);
    rig.run();
    rig.cache.marked(Mark::default(), Err("read-only".to_owned()), rig.now);
    rig.run();
    assert_eq!(rig.answers.remove(&tag).map(|answer| answer.outcome), Some(Outcome::Failed(Errno::EIO)));
    assert!(matches!(rig.cache.state(), State::Latched { because } if because.contains("read-only")));
}

/// A leg other than the one to be replaced may have the only copy.
#[test]
fn only_the_leg_that_is_named_may_be_missing() {
    let without = |leg| Options { degraded: MissingLegs::Without(leg), ..options() };
    let mut rig = Rig::new(1, 2, Layout::Mirror, options());
    rig.reopen(without(1), &[false, true]);
    assert!(
        matches!(rig.cache.state(), State::Failed { because } if because.contains("device 0 of the log is missing"))
    );
    rig.reopen(without(0), &[false, true]);
    assert_eq!(rig.cache.state(), State::Serving);
    rig.reopen(options(), &[false, true]);
    assert_eq!(rig.cache.state(), State::Serving, "the log says that leg 0 is lost");
}

#[test]
fn what_was_vouched_for_is_flushed_when_that_mode_is_left() {
    let mut rig = Rig::new(1, 1, Layout::Mirror, Options { mode: Mode::Protected, ..options() });
    rig.write(0, 8, 1);
    assert!(rig.cache.is_mode_settled());
    rig.seen.clear();
    rig.held = Some(Purpose::LogFlush);
    rig.cache.set_mode(Mode::WriteBack, rig.now);
    rig.run();
    assert_eq!((rig.seen.get(&Purpose::LogFlush), rig.cache.is_mode_settled()), (None, false));
    rig.held = None;
    rig.run();
    assert_eq!((rig.seen.get(&Purpose::LogFlush), rig.cache.is_mode_settled()), (Some(&1), true));
}

/// Returns options with which streams of 8 blocks bypass the log.
fn streaming() -> Options {
    Options { bypass_after: Some(Bytes(8 * 512)), ..options() }
}

/// Returns the tag of a write that bypasses the log, while another write to the same place goes into the log.
fn overtaken(rig: &mut Rig) -> u64 {
    (0..2).for_each(|turn| rig.write(100 + turn * 8, 8, 1));
    rig.held = Some(Purpose::BypassWrite);
    let past = rig.ask(Op::Write { fua: false }, 116, 8, 2);
    rig.write(116, 4, 3);
    past
}

#[test]
fn what_a_write_past_the_log_overlaps_is_destaged_after_it() {
    let mut rig = Rig::new(1, 1, Layout::Mirror, streaming());
    let past = overtaken(&mut rig);
    rig.cache.drain(rig.now);
    rig.run();
    assert!(!rig.seen.contains_key(&Purpose::BackingDestage), "{:?}", rig.seen);
    rig.held = None;
    rig.wait(|cache| cache.status().is_some_and(|status| !status.is_draining));
    assert_eq!(rig.answers.remove(&past).map(|answer| answer.outcome), Some(Outcome::Done));
    assert_eq!(rig.bytes(116, 4), [3; 2048]);
}

/// The failed write may land later, until a flush of the backing device.
#[test]
fn after_a_write_past_the_log_has_failed_the_backing_device_is_flushed_before_it_is_destaged_to() {
    let mut rig = Rig::new(1, 1, Layout::Mirror, streaming());
    let past = overtaken(&mut rig);
    rig.cache.drain(rig.now);
    rig.run();
    assert_eq!(rig.seen[&Purpose::BackingFlushBeforeDestage], 1, "of this session");
    (rig.held, rig.failing) = (None, Some((Member::Backing, Purpose::BypassWrite)));
    rig.run();
    assert_eq!(rig.answers.remove(&past).map(|answer| answer.outcome), Some(Outcome::Failed(Errno::EIO)));
    assert!(!rig.seen.contains_key(&Purpose::BackingDestage), "{:?}", rig.seen);
    rig.wait(|cache| cache.status().is_some_and(|status| !status.is_draining));
    assert_eq!(rig.seen[&Purpose::BackingFlushBeforeDestage], 2);
    assert_eq!(rig.bytes(116, 4), [3; 2048]);
}

#[test]
fn the_log_takes_a_write_past_it_that_the_backing_device_has_failed() {
    let mut rig = Rig::new(1, 1, Layout::Mirror, streaming());
    (0..2).for_each(|turn| rig.write(100 + turn * 8, 8, 1));
    let before = rig.seen.get(&Purpose::BypassWrite).copied().unwrap_or_default();
    rig.failing = Some((Member::Backing, Purpose::BypassWrite));
    let past = rig.ask(Op::Write { fua: false }, 116, 8, 2);
    rig.run();
    assert_eq!(rig.answers.remove(&past).map(|answer| answer.outcome), Some(Outcome::Done));
    assert_eq!(rig.seen[&Purpose::BypassWrite], before + 1, "it was tried there first");
    assert_eq!(rig.bytes(116, 8), [2; 4096]);
}

/// A pattern that bypasses the log takes no memory of the device's queue, and comes back unchanged.
#[test]
fn the_bytes_of_a_pattern_are_made_before_they_go_past_the_log() {
    let mut rig = Rig::new(1, 1, Layout::Mirror, Options { mode: Mode::WriteThrough, ..options() });
    rig.held = Some(Purpose::BypassWrite);
    let pattern = plumb_block::Pattern { seed: 1, lba: Lba(8), generation: 2 };
    let request = Request {
        tag: Tag(99),
        op: Op::Write { fua: false },
        range: LbaRange::new(Lba(8), 4),
        payload: Payload::Pattern(pattern),
        deadline: None,
    };
    rig.cache.submit(request, rig.now);
    rig.run();
    let Some(Payload::Bytes(bytes)) = rig.pending.first().map(|action| &action.request.payload) else {
        panic!("{:?}", rig.pending);
    };
    let mut expected = vec![0; 2048];
    pattern.fill(512, &mut expected);
    assert_eq!(bytes[..], expected);
    rig.held = None;
    rig.run();
    assert!(matches!(rig.answers.remove(&99).unwrap().payload, Payload::Pattern(_)));
}

/// Writes until the log is full. Returns the tag of the last write, which waits.
fn fill_up(rig: &mut Rig) -> u64 {
    for turn in 0..1000 {
        let tag = rig.ask(Op::Write { fua: false }, turn * 7 % 231, 1, turn as u8);
        rig.run();
        if !rig.answers.contains_key(&tag) && rig.cache.status().unwrap().figures.is_full {
            return tag;
        }
        answered(rig, tag);
    }
    panic!("the log never fills");
}

/// Lets time pass until the request is answered. Returns the outcome, and the time that passed.
fn answered(rig: &mut Rig, tag: u64) -> (Outcome, Nanos) {
    let from = rig.now;
    for _ in 0..1000 {
        if let Some(answer) = rig.answers.remove(&tag) {
            return (answer.outcome, rig.now.since(from));
        }
        rig.now = rig.cache.next_event().expect("nothing more would happen");
        rig.cache.advance(rig.now);
        rig.run();
    }
    panic!("never answered: {:?}", rig.cache.status());
}

#[test]
fn writes_to_a_full_log_wait_for_a_fault_that_passes_and_fail_with_one_that_stays() {
    for (stays, expected) in [(false, Outcome::Done), (true, Outcome::Failed(Errno::EIO))] {
        let mut rig = Rig::new(1, 1, Layout::Mirror, options());
        rig.failing = Some((Member::Backing, Purpose::BackingDestage));
        let tag = fill_up(&mut rig);
        if !stays {
            rig.failing = None;
        }
        let (outcome, took) = answered(&mut rig, tag);
        assert_eq!(outcome, expected);
        assert_eq!(took >= Nanos::secs(9), stays, "{took}");
    }
}

/// Returns the position of a payload of this byte on a leg.
fn place(rig: &Rig, fill: u8) -> usize {
    rig.legs[0].windows(4096).position(|window| window == [fill; 4096]).unwrap()
}

/// Returns the blocks that the log has let go of.
fn left(rig: &Rig) -> Vec<LbaRange> {
    rig.cache.status().unwrap().unreadable
}

/// The log lets go of a block that it cannot read, and nothing is ever served in its place.
#[test]
fn a_block_that_cannot_be_read_does_not_keep_the_log_from_becoming_free() {
    let mut rig = Rig::new(1, 1, Layout::Mirror, options());
    rig.write(240, 8, 199);
    rig.write(248, 8, 198);
    rig.done(Op::Flush, 0, 0, 0);
    let at = place(&rig, 199);
    rig.legs[0][at] = 0;
    let tag = fill_up(&mut rig);
    assert_eq!(answered(&mut rig, tag).0, Outcome::Done);
    rig.cache.drain(rig.now);
    rig.wait(|cache| cache.status().is_some_and(|status| !status.is_draining));
    for opening in 0..3 {
        assert_eq!(left(&rig), [LbaRange::new(Lba(240), 8)], "opening {opening}");
        let status = rig.cache.status().unwrap();
        assert_eq!((status.dirty, status.log_used), (Bytes(0), Bytes(0)));
        assert_eq!(rig.done(Op::Read, 236, 8, 0).outcome, Outcome::Failed(Errno::EIO));
        assert_eq!(rig.bytes(248, 8), [198; 4096], "what was destaged with it");
        if opening == 1 {
            rig.cache.detach(rig.now);
            rig.wait(|cache| cache.state() == State::Stopped { is_clean: false });
        }
        rig.reopen(options(), &[true]);
    }
    // A record that overwrites half of the block may be lost until it is durable: until then the superblock
    // still names the whole block.
    rig.write(240, 4, 97);
    assert_eq!(rig.done(Op::Read, 240, 8, 0).outcome, Outcome::Failed(Errno::EIO));
    rig.reopen(options(), &[true]);
    assert_eq!(rig.bytes(240, 4), [97; 2048]);
    assert_eq!(left(&rig), [LbaRange::new(Lba(244), 4)]);
    rig.write(244, 4, 96);
    rig.cache.detach(rig.now);
    rig.wait(|cache| cache.state() == State::Stopped { is_clean: true });
    assert_eq!(rig.backing[240 * 512..248 * 512], [[97; 2048], [96; 2048]].concat());
}

/// An inspection reports what recovery would do to each leg, and the data that no leg has any more.
#[test]
fn a_look_tells_what_each_leg_lacks_and_what_is_gone() {
    let mut rig = Rig::new(2, 2, Layout::Mirror, options());
    let looking = || Options { dry_run: true, ..options() };
    for (lba, fill) in [(0, 91), (8, 92), (16, 93), (24, 94)] {
        rig.write(lba, 8, fill);
        rig.done(Op::Flush, 0, 0, 0);
    }
    // Overwritten since, so not missing.
    rig.write(24, 8, 95);
    rig.done(Op::Flush, 0, 0, 0);
    rig.reopen(looking(), &[true, true]);
    let found = rig.cache.status().unwrap().findings;
    assert_eq!((found.records, found.record_bytes, found.given_up_records), (5, Bytes(5 * 8192), 0));
    assert!(found.is_sound(), "{found:?}");
    let at = [91, 92, 94].map(|fill| place(&rig, fill) + 4095);
    for (leg, at) in [(1, at[0]), (0, at[1]), (1, at[1]), (0, at[2]), (1, at[2])] {
        rig.legs[leg][at] ^= 1;
    }
    let before = rig.legs.clone();
    rig.reopen(looking(), &[true, true]);
    let found = rig.cache.status().unwrap().findings;
    assert_eq!(found.damaged, [LbaRange::new(Lba(8), 8)], "{found:?}");
    assert_eq!(
        found.legs.iter().map(|leg| leg.damaged_bytes.0).collect::<Vec<_>>(),
        [2 * 8192, 3 * 8192],
        "{found:?}"
    );
    assert!(!found.is_sound() && rig.legs == before);
}

/// With permission, the data before a lost durable record is kept, and the data after it never comes back.
#[test]
fn what_comes_before_a_lost_record_is_kept_if_that_is_allowed() {
    let mut rig = Rig::new(3, 1, Layout::Mirror, options());
    for (lba, fill) in [(0, 71), (8, 72), (16, 73), (24, 74)] {
        rig.write(lba, 8, fill);
        rig.done(Op::Flush, 0, 0, 0);
    }
    let header = place(&rig, 73) - 4096;
    let whole = rig.legs[0][header + 9];
    rig.legs[0][header + 9] ^= 1;
    rig.reopen(options(), &[true]);
    assert!(matches!(rig.cache.state(), State::Failed { .. }), "{:?}", rig.cache.state());
    rig.reopen(Options { gives_up_lost: true, ..options() }, &[true]);
    let found = rig.cache.status().unwrap().findings;
    // No later record states that the last record was flushed.
    assert_eq!((found.records, found.lost_records, found.given_up_records), (2, 1, 1), "{found:?}");
    assert!(!found.is_sound());
    for opening in 0..3 {
        let bytes = [0, 8, 16, 24].map(|lba| rig.bytes(lba, 8)[0]);
        assert_eq!(bytes, [71, 72, if opening > 1 { 75 } else { 0 }, 0], "opening {opening}");
        if opening == 1 {
            rig.write(16, 8, 75);
            rig.done(Op::Flush, 0, 0, 0);
        }
        // The lost record can be read again: it was given up.
        rig.legs[0][header + 9] = whole;
        rig.reopen(options(), &[true]);
        assert!(rig.cache.status().unwrap().findings.is_sound());
    }
}
