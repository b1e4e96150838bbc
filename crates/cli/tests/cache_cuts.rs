//! Tests that cut all power in the middle of a real workload: of the drive with the log, of the backing
//! drive, which both have a volatile cache, and of the cache's server. Synced data must be there after
//! recovery: of files and SQLite on ext4 and xfs, and of PostgreSQL on ext4.
//!
//! `PLUMB_CACHE_CUTS` is the number of cuts per test, `PLUMB_SEED` the seed of the first; a failure prints
//! its seed.

use std::path::Path;
use std::process::Command;

use crate::cache_support::{Place, Server as Cache};
use crate::common::PYTHON;
use crate::drive_cuts::{
    BEGIN, Chance, DurableFiles, INSERTS, ROWS, from_environment, lost, missing, numbers, python, work,
};
use crate::drive_support::{Kind, MountedFileSystem, Server as Drive, cannot_attach, run};

/// Default number of cuts per test.
const CUTS: u64 = 4;
/// Number of cuts that a file system endures.
const CUTS_PER_STACK: u64 = 5;
const PROGRAMS: [&str; 5] = ["mkfs.ext4", "mkfs.xfs", "mount", "losetup", PYTHON];

/// Two drives, a cache over them, and a file system on the cache.
struct Stack {
    log: Drive,
    backing: Drive,
    place: Place,
    kind: Kind,
    seed: u64,
}

impl Stack {
    fn new(kind: Kind, seed: u64) -> Self {
        let place = Place::new(0);
        let drive = |model: &str, size: &str, socket: &str| {
            let socket = place.path(socket);
            let seed = seed.to_string();
            Drive::start(&[model, "--size", size, "--seed", &seed, "--nbd", socket.to_str().unwrap()])
        };
        let log = drive("consumer-nvme-ssd", "80M", "log.sock");
        let backing = drive("consumer-sata-ssd", "400M", "backing.sock");
        let [log_uri, backing_uri] = [&log, &backing].map(|drive| drive.document["nbd"].as_str().unwrap());
        let members = ["--backing", backing_uri, "--log", log_uri, "--size", "64M", "--overwrite"];
        place.cache(&[&["create", "--name", &place.name], &members[..]].concat());
        let stack = Self { log, backing, place, kind, seed };
        let cache = stack.serve();
        kind.make(cache.device());
        cache.kill();
        stack
    }

    fn serve(&self) -> Cache {
        self.place.serve_as(&["--attach"])
    }

    fn mount(&self, cache: &Cache, at: &Path) -> MountedFileSystem {
        let mounted = MountedFileSystem::new(self.kind, cache.device(), at);
        mounted.unwrap_or_else(|said| panic!("seed {}: {}: {said}", self.seed, self.kind.word()))
    }

    /// Cuts everything while `workload` runs: first the log's drive at a random moment, then the other drive
    /// and the server as soon as that is seen.
    fn cut_during(&self, chance: &mut Chance, workload: impl FnOnce(&Path)) {
        let at = tempfile::tempdir().unwrap();
        let cache = self.serve();
        let mounted = self.mount(&cache, at.path());
        let (event, most) = if chance.up_to(2) == 1 { ("--at-write", 400) } else { ("--at-flush", 100) };
        self.log.order("cut", &[event, &chance.up_to(most).to_string()]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Polled without a pause, so that the server is killed right after the cut.
                while self.log.order("status", &[])["power"] == true {}
                self.backing.order("cut", &[]);
                cache.kill();
            });
            workload(&mounted.at);
        });
        drop(mounted);
        self.log.order("power-on", &[]);
        self.backing.order("power-on", &[]);
    }

    /// Restarts everything, and calls `look` with the mount point.
    fn after<R>(&self, look: impl FnOnce(&Path) -> R) -> R {
        let at = tempfile::tempdir().unwrap();
        let cache = self.serve();
        let mounted = self.mount(&cache, at.path());
        let found = look(&mounted.at);
        drop(mounted);
        // Another process may still have a copy of the mount, so detaching could be refused.
        cache.kill();
        found
    }

    fn end(self) {
        self.place.cache(&["detach", &self.place.name]);
        self.log.detach();
        self.backing.detach();
    }
}

/// Makes cuts on a series of stacks, with these file systems in turn.
fn cut_stacks(kinds: &[Kind], mut cut: impl FnMut(&Stack, &mut Chance, u64)) {
    let (cuts, first_seed) = (from_environment("PLUMB_CACHE_CUTS", CUTS), from_environment("PLUMB_SEED", 1));
    for number in 0..cuts.div_ceil(CUTS_PER_STACK).max(kinds.len() as u64) {
        let seed = first_seed.wrapping_add(number);
        let stack = Stack::new(kinds[(seed % kinds.len() as u64) as usize], seed);
        let mut chance = Chance(seed);
        for round in 0..CUTS_PER_STACK.min(cuts.div_ceil(kinds.len() as u64)) {
            cut(&stack, &mut chance, round);
        }
        stack.end();
    }
}

#[test]
fn synced_files_survive_a_cut_of_the_log_the_disk_and_the_server() {
    if let Some(reason) = cannot_attach(&PROGRAMS) {
        return plumb_testkit::skip(&reason);
    }
    cut_stacks(&[Kind::Ext4, Kind::Xfs], |stack, chance, round| {
        let (mut acknowledged, seed) = (DurableFiles::new(), chance.next());
        stack.cut_during(chance, |mount| {
            work(mount, &format!("round-{round}"), seed, &mut acknowledged).expect_err("there was no cut");
        });
        let lost = stack.after(|mount| lost(mount, &acknowledged));
        let place = format!("PLUMB_SEED={}, {}, cut {round}", stack.seed, stack.kind.word());
        assert_eq!(lost, Vec::<String>::new(), "{place}");
        eprintln!("{place}: {} files kept", acknowledged.len());
    });
}

/// Part of the work of a database.
#[derive(Clone, Copy)]
enum Step {
    /// Preparation before the first commit.
    Begin,
    /// Inserts rows, and prints the number of each once it is committed.
    Insert,
    /// Prints that the database is sound, then the number of each intact row.
    Rows,
}

/// Makes cuts below a database.
fn cut_database(kinds: &[Kind], program: impl Fn(Step, &Path) -> Command) {
    let mut committed = Vec::new();
    cut_stacks(kinds, |stack, chance, round| {
        if round == 0 {
            committed.clear();
            stack.after(|mount| run(&mut program(Step::Begin, mount)));
        }
        stack.cut_during(chance, |mount| committed.extend(numbers(&mut program(Step::Insert, mount))));
        let said =
            stack.after(|mount| String::from_utf8(run(&mut program(Step::Rows, mount)).stdout).unwrap());
        let place = format!("PLUMB_SEED={}, {}, cut {round}", stack.seed, stack.kind.word());
        assert_eq!(missing(&said, &committed), Vec::<u64>::new(), "{place}: of {}", committed.len());
        eprintln!("{place}: {} rows kept", committed.len());
    });
}

#[test]
fn committed_rows_of_sqlite_survive_a_cut_of_the_log_the_disk_and_the_server() {
    if let Some(reason) = cannot_attach(&PROGRAMS) {
        return plumb_testkit::skip(&reason);
    }
    cut_database(&[Kind::Ext4, Kind::Xfs], |step, mount| {
        let script = match step {
            Step::Begin => BEGIN,
            Step::Insert => INSERTS,
            Step::Rows => ROWS,
        };
        python(script, &mount.join("base"))
    });
}

/// Start of each script. PostgreSQL refuses to run as root, so it runs in a user namespace that maps root to
/// nobody.
pub(crate) const POSTGRES: &str = r#"set -e
export LC_ALL=C PATH="$PATH:$(ls -dv /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)"
as='unshare --user --map-user=65534 --map-group=65534 --'
cd "$0"
"#;

pub(crate) const POSTGRES_BEGIN: &str = "$as initdb -A trust -U postgres --data-checksums --no-locale -E UTF8 --wal-segsize=1 -D data
echo 'CREATE TABLE entry (id bigserial PRIMARY KEY, text text NOT NULL)' | $as postgres --single -D data postgres";

/// Starts a server that ends with the shell.
pub(crate) const POSTGRES_SERVER: &str = r#"rm -f data/postmaster.pid
socket=$(mktemp -d)
$as postgres -D data -k "$socket" -c listen_addresses= -c dynamic_shared_memory_type=mmap >&2 & server=$!
trap 'kill -INT $server; wait $server || true; rm -rf "$socket"' EXIT
until pg_isready -q -h "$socket"; do kill -0 $server; done
ask() { psql -X -A -t -q -v ON_ERROR_STOP=1 -h "$socket" -U postgres -d postgres "$@"; }
"#;

const POSTGRES_INSERTS: &str =
    r#"yes "INSERT INTO entry (text) VALUES (repeat('x', 700)) RETURNING id;" | head -n 20000 | ask"#;

const POSTGRES_ROWS: &str = r#"echo ok; ask -c "SELECT id FROM entry WHERE text = repeat('x', 700)""#;

/// Returns the reason why PostgreSQL cannot run here, if there is one.
pub(crate) fn without_postgres() -> Option<String> {
    let found =
        Command::new("/bin/sh").args(["-c", "ls /usr/lib/postgresql/*/bin/postgres"]).output().unwrap();
    (!found.status.success()).then(|| "there is no PostgreSQL".to_owned())
}

#[test]
fn committed_rows_of_postgresql_survive_a_cut_of_the_log_the_disk_and_the_server() {
    if let Some(reason) = cannot_attach(&PROGRAMS).or_else(without_postgres) {
        return plumb_testkit::skip(&reason);
    }
    cut_database(&[Kind::Ext4], |step, mount| {
        let lines = match step {
            Step::Begin => [POSTGRES, POSTGRES_BEGIN, ""],
            Step::Insert => [POSTGRES, POSTGRES_SERVER, POSTGRES_INSERTS],
            Step::Rows => [POSTGRES, POSTGRES_SERVER, POSTGRES_ROWS],
        };
        let mut command = Command::new("/bin/bash");
        command.args(["-c", &lines.concat()]).arg(mount);
        command
    });
}
