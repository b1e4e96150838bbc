//! Field report B: does a test reach the disk, or the file-system cache?

use plumb_block::{Bytes, FileId, FileStore as _, Nanos, OpenOptions};
use plumb_report::document::study::{Expected, StudyRow, StudyUnit};
use plumb_report::quantity::{bytes, count, rate};
use plumb_sim::files::Host;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::bench::{Bench, Loaded, StudyError};
use super::row::{Learn, row, within};
use super::{Chapter, Found};

const SOURCE: &str = "DiskSpd: making sure the test reaches the disk and not the file-system cache";
/// The class of drive whose rates the report has.
const DRIVE: &str = "sim:enterprise-sata-ssd?size=8GiB";
/// 8 KiB random, 32 in flight.
const BLOCK: u64 = 8 << 10;
/// The size of the file.
const FILE: u64 = 1 << 30;
/// Uncached, the storage sees what the application does, within this factor.
const BOTH_SIDES: f64 = 1.2;
/// The length of coalesced writes is expected within this factor.
const COALESCED_FACTOR: f64 = 1.5;

/// A row of the report: operations a second at the application and at the storage.
struct Test {
    name: &'static str,
    words: &'static str,
    application: f64,
    storage: f64,
    is_raw: bool,
    is_cached: bool,
}

const TESTS: [Test; 8] = [
    Test {
        name: "file, read, uncached",
        words: "--direct --write 0",
        application: 68_500.0,
        storage: 69_000.0,
        is_raw: false,
        is_cached: false,
    },
    Test {
        name: "file, read, cached",
        words: "--cached --page-cache loaded --write 0",
        application: 215_000.0,
        storage: 0.0,
        is_raw: false,
        is_cached: true,
    },
    Test {
        name: "file, write, uncached",
        words: "--direct --write 100",
        application: 30_000.0,
        storage: 34_000.0,
        is_raw: false,
        is_cached: false,
    },
    Test {
        name: "file, write, cached",
        words: "--cached --write 100",
        application: 158_000.0,
        storage: 39.0,
        is_raw: false,
        is_cached: true,
    },
    Test {
        name: "raw disk, read, -Su",
        words: "--direct --write 0",
        application: 69_000.0,
        storage: 69_000.0,
        is_raw: true,
        is_cached: false,
    },
    Test {
        name: "raw disk, read",
        words: "--direct --write 0",
        application: 69_000.0,
        storage: 69_000.0,
        is_raw: true,
        is_cached: false,
    },
    Test {
        name: "raw disk, write, -Su",
        words: "--direct --write 100",
        application: 29_500.0,
        storage: 29_500.0,
        is_raw: true,
        is_cached: false,
    },
    Test {
        name: "raw disk, write",
        words: "--direct --write 100",
        application: 29_500.0,
        storage: 29_500.0,
        is_raw: true,
        is_cached: false,
    },
];
/// The mean length of what reached the storage of cached writes.
const COALESCED: f64 = 244_000.0;

const REPORT: &str = "8 KiB random, 32 in flight: both sides";
const BALANCE: &str = "Where the bytes of the cached writes are";
const NEVER_WRITTEN: &str = "A disk that was never written";

/// Both sides of a test.
struct Sides {
    application: f64,
    storage: Option<f64>,
}

impl Sides {
    fn of(loaded: &Loaded) -> Self {
        Self { application: loaded.iops(), storage: loaded.storage_iops() }
    }
}

/// What became of cached writes.
struct Cached {
    seconds: f64,
    reads: f64,
    storage_reads: u64,
    writes: f64,
    written: u64,
    storage_writes: u64,
    storage_bytes: u64,
    dirty: u64,
}

pub(super) const CHAPTER: Chapter = Chapter {
    name: "B",
    title: "The disk, or the file-system cache?",
    source: SOURCE,
    finding: "215,000 cached reads a second reach the storage with none, and 158,000 cached writes with 39 of about 244 KB",
    simulated,
    real,
    notes,
};

fn notes(bench: &Bench<'_>) -> Vec<String> {
    match bench.on() {
        None => vec![
            format!("The drive is a model of the class ({DRIVE}); the report does not name its own. The page cache is that of the simulated file system, by the rules of Linux: dirty pages are written when they are 30 s old"),
            "A raw disk of Windows has no cache, with or without -Su; one of Linux has, unless it is opened with O_DIRECT, as here".to_owned(),
            "A write test on a raw disk destroys the file system on it: `plumb load` refuses that unless the disk is named by its serial".to_owned(),
        ],
        Some(_) => vec!["Counted by the block layer for all programs; see `plumb load` for what is the run's own".to_owned()],
    }
}

fn both_sides(test: &Test, sides: Option<&Sides>, because: &str, is_simulated: bool) -> [StudyRow; 2] {
    let why = match (test.is_cached, test.name.contains("read")) {
        (true, true) => "This is memory: how fast it answers depends on the processor alone",
        (true, false) => {
            "Memory takes the writes; pages that are written again and again go to the storage once"
        }
        (false, false) => {
            "Each operation reaches the drive. Its class sustains 32,000 random writes of 4 KiB a second, half as many of 8 KiB; the report's drive is not named"
        }
        _ => "Each operation reaches the drive: both sides are the same",
    };
    let application = row(REPORT, format!("{}: application", test.name), StudyUnit::PerSecond)
        .reported(test.application)
        .ours_or(sides.map(|sides| sides.application), because)
        .why(why);
    let storage = row(REPORT, format!("{}: storage", test.name), StudyUnit::PerSecond)
        .reported(test.storage)
        .ours_or(sides.and_then(|sides| sides.storage), because)
        .why(why);
    let expected = match (test.is_cached, test.storage == 0.0) {
        _ if !is_simulated => None,
        (true, true) => Some(Expected::between(0.0, 0.0)),
        (true, false) => Some(Expected::between(1.0, 1000.0)),
        // What the report shows is that both sides agree; its drive is not named.
        (false, _) => sides.map(|sides| within(BOTH_SIDES, sides.application)),
    };
    [application, expected.map_or(storage.clone(), |expected| storage.expecting(expected))]
}

fn simulated(bench: &mut Bench<'_>) -> Result<Found, StudyError> {
    let cached = cached(bench)?;
    let mut rows = Vec::new();
    for (number, test) in TESTS.iter().enumerate() {
        let sides = match test.is_cached {
            true if test.storage == 0.0 => Sides {
                application: cached.reads,
                storage: Some(cached.storage_reads as f64 / cached.seconds),
            },
            true => Sides {
                application: cached.writes,
                storage: Some(cached.storage_writes as f64 / cached.seconds),
            },
            false => uncached(bench, test, number)?,
        };
        rows.extend(both_sides(test, Some(&sides), "", true));
    }
    rows.extend(balance(&cached));
    rows.extend(never_written(bench)?);
    let answer = format!(
        "{} cached reads a second reach the storage with {}; {} cached writes became {} of {}: coalesced by the page cache",
        rate(cached.reads),
        cached.storage_reads,
        count(cached.written),
        count(cached.storage_writes),
        bytes(cached.storage_bytes as f64 / cached.storage_writes.max(1) as f64)
    );
    Ok((rows, Vec::new(), answer))
}

fn uncached(bench: &mut Bench<'_>, test: &Test, number: usize) -> Result<Sides, StudyError> {
    // Each test of a drive of its own, in use: of a file only its part is touched.
    let drive = format!("{DRIVE}&seed={}", bench.seed() + number as u64);
    let range = if test.is_raw { "" } else { " --length 6GiB" };
    bench.say(&format!("study B: {} on {drive}", test.name));
    let warmup = if test.words.contains("--write 100") { "20s" } else { "0s" };
    let words =
        format!("--random --block-size 8k --depth 32 {}{range} --warmup {warmup} --duration 2s", test.words);
    Ok(Sides::of(&bench.load(&[&drive], &words)?))
}

/// Random reads and writes through the page cache of the simulated file system, one after the other: memory answers before the next comes.
fn cached(bench: &mut Bench<'_>) -> Result<Cached, StudyError> {
    const SECONDS: u64 = 36;
    bench.say("study B: cached reads and writes on a simulated file system");
    bench.check()?;
    let place = bench.files(&format!("{DRIVE}&seed={}", bench.seed()), Host::SERVER)?;
    let (files, mut chance) = (&place.files, Xoshiro256PlusPlus::seed_from_u64(bench.seed()));
    let mut block = vec![0_u8; BLOCK as usize];
    let file: FileId =
        files.open("test.dat".as_ref(), OpenOptions { create: true, ..OpenOptions::default() })?;
    for offset in (0..FILE).step_by(1 << 20) {
        files.write_at(file, Bytes(offset), &vec![0; 1 << 20])?;
    }
    files.syncfs()?;
    let somewhere = |chance: &mut Xoshiro256PlusPlus| Bytes(chance.next_u64() % (FILE / BLOCK) * BLOCK);
    let (before, start) = (place.drive()?, place.now());
    let mut reads = 0_u64;
    while place.now().since(start) < Nanos::secs(2) {
        files.read_at(file, somewhere(&mut chance), &mut block)?;
        reads += 1;
    }
    bench.check()?;
    let storage_reads = place.drive()?.reads - before.reads;
    let read_rate = reads as f64 / place.now().since(start).as_secs_f64();
    let (before, start) = (place.drive()?, place.now());
    let mut written = 0_u64;
    while place.now().since(start) < Nanos::secs(SECONDS) {
        files.write_at(file, somewhere(&mut chance), &block)?;
        written += 1;
        if written.is_multiple_of(1 << 20) {
            bench.check()?;
        }
    }
    let (after, seconds) = (place.drive()?, place.now().since(start).as_secs_f64());
    files.syncfs()?;
    let dirty = place.drive()?.write_bytes.0 - after.write_bytes.0;
    Ok(Cached {
        seconds,
        reads: read_rate,
        storage_reads,
        writes: written as f64 / seconds,
        written,
        storage_writes: after.writes - before.writes,
        storage_bytes: after.write_bytes.0 - before.write_bytes.0,
        dirty,
    })
}

/// Application bytes are what was absorbed by overwriting, what is still dirty, and what was written.
fn balance(cached: &Cached) -> Vec<StudyRow> {
    let application = (cached.written * BLOCK) as f64;
    let absorbed = application - cached.dirty as f64 - cached.storage_bytes as f64;
    let mean = cached.storage_bytes as f64 / cached.storage_writes.max(1) as f64;
    vec![
        row(BALANCE, "a write at the storage", StudyUnit::Bytes)
            .reported(COALESCED)
            .ours(mean)
            .expecting(within(COALESCED_FACTOR, COALESCED))
            .why("Neighbouring dirty pages are written in one request, of 256 KiB at most"),
        row(BALANCE, "written by the application", StudyUnit::Bytes)
            .ours(application)
            .why(format!("{} writes", count(cached.written))),
        row(BALANCE, "absorbed by overwriting in memory", StudyUnit::Bytes)
            .ours(absorbed)
            .why("The rest of the balance: nothing else is left"),
        row(BALANCE, "not yet written at the end", StudyUnit::Bytes)
            .ours(cached.dirty as f64)
            .why("What a sync had to write afterwards, dirty again or on its way: a power cut takes it"),
        row(BALANCE, "written to the storage", StudyUnit::Bytes)
            .ours(cached.storage_bytes as f64)
            .why("Counted at the drive"),
    ]
}

fn never_written(bench: &mut Bench<'_>) -> Result<Vec<StudyRow>, StudyError> {
    let words = "--random --block-size 4k --depth 1 --write 0 --duration 1s";
    bench.say("study B: reads of a drive that was never written");
    let fresh = bench.load(&[&format!("{DRIVE}&seed={}&flash.state=fresh", bench.seed())], words)?;
    let filled = bench.load(&[&format!("{DRIVE}&seed={}", bench.seed())], words)?;
    Ok(vec![
        row(NEVER_WRITTEN, "4 KiB reads of it over reads of one in use, one at a time", StudyUnit::Times)
            .unreported("the report warns, and has no figure")
            .ours(fresh.iops() / filled.iops())
            .why("No flash is read for a block that holds nothing: write real data first"),
    ])
}

/// The same words on a target of this machine.
fn real(bench: &mut Bench<'_>, target: &str) -> Result<Found, StudyError> {
    let is_file = std::fs::metadata(target).map_or(true, |found| found.is_dir() || found.is_file());
    let size = bench.size_on(target, Bytes(FILE)).map_or_else(String::new, |_| " --size 1G".to_owned());
    let mut rows = Vec::new();
    for test in &TESTS {
        let because = match (test.is_raw, is_file) {
            (true, true) => "it is a file: name a block device for the raw rows",
            (false, false) => "it is a block device: name a directory or a file for these rows",
            _ => {
                bench.say(&format!("study B: {} on {target}", test.name));
                let words = format!("--random --block-size 8k --depth 32 {} --duration 5s{size}", test.words);
                let sides = Sides::of(&bench.load(&[target], &words)?);
                rows.extend(both_sides(
                    test,
                    Some(&sides),
                    "the devices beneath it could not be read",
                    false,
                ));
                continue;
            }
        };
        rows.extend(both_sides(test, None, because, false));
    }
    Ok((rows, Vec::new(), format!("both sides as they were seen on {target}")))
}
