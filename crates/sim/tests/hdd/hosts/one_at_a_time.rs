//! Hosts that write and sync alternately, and measure the pair.

use plumb_block::{Nanos, Op};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use plumb_sim::command::{Command, CommandId, Sectors};
use plumb_sim::timing::{Event, Timing};

/// A host that executes one call at a time.
pub(crate) struct Host<'t> {
    drive: &'t mut dyn Timing,
    pub(crate) now: Nanos,
    numbers: u64,
    events: Vec<Event>,
}

impl<'t> Host<'t> {
    pub(crate) fn new(drive: &'t mut dyn Timing) -> Self {
        Self { drive, now: Nanos(0), numbers: 0, events: Vec::new() }
    }

    /// Submits these commands at once, and waits for all answers.
    pub(crate) fn call(&mut self, commands: &[(Op, Sectors)]) {
        for (op, sectors) in commands {
            self.drive.submit(self.now, Command { id: CommandId(self.numbers), op: *op, sectors: *sectors });
            self.numbers += 1;
        }
        let mut left = commands.len();
        while left > 0 {
            let Some(at) = self.drive.next_event() else { return };
            self.now = at;
            self.drive.advance(self.now, &mut self.events);
            let answered = self.events.drain(..).filter(|event| matches!(event, Event::Completed { .. }));
            left -= answered.count();
        }
    }

    /// Waits for `time`, in which the drive may work.
    pub(crate) fn think(&mut self, time: Nanos) {
        let until = self.now + time;
        while let Some(at) = self.drive.next_event().filter(|at| *at <= until) {
            self.drive.advance(at, &mut self.events);
            self.events.clear();
        }
        self.now = until;
    }

    pub(crate) fn write(&mut self, sectors: Sectors) {
        self.call(&[(Op::Write { fua: false }, sectors)]);
    }

    pub(crate) fn flush(&mut self) {
        self.call(&[(Op::Flush, Sectors::NONE)]);
    }
}

/// Appends 2300 bytes at a time to a file of 64 MiB at `base`, through the page cache, with an fdatasync
/// after each.
pub(crate) fn appends(drive: &mut dyn Timing, flushes: bool, base: u64, count: u64) -> Vec<Nanos> {
    let mut host = Host::new(drive);
    let base = base / 8 * 8;
    let append = |index: u64| {
        let (first, end) =
            (index * 2300 % (64 << 20) / 4096 * 8, (index * 2300 % (64 << 20) + 2300).div_ceil(4096) * 8);
        let since = host.now;
        host.write(Sectors { first: base + first, count: end - first });
        if flushes {
            host.flush();
        }
        let took = host.now.since(since);
        host.think(Nanos::micros(200));
        took
    };
    (0..count).map(append).collect()
}

/// Writes 4 KiB at random places, each synced before the next.
pub(crate) fn scattered(
    drive: &mut dyn Timing,
    flushes: bool,
    sectors: u64,
    count: u64,
    seed: u64,
) -> Vec<Nanos> {
    let mut host = Host::new(drive);
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let write = |_| {
        let since = host.now;
        host.write(Sectors { first: chance.next_u64() % (sectors / 8) * 8, count: 8 });
        if flushes {
            host.flush();
        }
        host.now.since(since)
    };
    (0..count).map(write).collect()
}
