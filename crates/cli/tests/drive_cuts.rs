//! Tests that cut power in the middle of a real workload on a mounted file system: on honest drives synced
//! data is there afterwards; on a drive that ignores flushes, losses are found.
//!
//! Acknowledgements are recorded outside of the drive, in this process. `PLUMB_CUTS` is the number of cuts
//! (30), `PLUMB_SEED` the seed of the first drive (1). A failure prints the seed of its drive and the moment
//! of its cut.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::common::PYTHON;
use crate::drive_support::{Kind, MountedFileSystem, Server, cannot_attach, run};

/// Number of cuts per drive.
const CUTS_PER_DRIVE: u64 = 5;
/// Largest number of rounds of a workload, which must be cut before its end.
const ROUNDS_MAX: u64 = 2_000;

/// Largest number of cuts of a drive that ignores flushes, until two have lost acknowledged data.
const LIAR_CUTS_MAX: u64 = 60;

/// Random numbers by splitmix64 (Steele, Lea, Flood 2014).
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a random number from 1 to `max`.
    pub(crate) fn up_to(&mut self, max: u64) -> u64 {
        1 + self.next() % max
    }

    /// Returns a random moment as arguments of `plumb drive cut`.
    fn moment(&mut self) -> Vec<String> {
        let flush = self.up_to(40);
        match self.up_to(3) {
            1 => vec!["--at-write".to_owned(), self.up_to(120).to_string()],
            2 => vec!["--at-flush".to_owned(), flush.to_string()],
            _ => vec!["--between".to_owned(), format!("flush:{flush}:submitted..flush:{flush}:completed")],
        }
    }
}

/// Returns the contents of a file. All files and all blocks of a file differ.
fn contents(seed: u64, number: u64) -> Vec<u8> {
    let mut chance = Chance(seed ^ (number << 20));
    let words = chance.up_to(3_000);
    (0..words).flat_map(|_| chance.next().to_le_bytes()).collect()
}

/// Data acknowledged as durable, by path below the mount point.
pub(crate) type DurableFiles = BTreeMap<PathBuf, Vec<u8>>;

/// Writes files and syncs them with their directory, and appends to a log, until an error.
pub(crate) fn work(
    mount: &Path,
    directory: &str,
    seed: u64,
    acknowledged: &mut DurableFiles,
) -> io::Result<()> {
    let home = Path::new(directory);
    fs::create_dir(mount.join(home))?;
    File::open(mount)?.sync_all()?;
    let log_path = home.join("log");
    let mut log = File::create(mount.join(&log_path))?;
    let mut log_text = Vec::new();
    for number in 0..ROUNDS_MAX {
        let path = home.join(format!("file-{}", number % 200));
        let aside = mount.join(home.join("aside"));
        let text = contents(seed, number);
        let mut file = File::create(&aside)?;
        file.write_all(&text)?;
        file.sync_all()?;
        // Until the directory is synced, either version may be found.
        let old = acknowledged.remove(&path);
        fs::rename(&aside, mount.join(&path))?;
        File::open(mount.join(home))?.sync_all()?;
        drop(old);
        acknowledged.insert(path, text);
        let line = format!("{seed:016x} {number:06}\n");
        log.write_all(line.as_bytes())?;
        log.sync_data()?;
        log_text.extend_from_slice(line.as_bytes());
        acknowledged.insert(log_path.clone(), log_text.clone());
    }
    Ok(())
}

/// Returns the paths of acknowledged files that are missing or wrong.
pub(crate) fn lost(mount: &Path, acknowledged: &DurableFiles) -> Vec<String> {
    let is_kept = |path: &PathBuf, text: &Vec<u8>| {
        let found = fs::read(mount.join(path));
        // The log may have more than was acknowledged.
        found.is_ok_and(|found| found == *text || (path.ends_with("log") && found.starts_with(text)))
    };
    let lost = acknowledged.iter().filter(|(path, text)| !is_kept(path, text));
    lost.map(|(path, _)| path.display().to_string()).collect()
}

/// File system on a drive that is cut repeatedly.
struct Bench {
    server: Server,
    kind: Kind,
    seed: u64,
    mount_point: tempfile::TempDir,
}

impl Bench {
    fn new(model: &str, kind: Kind, seed: u64) -> Self {
        let seed_text = seed.to_string();
        let server = Server::start(&[model, "--size", kind.size(), "--seed", &seed_text, "--attach"]);
        kind.make(server.device());
        Self { server, kind, seed, mount_point: tempfile::tempdir().unwrap() }
    }

    fn mount(&self) -> Result<MountedFileSystem, String> {
        MountedFileSystem::new(self.kind, self.server.device(), self.mount_point.path())
    }

    /// Cuts once while `workload` runs on the mounted file system; the workload must not end before.
    fn cut_during(&self, moment: &[String], workload: impl FnOnce(&Path)) {
        let mounted = self.mount().unwrap_or_else(|said| panic!("seed {}: {said}", self.seed));
        let moment: Vec<&str> = moment.iter().map(String::as_str).collect();
        self.server.order("cut", &moment);
        workload(&mounted.at);
        let status = self.server.order("status", &[]);
        assert_eq!(status["power"], false, "seed {}: the workload ended before {moment:?}", self.seed);
        drop(mounted);
        let status = self.server.order("power-on", &[]);
        assert_eq!(status["power"], true);
    }

    /// Mounts again, and returns the acknowledged data that is lost.
    fn after(&self, acknowledged: &DurableFiles) -> Result<Vec<String>, String> {
        let mounted = self.mount()?;
        Ok(lost(&mounted.at, acknowledged))
    }
}

/// Makes one cut in the middle of writing files, and returns its moment, the acknowledged files, and the lost
/// ones. If the file system cannot be mounted, all are lost.
fn cut_files(bench: &Bench, chance: &mut Chance, round: u64) -> (Vec<String>, DurableFiles, Vec<String>) {
    let moment = chance.moment();
    let mut acknowledged = DurableFiles::new();
    let (directory, seed) = (format!("round-{round}"), chance.next());
    bench.cut_during(&moment, |mount| {
        let ended = work(mount, &directory, seed, &mut acknowledged);
        assert!(ended.is_err(), "{ROUNDS_MAX} rounds and no cut {moment:?}");
    });
    let lost = bench.after(&acknowledged).unwrap_or_else(|said| vec![format!("everything: {said}")]);
    (moment, acknowledged, lost)
}

pub(crate) fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

const PROGRAMS: [&str; 5] = ["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "mount", "blockdev"];

/// Drives and file systems to test in turn.
const PAIRS: [(&str, Kind); 6] = [
    ("consumer-nvme-ssd", Kind::Ext4),
    ("consumer-nvme-ssd", Kind::Xfs),
    ("plp-nvme-ssd", Kind::Ext4),
    ("consumer-nvme-ssd", Kind::Btrfs),
    ("consumer-sata-ssd", Kind::Ext4),
    ("consumer-nvme-ssd", Kind::Ext4),
];

#[test]
fn what_was_synced_survives_on_honest_drives() {
    if let Some(reason) = cannot_attach(&PROGRAMS) {
        return plumb_testkit::skip(&reason);
    }
    let began = Instant::now();
    let (cuts, first_seed) = (from_environment("PLUMB_CUTS", 30), from_environment("PLUMB_SEED", 1));
    let mut kept = 0;
    for drive in 0..cuts.div_ceil(CUTS_PER_DRIVE) {
        let seed = first_seed.wrapping_add(drive);
        // Chosen by the seed, so that the seed alone repeats a failure.
        let (model, kind) = PAIRS[(seed % PAIRS.len() as u64) as usize];
        let bench = Bench::new(model, kind, seed);
        let mut chance = Chance(seed);
        let mut before = DurableFiles::new();
        for round in 0..CUTS_PER_DRIVE.min(cuts - drive * CUTS_PER_DRIVE) {
            let (moment, acknowledged, lost) = cut_files(&bench, &mut chance, round);
            let place = format!("PLUMB_SEED={seed}: {model}, {}, cut {round} {moment:?}", kind.word());
            assert_eq!(lost, Vec::<String>::new(), "{place}");
            kept += acknowledged.len();
            before.extend(acknowledged);
            eprintln!("{place}: {} kept", before.len());
        }
        assert_eq!(
            bench.after(&before).unwrap(),
            Vec::<String>::new(),
            "PLUMB_SEED={seed}: of earlier rounds"
        );
        let (is_sound, said) = kind.check(bench.server.device());
        assert!(is_sound, "PLUMB_SEED={seed}: {model}, {}: {said}", kind.word());
        bench.server.detach();
    }
    eprintln!(
        "{cuts} cuts, {kept} acknowledged files kept, none lost, {:.1} s",
        began.elapsed().as_secs_f64()
    );
}

#[test]
fn losses_of_a_liar_are_found() {
    if let Some(reason) = cannot_attach(&PROGRAMS) {
        return plumb_testkit::skip(&reason);
    }
    let first_seed = from_environment("PLUMB_SEED", 1);
    let mut found = 0;
    // Many unflushed writes survive by chance, because the drive destages them soon anyway.
    for seed in (0..LIAR_CUTS_MAX).map(|drive| first_seed.wrapping_add(drive)) {
        let bench = Bench::new("liar", Kind::Ext4, seed);
        let (moment, acknowledged, lost) = cut_files(&bench, &mut Chance(seed), 0);
        let blocks = &bench.server.order("status", &[])["lost_at_last_cut_blocks"];
        eprintln!(
            "liar, PLUMB_SEED={seed}, {moment:?}: {} of {} files lost, {blocks} blocks",
            lost.len(),
            acknowledged.len()
        );
        bench.server.detach();
        found += u64::from(!lost.is_empty());
        if found == 2 {
            return;
        }
    }
    panic!(
        "{found} of {LIAR_CUTS_MAX} cuts of a drive that ignores flushes lost anything, from PLUMB_SEED={first_seed}"
    );
}

/// Creates the table.
pub(crate) const BEGIN: &str = "
import sqlite3, sys
base = sqlite3.connect(sys.argv[1], isolation_level=None)
assert base.execute('pragma journal_mode=wal').fetchone()[0] == 'wal'
base.execute('pragma synchronous=full')
base.execute('create table t(n integer primary key, text)')
";

/// Inserts rows, and prints each number once its commit has returned.
pub(crate) const INSERTS: &str = "
import sqlite3, sys
base = sqlite3.connect(sys.argv[1], isolation_level=None)
assert base.execute('pragma journal_mode=wal').fetchone()[0] == 'wal'
base.execute('pragma synchronous=full')
base.execute('create table if not exists t(n integer primary key, text)')
first = base.execute('select coalesce(max(n), 0) from t').fetchone()[0] + 1
for n in range(first, first + 3000):
    base.execute('insert into t values(?, ?)', (n, 'x' * (n % 700)))
    print(n, flush=True)
";

/// Prints the result of the integrity check, then the numbers of all intact rows.
pub(crate) const ROWS: &str = "
import sqlite3, sys
base = sqlite3.connect(sys.argv[1])
print(base.execute('pragma integrity_check').fetchone()[0])
for n, text in base.execute('select n, text from t order by n'):
    if text == 'x' * (n % 700): print(n)
";

/// Returns the numbers that a program prints until it ends.
pub(crate) fn numbers(command: &mut Command) -> Vec<u64> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said = lines.map_while(Result::ok).filter_map(|line| line.parse().ok()).collect();
    child.wait().unwrap();
    said
}

/// Returns those `committed` numbers that are missing in `text`, whose first line must report integrity.
pub(crate) fn missing(text: &str, committed: &[u64]) -> Vec<u64> {
    assert_eq!(text.lines().next(), Some("ok"), "{text}");
    let rows: BTreeSet<u64> = text.lines().filter_map(|line| line.parse().ok()).collect();
    committed.iter().copied().filter(|number| !rows.contains(number)).collect()
}

pub(crate) fn python(script: &str, database: &Path) -> Command {
    let mut command = Command::new(PYTHON);
    command.args(["-c", script]).arg(database);
    command
}

#[test]
fn no_committed_row_of_sqlite_is_lost() {
    let has_sqlite = Command::new(PYTHON).args(["-c", "import sqlite3"]).output();
    if !has_sqlite.is_ok_and(|output| output.status.success()) {
        return plumb_testkit::skip("there is no python3 with sqlite3");
    }
    if let Some(reason) = cannot_attach(&PROGRAMS) {
        return plumb_testkit::skip(&reason);
    }
    let seed = from_environment("PLUMB_SEED", 1);
    let bench = Bench::new("consumer-nvme-ssd", Kind::Ext4, seed);
    let mut chance = Chance(seed);
    let mut committed = Vec::new();
    for round in 0..4 {
        let moment = chance.moment();
        bench.cut_during(&moment, |mount| {
            committed.extend(numbers(&mut python(INSERTS, &mount.join("base"))));
        });
        let mounted = bench.mount().unwrap();
        let place = format!("PLUMB_SEED={seed}, cut {round} {moment:?}");
        let database = mounted.at.join("base");
        if committed.is_empty() {
            continue;
        }
        let text = String::from_utf8(run(&mut python(ROWS, &database)).stdout).unwrap();
        assert_eq!(missing(&text, &committed), Vec::<u64>::new(), "{place}: of {}", committed.len());
        eprintln!("{place}: {} rows kept", committed.len());
    }
    bench.server.detach();
}
