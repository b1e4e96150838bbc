//! How many distinct states a second one processor explores, on recordings like those of a database on a file system.

use std::ops::ControlFlow;
use std::time::Instant;

use plumb_block::{Bytes, Lba, LbaRange, Nanos, Op};
use plumb_crash::{Atomicity, Promise, below};
use plumb_prove::explore::{Explorer, Limits};
use plumb_prove::recording::{Event, Recording};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

const BLOCK: u64 = 512;

/// Transactions, each of some writes of 4 to 28 KiB, some of them over each other, and a flush.
fn recording(transactions: u64, writes: u64) -> Recording {
    let mut recording = Recording::of_blank(Bytes::gib(1), Bytes(BLOCK));
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(1);
    let flush = |recording: &mut Recording, at| {
        let flush = recording.submit(at, Op::Flush, LbaRange::EMPTY, &[]);
        recording.happened(at, Event::Completed(flush));
    };
    let all = recording.submit(Nanos(0), Op::Discard, LbaRange::new(Lba(0), 1 << 21), &[]);
    recording.happened(Nanos(0), Event::Completed(all));
    flush(&mut recording, Nanos(0));
    for transaction in 0..transactions {
        let at = Nanos(transaction);
        for _ in 0..writes {
            let nlb = 8 * (1 + below(&mut chance, 7));
            let range = LbaRange::new(Lba(8 * below(&mut chance, 1000)), nlb);
            let bytes: Vec<u8> =
                (0..nlb * BLOCK / 8).flat_map(|_| below(&mut chance, u64::MAX).to_le_bytes()).collect();
            let write = recording.submit(at, Op::Write { fua: false }, range, &bytes);
            recording.happened(at, Event::Completed(write));
        }
        recording.happened(at, Event::Acknowledged(transaction));
        flush(&mut recording, at);
    }
    recording
}

fn main() {
    println!("{:>12} {:>8} {:>12} {:>14}", "transactions", "writes", "states", "states/s");
    for (transactions, writes) in [(20, 3), (20, 8), (20, 12), (5, 16), (500, 10), (100, 100)] {
        let recording = recording(transactions, writes);
        let atomicity = Atomicity { unit: 8, boundary: 0 };
        let promise = Promise { atomicity, ..Promise::VOLATILE };
        let limits = Limits { pieces: 16, commands: 16, states: 3_000_000 };
        let explorer =
            Explorer { recording: &recording, from: 0, until: usize::MAX, promise, limits, seed: 1 };
        let start = Instant::now();
        let mut states = 0_u64;
        let windows = explorer.explore(&mut |_| {
            states += 1;
            ControlFlow::Continue(())
        });
        let rate = states as f64 / start.elapsed().as_secs_f64();
        assert_eq!(windows.iter().map(|window| window.states).sum::<u64>(), states);
        println!("{transactions:>12} {writes:>8} {states:>12} {rate:>14.0}");
    }
}
