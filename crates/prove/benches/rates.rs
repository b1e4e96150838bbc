//! Rates of exploring and checking states, and memory use: `cargo xtask bench prove`.
//!
//! The first argument selects the part, so that each is measured in a separate process.

#![expect(clippy::unwrap_used, reason = "a bench may panic")]

use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use plumb_block::{Bytes, Lba, LbaRange, Nanos, Op, RealClock};
use plumb_crash::{Atomicity, Promise, below};
use plumb_prove::explore::{Explorer, Limits};
use plumb_prove::file_system::{FileSystem, FileSystemOptions};
use plumb_prove::judge::Judge;
use plumb_prove::profile::DriveProfile;
use plumb_prove::recording::{Event, Recording};
use plumb_prove::session::{RecordOptions, RecordedWork, record, record_with_calls};
use plumb_prove::subject::{CheckBy, Outcome, Program, Programs, Subject, named};
use plumb_report::document::proof::StateCounts;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

const BLOCK: u64 = 512;
/// Numbers of workers.
const WORKERS: [u32; 3] = [1, 2, 4];
/// Maximum number of small trees to judge.
const STATES: u64 = 20_000;
/// Number of comparisons with the checker alone.
const ROUNDS: usize = 9;

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("enumeration") => enumeration(),
        Some("memory") => memory(),
        Some("mounted") => mounted(),
        Some("sqlite") => sqlite(),
        Some("posix") => posix(&CheckBy::Moments(None)),
        Some("posix-check") => posix(&CheckBy::Command("exit 0".to_owned())),
        // Called by `cargo bench` itself for all benches.
        _ => println!("expected enumeration, memory, mounted, sqlite, posix or posix-check"),
    }
}

/// Returns transactions, each of some partly overlapping writes of 4 to 28 KiB, and a flush. The data differs
/// from block to block, or is mostly equal.
fn recording(transactions: u64, writes: u64, blocks: u64) -> Recording {
    let mut recording = Recording::of_blank(Bytes::gib(2), Bytes(BLOCK));
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(1);
    let flush = |recording: &mut Recording, at| {
        let flush = recording.submit(at, Op::Flush, LbaRange::EMPTY, &[]);
        recording.happened(at, Event::Completed(flush));
    };
    let range = LbaRange::new(Lba(0), recording.blocks());
    let all = recording.submit(Nanos(0), Op::Discard, range, &[]);
    recording.happened(Nanos(0), Event::Completed(all));
    flush(&mut recording, Nanos(0));
    for transaction in 0..transactions {
        let at = Nanos(transaction);
        for _ in 0..writes {
            let nlb = 8 * (1 + below(&mut chance, 7));
            let range = LbaRange::new(Lba(8 * below(&mut chance, blocks / 8)), nlb);
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

/// Returns the processor time of this process in seconds, since wall time says little on a busy machine.
fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Explores a recording. Returns the number of states, and the rate per second.
fn explored(recording: &Recording, limits: Limits, promise: Promise) -> (u64, f64) {
    let explorer = Explorer { recording, from: 0, until: usize::MAX, promise, further: &[], limits, seed: 1 };
    let start = processor_seconds();
    let mut states = 0_u64;
    let windows = explorer.explore(&mut |_| {
        states += 1;
        ControlFlow::Continue(())
    });
    assert_eq!(windows.iter().map(|window| window.states).sum::<u64>(), states);
    (states, states as f64 / (processor_seconds() - start))
}

/// Measures the distinct states that one processor explores in a second, on recordings like those of a
/// database on a file system.
fn enumeration() {
    let atomicity = Atomicity { unit: 8, boundary: 0 };
    let promise = Promise { atomicity, ..Promise::VOLATILE };
    for (transactions, writes) in [(20, 3), (20, 8), (20, 12), (5, 16), (500, 10), (100, 100)] {
        let limits = Limits { pieces: 16, commands: 16, states: 3_000_000, visits: 0 };
        let (states, rate) = explored(&recording(transactions, writes, 8000), limits, promise);
        println!("{transactions} transactions of {writes} writes: {states} states, {rate:.0} states/s");
    }
}

/// Measures the maximum resident set size for 10,000 writes and discards of 2 GiB, all at risk until the end,
/// or flushed.
fn memory() {
    for (transactions, writes) in [(100, 100), (1, 10_000)] {
        let recording = recording(transactions, writes, 1 << 20);
        let (states, rate) = explored(&recording, Limits::default(), Promise::VOLATILE);
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim();
        let mib = peak.split_whitespace().next().unwrap().parse::<u64>().unwrap() / 1024;
        let writes = transactions * writes;
        println!(
            "{writes} writes in {transactions} transactions: {states} states, {rate:.0} states/s, {mib} MiB"
        );
    }
}

fn sqlite_subject() -> Arc<dyn Subject> {
    named("sqlite:journal=delete,synchronous=extra,inserts=20").unwrap()
}

/// Measures the checks of SQLite on ext4 of 64 MiB per second, with each state mounted.
fn mounted() {
    let (directory, stop) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
    let subject = sqlite_subject();
    let options = record_options(FileSystem::Ext4, directory.path());
    let recorded = record(&*subject, &options, &stop).unwrap();
    rates(&recorded, &subject, &options, 1_000);
}

fn record_options(file_system: FileSystem, directory: &Path) -> RecordOptions {
    RecordOptions {
        file_system_options: FileSystemOptions::default(),
        size: Bytes::mib(64),
        logical_block: Bytes(512),
        file_system,
        directory: directory.to_owned(),
        timeout: Nanos::secs(60),
        cache: None,
        power: None,
    }
}

/// Judges the first states of a recording with `workers` workers. No state may fail. Returns the number of
/// states and the seconds.
fn judged(
    recorded: &RecordedWork,
    subject: &Arc<dyn Subject>,
    options: &RecordOptions,
    states: u64,
    workers: u32,
) -> (StateCounts, f64) {
    let profile = DriveProfile::parse("volatile", options.logical_block).unwrap();
    let judge = Judge {
        recorded,
        profile: &profile,
        limits: Limits { states, ..Limits::default() },
        seed: 1,
        subject,
        file_system: options.file_system,
        workers: workers as usize,
        directory: &options.directory,
        timeout: options.timeout,
        stop: &AtomicBool::new(false),
        clock: &RealClock::start(),
        until: Nanos(u64::MAX),
        mount_here: false,
        results: None,
    };
    let start = Instant::now();
    let judged = judge.judge(&mut |_| ()).unwrap();
    let took = start.elapsed().as_secs_f64();
    assert_eq!((judged.counts.failing, &judged.incomplete_because), (0, &None), "{judged:?}");
    (judged.counts, took)
}

/// Prints how many of the first states of a recording 1, 2 and 4 workers judge per second.
fn rates(recorded: &RecordedWork, subject: &Arc<dyn Subject>, options: &RecordOptions, states: u64) {
    for workers in WORKERS {
        let (counts, took) = judged(recorded, subject, options, states, workers);
        let [checks, states] = [counts.checked, counts.distinct].map(|count| count as f64 / took);
        let StateCounts { checked, distinct, .. } = counts;
        println!(
            "{workers} workers: {checked} of {distinct} states checked, {checks:.0} checks/s, {states:.0} states/s"
        );
    }
}

/// Measures the trees of ten names that are created and judged per second; with a checker, compared with the
/// rate at which that alone can be spawned.
fn posix(check: &CheckBy) {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let line =
        "mkdir d; for i in 1 2 3 4 5 6 7 8; do echo $i > d/$i; done; mv d/8 log; sync; echo 1 > $PLUMB_ACK";
    let run = Program::acknowledging(line.to_owned());
    let options = record_options(FileSystem::Posix, directory.path());
    let programs = Programs {
        run: run.clone(),
        check: check.clone(),
        recover: None,
        setup: None,
        timeout: options.timeout,
        stop: Arc::default(),
    };
    let subject: Arc<dyn Subject> = Arc::new(programs);
    let recorded = record_with_calls(&*subject, &run, &options, &AtomicBool::new(false)).unwrap();
    let CheckBy::Command(line) = check else { return rates(&recorded, &subject, &options, STATES) };
    // Both in turn, since each takes less than a second, in which another program may need the processors.
    for workers in WORKERS {
        let mut ratios = [0.0; ROUNDS];
        for ratio in &mut ratios {
            let alone = spawned(line, workers);
            let (counts, took) = judged(&recorded, &subject, &options, STATES, workers);
            *ratio = counts.checked as f64 / took / alone;
        }
        ratios.sort_by(f64::total_cmp);
        let [least, median, most] = [0, ROUNDS / 2, ROUNDS - 1].map(|place| ratios[place]);
        println!("{workers} workers: {median:.2} of what as many threads spawn ({least:.2} to {most:.2})");
    }
}

/// Returns how often per second the shell runs a line, in `threads` threads.
fn spawned(line: &str, threads: u32) -> f64 {
    const COUNT: u32 = 400;
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..COUNT / threads {
                    assert!(Command::new("/bin/sh").arg("-c").arg(line).status().unwrap().success());
                }
            });
        }
    });
    f64::from(COUNT) / start.elapsed().as_secs_f64()
}

/// Measures the checks of SQLite per second, in process, on files in memory.
fn sqlite() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let subject = sqlite_subject();
    subject.set_up(directory.path()).unwrap();
    let mut last = None;
    subject.work(directory.path(), &mut |number| last = Some(number)).unwrap();
    let (start, checks) = (processor_seconds(), 50_000);
    for _ in 0..checks {
        assert_eq!(subject.check(directory.path(), last).unwrap(), Outcome::Intact);
    }
    println!("{checks} checks, {:.0} checks/s", f64::from(checks) / (processor_seconds() - start));
}
