//! Cost of the cache in front of a disk that is as fast as its log: against qemu-nbd, which serves a file of
//! the same file system, and against the file itself.

use std::path::Path;

use anyhow::{Context, Result};

use super::setup::{Cache, CacheBench, on, qemu_nbd};
use crate::bench::fio;
use crate::bench::paired::{Pairs, Side};

/// Size of the served device, in bytes.
const SIZE: u64 = 1 << 30;
/// Size of the log, in bytes: it holds the writes of all cases in one pair.
const LOG: u64 = 3 << 30;
/// Options of fio that set the time and size of each case.
const TIMED: &str = "--time_based --runtime=1.5 --size=1G";

/// Case of the bench: what fio does with the cache, and which part of the peer's rate is asked for. The peer
/// is qemu-nbd with the same words, or the file itself, past the page cache, with others.
struct Case {
    name: &'static str,
    words: &'static str,
    on_file: Option<&'static str>,
    bar: f64,
}

const CASES: [Case; 5] = [
    Case {
        name: "4 KiB writes, depth 32",
        words: "--rw=randwrite --bs=4k --iodepth=32",
        on_file: None,
        bar: 0.9,
    },
    Case {
        name: "4 KiB reads, depth 32",
        words: "--rw=randread --bs=4k --iodepth=32",
        on_file: None,
        bar: 1.2,
    },
    Case {
        name: "4 KiB reads, depth 1",
        words: "--rw=randread --bs=4k --iodepth=1",
        on_file: None,
        bar: 1.2,
    },
    Case {
        name: "4 KiB write + flush",
        words: "--rw=randwrite --bs=4k --iodepth=1 --fsync=1",
        on_file: Some("--rw=randwrite --bs=4k --ioengine=psync --sync=dsync"),
        bar: 0.4,
    },
    Case {
        name: "64 KiB writes, depth 8",
        words: "--rw=randwrite --bs=64k --iodepth=8",
        on_file: Some("--rw=randwrite --bs=64k --ioengine=io_uring --iodepth=8"),
        bar: 0.75,
    },
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
        fio::rate(&on_file(
            path,
            "--rw=write --bs=1M --ioengine=io_uring --iodepth=4 --end_fsync=1 --size=1G",
        ))?;
    }
    let peer = qemu_nbd(&file)?;
    let backing = backing.to_str().context("a path that is not a text")?;
    let mut cache = Cache::create(bench.plumb, bench.directory, backing, LOG)?;
    cache.serve()?;
    // The first lap of the log is written into blocks that the file system has yet to convert.
    let laps = LOG / SIZE + 1;
    fio::rate(&on(
        &cache.uri(),
        &format!("--rw=randwrite --bs=64k --iodepth=8 --size=1G --io_size={laps}G"),
    ))?;
    let mut cases: Vec<Pairs> = CASES.iter().map(|_| Pairs::default()).collect();
    for pair in 1..=bench.pairs {
        eprintln!("pair {pair} of {}", bench.pairs);
        for (case, rates) in CASES.iter().zip(&mut cases) {
            cache.drain()?;
            rates.measure(|side| match (side, case.on_file) {
                (Side::Ours, _) => fio::rate(&on(&cache.uri(), &format!("{} {TIMED}", case.words))),
                (Side::Theirs, None) => fio::rate(&on(&peer.uri(), &format!("{} {TIMED}", case.words))),
                (Side::Theirs, Some(words)) => fio::rate(&on_file(&file, &format!("{words} {TIMED}"))),
            })?;
        }
    }
    for (case, rates) in CASES.iter().zip(&cases) {
        rates.print(case.name, case.bar);
    }
    Ok(())
}

fn on_file(path: &Path, words: &str) -> Vec<String> {
    let place = ["--direct=1".to_owned(), format!("--filename={}", path.display())];
    place.into_iter().chain(words.split_whitespace().map(str::to_owned)).collect()
}
