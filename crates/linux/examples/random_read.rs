//! What a read costs on this side of the kernel: 4 KiB random reads past the page cache, one thread, one queue.
//!
//! ```text
//! cargo run --release -p plumb-linux --example random_read -- PLACE [DEPTH [WAIT [MILLIONS [MIB]]]]
//! ```
//!
//! makes a test file of MIB (default 1024) in PLACE if that is a directory, else takes the file or block device
//! itself, which must be wholly written; reads it MILLIONS (default 1) of times 10^6 with DEPTH
//! (default 32) requests in flight, waiting for WAIT (default 8) completions at once, and prints the processor time
//! of a million reads, user and system apart, for reads without a buffer and into one. The figure to hold: at most
//! 0.12 s user.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::{
    Bytes, Clock as _, Completion, Device as _, Lba, LbaRange, Nanos, Op, Payload, Pool, PoolShape, Queue,
    QueueOptions, RealClock, Request, Tag, Wait,
};
use plumb_linux::{FileDevice, FileOptions, Filling, TestFile, layout, thread};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

const READ: Bytes = Bytes(4096);

struct Load {
    depth: u32,
    wait: u32,
    reads: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let directory = arguments.first().ok_or("name a directory for the test file")?;
    let number =
        |index: usize, default: u64| arguments.get(index).map_or(Ok(default), |text| text.parse::<u64>());
    let load = Load {
        depth: u32::try_from(number(1, 32)?)?,
        wait: u32::try_from(number(2, 8)?)?,
        reads: number(3, 1)? * 1_000_000,
    };
    let clock = Arc::new(RealClock::start());
    let options = if arguments.iter().any(|word| word == "buffered") {
        FileOptions::read_buffered()
    } else {
        FileOptions::read_direct()
    };
    let place = Path::new(directory);
    let made = place.is_dir().then(|| test_file(place, Bytes::mib(number(4, 1024)?))).transpose()?;
    let device = match &made {
        Some(file) => file.open(options, Arc::clone(&clock) as _)?,
        None => FileDevice::open(place, options, Arc::clone(&clock) as _)?,
    };
    println!("{} on {}, depth {}, waiting for {}", place.display(), device.engine(), load.depth, load.wait);
    let shape = PoolShape { buffer: READ, count: load.depth * 2, alignment: Bytes(4096) };
    for buffers in [false, true] {
        let pool = Pool::new(shape)?;
        let mut queue = device.open_queue(QueueOptions { depth: load.depth, pool: pool.clone() })?;
        let (begin, cpu) = (clock.now(), thread::cpu_times());
        read(&mut *queue, &device.info(), &load, buffers.then_some(&pool))?;
        let (wall, used) = (clock.now().since(begin), thread::cpu_times().since(cpu));
        let millions = load.reads as f64 / 1e6;
        println!(
            "  {}: {:.0} IOPS, CPU per million: user {:.3} s, system {:.3} s",
            if buffers { "into buffers" } else { "without buffers" },
            load.reads as f64 / wall.as_secs_f64(),
            used.user.as_secs_f64() / millions,
            used.system.as_secs_f64() / millions,
        );
    }
    Ok(())
}

fn test_file(directory: &Path, size: Bytes) -> Result<TestFile, Box<dyn Error>> {
    let stop = AtomicBool::new(false);
    let file = TestFile::create(directory, size)?;
    let filling = Filling { seed: 1, stop: &stop, progress: &mut |_| {} };
    layout::write(&file.path(), Bytes(0), size, Bytes(512), filling)?;
    Ok(file)
}

fn read(
    queue: &mut dyn Queue,
    info: &plumb_block::DeviceInfo,
    load: &Load,
    pool: Option<&Pool>,
) -> Result<(), Box<dyn Error>> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let nlb = READ.0 / info.logical_block.0;
    let places = info.blocks() / nlb;
    let mut completions: Vec<Completion> = Vec::with_capacity(load.depth as usize);
    let mut spare: Vec<Payload> = Vec::with_capacity(load.depth as usize);
    for _ in 0..load.depth {
        let buffer = pool.map(|pool| pool.take(READ).ok_or("the pool is too small")).transpose()?;
        spare.push(buffer.map_or(Payload::None, Payload::Into));
    }
    let (mut submitted, mut completed, mut slowest) = (0, 0, Nanos::ZERO);
    while completed < load.reads {
        while submitted < load.reads
            && let Some(payload) = spare.pop()
        {
            // A multiplication instead of a division: places are fewer than 2^32.
            let place = ((random.next_u64() >> 32) * places) >> 32;
            let range = LbaRange::new(Lba(place * nlb), nlb);
            let request = Request { tag: Tag(submitted), op: Op::Read, range, payload, deadline: None };
            queue.submit(request).map_err(|_| "the queue is full")?;
            submitted += 1;
        }
        queue.poll(Wait { completions: load.wait, patience: None, deadline: None }, &mut completions)?;
        for completion in completions.drain(..) {
            if !completion.outcome.is_done() {
                return Err(format!("a read ended as {:?}", completion.outcome).into());
            }
            slowest = slowest.max(completion.service_time());
            spare.push(completion.payload);
            completed += 1;
        }
    }
    println!("  slowest {slowest}");
    Ok(())
}
