//! Tests that a grown backing device is cached to its end while the cache serves, and that its mark states no
//! block by the place of an earlier witness.

use super::*;
use crate::settings::Identity;

/// Returns the options of a cache whose witnesses are the first and the last of `blocks` blocks.
fn with_last_of(blocks: u64, marked: Mark) -> Options {
    let identity = Identity { cache: Uuid([1; 16]), backing: Uuid([2; 16]), marked };
    Options { identity: Some(identity), witnesses: witnesses(blocks), ..options() }
}

fn witnesses(blocks: u64) -> Vec<LbaRange> {
    vec![LbaRange::new(Lba(0), 8), LbaRange::new(Lba(blocks - 8), 8)]
}

/// Writes everything back, and marks the backing device. Returns the last mark.
fn drain(rig: &mut Rig) -> Mark {
    rig.cache.drain(rig.now);
    let mut last = None;
    for _ in 0..100 {
        rig.run();
        last = rig.mark().or(last);
        if rig.cache.status().is_some_and(|status| !status.is_draining) {
            break;
        }
        rig.now = rig.cache.next_event().unwrap_or(rig.now + Nanos::millis(1));
        rig.cache.advance(rig.now);
    }
    last.expect("it was marked")
}

#[test]
fn a_backing_device_that_has_grown_is_taken_to_its_end_while_the_cache_serves() {
    let mut rig = Rig::new(21, 1, Layout::Mirror, with_last_of(BLOCKS, Mark::default()));
    rig.mark();
    rig.write(16, 8, 1);
    assert_eq!(drain(&mut rig).witnesses, 0b11);
    assert!(rig.cache.grow_backing(Bytes(512 * 2 * BLOCKS), witnesses(2 * BLOCKS), rig.now).is_err());
    rig.cache.silence_mark(rig.now).unwrap();
    rig.run();
    assert!(!rig.cache.is_mark_silent(), "the mark states something still");
    assert_eq!(rig.mark().expect("a mark").witnesses, 0);
    assert!(rig.cache.is_mark_silent());
    // No later mark states data that is written back meanwhile, whatever its place among the witnesses.
    rig.backing.resize(512 * 2 * BLOCKS as usize, 0);
    rig.cache.grow_backing(Bytes(512 * 2 * BLOCKS), witnesses(2 * BLOCKS), rig.now).unwrap();
    rig.run();
    assert_eq!(rig.cache.info().size, Bytes(512 * 2 * BLOCKS));
    rig.write(2 * BLOCKS - 8, 8, 5);
    let mark = rig.mark().expect("a mark with the witnesses of the larger device");
    assert_eq!(mark.witnesses & 0b01, 0b01, "{mark:?}");
    assert_eq!(rig.bytes(2 * BLOCKS - 8, 8), [5; 8 * 512]);
    assert_eq!(rig.done(Op::Read, 2 * BLOCKS, 1, 0).outcome, Outcome::Failed(Errno::EINVAL));
    rig.done(Op::Flush, 0, 0, 0);
    // The log says the new size by itself.
    let larger = DeviceInfo { size: Bytes(512 * 2 * BLOCKS), ..backing_info() };
    rig.pending.clear();
    rig.cache = Cache::open(with_last_of(2 * BLOCKS, mark), vec![Some(leg_info())], larger).unwrap();
    rig.run();
    rig.mark();
    assert_eq!(rig.bytes(2 * BLOCKS - 8, 8), [5; 8 * 512]);
    assert_eq!(drain(&mut rig).witnesses, 0b11);
    assert_eq!(rig.backing[rig.backing.len() - 4096..], [5; 4096]);
}

#[test]
fn a_backing_device_that_could_not_be_marked_stays_as_large_as_it_was() {
    let mut rig = Rig::new(22, 1, Layout::Mirror, with_last_of(BLOCKS, Mark::default()));
    rig.mark();
    rig.cache.silence_mark(rig.now).unwrap();
    rig.run();
    rig.mark();
    rig.cache.keep_backing(rig.now);
    rig.run();
    assert_eq!(rig.mark().expect("a mark").witnesses, 0b11, "it states the witnesses again");
    assert_eq!(rig.cache.info().size, Bytes(512 * BLOCKS));
}
