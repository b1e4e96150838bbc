//! How many 4 KiB random reads a second the client makes: `nbd_client_bench URI [DEPTH [SECONDS]]`, one queue, one thread,
//! as `fio --ioengine=nbd --rw=randread --bs=4k --iodepth=DEPTH` does it.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_block::{
    Bytes, Device, Lba, LbaRange, Outcome, Payload, Pool, PoolShape, QueueOptions, Request, Tag, Wait,
};
use plumb_serve::nbd::client::{NbdDevice, Options};
use plumb_serve::nbd::uri::Uri;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const BLOCK: Bytes = Bytes::kib(4);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let uri: Uri = arguments.first().ok_or("usage: nbd_client_bench URI [DEPTH [SECONDS]]")?.parse()?;
    let depth: u32 = arguments.get(1).map_or(Ok(1), |depth| depth.parse())?;
    let seconds: u64 = arguments.get(2).map_or(Ok(3), |seconds| seconds.parse())?;
    let device = Arc::new(NbdDevice::connect(&uri, Options { connections: 1, ..Options::default() })?);
    let reads = read_for(&*device, depth, Duration::from_secs(seconds))?;
    println!("{} IOPS at depth {depth}", reads / seconds);
    Ok(())
}

/// Reads until the time is over; how many.
fn read_for(device: &dyn Device, depth: u32, time: Duration) -> Result<u64, Box<dyn Error>> {
    let pool = Pool::new(PoolShape { buffer: BLOCK, count: 2 * depth, alignment: BLOCK })?;
    let mut queue = device.open_queue(QueueOptions { depth, pool: pool.clone() })?;
    let info = device.info();
    let nlb = BLOCK.0 / info.logical_block.0;
    let places = info.blocks() / nlb;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut range = || LbaRange::new(Lba(random.next_u64() % places * nlb), nlb);
    for tag in 0..depth {
        let buffer = pool.take(BLOCK).ok_or("no buffer")?;
        queue.submit(Request::read_into(Tag(u64::from(tag)), range(), buffer)).map_err(|_| "full")?;
    }
    let (mut reads, mut completions) = (0, Vec::new());
    let until = Instant::now() + time;
    while Instant::now() < until {
        queue.poll(Wait::ONE, &mut completions)?;
        for completion in completions.drain(..) {
            let (Outcome::Done, Payload::Into(buffer)) = (completion.outcome, completion.payload) else {
                return Err(format!("a read ended as {:?}", completion.outcome).into());
            };
            queue.submit(Request::read_into(completion.tag, range(), buffer)).map_err(|_| "full")?;
            reads += 1;
        }
    }
    Ok(reads)
}
