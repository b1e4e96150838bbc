//! Time that a cache takes to recover after its server was killed.

use anyhow::{Context, Result};

use super::setup::{Cache, CacheBench, slow_disk};
use crate::bench::fio::{self, Place};
use crate::bench::machine::MEMORY;
use crate::bench::paired::{median, verdict};

/// Number of bytes written.
const DIRTY: u64 = 2 << 30;
/// Limit in seconds per GiB, on a device that reads 3 GB/s. Memory is faster: reads are ahead of the checks,
/// so the longer of the two counts.
const BAR: f64 = 0.5;
const READ_RATE: f64 = 3e9;

/// Prints the time for each GiB of log, and the estimate for such a device.
pub(super) fn run(bench: &CacheBench<'_>) -> Result<()> {
    println!("recovery of {} GiB in a log in memory after a kill ({} times)", DIRTY >> 30, bench.pairs);
    for block in ["64k", "4k"] {
        let disk = slow_disk(8 << 30)?;
        // A log of twice the size is not destaged, and so not delayed. 4 KiB writes at depth 32 share
        // headers.
        let mut cache = Cache::create(bench.plumb, MEMORY.as_ref(), &disk.uri(), 2 * DIRTY)?;
        cache.serve()?;
        let words = format!("--rw=randwrite --bs={block} --iodepth=32 --size=8G --io_size={DIRTY}");
        fio::rate(Place::Nbd(&cache.uri()), &words)?;
        let mut seconds = Vec::new();
        for _ in 0..bench.pairs {
            let used = cache.status()?["log_used"].as_f64().context("no log_used")?;
            cache.kill()?;
            seconds.push(cache.serve()?.as_secs_f64() / used * f64::from(1 << 30));
            fio::rate(Place::Nbd(&cache.uri()), "--rw=randread --bs=4k --size=8G --number_ios=1")?;
        }
        let seconds = median(&seconds);
        let slower = seconds.max(f64::from(1 << 30) / READ_RATE);
        let verdict = verdict(slower <= BAR);
        println!(
            "{block:<4} writes: {seconds:.2} s for each GiB of log, {slower:.2} s if it reads 3 GB/s (bar {BAR}): {verdict}"
        );
    }
    Ok(())
}
