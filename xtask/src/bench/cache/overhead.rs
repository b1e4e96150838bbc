//! Cost of the cache on a disk that is as fast as its log, compared with qemu-nbd, which serves a file of the
//! same file system, and with the file itself.

use std::path::Path;

use anyhow::{Context, Result};

use super::setup::{Cache, CacheBench, qemu_nbd};
use crate::bench::fio::{self, Place};
use crate::bench::paired::{Case, Pairs, Side};

/// Size of the served device, in bytes.
const SIZE: u64 = 1 << 30;
/// Size of the log in bytes, enough for the writes of all cases in one pair.
const LOG: u64 = 3 << 30;
/// Options of fio that set the time and size of each case.
const TIMED: &str = "--time_based --runtime=1.5 --size=1G";

/// Cases of the bench. If the peer cannot do the same over qemu-nbd, with the options for direct I/O on the
/// file itself.
const CASES: [(Case, Option<&str>); 6] = [
    (("4 KiB writes, depth 32", "--rw=randwrite --bs=4k --iodepth=32", Some(0.9)), None),
    (("4 KiB reads, depth 32", "--rw=randread --bs=4k --iodepth=32", Some(1.2)), None),
    (("4 KiB reads, depth 1", "--rw=randread --bs=4k --iodepth=1", Some(1.2)), None),
    (
        ("4 KiB write + flush", "--rw=randwrite --bs=4k --iodepth=1 --fsync=1", Some(0.4)),
        Some("--rw=randwrite --bs=4k --ioengine=psync --sync=dsync"),
    ),
    (("64 KiB writes, depth 8", "--rw=randwrite --bs=64k --iodepth=8", Some(1.25)), None),
    (
        ("64 KiB writes, depth 8, and the file", "--rw=randwrite --bs=64k --iodepth=8", Some(0.75)),
        Some("--rw=randwrite --bs=64k --ioengine=io_uring --iodepth=8"),
    ),
];

/// Prints the ratios.
pub(super) fn run(bench: &CacheBench<'_>) -> Result<()> {
    println!(
        "no throttle; IOPS of the cache over NBD / of its peer, and their ratio ({} pairs)",
        bench.pairs
    );
    let place = tempfile::tempdir_in(bench.directory).context("making a directory for files")?;
    let (file, backing) = (place.path().join("file"), place.path().join("backing"));
    for path in [&file, &backing] {
        on_file(path, "--rw=write --bs=1M --ioengine=io_uring --iodepth=4 --end_fsync=1 --size=1G")?;
    }
    let peer = qemu_nbd(&file)?;
    let backing = backing.to_str().context("a path that is not a text")?;
    let mut cache = Cache::create(bench.plumb, bench.directory, backing, LOG)?;
    cache.serve()?;
    // In the first lap the log is written to blocks that the file system still has to convert.
    let laps = LOG / SIZE + 1;
    let first = format!("--rw=randwrite --bs=64k --iodepth=8 --size=1G --io_size={laps}G");
    fio::rate(Place::Nbd(&cache.uri()), &first)?;
    let mut cases: Vec<Pairs> = CASES.iter().map(|_| Pairs::default()).collect();
    for pair in 1..=bench.pairs {
        eprintln!("pair {pair} of {}", bench.pairs);
        for (((_, words, _), of_file), rates) in CASES.iter().zip(&mut cases) {
            cache.drain()?;
            rates.measure(|side| match (side, of_file) {
                (Side::Ours, _) => fio::rate(Place::Nbd(&cache.uri()), &format!("{words} {TIMED}")),
                (Side::Theirs, None) => fio::rate(Place::Nbd(&peer.uri()), &format!("{words} {TIMED}")),
                (Side::Theirs, Some(words)) => on_file(&file, &format!("{words} {TIMED}")),
            })?;
        }
    }
    for (((name, _, bar), _), rates) in CASES.iter().zip(&cases) {
        rates.print(name, *bar);
    }
    Ok(())
}

fn on_file(path: &Path, words: &str) -> Result<f64> {
    fio::rate(Place::Path(path), &format!("--direct=1 {words}"))
}
