//! What a load costs from end to end: 4 KiB random reads past the page cache through a worker of `load`, with every
//! latency recorded, on one pinned processor.
//!
//! ```text
//! cargo run --release -p plumb-linux --example speed -- PATH [DEPTH [SECONDS [PROCESSOR]]]
//! ```
//!
//! PATH is a file or a block device, wholly written before; it is only read. Prints one line: operations per second,
//! and the processor time of a million reads, user and system apart. To be paired with the same of fio:
//!
//! ```text
//! fio --name=x --filename=PATH --rw=randread --bs=4k --direct=1 --ioengine=io_uring --iodepth=32 \
//!     --time_based --runtime=5 --cpus_allowed=1 --randrepeat=0
//! ```

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use plumb_block::{Bytes, Clock as _, Device as _, Nanos, RealClock};
use plumb_linux::{FileDevice, FileOptions, thread};
use plumb_load::{Step, Worker, WorkerOptions};
use plumb_workload::{ByteRange, Stop, Workload};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = arguments.first().ok_or("name a file or a block device")?;
    let number =
        |index: usize, default: u64| arguments.get(index).map_or(Ok(default), |text| text.parse::<u64>());
    let (depth, seconds) = (u32::try_from(number(1, 32)?)?, number(2, 5)?);
    thread::pin_to(&[u32::try_from(number(3, 1)?)?])?;
    let clock = Arc::new(RealClock::start());
    let device = FileDevice::open(Path::new(path), FileOptions::read_direct(), Arc::clone(&clock) as _)?;
    let range = ByteRange { offset: Bytes(0), length: device.info().size };
    let workload =
        Workload { depth, stop: Stop::after(Nanos::secs(seconds)), ..Workload::over(range, Bytes::kib(4)) };
    let mut worker = Worker::new(&device, &workload, WorkerOptions::default())?;
    let (begin, cpu) = (clock.now(), thread::cpu_times());
    while worker.step(clock.now())? != Step::Done {}
    let (wall, cpu) = (clock.now().since(begin), thread::cpu_times().since(cpu));
    let reads = worker.finish().0.read.latency.count();
    let millions = reads as f64 / 1e6;
    println!(
        "{path} depth {depth} on {}: {:.0} IOPS, CPU s per million: user {:.3}, system {:.3}",
        device.engine().name(),
        reads as f64 / wall.as_secs_f64(),
        cpu.user.as_secs_f64() / millions,
        cpu.system.as_secs_f64() / millions,
    );
    Ok(())
}
