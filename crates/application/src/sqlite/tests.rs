//! Tests with strace that SQLite syncs as often as the profiles state.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use plumb_block::RealClock;

use super::*;

/// Mode and number of transactions for the traced process.
const CHILD: &str = "PLUMB_SQLITE_CHILD";

const MODES: [(&str, Journal); 4] = [
    ("rollback-full", Journal::Delete(Synchronous::Full)),
    ("rollback-extra", Journal::Delete(Synchronous::Extra)),
    ("wal-full", Journal::Wal(Synchronous::Full)),
    ("wal-normal", Journal::Wal(Synchronous::Normal)),
];

fn insert(journal: Journal, count: u64, directory: &Path) -> LoadOutcome {
    let (clock, stop) = (RealClock::start(), AtomicBool::new(false));
    let conduct = Conduct {
        profile: "test",
        clock: &clock,
        stop: &stop,
        duration: None,
        count: Some(count),
        threads: 1,
        call_bytes_max: 0,
        seed: 1,
    };
    perform(journal, directory, &conduct, &mut ()).unwrap()
}

#[test]
fn each_transaction_is_a_row_and_timed() {
    for (name, journal) in MODES {
        let directory = tempfile::tempdir().unwrap();
        let measured = insert(journal, 25, directory.path());
        assert_eq!(measured.transaction_count(), 25, "{name}");
        let is_durable = matches!(name, "rollback-extra" | "wal-full");
        assert_eq!(measured.durable.count(), if is_durable { 25 } else { 0 }, "{name}");
        let commits =
            measured.transactions.as_ref().unwrap().calls.iter().find(|(name, _)| name == "commit").unwrap();
        assert_eq!(commits.1.count(), 25, "{name}");
        let database = Connection::open(directory.path().join("plumb.sqlite")).unwrap();
        let rows: i64 =
            database.query_row("SELECT count(DISTINCT key) FROM entry", [], |row| row.get(0)).unwrap();
        let page: i64 = database.pragma_query_value(None, "page_size", |row| row.get(0)).unwrap();
        assert_eq!((rows, page), (25, 4096), "{name}");
    }
}

/// Inserts rows in a separate process for strace; outside of strace, a single row.
#[test]
fn rows_are_inserted_as_the_environment_says() {
    let typed = std::env::var(CHILD).unwrap_or_else(|_| "wal-full:1".to_owned());
    let (name, count) = typed.split_once(':').unwrap();
    let (_, journal) = MODES.into_iter().find(|(known, _)| *known == name).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let count = count.parse().unwrap();
    assert_eq!(insert(journal, count, directory.path()).transaction_count(), count);
}

/// Returns the number of syncs of a process that inserts `count` rows; `None` if strace cannot run here.
fn syncs(name: &str, count: u64) -> Option<u64> {
    let log = tempfile::NamedTempFile::new().unwrap();
    let traced = Command::new("strace")
        .args(["-f", "-qq", "-e", "trace=fsync,fdatasync", "-o"])
        .arg(log.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "sqlite::tests::rows_are_inserted_as_the_environment_says"])
        .env(CHILD, format!("{name}:{count}"))
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&traced.stdout);
    if !said.contains("1 passed") {
        assert!(!said.contains("running 1 test"), "the process that was traced failed: {said}");
        return None;
    }
    let log = std::fs::read_to_string(log.path()).unwrap();
    Some(log.lines().filter(|line| line.contains("sync(") && line.contains("= 0")).count() as u64)
}

#[test]
fn sqlite_syncs_as_often_as_its_profile_says() {
    for (name, per_transaction) in
        [("rollback-full", 4), ("rollback-extra", 5), ("wal-full", 1), ("wal-normal", 0)]
    {
        // The difference of two runs excludes the syncs of creating and closing the database. No checkpoint
        // comes before 1,000 pages.
        let (Some(few), Some(more)) = (syncs(name, 10), syncs(name, 110)) else {
            plumb_testkit::skip("strace cannot run here");
            return;
        };
        assert_eq!(more - few, 100 * per_transaction, "{name}: {few} syncs for 10, {more} for 110");
    }
}
