//! Tests of a log that cannot be read at more places than its superblock can name: these places are not
//! freed, but all other data reaches the backing device, and freeing continues once enough of them were
//! overwritten.

use plumb_block::Bytes;

use crate::history::{Ask, Step};
use crate::setup::{Faults, LeftOut, Setup};
use crate::world::World;

/// Number of places that the superblock can name.
const NAMED: u64 = 240;
/// Number of places that cannot be read.
const PLACES: u64 = 250;

const SETUP: Setup = Setup {
    segments: 80,
    backing_bytes: 4 << 20,
    record_max: 4096,
    bypass_after: None,
    destage_start: 2.0,
    faults: Faults::Any,
    ..Setup::SMALL
};

fn write(world: &mut World, lba: u64) {
    world.step(Step::Write { lba, nlb: 1, fua: true }).unwrap();
    world.step(Step::Settle { roll: lba }).unwrap();
}

fn drain(world: &mut World) {
    world.step(Step::Ask { what: Ask::Drain, roll: 0 }).unwrap();
    world.step(Step::Pass { millis: 20_000, roll: 0 }).unwrap();
}

#[test]
fn what_can_be_read_is_written_back_though_the_log_is_held_by_what_cannot() {
    let mut world = World::new(&SETUP, LeftOut::Nothing).unwrap();
    (0..PLACES).for_each(|place| write(&mut world, 2 * place));
    let image = world.members[0].image();
    for (header, _) in
        image.chunks_exact(4096).enumerate().filter(|(_, block)| block.starts_with(b"plumbrec"))
    {
        world.members[0].flip((header + 1) * 4096, 1);
    }
    world.expect_failures();
    (0..20).for_each(|place| write(&mut world, 1000 + place));
    drain(&mut world);
    let status = world.status().unwrap();
    assert_eq!((status.dirty, status.is_draining), (Bytes(0), false), "{:?}", status.destage_error);
    assert_eq!(status.unreadable.len() as u64, PLACES);
    assert!(status.log_used > Bytes(0) && status.destage_error.is_some());
    // The cache can be stopped to be detached, and still has everything when it is opened again.
    world.step(Step::Ask { what: Ask::Detach, roll: 0 }).unwrap();
    assert!(!world.is_hopeless, "it did not stop");
    drain(&mut world);
    assert_eq!(world.status().unwrap().unreadable.len() as u64, PLACES);
    (0..PLACES - NAMED).for_each(|place| write(&mut world, 2 * place));
    drain(&mut world);
    let status = world.status().unwrap();
    assert_eq!((status.dirty, status.log_used), (Bytes(0), Bytes(0)), "{:?}", status.destage_error);
    assert_eq!(status.unreadable.len() as u64, NAMED);
}
