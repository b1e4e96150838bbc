//! Tests of a controller with a cache in front of an array: the effect of its battery on writes, flushes and
//! power cuts.
use std::sync::Arc;

use plumb_block::{
    Bytes, Completion, Lba, LbaRange, Nanos, Pattern, Payload, Pool, PoolShape, Queue, QueueOptions, Request,
    Tag, Time, VirtualClock, Wait,
};
use plumb_sim::Handle;
use plumb_sim::drive::{Drive, DriveOptions};
use plumb_sim::model::Model;

const SPACE: &str = include_str!("../models/hdd-space.toml");
const CONTROLLER: &str = include_str!("array_controller.toml");
const WRITES: u64 = 40;

/// Protection of the cache, and its state.
#[derive(Debug, Clone, Copy)]
struct Controller {
    behaviour: &'static str,
    wce: bool,
}

const PROTECTED: Controller = Controller { behaviour: "protected = true", wce: true };
const WITHOUT_BATTERY: Controller = Controller { behaviour: "protected = false", wce: true };
const SWITCHED_OFF: Controller = Controller { wce: false, ..PROTECTED };
const DEAD: Controller = Controller { behaviour: "protected = true\nbattery_dead = true", wce: true };
const DEAD_AND_KNOWN: Controller =
    Controller { behaviour: "protected = true\nbattery_dead = true\nbattery_noticed = true", wce: true };

/// Four disks behind a controller.
struct Array {
    clock: Arc<VirtualClock>,
    drive: Handle,
    queue: Box<dyn Queue>,
    tag: u64,
}

impl Array {
    fn new(controller: Controller, seed: u64) -> Self {
        let honest = "protected = { value = false, source = \"nothing in the field report says so\" }";
        let text = SPACE.replacen(honest, controller.behaviour, 1) + CONTROLLER;
        let model = Model::from_text("mine.toml", &text).unwrap();
        let options = DriveOptions { seed, wce: Some(controller.wce), ..DriveOptions::default() };
        let clock = Arc::new(VirtualClock::new());
        let drive = Drive::new(&model, options).unwrap();
        let drive = Handle::new(drive, Time::Virtual(Arc::clone(&clock)));
        let pool = Pool::new(PoolShape { buffer: Bytes::kib(4), count: 1, alignment: Bytes(512) }).unwrap();
        let queue = drive.device().open_queue(QueueOptions { depth: 1, pool }).unwrap();
        Self { clock, drive, queue, tag: 0 }
    }

    /// Executes a command alone. Returns the time that it took.
    fn wait_for(&mut self, request: Request) -> Nanos {
        let mut completions: Vec<Completion> = Vec::new();
        self.queue.submit(request).unwrap();
        self.queue.poll(Wait::ONE, &mut completions).unwrap();
        assert!(completions[0].outcome.is_done(), "{:?}", completions[0].outcome);
        completions[0].completed_at - completions[0].submitted_at
    }

    /// Writes 4 KiB somewhere, far from all others.
    fn write(&mut self) -> Nanos {
        self.tag += 1;
        let range = LbaRange::new(Lba(self.tag * 7_919_993 % 400_000_000 / 8 * 8), 8);
        let pattern = Pattern { seed: 1, lba: range.lba, generation: self.tag };
        self.wait_for(Request::write(Tag(self.tag), range, Payload::Pattern(pattern)))
    }

    fn flush(&mut self) -> Nanos {
        self.tag += 1;
        self.wait_for(Request::flush(Tag(self.tag)))
    }

    /// Cuts the power now and returns how many blocks are lost of all that were written.
    fn lost_at_cut(&self) -> u64 {
        self.drive.with(Drive::cut_power);
        self.drive.with(|drive, _| drive.last_cut().unwrap().lost_blocks)
    }
}

/// Returns the mean time of a write, and the time of the flush after them.
fn times(controller: Controller) -> (Nanos, Nanos) {
    let mut array = Array::new(controller, 1);
    let writes = (0..WRITES).map(|_| array.write().0).sum::<u64>();
    (Nanos(writes / WRITES), array.flush())
}

/// Returns the number of blocks lost in some cuts, each after writes with or without a flush.
fn lost(controller: Controller, flushed: bool) -> u64 {
    let after_writes = |seed| {
        let mut array = Array::new(controller, seed);
        for _ in 0..WRITES {
            array.write();
        }
        if flushed {
            array.flush();
        }
        array.lost_at_cut()
    };
    (0..20).map(after_writes).sum()
}

#[test]
fn a_cache_answers_for_the_members_as_long_as_it_is_used() {
    // 100 us to the controller and back, and its own work.
    let (near, far) = (Nanos::micros(200), Nanos::millis(3));
    for (controller, is_used, flush_is_free) in [
        (PROTECTED, true, true),
        (WITHOUT_BATTERY, true, false),
        (DEAD, true, true),
        (DEAD_AND_KNOWN, false, true),
        (SWITCHED_OFF, false, true),
    ] {
        let (write, flush) = times(controller);
        assert!(if is_used { write < near } else { write > far }, "{controller:?}: a write takes {write}");
        assert!(
            if flush_is_free { flush < near } else { flush > far },
            "{controller:?}: a flush takes {flush}"
        );
    }
}

#[test]
fn a_cut_takes_what_no_battery_keeps() {
    for (controller, is_lost, is_lost_although_flushed) in [
        (PROTECTED, false, false),
        (WITHOUT_BATTERY, true, false),
        (DEAD, true, true),
        (DEAD_AND_KNOWN, false, false),
        (SWITCHED_OFF, false, false),
    ] {
        assert_eq!(lost(controller, false) > 0, is_lost, "{controller:?}, not flushed");
        assert_eq!(lost(controller, true) > 0, is_lost_although_flushed, "{controller:?}, flushed");
    }
}

#[test]
fn what_has_reached_the_members_needs_no_battery() {
    for seed in 0..20 {
        let mut array = Array::new(DEAD, seed);
        for _ in 0..WRITES {
            array.write();
        }
        let until = Nanos::secs(60);
        while array.clock.advance(until) < until {}
        assert_eq!(array.drive.with(|drive, _| drive.at_risk()), Bytes(0), "seed {seed}");
        assert_eq!(array.lost_at_cut(), 0, "seed {seed}");
    }
}

#[test]
fn a_cache_that_is_turned_off_is_emptied_first() {
    for seed in 0..20 {
        let mut array = Array::new(DEAD, seed);
        for _ in 0..WRITES {
            array.write();
        }
        array.drive.device().set_wce(false).unwrap();
        array.write();
        assert_eq!(array.lost_at_cut(), 0, "seed {seed}");
    }
}
