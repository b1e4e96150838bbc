//! Load of a desktop of 2002 on its disk (KB 332023), in the three states of the write cache in Windows:
//! small writes that are flushed one by one, and large copies.

use plumb_block::{Nanos, Op};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::one_at_a_time::Host;
use plumb_sim::command::Sectors;
use plumb_sim::timing::Timing;

/// Treatment of flushes: whether they reach the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flushes {
    /// Flushes reach the drive.
    Sent,
    /// The cache is off and flushes are not needed, or the driver drops them.
    NotSent,
}

impl Flushes {
    fn flush(self, host: &mut Host<'_>) {
        if self == Self::Sent {
            host.flush();
        }
    }
}

/// Returns the time for 200 records of a table of 20 MB: the record, a node of the index, and the header,
/// each flushed.
pub(crate) fn accounting(drive: &mut dyn Timing, flushes: Flushes) -> Nanos {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(5);
    timed(drive, |host| {
        for _ in 0..200 {
            for place in [1000 + chance.next_u64() % 40_000, 60_000 + chance.next_u64() % 4000, 1000] {
                host.write(Sectors { first: place, count: 1 });
                flushes.flush(host);
            }
        }
    })
}

/// Returns the time for 500 appends of 4 KiB to a log, each flushed.
pub(crate) fn log(drive: &mut dyn Timing, flushes: Flushes) -> Nanos {
    timed(drive, |host| {
        for index in 0..500 {
            host.write(Sectors { first: 100_000 + index * 8, count: 8 });
            flushes.flush(host);
        }
    })
}

/// Returns the time to copy 20 files of 16 MiB; the file system flushes after each.
pub(crate) fn copy(drive: &mut dyn Timing, flushes: Flushes) -> Nanos {
    timed(drive, |host| {
        for file in 0..20_u64 {
            for piece in 0..16 {
                let from = (file * 16 + piece) * 2048;
                let pieces = |op, base: u64| {
                    (0..8).map(move |part| (op, Sectors { first: base + from + part * 256, count: 256 }))
                };
                host.call(&pieces(Op::Read, 0).collect::<Vec<_>>());
                host.call(&pieces(Op::Write { fua: false }, 20_000_000).collect::<Vec<_>>());
            }
            flushes.flush(host);
        }
    })
}

fn timed(drive: &mut dyn Timing, work: impl FnOnce(&mut Host<'_>)) -> Nanos {
    let mut host = Host::new(drive);
    host.think(Nanos::millis(3));
    let since = host.now;
    work(&mut host);
    host.now.since(since)
}
