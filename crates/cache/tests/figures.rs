//! Tests of write amplification and memory: the cost of a long run of random writes in addition to its data.

use plumb_block::Bytes;
use plumb_cache::Status;
use plumb_crash::below;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

use crate::history::Step;
use crate::setup::{LeftOut, Setup};
use crate::world::World;

/// A log of 16 MiB in front of 64 MiB, destaged from 80 % on.
const SETUP: Setup = Setup {
    segment_bytes: 512 << 10,
    segments: 32,
    backing_bytes: 64 << 20,
    record_max: 512 << 10,
    bypass_after: None,
    destage_start: 0.8,
    ..Setup::SMALL
};

/// Returns the status of the cache after writes of `bytes` each at random places, one at a time, three times
/// the log in all.
fn after_writes_of(bytes: u64) -> Result<Status, String> {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(bytes);
    let mut world = World::new(&SETUP, LeftOut::Nothing)?;
    let nlb = bytes / SETUP.block;
    for _ in 0..3 * SETUP.segments * SETUP.segment_bytes / bytes {
        let lba = below(&mut chance, SETUP.blocks() / nlb) * nlb;
        world.step(Step::Write { lba, nlb, fua: false })?;
        world.settle(&mut chance)?;
    }
    world.status().ok_or_else(|| "not serving".to_owned())
}

fn amplification(bytes: u64) -> Result<f64, String> {
    let status = after_writes_of(bytes)?;
    let used = status.log_used.0 as f64 / status.log.0 as f64;
    assert!(used >= 0.7, "{used} of the log is used");
    let times = status.figures.leg_written.0 as f64 / status.figures.written.0 as f64;
    eprintln!("writes of {}: {times:.3} times as much to the log, {used:.2} of it used", Bytes(bytes));
    Ok(times)
}

#[test]
fn write_amplification_at_4_kib_and_depth_1_is_at_most_2_2() {
    let times = amplification(4096).unwrap();
    assert!(times <= 2.2, "{times}");
}

#[test]
fn write_amplification_at_64_kib_is_at_most_1_15() {
    let times = amplification(65536).unwrap();
    assert!(times <= 1.15, "{times}");
}
