//! What contents cost: printed, never judged. Run it with
//! `cargo test --release -p plumb-sim --test contents_rates -- --ignored --nocapture`.

#![expect(clippy::unwrap_used, reason = "a test")]

use plumb_block::{Bytes, Lba, LbaRange, Op, Pattern};
use plumb_sim::CommandId;
use plumb_sim::contents::{Backing, Contents, Data, Promise, Shape};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use rustix::time::{ClockId, clock_gettime};

const TERA: u64 = 1 << 40;
const COUNT: u64 = 500_000;

/// How the commands become durable.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Destage {
    Persist,
    FlushEach(u64),
    AtOnce,
}

/// The processor time of this thread: others may be on the machine.
fn processor_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

struct Case {
    block: u64,
    /// Over how many pages of 4 KiB, spread evenly over the drive.
    pages: u64,
    destage: Destage,
    has_bytes: bool,
}

fn nanoseconds(case: &Case) -> (f64, f64) {
    let shape = Shape { logical_block: Bytes(case.block), blocks: TERA / case.block };
    let promise =
        Promise { volatile: case.destage != Destage::AtOnce, ..Promise::volatile(Bytes(case.block)) };
    let mut contents = Contents::new(shape, promise, Backing::Memory).unwrap();
    let (per_page, stride) = (4096 / case.block, TERA / 4096 / case.pages);
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut next = || LbaRange::new(Lba(chance.next_u64() % case.pages * stride * per_page), per_page);
    let bytes = [5; 4096];
    let count = if case.has_bytes { COUNT / 10 } else { COUNT };
    let mut round = |offset: u64| {
        let start = processor_ns();
        for id in offset..offset + count {
            let range = next();
            let pattern = Pattern { seed: 9, lba: range.lba, generation: id };
            let data = if case.has_bytes { Data::Bytes(&bytes) } else { Data::Pattern(pattern) };
            contents.submit(CommandId(id), Op::Write { fua: false }, range, data);
            if id >= offset + 32 {
                contents.complete(CommandId(id - 32)).unwrap();
            }
            match case.destage {
                Destage::Persist if id >= offset + 64 => contents.persist(CommandId(id - 64)),
                Destage::FlushEach(every) if id % every == 0 => {
                    contents.submit(CommandId(u64::MAX), Op::Flush, LbaRange::EMPTY, Data::None);
                    contents.complete(CommandId(u64::MAX)).unwrap();
                }
                _ => {}
            }
        }
        (processor_ns() - start) / count as f64
    };
    // The first round makes the tables; the second is what a long run costs.
    round(0);
    let write = round(count);
    let start = processor_ns();
    let mut seen = 0;
    for _ in 0..COUNT {
        contents.look(next(), &mut |piece| seen += piece.range.nlb);
    }
    let read = (processor_ns() - start) / COUNT as f64;
    assert!(seen >= COUNT);
    (write, read)
}

#[test]
#[ignore = "it measures; it judges nothing"]
fn writes_and_reads_of_4_kib() {
    for block in [512, 4096] {
        for pages in [1 << 12, 1 << 16, 1 << 20] {
            for destage in [Destage::Persist, Destage::FlushEach(32), Destage::AtOnce] {
                for has_bytes in [false, true] {
                    let case = Case { block, pages, destage, has_bytes };
                    let (write, read) = nanoseconds(&case);
                    let kind = if has_bytes { "bytes" } else { "pattern" };
                    println!(
                        "block {block:4} pages {pages:7} {destage:?} {kind}: write {write:6.1} ns, look {read:5.1} ns"
                    );
                }
            }
        }
    }
}
