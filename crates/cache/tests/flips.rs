//! A flipped bit in any byte of a small log (in the test run one byte in 61): the log is refused, the block
//! cannot be read, another leg has it, or it is not needed. Wrong data is never read, and with a mirror the
//! user notices nothing.
//!
//! Only blocks that recovery and reading use are damaged, byte by byte, since others do not matter.

use std::time::Instant;

use plumb_cache::State;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

use crate::history::Step;
use crate::random::number;
use crate::setup::{Faults, LeftOut, Legs, Setup};
use crate::world::World;

/// Distance of the damaged bytes in the test run; `PLUMB_FLIP_STEP=1` damages all.
const STEP: u64 = 61;
/// Unit with a separate checksum, in bytes.
const LOG_BLOCK: usize = 4096;

/// Returns a log with records of all kinds, overwritten ones among them, and the last of them not flushed.
fn written(setup: &Setup) -> Result<World, String> {
    let mut world = World::new(setup, LeftOut::Nothing)?;
    let write = |lba, nlb, fua| Step::Write { lba, nlb, fua };
    let steps = [
        write(0, 2, false),
        write(1, 1, true),
        Step::Zeroes { lba: 3, nlb: 2, fua: false },
        write(4, 1, false),
        Step::Discard { lba: 6, nlb: 1 },
        Step::Flush,
        write(0, 1, false),
        Step::Flush,
        write(7, 1, false),
    ];
    for step in steps {
        world.step(step)?;
        world.step(Step::Settle { roll: 1 })?;
    }
    Ok(world)
}

fn check(setup: &Setup) -> Result<(), String> {
    let began = Instant::now();
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(2);
    let world = written(setup)?;
    let mut whole = world.reborn(world.members_after_kill())?;
    whole.verify(&mut chance)?;
    let read = whole.members[0].blocks_read();
    let block = whole.members[0].info.logical_block.0;
    let (mut refused, mut unreadable, mut served) = (0, 0, 0);
    let step = number("PLUMB_FLIP_STEP", STEP) as usize;
    let image = whole.members[0].image();
    let bytes = read.iter().flat_map(|lba| lba * block..(lba + 1) * block);
    for byte in bytes.step_by(step) {
        let mut members = world.members_after_kill();
        members[0].flip(byte as usize, 1 << (byte % 8));
        let mut again = world.reborn(members)?;
        again.expect_failures();
        again.verify(&mut chance).map_err(|why| format!("byte {byte} of leg 0: {why}"))?;
        match again.state() {
            State::Failed { because } => {
                assert!(because.len() > 20, "byte {byte}: refused without a sentence: {because}");
                let start = byte as usize / LOG_BLOCK * LOG_BLOCK;
                let is_of_the_log_itself = image[start..].starts_with(b"plumb");
                assert!(
                    is_of_the_log_itself,
                    "byte {byte}: damaged payload must not refuse the log: {because}"
                );
                refused += 1;
            }
            _ if again.failed_reads > 0 => unreadable += 1,
            _ => served += 1,
        }
    }
    eprintln!(
        "{:?}: {} bytes: {refused} refused, {unreadable} with a block that cannot be read, {served} as if nothing were, \
         in {:.1} s",
        setup.layout,
        refused + unreadable + served,
        began.elapsed().as_secs_f64()
    );
    assert!((refused + unreadable + served) * step > 8 * 4096, "hardly anything was read");
    Ok(())
}

#[test]
fn a_flipped_bit_in_any_byte_of_one_leg_is_never_read() {
    check(&Setup { faults: Faults::Any, ..Setup::SMALL }).unwrap();
}

#[test]
fn a_flipped_bit_in_any_byte_of_a_leg_of_a_mirror_is_not_noticed() {
    check(&Setup { faults: Faults::OneLeg, layout: Legs::Mirror, ..Setup::SMALL }).unwrap();
}
