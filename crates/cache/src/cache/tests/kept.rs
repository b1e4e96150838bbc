//! Tests that data that was written back is read from the log until its segment is reused, but never if it is
//! stale.

use super::*;

/// Writes everything back.
fn drain(rig: &mut Rig) {
    rig.cache.drain(rig.now);
    rig.wait(|cache| cache.status().is_some_and(|status| !status.is_draining));
    assert_eq!(rig.cache.status().unwrap().log_used, Bytes(0));
}

/// Returns the number of reads that the backing device has had.
fn backing_reads(rig: &Rig) -> u64 {
    rig.seen.get(&Purpose::BackingRead).copied().unwrap_or(0)
}

/// Returns a cache that has written 64 blocks of 7 and written them back.
fn written_back(legs: usize) -> Rig {
    let mut rig = Rig::new(11, legs, Layout::Mirror, options());
    rig.write(0, 64, 7);
    drain(&mut rig);
    rig
}

#[test]
fn what_was_written_back_is_read_from_the_log_until_its_segment_is_used_again() {
    let mut rig = written_back(1);
    assert_eq!(rig.bytes(0, 64), [7; 64 * 512]);
    let figures = rig.cache.status().unwrap().figures;
    assert!(figures.kept_reads > 0 && figures.kept_read == Bytes(64 * 512), "{figures:?}");
    assert_eq!(backing_reads(&rig), 0);
    for round in 0..20 {
        rig.write(128, 64, round);
        drain(&mut rig);
        assert_eq!(rig.bytes(0, 64), [7; 64 * 512], "round {round}");
    }
    assert!(backing_reads(&rig) > 0, "the log was gone round");
    assert!(rig.cache.core().unwrap().base.index.len() < 20, "what is not kept is forgotten");
}

#[test]
fn a_write_past_the_log_is_read_and_not_what_the_log_kept() {
    let mut rig = written_back(1);
    rig.cache.set_mode(Mode::WriteThrough, rig.now);
    rig.write(8, 8, 9);
    assert_eq!(rig.seen[&Purpose::BypassWrite], 1);
    assert_eq!(rig.bytes(0, 24), [[7; 8 * 512], [9; 8 * 512], [7; 8 * 512]].concat());
    rig.reopen(options(), &[true]);
    assert_eq!(rig.bytes(0, 24), [[7; 8 * 512], [9; 8 * 512], [7; 8 * 512]].concat());
}

#[test]
fn what_the_log_kept_and_cannot_be_read_there_is_read_from_the_backing_device() {
    let mut rig = written_back(1);
    let places: Vec<_> = (0..rig.legs[0].len()).step_by(4096).filter(|at| rig.legs[0][*at] == 7).collect();
    assert!(places.len() >= 8);
    places.into_iter().for_each(|at| rig.legs[0][at] = 0);
    assert_eq!(rig.bytes(0, 64), [7; 64 * 512]);
    assert!(backing_reads(&rig) > 0 && rig.cache.status().unwrap().unreadable.is_empty());
    rig.failing = Some((Member::Leg(0), Purpose::LogRead));
    assert_eq!(rig.bytes(3, 5), [7; 5 * 512], "a device that fails reads");
}

#[test]
fn a_device_that_replaces_another_is_not_read_for_what_was_not_copied_to_it() {
    let mut rig = written_back(2);
    rig.cache.retire_leg(0, rig.now).unwrap();
    rig.wait(|cache| cache.status().is_some_and(|status| status.legs[0] == LegState::Lost));
    rig.legs[0].fill(0);
    rig.write(64, 8, 5);
    rig.held = Some(Purpose::ResilverRead);
    rig.cache.replace_leg(0, leg_info(), rig.now).unwrap();
    rig.run();
    drain(&mut rig);
    rig.held = None;
    rig.wait(|cache| cache.status().is_some_and(|status| status.legs[0] == LegState::Live));
    for _ in 0..4 {
        assert_eq!(rig.bytes(0, 72), [&[7; 64 * 512][..], &[5; 8 * 512]].concat());
    }
    assert_eq!(rig.cache.status().unwrap().figures.checksum_errors, 0);
    rig.write(0, 8, 6);
    drain(&mut rig);
    let before = backing_reads(&rig);
    assert_eq!(rig.bytes(0, 8), [6; 8 * 512]);
    assert_eq!(backing_reads(&rig), before, "once it counts, the log keeps what is written back");
}

#[test]
fn a_log_that_has_grown_or_moved_is_not_read_for_what_the_old_one_kept() {
    let larger = || DeviceInfo { size: Bytes(2 * LEG.0), ..leg_info() };
    let mut rig = written_back(1);
    rig.legs[0].resize(2 * LEG.0 as usize, 0);
    rig.cache.grow(Bytes(2 * LEG.0), vec![Some(larger())], rig.now).unwrap();
    rig.wait(|cache| cache.status().is_some_and(|status| !status.is_growing));
    assert_eq!(rig.bytes(0, 64), [7; 64 * 512]);
    assert_eq!(rig.cache.status().unwrap().figures.checksum_errors, 0);
    rig.write(0, 8, 6);
    drain(&mut rig);
    assert_eq!(rig.bytes(0, 16), [[6; 8 * 512], [7; 8 * 512]].concat());
}
