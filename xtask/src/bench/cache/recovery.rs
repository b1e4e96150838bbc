//! How long a cache takes to recover after its server was killed, against the time that it takes to read as much.

use anyhow::{Context, Result};

use super::Asked;
use super::setup::{Cache, MEMORY, SlowDisk, on};
use crate::bench::fio;
use crate::bench::paired::median;

/// How much is written.
const DIRTY: u64 = 2 << 30;
/// So many seconds for a GiB, on a device that reads 3 GB in a second: memory is faster, so its time is put in the place of that of
/// memory. A device that reads one chunk at a time more slowly than many adds to that.
const BAR: f64 = 0.5;
const READ_RATE: f64 = 3e9;

/// Prints the time for each GiB of log, and what it would be on such a device.
pub(super) fn run(asked: &Asked<'_>) -> Result<()> {
    println!("recovery of {} GiB in a log in memory after a kill ({} times)", DIRTY >> 30, asked.pairs);
    for block in ["64k", "4k"] {
        let disk = SlowDisk::start(8 << 30)?;
        // Not destaged, and so not delayed: 4 KiB writes at depth 32 share headers.
        let mut cache = Cache::create(asked.plumb, MEMORY.as_ref(), &disk.uri(), 2 * DIRTY)?;
        cache.serve()?;
        let words = format!("--rw=randwrite --bs={block} --iodepth=32 --size=8G --io_size={DIRTY}");
        fio::rate(&on(&cache.uri(), &words))?;
        let (mut seconds, mut slower) = (Vec::new(), Vec::new());
        for _ in 0..asked.pairs {
            let used = cache.status()?["log_used"].as_f64().context("no log_used")?;
            cache.kill()?;
            let reading = 1.0 / read_rate(&cache)?;
            let took = cache.serve()?.as_secs_f64() / used;
            seconds.push(took * f64::from(1 << 30));
            slower.push((took - reading + 1.0 / READ_RATE) * f64::from(1 << 30));
            fio::rate(&on(&cache.uri(), "--rw=randread --bs=4k --size=8G --number_ios=1"))?;
        }
        let slower = median(&slower);
        let verdict = if slower <= BAR { "met" } else { "NOT MET" };
        println!(
            "{block:<4} writes: {:.2} s for each GiB of log, {slower:.2} s if it reads 3 GB/s (bar {BAR}): {verdict}",
            median(&seconds)
        );
    }
    Ok(())
}

/// How many bytes of the log fio reads in a second.
fn read_rate(cache: &Cache) -> Result<f64> {
    let file = format!("--filename={}", cache.log().display());
    let words = "--rw=read --bs=1M --ioengine=io_uring --iodepth=8 --direct=1 --size=2G";
    let options = std::iter::once(file).chain(words.split_whitespace().map(str::to_owned));
    Ok(fio::rate(&options.collect::<Vec<_>>())? * f64::from(1 << 20))
}
