//! The real SQLite as a workload: transactions that each insert one row into a table with one index.
//!
//! The reads, writes and syncs of SQLite are not measured here. A counting VFS would need unsafe code, and
//! would stand between SQLite and the measured system; the counters of the storage side measure from outside.

use std::path::Path;
use std::sync::atomic::Ordering;

use plumb_block::{Bytes, Nanos};
use plumb_load::{Ending, Event, LoadOutcome, Observer, Progress, Totals};
use plumb_workload::Invalid;
use rusqlite::{Connection, Statement};

use crate::chance::Chance;
use crate::engine::{Book, Call, Conduct, Took, show};
use crate::error::Error;

/// Journal mode with its synchronous setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Journal {
    /// Rollback journal, removed at each commit.
    Delete(Synchronous),
    /// Write-ahead log.
    Wal(Synchronous),
}

/// Value of SQLite's `PRAGMA synchronous`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Synchronous {
    Normal,
    Full,
    Extra,
}

impl Synchronous {
    const fn name(self) -> &'static str {
        match self {
            Self::Normal => "NORMAL",
            Self::Full => "FULL",
            Self::Extra => "EXTRA",
        }
    }
}

impl Journal {
    /// Returns true if a transaction survives a power cut once COMMIT has returned. With a rollback journal
    /// and FULL it may not: the removal of the journal is not synced, and a journal that reappears rolls the
    /// transaction back.
    const fn is_durable(self) -> bool {
        matches!(self, Self::Delete(Synchronous::Extra) | Self::Wal(Synchronous::Full | Synchronous::Extra))
    }

    const fn mode(self) -> &'static str {
        match self {
            Self::Delete(_) => "delete",
            Self::Wal(_) => "wal",
        }
    }

    const fn synchronous(self) -> Synchronous {
        match self {
            Self::Delete(synchronous) | Self::Wal(synchronous) => synchronous,
        }
    }
}

/// Interval between two progress reports to the observer.
const TELL_EVERY: Nanos = Nanos::millis(100);
/// Length of a row's text in characters.
const TEXT: u64 = 100;

/// Runs SQLite in `directory`.
///
/// # Errors
/// Returns the first error of SQLite.
pub(crate) fn perform(
    journal: Journal,
    directory: &Path,
    conduct: &Conduct<'_>,
    observer: &mut dyn Observer,
) -> Result<LoadOutcome, Error> {
    if conduct.threads != 1 {
        return Err(Invalid::new("threads", conduct.threads, "1: SQLite has one writer at a time").into());
    }
    let connection = open(journal, &directory.join("plumb.sqlite"))?;
    observer.on(&Event::WindowBegins { warmup: Nanos::ZERO, settled: true });
    let client = Client::new(&connection, journal, conduct)?;
    let (book, ending) = client.run(observer)?;
    let end = conduct.clock.now();
    observer.on(&Event::WindowEnds);
    connection.close().map_err(|(_connection, error)| Error::of_sqlite(error, "close the database"))?;
    let mut measured = book.finish(end, ending, 1);
    let notes = &mut measured.transactions.get_or_insert_default().notes;
    notes.push(format!(
        "SQLite {}, journal_mode={}, synchronous={}: plumb does not see the reads, writes and syncs of \
         SQLite itself",
        rusqlite::version(),
        journal.mode().to_uppercase(),
        journal.synchronous().name()
    ));
    if !journal.is_durable() {
        notes.push("a power cut may lose a transaction although its COMMIT has returned".to_owned());
    }
    Ok(measured)
}

/// Returns the progress, with each COMMIT as a write, because the writes of SQLite are not visible.
fn progress(elapsed: Nanos, book: &Book) -> Progress {
    let total = Totals { writes: book.transactions(), ..Totals::default() };
    Progress::of_one(elapsed, total)
}

/// Creates a database in this mode, with its table.
fn open(journal: Journal, path: &Path) -> Result<Connection, Error> {
    let failed = |error| Error::of_sqlite(error, "set up the database");
    let connection = Connection::open(path).map_err(failed)?;
    connection.pragma_update(None, "page_size", 4096).map_err(failed)?;
    connection.pragma_update(None, "journal_mode", journal.mode()).map_err(failed)?;
    let mode: String =
        connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).map_err(failed)?;
    if mode != journal.mode() {
        // If the file system cannot support a mode (no shared memory for WAL), SQLite silently keeps the old
        // one.
        let error = rusqlite::Error::InvalidParameterName(format!(
            "journal_mode={} (it stays {mode})",
            journal.mode()
        ));
        return Err(Error::of_sqlite(error, "use the journal mode on this file system"));
    }
    connection.pragma_update(None, "synchronous", journal.synchronous().name()).map_err(failed)?;
    connection
        .execute_batch(
            "CREATE TABLE entry (id INTEGER PRIMARY KEY, key INTEGER NOT NULL, text TEXT NOT NULL);
             CREATE INDEX entry_key ON entry (key);",
        )
        .map_err(failed)?;
    Ok(connection)
}

/// Writer with its measurements.
struct Client<'a> {
    begin: Statement<'a>,
    insert: Statement<'a>,
    commit: Statement<'a>,
    is_durable: bool,
    conduct: &'a Conduct<'a>,
    chance: Chance,
    start: Nanos,
    book: Book,
}

impl<'a> Client<'a> {
    fn new(connection: &'a Connection, journal: Journal, conduct: &'a Conduct<'a>) -> Result<Self, Error> {
        let prepare = |text| connection.prepare(text).map_err(|error| Error::of_sqlite(error, "prepare"));
        let start = conduct.clock.now();
        Ok(Self {
            begin: prepare("BEGIN IMMEDIATE")?,
            insert: prepare("INSERT INTO entry (key, text) VALUES (?1, ?2)")?,
            commit: prepare("COMMIT")?,
            is_durable: journal.is_durable(),
            conduct,
            chance: Chance::from_seed(conduct.seed, 0),
            start,
            book: Book::starting_at(start, conduct.duration.unwrap_or(Nanos::ZERO)),
        })
    }

    /// Executes transactions until a limit or the stop flag ends the run.
    fn run(mut self, observer: &mut dyn Observer) -> Result<(Book, Ending), Error> {
        let mut told = self.start;
        loop {
            let now = self.conduct.clock.now();
            let ending = self.ending(now);
            if ending.is_some() || now.since(told) >= TELL_EVERY {
                told = now;
                let progress = progress(now.since(self.start), &self.book);
                show(observer, &progress, || self.book.clone().finish(now, Ending::Interrupted, 1));
            }
            if let Some(ending) = ending {
                return Ok((self.book, ending));
            }
            self.insert_one()?;
        }
    }

    /// Returns the ending if the run ends now.
    fn ending(&self, now: Nanos) -> Option<Ending> {
        let Conduct { duration, count, stop, .. } = self.conduct;
        if stop.load(Ordering::Acquire) {
            return Some(Ending::Interrupted);
        }
        let is_over = duration.is_some_and(|duration| now.since(self.start) >= duration)
            || count.is_some_and(|count| self.book.transactions() >= count);
        is_over.then_some(Ending::Complete)
    }

    fn insert_one(&mut self) -> Result<(), Error> {
        let key = self.chance.below(1 << 40) as i64;
        let text: String = (0..TEXT).map(|_| char::from(b'a' + self.chance.below(26) as u8)).collect();
        let failed = |error| Error::of_sqlite(error, "insert a row");
        let clock = self.conduct.clock;
        let from = clock.now();
        self.begin.execute([]).map_err(failed)?;
        self.insert.execute((key, text)).map_err(failed)?;
        let inserted = clock.now();
        self.commit.execute([]).map_err(|error| Error::of_sqlite(error, "commit a transaction"))?;
        let whole = Took { from, until: clock.now() };
        self.book.done(Call::Insert, Took { until: inserted, ..whole }, Bytes(0));
        self.book.done(Call::Commit, Took { from: inserted, ..whole }, Bytes(0));
        self.book.transaction(whole);
        if self.is_durable {
            self.book.durable(whole);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
