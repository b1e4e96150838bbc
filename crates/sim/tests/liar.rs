//! Tests of drives that lie: the data that they hold back does not grow with the written data, and data in a
//! failed cache is lost.
use std::sync::Arc;

use plumb_block::{
    Bytes, Lba, LbaRange, Nanos, Pattern, Payload, Pool, PoolShape, QueueOptions, Request, Tag, Time,
    VirtualClock, Wait,
};
use plumb_sim::Handle;
use plumb_sim::drive::{Drive, DriveOptions};
use plumb_sim::model::{IgnoresFlush, Model};

const LIAR: &str = include_str!("../models/liar.toml");
const PROTECTED: &str = include_str!("../models/plp-nvme-ssd.toml");
/// Maximum that the drive holds back: 64 MiB, and 16 MiB in its buffer.
const HELD_MAX: Bytes = Bytes::mib(64 + 16 + 1);

#[test]
fn a_drive_that_never_sees_a_flush_holds_back_no_more_than_it_did_at_first() {
    let text =
        LIAR.replacen("ignores_flush = { value = \"always\"", "ignores_flush = { value = \"last-2\"", 1);
    let model = Model::from_text("mine.toml", &text).unwrap();
    assert_eq!(model.behaviour.ignores_flush, IgnoresFlush::Last(2));
    let clock = Arc::new(VirtualClock::new());
    let drive = Drive::new(&model, DriveOptions::default()).unwrap();
    let drive = Handle::new(drive, Time::Virtual(Arc::clone(&clock)));
    let pool = Pool::new(PoolShape { buffer: Bytes::kib(4), count: 1, alignment: Bytes(512) }).unwrap();
    let mut queue = drive.device().open_queue(QueueOptions { depth: 32, pool }).unwrap();
    let mut completions = Vec::new();
    let mut most = Bytes(0);
    for tag in 0..80_000 {
        let range = LbaRange::new(Lba(tag * 7919 % 100_000 * 8), 8);
        let pattern = Pattern { seed: 1, lba: range.lba, generation: tag };
        let mut request = Request::write(Tag(tag), range, Payload::Pattern(pattern));
        while let Err(full) = queue.submit(request) {
            request = full.0;
            queue.poll(Wait::ONE, &mut completions).unwrap();
            completions.clear();
        }
        most = most.max(drive.with(|drive, _| drive.at_risk()));
    }
    assert!(most <= HELD_MAX, "{most} were at risk");
    // The latest writes are still held back, however long nothing happens.
    while clock.advance(Nanos::secs(3600)) < Nanos::secs(3600) {}
    assert!(drive.with(|drive, _| drive.at_risk()) > Bytes::mib(60));
}

/// Returns the number of flushed writes that a cut loses on a drive of protected flash with the state
/// `battery` of its capacitors.
fn lost_of_protected(battery: &str, seed: u64) -> u64 {
    let text = PROTECTED.replacen("[behaviour]\n", &format!("[behaviour]\n{battery}\n"), 1);
    let model = Model::from_text("mine.toml", &text).unwrap();
    let drive = Drive::new(&model, DriveOptions { seed, ..DriveOptions::default() }).unwrap();
    let drive = Handle::new(drive, Time::Virtual(Arc::default()));
    let pool = Pool::new(PoolShape { buffer: Bytes::kib(4), count: 1, alignment: Bytes(512) }).unwrap();
    let mut queue = drive.device().open_queue(QueueOptions { depth: 1, pool }).unwrap();
    let mut completions = Vec::new();
    for tag in 0..20 {
        let range = LbaRange::new(Lba(tag * 8), 8);
        let pattern = Pattern { seed: 1, lba: range.lba, generation: tag };
        let write = Request::write(Tag(2 * tag), range, Payload::Pattern(pattern));
        for request in [write, Request::flush(Tag(2 * tag + 1))] {
            queue.submit(request).unwrap();
            queue.poll(Wait::ONE, &mut completions).unwrap();
        }
    }
    assert!(completions.iter().all(|completion| completion.outcome.is_done()));
    drive.with(Drive::cut_power);
    drive.with(|drive, _| drive.last_cut().unwrap().lost_blocks)
}

#[test]
fn dead_capacitors_lose_what_was_flushed_unless_the_drive_knows_of_them() {
    let lost = |battery: &str| (0..20).map(|seed| lost_of_protected(battery, seed)).sum::<u64>();
    let dead = "battery_dead = { value = true, source = \"definition\" }";
    let noticed = format!("{dead}\nbattery_noticed = {{ value = true, source = \"definition\" }}");
    assert_eq!(lost(""), 0, "healthy capacitors");
    assert!(lost(dead) > 0, "dead capacitors that the drive relies on");
    assert_eq!(lost(&noticed), 0, "dead capacitors that the drive knows of");
}
