//! Field report B: does a test reach the disk, or the file-system cache?

use plumb_block::{Bytes, DeviceCounters, FileId, FileStore as _, Nanos, OpenOptions};
use plumb_report::document::comparison::Counts;
use plumb_report::document::study::{StudyRow, StudyUnit};
use plumb_report::quantity::{bytes, count, rate};
use plumb_sim::files::Host;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::bench::{Bench, SimulatedPlace, StudyError, is_file};
use super::row::{row, within};
use super::{Chapter, Found};
use crate::explanation::{explain, main_cause};

const SOURCE: &str = "DiskSpd: making sure the test reaches the disk and not the file-system cache";
/// The class of drive whose rates the report has.
const DRIVE: &str = "sim:enterprise-sata-ssd?size=8GiB";
/// 8 KiB random, 32 in flight.
const BLOCK: u64 = 8 << 10;
/// The size of the file.
const FILE: u64 = 1 << 30;
/// The report does not name its drive: one of its class is within this factor.
const CLASS_FACTOR: f64 = 2.0;
/// So many are in flight.
const DEPTH: f64 = 32.0;
/// The length of coalesced writes is expected within this factor.
const COALESCED_FACTOR: f64 = 1.5;

/// A row of the report: operations a second at the application and at the storage.
struct Test {
    name: &'static str,
    words: &'static str,
    application: f64,
    storage: f64,
    is_raw: bool,
}

const TESTS: [Test; 8] = [
    test("file, read, uncached", "--direct --write 0", [68_500.0, 69_000.0]),
    test("file, read, cached", "--cached --page-cache loaded --write 0", [215_000.0, 0.0]),
    test("file, write, uncached", "--direct --write 100", [30_000.0, 34_000.0]),
    test("file, write, cached", "--cached --write 100", [158_000.0, 39.0]),
    test("raw disk, read, -Su", "--direct --write 0", [69_000.0, 69_000.0]).raw(),
    test("raw disk, read", "--direct --write 0", [69_000.0, 69_000.0]).raw(),
    test("raw disk, write, -Su", "--direct --write 100", [29_500.0, 29_500.0]).raw(),
    test("raw disk, write", "--direct --write 100", [29_500.0, 29_500.0]).raw(),
];

const fn test(name: &'static str, words: &'static str, [application, storage]: [f64; 2]) -> Test {
    Test { name, words, application, storage, is_raw: false }
}

impl Test {
    const fn raw(self) -> Self {
        Self { is_raw: true, ..self }
    }

    fn is_write(&self) -> bool {
        self.words.contains("--write 100")
    }

    fn is_cached(&self) -> bool {
        self.words.contains("--cached")
    }
}

/// Why writes of the model are not as fast as those of the report.
const WRITTEN: &str = "Each operation reaches the drive. It was written until its rate was steady: its class sustains 32,000 writes of 4 KiB, and half as many of 8 KiB, or a few \
    more in a part of it. In erased blocks it takes 44,000, as fast as it programs them. The report is between, and tells neither its drive nor how long that was written";
/// Why cached operations are as fast as they are.
const MEMORY: &str = "How fast memory answers is a matter of the processor and the operating system, of which the report tells nothing: \
    the rate here is that of one processor of the simulated server";
/// The mean length of what reached the storage of cached writes.
const COALESCED: f64 = 244_000.0;

const REPORT: &str = "8 KiB random, 32 in flight: both sides";
const BALANCE: &str = "Where the bytes of the cached writes are";
const NEVER_WRITTEN: &str = "A disk that was never written";

/// What became of reads and writes through the page cache.
struct Cached {
    reads: Counts,
    writes: Counts,
    /// Bytes that were not written yet at the end.
    dirty: u64,
}

pub(super) static CHAPTER: Chapter = Chapter {
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

/// The rows of a test; `counted` is what was counted, or why nothing. A cached one is explained against the same `uncached`.
fn both_sides(
    test: &Test,
    counted: Result<&Counts, &str>,
    uncached: Option<&Counts>,
    is_simulated: bool,
) -> [StudyRow; 2] {
    let cause = uncached.zip(counted.ok()).filter(|_| test.is_cached());
    let cause = cause.and_then(|(uncached, cached)| main_cause(&explain(cached, uncached)));
    let why = match (cause, test.is_cached(), is_simulated) {
        (Some(cause), ..) => format!("Against the same past the page cache: {cause}"),
        (None, false, true) if test.is_write() => WRITTEN.to_owned(),
        _ => "Each operation reaches the drive: its class sustains that".to_owned(),
    };
    let made = |side: &str, reported: f64, of: fn(&Counts) -> Option<f64>, because: &str| {
        row(REPORT, format!("{}: {side}", test.name), StudyUnit::PerSecond)
            .reported(reported)
            .ours_or(counted.ok().and_then(of), counted.err().unwrap_or(because))
            .why(why.clone())
    };
    let application = made(
        "application",
        test.application,
        |of| Some(of.operations as f64 / of.seconds),
        "nothing completed",
    );
    let storage = made(
        "storage",
        test.storage,
        |of| Some(of.device_ios? as f64 / of.seconds),
        "the devices beneath it could not be read",
    );
    match (is_simulated, test.is_cached()) {
        (false, _) => [application, storage],
        (true, true) => {
            let why = format!("{why}. {MEMORY}");
            [application.why(why), storage.expecting(within(COALESCED_FACTOR, test.storage))]
        }
        (true, false) => [application, storage].map(|row| {
            let reported = row.reported.unwrap_or_default();
            row.expecting(within(CLASS_FACTOR, reported))
        }),
    }
}

fn simulated(bench: &mut Bench<'_>) -> Result<Found, StudyError> {
    let cached = cached(bench)?;
    let (mut rows, mut before) = (Vec::new(), None);
    for (number, test) in TESTS.iter().enumerate() {
        let counts = match test.is_cached() {
            true if test.storage == 0.0 => cached.reads,
            true => cached.writes,
            false => uncached(bench, test, number)?,
        };
        rows.extend(both_sides(test, Ok(&counts), before.as_ref(), true));
        before = Some(counts);
    }
    rows.extend(balance(&cached));
    rows.extend(never_written(bench)?);
    let (writes, ios) = (cached.writes, cached.writes.device_ios.unwrap_or(0));
    let answer = format!(
        "{} cached reads a second reach the storage with {}; {} cached writes became {} of {}: coalesced by the page cache",
        rate(cached.reads.operations as f64 / cached.reads.seconds),
        cached.reads.device_ios.unwrap_or(0),
        count(writes.operations),
        count(ios),
        bytes(mean_bytes(&writes))
    );
    Ok((rows, Vec::new(), answer))
}

fn uncached(bench: &mut Bench<'_>, test: &Test, number: usize) -> Result<Counts, StudyError> {
    // Each test of a drive of its own, in use: of a file only its part is touched.
    let drive = format!("{DRIVE}&seed={}", bench.seed() + number as u64);
    let range = if test.is_raw { "" } else { " --length 6GiB" };
    bench.say(&format!("study B: {} on {drive}", test.name));
    let warmup = if test.is_write() { "20s" } else { "0s" };
    let words =
        format!("--random --block-size 8k --depth 32 {}{range} --warmup {warmup} --duration 2s", test.words);
    Ok(Counts::of(bench.load(&[&drive], &words)?.total()))
}

/// Random reads and writes through the page cache of the simulated file system, one after the other: memory answers before the next comes.
fn cached(bench: &mut Bench<'_>) -> Result<Cached, StudyError> {
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
    let mut somewhere = || Bytes(chance.next_u64() % (FILE / BLOCK) * BLOCK);
    let reads = called(bench, &place, 2, || files.read_at(file, somewhere(), &mut block).map(drop))?;
    let writes = called(bench, &place, 36, || files.write_at(file, somewhere(), &block).map(drop))?;
    let after = place.drive()?;
    files.syncfs()?;
    Ok(Cached { reads, writes, dirty: place.drive()?.write_bytes.0 - after.write_bytes.0 })
}

/// One call after the other for so many seconds. Memory answers before the next of what is in flight has its turn.
fn called(
    bench: &Bench<'_>,
    place: &SimulatedPlace,
    seconds: u64,
    mut call: impl FnMut() -> plumb_block::Result<()>,
) -> Result<Counts, StudyError> {
    let (before, start, mut operations) = (place.drive()?, place.now(), 0_u64);
    while place.now().since(start) < Nanos::secs(seconds) {
        call()?;
        operations += 1;
        if operations.is_multiple_of(1 << 20) {
            bench.check()?;
        }
    }
    let (after, seconds) = (place.drive()?, place.now().since(start).as_secs_f64());
    let time = |of: fn(&DeviceCounters) -> Nanos| Some(of(&after).since(of(&before)).as_secs_f64());
    Ok(Counts {
        seconds,
        operations,
        slot_seconds: DEPTH * seconds,
        thread_seconds: Some(seconds),
        page_cache: true,
        operation_seconds: seconds,
        device_ios: Some(after.reads + after.writes - before.reads - before.writes),
        device_bytes: Some(
            after.read_bytes.0 + after.write_bytes.0 - before.read_bytes.0 - before.write_bytes.0,
        ),
        device_seconds: time(|of| Nanos(of.read_time.0 + of.write_time.0)),
        device_busy_seconds: time(|of| of.busy_time),
        flushes: after.flushes.zip(before.flushes).map(|(after, before)| after - before),
        flush_seconds: time(|of| of.flush_time),
        cpu_seconds: Some(seconds),
        ..Counts::default()
    })
}

/// The mean length of what reached the storage.
fn mean_bytes(counts: &Counts) -> f64 {
    counts.device_bytes.unwrap_or(0) as f64 / counts.device_ios.unwrap_or(0).max(1) as f64
}

/// Application bytes are what was absorbed by overwriting, what is still dirty, and what was written.
fn balance(cached: &Cached) -> Vec<StudyRow> {
    let (operations, stored) = (cached.writes.operations, cached.writes.device_bytes.unwrap_or(0) as f64);
    let (application, dirty) = ((operations * BLOCK) as f64, cached.dirty as f64);
    let part = |name: &str, of: f64, why: String| row(BALANCE, name, StudyUnit::Bytes).ours(of).why(why);
    vec![
        part(
            "a write at the storage",
            mean_bytes(&cached.writes),
            "Neighbouring dirty pages are written in one request, of 256 KiB at most".to_owned(),
        )
        .reported(COALESCED)
        .expecting(within(COALESCED_FACTOR, COALESCED)),
        part("written by the application", application, format!("{} writes", count(operations))),
        part(
            "absorbed by overwriting in memory",
            application - dirty - stored,
            "The rest of the balance: nothing else is left".to_owned(),
        ),
        part(
            "not yet written at the end",
            dirty,
            "What a sync had to write afterwards, dirty again or on its way: a power cut takes it".to_owned(),
        ),
        part("written to the storage", stored, "Counted at the drive".to_owned()),
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
    let is_file = is_file(target);
    let size = bench.size_words(target, Bytes(FILE));
    let (mut rows, mut before) = (Vec::new(), None);
    for test in &TESTS {
        let because = match (test.is_raw, is_file) {
            (true, true) => "it is a file: name a block device for the raw rows",
            (false, false) => "it is a block device: name a directory or a file for these rows",
            _ => {
                bench.say(&format!("study B: {} on {target}", test.name));
                let words = format!("--random --block-size 8k --depth 32 {} --duration 5s{size}", test.words);
                let counts = Counts::of(bench.load(&[target], &words)?.total());
                rows.extend(both_sides(test, Ok(&counts), before.as_ref(), false));
                before = Some(counts);
                continue;
            }
        };
        rows.extend(both_sides(test, Err(because), None, false));
    }
    Ok((rows, Vec::new(), format!("both sides as they were seen on {target}")))
}
